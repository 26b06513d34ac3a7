"""A file of the CodeTour extension, as values: what a tour says, and of which lines.

Keys that are not asked for are passed over: others may add their own.
"""

from __future__ import annotations

import re
from typing import Annotated

from msgspec import Meta, Struct, ValidationError, json

from readerkit.errors import ContentFault, GivenFileError

Line = Annotated[int, Meta(ge=1)]
# What the extension writes of a line: its text as a regular expression, any indent.
_INDENT = re.compile(r"^\^?(\[\^\\S\\n\]\*|\\s\*)?")
_SPECIAL = re.compile(r"[\\^$.*+?()\[\]{}|]")


class TourPosition(Struct, frozen=True):
    """A line and a column, from 1."""

    line: Line
    character: int = 1


class TourSelection(Struct, frozen=True):
    """What a step selects."""

    start: TourPosition
    end: TourPosition


class TourStep(Struct, frozen=True):
    """One step: words, and perhaps a place."""

    description: str
    title: str = ""
    file: str | None = None
    directory: str | None = None
    uri: str | None = None
    view: str | None = None
    line: Line | None = None
    pattern: str | None = None
    selection: TourSelection | None = None

    def lines(self, rows: list[str]) -> tuple[int, int] | str:
        """Return its first and last line among those of its file; or why it has none.

        What is selected goes before the one line below which the words stand.
        """
        if chosen := self.selection:
            first, last = chosen.start.line, chosen.end.line
            if last > first and chosen.end.character <= 1:  # up to a line's beginning
                last -= 1
            return (first, last)
        if self.line is not None:
            return (self.line, self.line)
        if self.pattern is None:
            return "it names a file alone, no line"
        literal = _literal(self.pattern)
        if not literal:
            return f"its pattern is more than the text of a line: {self.pattern:.60}"
        found = [n for n, row in enumerate(rows, 1) if row.strip() == literal]
        if len(found) == 1:
            return (found[0], found[0])
        return f"its pattern fits {len(found)} lines: {self.pattern:.60}"


class CodeTour(Struct, frozen=True):
    """A tour: steps in their order."""

    title: str
    steps: tuple[TourStep, ...]
    description: str = ""
    ref: str = ""


def _literal(pattern: str) -> str:
    """Return the text that a pattern is of; nothing where it is more than that."""
    rest = _INDENT.sub("", pattern, count=1).removesuffix("$")
    plain = re.sub(r"\\([^A-Za-z0-9])", "", rest)
    if _SPECIAL.search(plain):
        return ""
    return re.sub(r"\\([^A-Za-z0-9])", r"\1", rest).strip()


def read_code_tour(data: bytes, file: str) -> CodeTour:
    """Return the tour in a file.

    Raises:
        GivenFileError: no JSON, or no tour.
    """
    try:
        return json.decode(data, type=CodeTour)
    except ValidationError as error:
        said = str(error)
    except (ValueError, RecursionError) as error:  # no JSON at all, or no UTF-8
        said = f"no JSON: {error}"
    expected = "a file of CodeTour: 'title' and 'steps', each with a 'description'"
    fault = ContentFault(file, 1, 1, "not a readable tour", said, expected)
    raise GivenFileError([fault])
