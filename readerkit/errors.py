"""The exception tree; imports nothing of the package.

ReaderkitError          a mistake in content or usage, or a fact of the world outside
├── ContentError        faults in hand-written files, each with file, line and column
├── WrongUseError       a name that nothing has, a file that is not what it should be
│   ├── TakenError      a place where something is that is not to be overwritten
│   ├── SeveralFilesError  a path that is the end of more than one
│   ├── EstimateError   a size that no machine or model can have
│   └── GivenFileError  a ContentError too: the faults of a file that was named
├── BudgetError         a job that must not start, or a ledger that refuses
│   ├── LedgerTakenError  a TakenError too: a ledger is where one was to be made
│   └── JobError        a WrongUseError too: what was typed is no job
├── AnchorError         an anchor that names no place, or more than one
├── LockError           resolved lines and the committed lock differ
├── SourceError         one source cannot serve an upstream; the next one is tried
│   └── MovedTagError   a tag left its pinned commit; no other source is tried
└── StoreError          the cache or the disk under it
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

MAX_SHOWN_FAULTS = 100
"""More than anyone mends at once; a file made to hurt has a hundred thousand."""

MAX_GOT = 300
"""Letters of what was got instead; a file made to hurt has a million."""


class ReaderkitError(Exception):
    """Printed as one message; the command exits with 1, for a WrongUseError with 2."""


class WrongUseError(ReaderkitError):
    """What was typed is wrong: an option, a name, a file that is not what it should be.

    What was asked for rightly and failed, or came out as a no, is a ReaderkitError.
    """


class TakenError(WrongUseError):
    """A place for something new where something is: it is not overwritten."""


class SeveralFilesError(WrongUseError):
    """A path that several files of a book end with.

    ``reason`` is one sentence; ``files`` are those that it could mean.
    """

    def __init__(self, reason: str, files: Iterable[str]) -> None:
        self.reason = reason
        self.files = tuple(files)
        super().__init__("\n    ".join([reason, *self.files]))


class ContentFault(NamedTuple):
    """One thing wrong in one hand-written file."""

    file: str
    """Empty: what is wrong is in none of them."""
    line: int
    column: int
    what: str
    got: str = ""
    expected: str = ""

    def __str__(self) -> str:
        """Return ``file:line:column: what: got X, expected Y``."""
        place = f"{self.file}:{self.line}:{self.column}: " if self.file else ""
        return place + self.message

    @property
    def message(self) -> str:
        """What is wrong, without its place."""
        parts = []
        if self.got:
            got = self.got
            short = got if len(got) <= MAX_GOT else f"{got[: MAX_GOT - 1]}…"
            parts.append(f"got {short}")
        if self.expected:
            parts.append(f"expected {self.expected}")
        return f"{self.what}: {', '.join(parts)}" if parts else self.what


class ContentError(ReaderkitError):
    """Every fault found in hand-written files, at once."""

    def __init__(self, faults: Iterable[ContentFault]) -> None:
        self.faults = tuple(sorted(faults))
        rows = [str(fault) for fault in self.faults[:MAX_SHOWN_FAULTS]]
        more = len(self.faults) - MAX_SHOWN_FAULTS
        if more > 0:
            rows.append(f"and {more:,} more")
        super().__init__("\n".join(rows))


class GivenFileError(ContentError, WrongUseError):
    """Every fault found in a file that was named to a command, at once."""


class EstimateError(WrongUseError):
    """A size, a rate or a layout that does not fit; names what it got and expected.

    It is a wrong question: an answer that is no (it does not fit) is another thing.
    """


class BudgetError(ReaderkitError):
    """A job that must not start, or a ledger that cannot say whether it may."""


OVER_CEILING = "over the ceiling"


class CeilingError(BudgetError):
    """A job that would cost more than a ceiling leaves; it begins OVER_CEILING."""


class LedgerTakenError(BudgetError, TakenError):
    """A ledger for a place where one is: it keeps what was spent."""


class JobError(BudgetError, WrongUseError):
    """A job that is none: its number, a size, a price or a word of it is wrong."""


class AnchorError(ReaderkitError):
    """An anchor that does not resolve to exactly one place.

    ``reason`` is one sentence; ``candidates`` are the places or names it could mean.
    """

    def __init__(self, reason: str, candidates: Iterable[str] = ()) -> None:
        self.reason = reason
        self.candidates = tuple(candidates)
        super().__init__("\n    ".join([reason, *self.candidates]))


class GrammarError(AnchorError):
    """No grammar for a language: of all anchors in files of it, none resolves.

    ``what`` is wrong with it, and ``mend`` is the command that mends it.
    """

    def __init__(self, what: str, mend: str) -> None:
        self.what = what
        self.mend = mend
        super().__init__(f"{what}: {mend}")


class LockError(ReaderkitError):
    """What anchors resolve to is not what the committed lock says."""


class SourceError(ReaderkitError):
    """A source that cannot serve an upstream here."""


class MovedTagError(SourceError):
    """A tag that no longer points at the pinned commit."""


class StoreError(ReaderkitError):
    """The cache cannot be read or written."""
