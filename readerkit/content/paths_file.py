"""The reading paths that people write: from a symptom to notes, and pairs of ideas."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence, Set
from typing import TYPE_CHECKING, Annotated, ClassVar, Literal

from msgspec.structs import replace

from readerkit.content.claims import Claimed
from readerkit.content.kind import Document, Kind
from readerkit.content.translations import TranslatedPaths, Translation, english_stamp
from readerkit.errors import ContentError, ContentFault
from readerkit.model.base import UNWRITTEN, ConceptId, Id, Model, Text

if TYPE_CHECKING:
    from readerkit.content.strict_yaml import Path


class Failure(Claimed, frozen=True):
    """A symptom, what causes it, and the notes that show the lines."""

    TEXTS: ClassVar = ("symptom", "cause", "check")
    id: Id
    symptom: Text
    cause: Text
    notes: tuple[Id, ...]
    check: Text = ""
    """What one looks at in a job of one's own, and what it tells."""
    run: Text = ""
    """A command line that shows the cause here."""
    shows: Literal["memory", "stop", "numbers", "speed"] | None = None
    """What of the job is wrong: symptoms that show in the same stand together."""

    @property
    def stamp(self) -> str:
        """The name of its texts: what a translation of it is ``of``."""
        return english_stamp(self, self.texts)

    @property
    def title(self) -> str:
        """What shows."""
        return self.symptom

    @property
    def told(self) -> str:
        """Its cause and how one checks it, in one text."""
        run = self.run and f"`{self.run}`"
        return " ".join(filter(None, (self.cause, self.check, run)))


class MechanismPair(Claimed, frozen=True):
    """A memory mechanism against a coordination mechanism, and the wire they share."""

    TEXTS: ClassVar = ("wire",)
    id: Id
    memory: ConceptId
    coordination: ConceptId
    wire: Text
    notes: tuple[Id, ...]

    @property
    def stamp(self) -> str:
        """The same."""
        return english_stamp(self, self.texts)

    @property
    def title(self) -> str:
        """The two."""
        return f"{self.memory} × {self.coordination}"


class ReadingPaths(Model, frozen=True):
    """What ``site/pages/paths.yaml`` holds, and the Spanish texts beside it."""

    failures: tuple[Failure, ...] = ()
    pairs: tuple[MechanismPair, ...] = ()
    spanish: Annotated[Mapping[str, Translation], UNWRITTEN] = {}
    """By the id of a failure or a pair."""


PATHS: Kind[ReadingPaths] = Kind("paths", ReadingPaths, "one")


def join_paths(
    document: Document[ReadingPaths],
    notes: Set[str],
    concepts: Set[str],
    spanish: Document[TranslatedPaths] | None = None,
) -> ReadingPaths:
    """Return the reading paths, of these notes and concepts, and their Spanish.

    Raises:
        ContentError: every fault of the files.
    """
    faults = document.faults or [*_faults(document, notes, concepts)]
    if faults:
        raise ContentError(faults)
    if spanish is None:
        return document.value
    return replace(document.value, spanish=_translations(spanish, document.value))


def _translations(
    document: Document[TranslatedPaths], paths: ReadingPaths
) -> dict[str, Translation]:
    """Return the texts of a sidecar by id."""
    faults = list(document.faults)
    found: dict[str, Translation] = {}
    for spanish in document.entries.values():
        found = {**spanish.failures, **spanish.pairs}
        for key, texts, entries in (
            ("failures", spanish.failures, paths.failures),
            ("pairs", spanish.pairs, paths.pairs),
        ):
            expected = f"one of the {key} of paths.yaml"
            faults += [
                document.key_fault((key, name), "unknown id", f"'{name}'", expected)
                for name in {*texts} - {entry.id for entry in entries}
            ]
    if faults:
        raise ContentError(faults)
    return found


def _faults(
    document: Document[ReadingPaths], notes: Set[str], concepts: Set[str]
) -> Iterator[ContentFault]:
    seen: set[str] = set()
    groups: Mapping[str, Sequence[Failure | MechanismPair]] = {
        "failures": document.value.failures,
        "pairs": document.value.pairs,
    }
    for key, entries in groups.items():
        for index, entry in enumerate(entries):
            if entry.id in seen:
                got = f"'{entry.id}'"
                yield entry.place.fault("a duplicate id", got, "each once")
            seen.add(entry.id)
            yield from entry.claim_faults()
            names: dict[Path, str] = {
                ("notes", number): name
                for number, name in enumerate(entry.notes)
                if name not in notes
            }
            if isinstance(entry, MechanismPair):
                both = {"memory": entry.memory, "coordination": entry.coordination}
                names |= {(k,): n for k, n in both.items() if n not in concepts}
            for below, name in names.items():
                got, expected = f"'{name}'", "one of this book's"
                yield document.fault((key, index, *below), "unknown id", got, expected)
