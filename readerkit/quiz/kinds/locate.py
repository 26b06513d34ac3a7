"""Locate the line: the key is an anchor, and any line of its span counts."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from msgspec.structs import astuple

from readerkit.model.language import Told
from readerkit.model.statement import Deed, Statement
from readerkit.quiz.kinds.question import PlaceRef, Question, Refutation, not_read
from readerkit.quiz.lockfile import ResolvedPlace
from readerkit.quiz.messages import Remark
from readerkit.quiz.prompts import CitedLines, LocatePrompt, SearchedLines
from readerkit.quiz.seeded_draw import SeededDraw
from readerkit.quiz.variant import AnswerError, Grade, Scene, Variant

DEEDS: Mapping[Deed, str] = {
    "comment": "a comment, which runs nothing",
    "docstring": "a docstring, which runs nothing",
    "blank": "empty",
    "defines": "opens a definition, whose body is indented below",
    "condition": "tests under which condition the lines indented below run",
    "repeats": "repeats the lines indented below while a condition holds",
    "loop": "opens a loop, which repeats the lines indented below",
    "context": "opens a context, in which the lines indented below run",
    "branch": "opens a branch, whose lines are indented below",
    "assigns": "computes a value and keeps it",
    "changes": "changes a value that is there",
    "calls": "calls something for its effect",
    "returns": "returns, after which nothing more of this function runs",
    "raises": "raises an error, after which nothing more of this function runs",
    "asserts": "checks a condition, and stops with an error where it does not hold",
    "imports": "imports a name",
    "decorates": "a decorator, which wraps the definition below",
    "declares": "declares a name, and gives it no value",
    "deletes": "deletes a name",
    "passes": "does nothing",
    "continues": "goes on with the next turn of the loop",
    "breaks": "ends the loop",
    "other": "another statement than the one that is asked for",
}
_NAMED: Mapping[Deed, str] = {
    "defines": "opens the definition of `{name}`, whose body is indented below",
    "assigns": "keeps a value as `{name}`",
    "changes": "changes `{name}`, which is there already",
    "condition": "decides by `{name}` whether the lines indented below run",
    "repeats": "repeats the lines indented below while a test of `{name}` holds",
    "loop": "goes through `{name}`, each time with the lines indented below",
    "context": "opens `{name}`, in which the lines indented below run",
    "raises": "raises `{name}`, after which nothing more of this function runs",
    "asserts": "checks `{name}`, and stops with an error where it does not hold",
    "decorates": "the decorator `{name}`, which wraps the definition below",
    "declares": "declares `{name}`, and gives it no value",
    "deletes": "deletes `{name}`",
}
_BY: Mapping[Deed, str] = {
    "assigns": "keeps what `{by}` returns as `{name}`",
    "changes": "changes `{name}` by what `{by}` returns",
    "calls": "calls `{by}`",
    "returns": "returns what `{by}` returns",
}


def told_deed(statement: Statement) -> Told:
    """Return what a statement does, in the words of all such statements."""
    name, by, does = statement.name, statement.by, statement.does
    if by and does in _BY and (name or does in ("calls", "returns")):
        return Told(_BY[does], name=name, by=by)
    if name and does in _NAMED:
        return Told(_NAMED[does], name=name)
    return Told(DEEDS[does])


def the_lines(first: int, last: int) -> Told:
    """Return how lines are called."""
    if first == last:
        return Told("Line {first}", first=first)
    return Told("Lines {first} to {last}", first=first, last=last)


def part_of(whole: CitedLines, first: int, last: int) -> CitedLines:
    """Return some of the lines of a place."""
    place = ResolvedPlace(whole.upstream, whole.path, first, last, whole.blob)
    return CitedLines.of(place)


_LINES = re.compile(
    # What stands before the first number is a file; a colon behind it, a column.
    r"\s*(?:.*?(?:[:#]|\blines?\b|\bl[ií]neas?\b))?\s*L?(\d{1,6})"
    r"(?:\s*(?:[-\u2013\u2014]|\.\.|to\b|al?\b)\s*L?(\d{1,6})|:\d{1,4})?[\s.]*",
    re.IGNORECASE,
)
_FILE = re.compile(r"[^\W\d][\w.-]*\.\w{1,5}(?=[:#,\s]|$)")
PATTERNS = {"lines": _LINES, "file": _FILE}
"""By which an answer is read, on a page too."""
TOO_WIDE = Remark(
    Told("That range is too wide: it holds lines that do something else.")
)
FURTHER_DOWN = Remark(Told("What is asked for is further down."))
FURTHER_UP = Remark(Told("What is asked for is further up."))


MIN_LINES_LEFT = 3
"""Times the lines of the key that a hint leaves to search, at least."""


class WrongLines(Refutation, frozen=True):
    """Lines that are taken for the key, and what they do instead."""


class Locate(Question, frozen=True, tag="locate"):
    """The anchor of the key, and of the code that is shown around it."""

    at: PlaceRef
    within: PlaceRef | None = None
    """The key's definition by default."""
    mistakes: tuple[WrongLines, ...] = ()

    def check(self) -> None:
        """Refuse a key of which nothing says what to show around it."""
        whole = PlaceRef(self.at.file, self.at.symbol, upstream=self.at.upstream)
        if self.within is None and (self.at.symbol is None or self.at == whole):
            raise AnswerError("'within' is missing: expected the code to search in")

    def refutations(self) -> Mapping[str, Refutation]:
        """Return the wrong lines."""
        return {f"mistake/{at}": each for at, each in enumerate(self.mistakes, 1)}

    def own_texts(self) -> list[str]:
        """Return what is said to wrong lines."""
        return [each.why for each in self.mistakes]

    def own_places(self) -> dict[str, PlaceRef]:
        """Return the key, what is shown around it and the wrong lines."""
        at = self.at
        around = PlaceRef(at.file, at.symbol, upstream=at.upstream)
        shown = {"key": at, "within": self.within or around}
        return {**shown, **super().own_places()}

    def ask(self, scene: Scene, draw: SeededDraw) -> AskedLine:
        """Return the resolved lines."""
        key, around = scene.place("key"), scene.place("within")
        how = Told(
            "a line number, {first} to {last}", first=around.first, last=around.last
        )
        search = SearchedLines(*astuple(around))
        return AskedLine(
            prompt=LocatePrompt(*scene.head(how), search=search),
            told=scene.solved(str(key)),
            typed_key=str(key.first),
            key=key,
            within=around,
            statements=scene.lock.statements.get(self.id, ()),
            refuted=[
                (scene.place(slot), each.remark(scene, slot))
                for slot, each in self.refutations().items()
            ],
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class AskedLine(Variant):
    """A line to find."""

    key: CitedLines
    within: CitedLines
    refuted: list[tuple[CitedLines, Remark]]
    """Wrong lines, and what is said to who takes one of them."""
    statements: Sequence[Statement]
    """All that stand among the lines shown; none where the lock has none."""

    @property
    def file(self) -> str:
        """The file's name, which an answer may give, and no other."""
        return self.within.path.rpartition("/")[2]

    def how_in_file(self) -> Told:
        """Return what is expected of who names another file."""
        first, last = self.within.first, self.within.last
        how = "a line of {file}, {first} to {last}"
        return Told(how, file=self.file, first=first, last=last)

    def step(self) -> str:
        """Return fewer lines that the key is among; none where they would be it."""
        count, key = self.within.last - self.within.first + 1, self.key
        for parts in (4, 2):
            size = count // parts
            for start in range(self.within.first, self.within.last + 1, max(size, 1)):
                is_around = start <= key.first and key.last < start + size
                if is_around and size >= MIN_LINES_LEFT * (key.last - key.first + 1):
                    last = min(start + size - 1, self.within.last)
                    return Told("It is in {first} to {last}.", first=start, last=last)
        return ""

    def grade(self, answer: str) -> Grade:
        """Return all or nothing: a line of the key, or a range that lies in it.

        Raises:
            AnswerError: no lines, lines that are not shown, or all that are; of another
                file.
        """
        match = _LINES.fullmatch(answer) if len(answer) < 300 else None
        if match is None:
            raise not_read(answer, self.prompt.how)
        name, _, kind = self.file.rpartition(".")
        named = _FILE.findall(answer)
        if name and any(f != self.file and f.endswith(f".{kind}") for f in named):
            raise not_read(answer, self.how_in_file())
        first = int(match[1])
        last = int(match[2] or first)
        if self.key.first <= first <= last <= self.key.last:
            return Grade(1)
        shown = (self.within.first, self.within.last)
        if not shown[0] <= first <= last <= shown[1] or (first, last) == shown:
            raise not_read(answer, self.prompt.how)
        if first <= self.key.last and self.key.first <= last:
            return Grade(0, (TOO_WIDE,))
        for lines, remark in self.refuted:
            if lines.first <= first <= last <= lines.last:
                return Grade(0, (remark,))
        where = FURTHER_DOWN if first < self.key.first else FURTHER_UP
        own = (self.told_of(each) for each in self.statements if each.first <= first)
        return Grade(0, (*[*own][-1:], where))

    def told_of(self, statement: Statement) -> Remark:
        """Return what is said to who takes a statement that nobody foresaw."""
        place = part_of(self.within, statement.first, statement.last)
        lines = the_lines(statement.first, statement.last)
        deed = told_deed(statement)
        return Remark(Told("{lines}: {deed}.", lines=lines, deed=deed), place)

    def in_the_end(self, answer: str) -> tuple[Remark, ...]:
        """Return the lines that were asked for, and what they do."""
        key = self.key
        lines = the_lines(key.first, key.last)
        does = [
            told_deed(each)
            for each in self.statements
            if each.first <= key.last and key.first <= each.last
        ]
        told = Told("{lines}: what is asked for.", lines=lines)
        if len(does) == 1:
            told = Told("{lines}, asked for: {deed}.", lines=lines, deed=does[0])
        return (Remark(told, key),)
