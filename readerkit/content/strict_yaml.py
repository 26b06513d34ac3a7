"""Strict YAML: plain values, and where in the file each of them stands.

Hand-written content is data from anyone. Reading works on the parser's event stream,
which stays flat however deep the input nests, and refuses what data files do not need:
anchors and aliases (the bombs), merge keys, tags, duplicate keys, several documents.
Plain scalars follow the YAML 1.2 core schema (without infinities), so that ``no`` and
``on`` stay strings. Which keys a file may have, ``validation`` says.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import yaml

from readerkit.errors import ContentError, ContentFault

Path = tuple[str | int, ...]
"""Where a value sits: keys and list positions from the top."""

Mark = tuple[int, int]
"""Line and column, both counted from 1."""


@dataclass(slots=True)
class YamlFile:
    """One document: its plain value, and the marks of its values and keys.

    ``faults`` are the things that such a file must not hold; where one stands, the
    value may hold a stand-in, so that the rest can still be checked.
    """

    file: str
    value: Any = None
    value_marks: dict[Path, Mark] = field(default_factory=dict)
    key_marks: dict[Path, Mark] = field(default_factory=dict)
    faults: list[ContentFault] = field(default_factory=list)

    def mark(self, path: Path) -> Mark:
        """Return where the value at ``path`` stands, or its nearest parent."""
        while path and path not in self.value_marks:
            path = path[:-1]
        return self.value_marks.get(path, (1, 1))

    def key_mark(self, path: Path) -> Mark:
        """Return where the key at ``path`` stands, or its value's mark."""
        return self.key_marks.get(path) or self.mark(path)

    def fault(
        self, path: Path, what: str, got: str = "", expected: str = ""
    ) -> ContentFault:
        """Return a fault at the value at ``path``."""
        return ContentFault(self.file, *self.mark(path), what, got, expected)


MAX_BYTES = 1_000_000
MAX_DEPTH = 32
MAX_VALUES = 10_000
"""Seven times the most that any file has; each that does not fit costs its message."""

_Loader: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
_INT = re.compile(r"[-+]?[0-9]+|0o[0-7]+|0x[0-9a-fA-F]+")
_FLOAT = re.compile(r"[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?")
_WORDS = {"": None, "~": None} | {
    spelling: value
    for word, value in (("null", None), ("true", True), ("false", False))
    for spelling in (word, word.capitalize(), word.upper())
}
_IN_PLAIN_WORDS = {
    "mapping values are not allowed": "a ': ' in a text without quotes, or a key that "
    "is indented too far",
    "expected '-' indicator": "a line that is not indented as the list around it",
    "expected ',' or ']'": "a '[' that is not closed",
    "expected ',' or '}'": "a '{' that is not closed",
    "unexpected end of stream": "a quote that is not closed",
    "unknown escape character": "an unknown escape in double quotes (use single ones)",
    "hexdecimal number": "an escape in double quotes without its digits",
    "expected comment or line break": "text behind '|' or '>' (begin it on a new line)",
    "expected alphabetic or numeric": "a text that begins with '&' or '*' (quote it)",
    "expected tag": "a text that begins with '!' (quote it)",
    "undefined tag handle": "a text that begins with '!' (quote it)",
    "expected node content": "a bracket or a comma where a value must be (quote it)",
    "block sequence entries": "a list on the line of its key (begin it on a new line)",
    "expected key": "no key here: a line indented otherwise, or text after a quote",
    "<document start>": "more after the end: a bracket too many, or less indented",
    "control characters": "a control character",
    "special characters": "a control character",
}
"""What the parser says, by a part of it, to what a person has to look for."""
TOO_DEEP = "maximum nesting depth"
_UNPRINTABLE = yaml.reader.Reader.NON_PRINTABLE


def parse_yaml(data: bytes, file: str) -> YamlFile:
    """Return the one document that ``data`` holds, and its faults.

    Those are every duplicate key, alias, anchor, tag, and a second document.

    Raises:
        ContentError: the first place where the file is not YAML, too large, or nested
            too deep, beside the faults before it.
    """
    if len(data) > MAX_BYTES:
        size = f"{len(data):,} bytes"
        raise ContentError(
            [
                ContentFault(
                    file, 1, 1, "file is too large", size, f"at most {MAX_BYTES:,}"
                )
            ]
        )
    text = decode(data, file)
    composer = _Composer(file)
    try:
        loader = _Loader(text)
        try:
            composer.compose(_events(loader))
        finally:
            loader.dispose()
    except yaml.YAMLError as error:
        raise ContentError(
            [*composer.result.faults, _syntax_fault(error, text, file)]
        ) from None
    return composer.result


def decode(data: bytes, file: str) -> str:
    """Return the text of a hand-written file.

    Raises:
        ContentError: the first byte that is not UTF-8.
    """
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        column = error.start - (data.rfind(b"\n", 0, error.start) + 1) + 1
        bad = f"byte 0x{data[error.start]:02x}"
        raise ContentError(
            [ContentFault(file, line, column, "file is not UTF-8", bad, "UTF-8 text")]
        ) from None


def _events(loader: Any) -> Iterator[Any]:
    while loader.check_event():
        yield loader.get_event()


def _syntax_fault(error: yaml.YAMLError, text: str, file: str) -> ContentFault:
    mark = getattr(error, "problem_mark", None)
    unprintable = _UNPRINTABLE.search(text)
    if mark is not None:
        line, column = mark.line + 1, mark.column + 1
    elif unprintable is not None:  # a reader's error counts bytes or characters
        position = unprintable.start()
        line = text.count("\n", 0, position) + 1
        column = position - (text.rfind("\n", 0, position) + 1) + 1
    else:
        line, column = 1, 1
    problem = getattr(error, "problem", None) or getattr(error, "reason", None)
    got = _plainly(str(problem or error).splitlines()[0], text, line, column)
    if TOO_DEEP in got:  # a parser of late 2026 has a limit of its own
        most = f"at most {MAX_DEPTH} levels"
        return ContentFault(file, line, column, "nested too deep", "", most)
    start = getattr(error, "context_mark", None)
    if start is not None and start.line + 1 < line:
        got += f", in what began at line {start.line + 1}"
    return ContentFault(file, line, column, "not valid YAML", got)


def _plainly(said: str, text: str, line: int, column: int) -> str:
    if "cannot start any token" in said:
        letter = text.split("\n")[line - 1][column - 1 :][:1]
        if letter == "\t":
            return "a tab (indent with spaces)"
        return f"a text that begins with {letter!r} (put it in quotes)"
    for part, plain in _IN_PLAIN_WORDS.items():
        if part in said:
            return plain
    return said


class _Composer:
    """Builds values from events with an explicit stack instead of recursion."""

    def __init__(self, file: str) -> None:
        self.file = file
        self.result = YamlFile(file)
        # One frame per open collection: (container, its path, key that waits).
        self.stack: list[tuple[Any, Path, str | None]] = []
        self.documents = 0
        self.values = 0
        """Keys among them."""

    def compose(self, events: Iterator[Any]) -> None:
        for event in events:
            if isinstance(event, yaml.CollectionEndEvent):
                self.stack.pop()
                continue
            mark = (event.start_mark.line + 1, event.start_mark.column + 1)
            if isinstance(event, yaml.ScalarEvent):  # most of them are
                self._refuse_properties(event, mark)
                self._place(_scalar(event), mark)
            elif isinstance(event, yaml.CollectionStartEvent):
                self._refuse_properties(event, mark)
                self._open(
                    [] if isinstance(event, yaml.SequenceStartEvent) else {}, mark
                )
            elif isinstance(event, yaml.AliasEvent):
                self._fault(mark, "an alias", f"'*{event.anchor}'", "the value itself")
                self._place(None, mark)
            elif isinstance(event, yaml.DocumentStartEvent):
                self.documents += 1
                if self.documents > 1:
                    self._fault(mark, "a second document", "'---'", "one per file")
                    return

    def _fault(self, mark: Mark, what: str, got: str = "", expected: str = "") -> None:
        self.result.faults.append(ContentFault(self.file, *mark, what, got, expected))

    def _refuse_properties(self, event: Any, mark: Mark) -> None:
        if event.anchor:
            self._fault(mark, "an anchor", f"'&{event.anchor}'", "no YAML anchors")
        if event.tag:
            self._fault(mark, "a tag", f"'{event.tag}'", "no YAML tags")

    def _open(self, container: list[Any] | dict[str, Any], mark: Mark) -> None:
        if len(self.stack) >= MAX_DEPTH:
            fault = ContentFault(
                self.file, *mark, "nested too deep", "", f"at most {MAX_DEPTH} levels"
            )
            raise ContentError([*self.result.faults, fault])
        path = self._place(container, mark)
        self.stack.append((container, path, None))

    def _place(self, value: Any, mark: Mark) -> Path:
        """Put a finished value where the open collection waits for one."""
        self.values += 1
        if self.values > MAX_VALUES:
            most = f"at most {MAX_VALUES:,}: make several files of it"
            fault = ContentFault(self.file, *mark, "too many values", "one more", most)
            raise ContentError([*self.result.faults, fault])
        if not self.stack:
            self.result.value = value
            self.result.value_marks[()] = mark
            return ()
        container, path, key = self.stack[-1]
        if isinstance(container, list):
            path = (*path, len(container))
            container.append(value)
        elif key is None:
            self.stack[-1] = (container, path, self._key(value, container, path, mark))
            return path
        else:
            self.stack[-1] = (container, path, None)
            path = (*path, key)
            if key not in container:  # the first of two duplicates stays
                container[key] = value
        self.result.value_marks.setdefault(path, mark)
        return path

    def _key(self, value: Any, container: Any, path: Path, mark: Mark) -> str:
        key = value if isinstance(value, str) else f"\0{mark[0]}:{mark[1]}"
        if key is not value:
            kind = type(value).__name__
            self._fault(mark, "a key that is not a string", kind, "a string")
        if key == "<<":
            self._fault(mark, "a merge key", "'<<'", "the keys themselves")
        if key in container:
            first = self.result.key_marks[(*path, key)]
            got = f"'{key}', first at line {first[0]}"
            self._fault(mark, "a duplicate key", got, "each key once")
        self.result.key_marks.setdefault((*path, key), mark)
        return key


def _scalar(event: Any) -> Any:
    """Return the value of a scalar; only plain ones can be other than strings."""
    text: str = event.value
    if not event.implicit[0]:  # quoted or in block style
        return text
    if text in _WORDS:
        return _WORDS[text]
    if _INT.fullmatch(text):
        base = {"0o": 8, "0x": 16}.get(text[:2], 10)
        return int(text, base) if len(text) <= 18 else text
    if _FLOAT.fullmatch(text):
        number = float(text)
        if number.is_integer() and abs(number) < 1e15:
            return int(number)  # to a JSON schema 2.0 is an integer; here it is one
        return number if math.isfinite(number) else text
    return text
