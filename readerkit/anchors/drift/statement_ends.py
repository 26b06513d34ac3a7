"""Where a statement ends, by indentation and brackets, and what a line is known by.

No parser: the same for Python, for languages with braces, and for data.
"""

from __future__ import annotations

import re

from readerkit.anchors.drift.text import FileText

_GOES_ON = re.compile(rb"\s*(?:\}\s*)?(else|elif|except|finally|catch|while)\b")
_TAKES_MORE = re.compile(
    rb"\s*(?:\}\s*)?(?:async\s+)?(if|elif|else|for|while|try|except|with|do|catch)\b"
)
_CLOSERS = b")]}"
_MAX_LINES = 2_000
_QUOTES = (b'"""', b"'''")
_TARGET = re.compile(
    rb"\s*(?:(?:const|let|var|auto|static|export|final)\s+)*"
    rb"((?:[\w.*&<>]+\s+)?[\w.$]+(?:\[[^\]=]*\])?(?:\s*,\s*[\w.$]+)*)"
    rb"(?:\s*:\s*[^=()]+)?\s*(?:[-+*/|&]|:)?=(?![=>])"
)
_IMPORT = re.compile(
    rb"\s*(from\s+\S+\s+import\b|import\s+[\w.]+|use\s+[\w:]+|#include\s+\S+)"
)
_ENTRY = re.compile(rb"\s*([\"'][^\"']{2,60}[\"'])\s*:\s")


def statement_end(text: FileText, first: int, *, is_python: bool) -> int:
    """Return the last line of what begins on a line, with all that is inside it.

    What is indented further is inside, and a bracket that closes, and what goes on with
    ``else`` and its like where the first line can have that.
    """
    indents, lines = text.indents, text.lines
    indent = indents[first]
    if indent < 0:
        return first
    takes_more = bool(_TAKES_MORE.match(lines[first][:200]))
    end, quote = first, _left_open(lines[first], b"") if is_python else b""
    for number in range(first + 1, min(len(lines), first + _MAX_LINES)):
        line = lines[number]
        if quote:
            quote, end = _left_open(line, quote), number
            continue
        if indents[number] < 0:
            continue
        bare = line[:400].lstrip()
        if is_python and bare[:1] == b"#":
            continue
        if indents[number] < indent:
            break
        if indents[number] == indent:
            closes = bare[:1] in _CLOSERS
            opens = not is_python and bare[:1] == b"{"
            more = takes_more and _GOES_ON.match(bare)
            if not (closes or opens or more):
                break
        end = number
        quote = _left_open(line, b"") if is_python else b""
    return end


def _left_open(line: bytes, quote: bytes) -> bytes:
    """Return the quotes that are open behind a line."""
    if not quote and not any(each in line for each in _QUOTES):
        return b""
    at = 0
    while True:
        if quote:
            at = line.find(quote, at)
            if at < 0:
                return quote
            quote, at = b"", at + 3
            continue
        opened = [(n, each) for each in _QUOTES if (n := line.find(each, at)) >= 0]
        if not opened:
            return b""
        at, quote = min(opened)
        at += 3


def last_statement(
    text: FileText, first: int, last: int, *, is_python: bool
) -> int | None:
    """Return the first line in a span of what ends just where the span ends."""
    for number in range(first, last + 1):
        if text.indents[number] >= 0 and (
            statement_end(text, number, is_python=is_python) == last
        ):
            return number
    return None


def target_of(line: bytes) -> bytes:
    """Return what a line gives a value to: a name, an argument, a key; or nothing."""
    line = line[:400]
    found = _TARGET.match(line) or _ENTRY.match(line) or _IMPORT.match(line)
    return b"".join(found[1].split()) if found else b""
