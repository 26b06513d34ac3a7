"""A text written in Markdown for the site: its prose, its fences, and its claims.

Between fences stands what is resolved when the site is built: ``note ID``, ``diagram
NAME``, ``mechanism NAME``, ``schedule NAME RANKS MICROBATCHES [CHUNKS]``, ``setting
KEY=VALUE ...`` with an item of an estimate a line, ``predict ID`` and ``question ID``
of a quiz, ``mini NAME [SECTION]``, ``tour ID``; ``let`` gives names to numbers. What
proves the sentences of a text stands beside it: ``NN-name.yaml`` by ``NN-name.md``.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar

from readerkit.content.claims import Claim, Claimed, Claims, one_spaced
from readerkit.content.kind import Kind, Place
from readerkit.errors import ContentError, ContentFault
from readerkit.model.base import Model, Text
from readerkit.model.language import SPANISH

FENCES = (
    *("note", "diagram", "mechanism", "schedule", "let", "setting"),
    *("predict", "question", "mini", "tour"),
)
_FENCE = re.compile(rf"^```({'|'.join(FENCES)})\b *(.*)\n((?s:.*?))^```$", re.MULTILINE)
_PARAGRAPH = re.compile(
    r"(?m)^```(?s:.*?)^```$|^(?!#)(?P<prose>\S.*(?:\n(?!#|```)[^\S\n]*\S.*)*)"
)


class ScriptClaims(Model, frozen=True):
    """What stands beside a text: what proves its sentences."""

    claims: Claims


CHAPTER: Kind[ScriptClaims] = Kind("chapter", ScriptClaims, "one")


class Paragraph(Claimed, frozen=True):
    """A paragraph of prose, with the claims that hold its words."""

    TEXTS: ClassVar = ("text",)
    text: Text


@dataclass(frozen=True, slots=True)
class ChapterText:
    """The text of a chapter, a lab or its solution, as it was read."""

    name: str
    """``why-distributed``, ``lab-02``, ``lab-02-solution``"""
    file: str
    text: str
    spanish: str = ""
    """The Spanish text, if there is one."""
    claims: tuple[Claim, ...] = ()

    @property
    def id(self) -> str:
        """What it is called among all that carries claims."""
        return self.name

    @property
    def title(self) -> str:
        """Its first line, without the mark before it."""
        return self.text.partition("\n")[0].removeprefix("# ")

    @property
    def spanish_file(self) -> str:
        """Where the Spanish text stands."""
        return self.file.removesuffix("md") + f"{SPANISH}.md"

    def claimed(self) -> Iterator[Paragraph]:
        """Yield its paragraphs, each with its claims."""
        left = list(self.claims)
        for part in parts_of(self.text, self.file):
            for match in _PARAGRAPH.finditer("" if part.kind else part.body):
                if not match["prose"]:  # code
                    continue
                words = one_spaced(match[0])
                own = [each for each in left if one_spaced(each.says) in words]
                left = [each for each in left if each not in own]
                line = part.at + part.body.count("\n", 0, match.start())
                place = Place(self.file, line, 1)
                yield Paragraph(text=match[0], claims=tuple(own), place=place)

    def claim_faults(self) -> Iterator[ContentFault]:
        """Yield a fault for each claim whose words stand in no paragraph."""
        placed = [claim for each in self.claimed() for claim in each.claims]
        for claim in self.claims:
            if claim not in placed:
                expected = f"words of one paragraph of {self.file}, as they stand"
                yield claim.place.fault(
                    "'says' what no text says", f"'{claim.says}'", expected
                )


@dataclass(frozen=True, slots=True)
class LabScript:
    """The texts of a lab, as they were read."""

    name: str
    """``02``"""
    problem: ChapterText
    solution: ChapterText | None = None
    task: str = ""
    """The cloud task, or nothing."""

    @property
    def texts(self) -> tuple[ChapterText, ...]:
        """The problem, and the solution where there is one."""
        return (self.problem, *([self.solution] if self.solution else []))


@dataclass(frozen=True, slots=True)
class Part:
    """A run of prose, or what stands in a fence."""

    file: str
    at: int
    """The line it begins at."""
    body: str
    kind: str = ""
    """Empty: prose."""
    name: str = ""

    @property
    def shows(self) -> str:
        """What it says in no language."""
        rows = self.body.splitlines()
        if self.kind == "setting":
            told = ", ".join(one_spaced(row.partition("=")[0]) for row in rows)
        else:
            told = ", ".join(map(one_spaced, rows)) if self.kind == "let" else ""
        return " ".join([self.kind, self.name, told]).strip()

    def fault(self, what: str, got: str = "", expected: str = "") -> ContentError:
        """Return a fault at its first line, to be raised."""
        return ContentError([ContentFault(self.file, self.at, 1, what, got, expected)])


def parts_of(text: str, file: str) -> Iterator[Part]:
    """Yield prose and fences in turn, prose first and last, the title left out."""

    def line_of(offset: int) -> int:
        return text.count("\n", 0, offset) + 1

    reached = text.index("\n") if "\n" in text else len(text)
    for match in _FENCE.finditer(text):
        yield Part(file, line_of(reached), text[reached : match.start()])
        kind, name, body = match[1], (match[2] or "").strip(), match[3]
        yield Part(file, line_of(match.start()), body, kind, name)
        reached = match.end()
    yield Part(file, line_of(reached), text[reached:])
