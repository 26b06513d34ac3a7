"""What ``drift --keep`` found, as the book keeps it: places and reasons, no code.

A page of the site and its feed are made of it. Upstream text is not kept: the lines
that a note is on are shown from verified source.
"""

from __future__ import annotations

from typing import Annotated

from msgspec import Meta

from readerkit.content.vocabulary import DriftStatus
from readerkit.model.git_names import place_text
from readerkit.model.stored import Stored, parse
from readerkit.wording.next_command import typed

FORMAT = 1
Chance = Annotated[float, Meta(ge=0, le=1)]
Day = Annotated[str, Meta(pattern=r"^\d{4}-\d\d-\d\d\Z")]


class KeptPlace(Stored, frozen=True):
    """Lines of a file, counted from 1, both included."""

    path: str
    first: int
    last: int

    def __str__(self) -> str:
        """Return it as editors know it."""
        return place_text(self.path, self.first, self.last)


class KeptDriftNote(Stored, frozen=True):
    """A note, and where its lines are in the other revision."""

    id: str
    status: DriftStatus
    was: KeptPlace
    to: KeptPlace | None
    parts: tuple[KeptPlace, ...]
    confidence: Chance
    to_do: str


class KeptDriftSentence(Stored, frozen=True):
    """A sentence that does not hold in the other revision."""

    id: str
    says: str
    is_false: bool
    """Whether it is not true; else it cannot be held there."""


class KeptDrift(Stored, frozen=True, rename={"was": "from"}):
    """An upstream in another revision, on the day that somebody looked."""

    format: int
    upstream: str
    on: Day
    was: str
    """How the pinned revision is called."""
    to: str
    origin: str
    commit: str
    held: int
    notes: tuple[KeptDriftNote, ...]
    sentences: tuple[KeptDriftSentence, ...]

    @classmethod
    def parse(cls, text: str, file: str) -> KeptDrift:
        """Return what a file holds.

        Raises:
            ContentError: text that is no such file.
        """
        expected = f"what {typed('drift', 'UPSTREAM', '--keep')} writes"
        how = {"what": "report of drift", "expected": expected, "version": FORMAT}
        return parse(text, cls, file, **how)  # type: ignore[arg-type]
