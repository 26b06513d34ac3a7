"""What each part of a file is, for its colour: a comment, a string, a keyword, ...

By tokens alone, so that code which does not parse has its colours too. Repeated groups
are atomic, not possessive: those are matched wrongly by Python 3.11.0 to 3.11.4.
"""

from __future__ import annotations

import re
from keyword import kwlist

Colours = dict[tuple[int, int], str]
"""By start and end in bytes: ``comment``, ``string``, ``number``, ``keyword``,
``constant``, ``defined`` (the name of a class or function). None is inside another: a
string that holds code has a gap there."""

MAX_NESTED = 8
"""Strings in the code in strings ...: what is deeper is read as plain code."""

_CONSTANTS = ("None", "True", "False")
_KEYWORDS = "|".join(word for word in kwlist if word not in _CONSTANTS)
_LETTERS = r"[\w\x80-\xff]"
_WORD = rf"(?!\d){_LETTERS}++"
_PLAIN, _FORMATTED = "[bB][rR]?|[rR][bB]?|[uU]", "[fFtT][rR]?|[rR][fFtT]"
# A single quote ends its string with the line, also where it is not closed.
_TOKENS = rf"""
  (?P<comment>\#[^\n]*+)
| (?P<string>(?:{_PLAIN})?(?:
    '''(?>(?:[^\\']++|\\.|'(?!''))*)(?:'''|\Z) | '(?>(?:[^\\'\n]++|\\.)*)'?
  | \"\"\"(?>(?:[^\\"]++|\\.|"(?!""))*)(?:\"\"\"|\Z) | "(?>(?:[^\\"\n]++|\\.)*)"?))
| (?P<formatted>(?:{_FORMATTED})(?P<quote>'''|\"\"\"|'|"))
| (?P<number>(?:0[xX][\da-fA-F_]++|0[oObB][\d_]++
    |(?:\d[\d_]*+(?:\.[\d_]*+)?|\.\d[\d_]*+)(?:[eE][-+]?\d[\d_]*+)?)[jJ]?)
| (?P<header>def|class)[ \t]++(?P<defined>{_WORD})
| (?P<constant>(?:{"|".join(_CONSTANTS)})(?!{_LETTERS}))
| (?P<keyword>(?:is[ ]not|not[ ]in|{_KEYWORDS})(?!{_LETTERS}))
| \Z"""
_NAME = rf"""(?!(?:{"|".join(_CONSTANTS)}|{_KEYWORDS})(?!{_LETTERS})
  |(?:{_PLAIN}|{_FORMATTED})["']){_WORD}"""


def _compiled(pattern: str) -> re.Pattern[bytes]:
    return re.compile(pattern.encode("latin-1"), re.VERBOSE | re.DOTALL)


_CODE = _compiled(rf"(?>(?:[^\#'\"\w.\x80-\xff]++|\.(?!\d)|{_NAME})*)(?:{_TOKENS})")
# Code in a string ends at a bracket too many, or at what says how it is shown.
_HOLE = _compiled(
    rf"""(?>(?:[^\#'"\w.\x80-\xff()\[\]{{}}:!=<>]++|\.(?!\d)|[=!<>]=|[<>]
      |=(?!\s*[}}!:])|{_NAME})*)
    (?:{_TOKENS}|(?P<open>[(\[{{])|(?P<close>[)\]}}])|(?P<stop>[:!=]))"""
)
_TEXT = {
    quote: _compiled(
        rf"""(?>(?:{letters}|\\N\{{[^}}]*+\}}|\\(?:[^{{]|(?=\{{))|\{{\{{)*)
        (?:(\{{)|{quote}|)"""
    )
    for quote, letters in (
        ("'", r"[^\\{'\n]++"),
        ('"', r'[^\\{"\n]++'),
        ("'''", r"[^\\{']++|'(?!'')"),
        ('"""', r'[^\\{"]++|"(?!"")'),
    )
}
"""By quote: the text of a string up to the code that it holds, or to its end."""


def find_colours(data: bytes) -> Colours:
    """Return the parts of a file that have a colour, in order."""
    colours: Colours = {}
    at: int | None = 0
    while at is not None:
        at = _code(data, at, colours)
    return colours


def _code(data: bytes, at: int, colours: Colours) -> int | None:
    """Note the parts of code; return where a string ends that holds code, if any."""
    for match in _CODE.finditer(data, at):
        kind = match.lastgroup
        if kind == "formatted":
            return _formatted(data, match, colours, 0)
        if kind:
            _note(match, kind, colours)
    return None


def _note(match: re.Match[bytes], kind: str, colours: Colours) -> None:
    if kind == "defined":
        colours[match.span("header")] = "keyword"
    colours[match.span(kind)] = kind


def _formatted(
    data: bytes, opened: re.Match[bytes], colours: Colours, nested: int
) -> int:
    """Note the parts of a string that holds code; return where it ends."""
    text = _TEXT[opened["quote"].decode()]
    start, at = opened.start("formatted"), opened.end()
    while match := text.match(data, at):
        at = match.end()
        if start < at:  # else the file ends in the code
            colours[start, at] = "string"
        if not match[1]:
            break
        start = at = _hole(data, at, colours, nested)
    return at


def _hole(data: bytes, at: int, colours: Colours, nested: int) -> int:
    """Note the parts of code in a string; return where the code ends."""
    depth = 0
    while match := _HOLE.match(data, at):
        kind, at = match.lastgroup, match.end()
        if kind is None:  # the end of the file
            break
        if kind == "formatted":
            if nested < MAX_NESTED:
                at = _formatted(data, match, colours, nested + 1)
        elif kind == "open":
            depth += 1
        elif kind in ("close", "stop"):
            if depth == 0:
                return match.start(kind)
            depth -= kind == "close"
        else:
            _note(match, kind, colours)
    return at
