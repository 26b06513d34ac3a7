"""The lock beside a bank: what its anchors and records resolved to.

With it a quiz starts without a syntax tree and without a record; lint and the tests
hold it against both.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from typing import Annotated, TypeVar

from msgspec import Meta, MsgspecError, json
from msgspec.structs import replace

from readerkit.errors import ReaderkitError
from readerkit.model import stored
from readerkit.model.expression import Number
from readerkit.model.freshness import Change, MadeFrom, changes, digest
from readerkit.model.git_names import (
    NO_BLOB,
    BlobId,
    TreePath,
    parse_lines,
    parse_path,
    parse_upstream,
    place_text,
)
from readerkit.model.statement import Statement
from readerkit.model.stored import HEX_ID, Stored
from readerkit.wording.next_command import typed

FORMAT = 2

Fact = Number | tuple[str, ...]
"""What a record says: a number, or words in their order."""
_V = TypeVar("_V")


class KeyMissingError(ReaderkitError):
    """A key that the bank's lock does not hold."""


class ResolvedPlace(Stored, frozen=True, omit_defaults=True):
    """Resolved lines of an upstream or a mini, as the lock has them."""

    upstream: str
    path: TreePath
    first: int
    last: int
    blob: Annotated[BlobId, HEX_ID] = NO_BLOB
    """Git's id of the file's bytes; empty for a mini, which is read as it stands."""
    note: str = ""
    """The annotation that these lines belong to."""
    title: str = ""
    """Of that annotation."""

    def __post_init__(self) -> None:
        """Refuse lines that are none, and names that lead elsewhere."""
        parse_lines(self.first, self.last)
        parse_upstream(self.upstream)
        parse_path(self.path)

    def __str__(self) -> str:
        """Return it as editors know it."""
        return place_text(self.path, self.first, self.last)


class Work(Stored, frozen=True):
    """A paper or page that questions point to."""

    title: str
    authors: str
    year: int
    url: Annotated[str, Meta(pattern="^https://")]


class SpanishNote(Stored, frozen=True):
    """What an annotation is called in Spanish."""

    title: str


class LockedFact(Stored, frozen=True, omit_defaults=True):
    """What a record, a schedule or a fault said, and what said it."""

    value: Fact
    made_from: MadeFrom
    command: str = ""
    """What makes the record anew that says it."""
    sites: tuple[ResolvedPlace | None, ...] = ()
    """The lines that each call of the record came from; None where it was no line."""


class QuizLock(Stored, frozen=True, omit_defaults=True):
    """Every resolved key of a bank."""

    places: Mapping[str, ResolvedPlace] = {}
    """``QUESTION/slot`` of a place in the bank, ``note:ID`` of an annotation."""
    facts: Mapping[str, LockedFact] = {}
    """By question."""
    works: Mapping[str, Work] = {}
    """By the key of the reference."""
    statements: Mapping[str, tuple[Statement, ...]] = {}
    """By question: those among the lines that it shows, in their order."""
    spanish: Mapping[str, SpanishNote] = {}
    """By annotation, where it has any."""
    living: Mapping[str, str] = {}
    """By the name of a place in code that lives on: the digest of its code. Its lines
    are those of the day on which it was locked."""
    format: int = 0
    """Of the file; 0 where it was not read from one."""

    @classmethod
    def parse(cls, text: str, file: str) -> QuizLock:
        """Return the lock that ``to_text`` wrote.

        Raises:
            ContentError: text that is not such a lock.
        """
        with suppress(MsgspecError, RecursionError):
            lock = json.decode(text, type=cls)
            if lock.format == FORMAT:
                return replace(lock, format=0)
        expected = f"what {typed('quiz', 'lint', '--update-lock')} writes: run it"
        return stored.parse(
            text, cls, file, what="lock", expected=expected, version=FORMAT
        )

    def to_text(self) -> str:
        """Return JSON, sorted, a key on a line: made to be diffed."""
        names = ("places", "facts", "works", "statements", "spanish", "living")
        in_order = {name: dict(sorted(getattr(self, name).items())) for name in names}
        return stored.write(replace(self, **in_order, format=FORMAT), width=1)


def held(table: Mapping[str, _V], name: str) -> _V:
    """Return an entry of a table of the lock.

    Raises:
        KeyMissingError: the lock has none.
    """
    if name not in table:
        raise KeyMissingError(
            f"{name}: the lock of this bank holds no such key: make it anew with "
            + typed("quiz", "lint", "--update-lock")
        )
    return table[name]


def differences(locked: QuizLock, now: QuizLock) -> list[Change]:
    """Return each key that is not what was locked.

    A source that was made anew and says the same is no difference: it is asked again
    each time.
    """
    return changes(_said(locked), _said(now))


def _said(lock: QuizLock) -> MadeFrom:
    """Return the digest of each key's value, by its name."""
    return {
        **{slot: _said_of(slot, lock) for slot in sorted(lock.places)},
        **{key: digest(repr(work)) for key, work in sorted(lock.works.items())},
        **{name: str(fact.value) for name, fact in sorted(lock.facts.items())},
        **{
            f"{note}: in Spanish": told.title
            for note, told in sorted(lock.spanish.items())
        },
        **{
            f"{name}: statements": digest(repr(_in_place(name, lock)))
            for name in sorted(lock.statements)
        },
    }


def _said_of(slot: str, lock: QuizLock) -> str:
    """Return everything that the lock has of a place.

    Of code that lives on it is the code: lines that only shifted say the same.
    """
    place = lock.places[slot]
    where = str(place), place.blob[:12]
    if code := lock.living.get(slot):
        where = place.path, code
    return " ".join(filter(None, (place.upstream, *where, place.note, place.title)))


def _in_place(question: str, lock: QuizLock) -> tuple[Statement, ...]:
    """Return statements by their lines; by those shown, where these shift."""
    within, rows = f"{question}/within", lock.statements[question]
    if within not in lock.living:
        return rows
    start = lock.places[within].first
    return tuple(replace(r, first=r.first - start, last=r.last - start) for r in rows)
