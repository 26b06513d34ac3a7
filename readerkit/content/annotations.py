"""What people write about code, as values: annotations, concepts, references.

Knows nothing of git, files or HTML.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, ClassVar

from msgspec import Meta
from msgspec.structs import replace

from readerkit.content.claims import Claimed
from readerkit.content.kind import Entry, Kind
from readerkit.content.translations import english_stamp
from readerkit.content.vocabulary import (
    AnnotationKind,
    EstimateName,
    Layer,
    Pressure,
    Start,
)
from readerkit.model.anchor import Anchor
from readerkit.model.base import (
    ONCE,
    SOME,
    UNWRITTEN,
    ConceptId,
    ConditionId,
    Id,
    Model,
    Name,
    ReferenceKey,
    Text,
    pattern,
    rules,
    where,
)
from readerkit.model.git_names import TreePath
from readerkit.upstreams.upstream import PINNED_OR_FOLDER, Upstream

TEXT_FIELDS = ("decision", "alternative", "why", "cost", "text")


class Citation(Model, frozen=True):
    """A key of ``references.yaml``, and a section of that work."""

    key: ReferenceKey
    section: Text = ""


class OtherLines(Entry, frozen=True, rename={"anchor": "at"}):
    """Lines elsewhere that a note shows beside its own, and what they say to it."""

    says: Annotated[Text, Meta(extra_json_schema={"maxLength": 120})]
    anchor: Anchor
    """In a file of any upstream, which is found by the file."""


class Annotation(Claimed, frozen=True, rename={"anchor": "at"}):
    """A note on one place of one upstream."""

    TEXTS: ClassVar = ("title", *TEXT_FIELDS)
    id: Annotated[Id, Meta(description="Unique in the book; never changes.")]
    anchor: Anchor
    kind: AnnotationKind
    title: Annotated[Text, Meta(extra_json_schema={"maxLength": 80})]
    concepts: Annotated[tuple[ConceptId, ...], SOME, ONCE]
    decision: Text = ""
    alternative: Text = ""
    why: Text = ""
    cost: Text = ""
    text: Text = ""
    references: tuple[Citation, ...] = ()
    starts: Annotated[tuple[Start, ...], SOME, ONCE] = ()
    """What it speaks of; all of it, where nothing is said."""
    conditions: Annotated[tuple[ConditionId, ...], SOME, ONCE] = ()
    """What all of its sentences presume, beside what every note does."""
    also: Annotated[tuple[OtherLines, ...], SOME] = ()
    upstream: Annotated[str, UNWRITTEN] = ""
    mine: Annotated[bool, UNWRITTEN] = False
    """Whether it comes from the reader's own overlay book."""

    @property
    def topic(self) -> str:
        """The file it is written in, by its name alone."""
        return self.place.file.rpartition("/")[2].removesuffix(".yaml")

    @property
    def texts(self) -> Mapping[str, str]:
        """Its texts, by the field of each; what other lines say, by their number."""
        also = enumerate(self.also, start=1)
        said = {f"also {number}": each.says for number, each in also}
        return {**super().texts, **said}

    @property
    def stamp(self) -> str:
        """The name of its texts: what a translation of it is ``of``."""
        return english_stamp(self, (*self.TEXTS, "also"))

    def with_texts(self, texts: Mapping[str, str]) -> Annotation:
        """Return the annotation with translated texts in place of its own."""
        own = {name: text for name, text in texts.items() if hasattr(self, name)}
        also = (
            replace(each, says=texts.get(f"also {number}", each.says))
            for number, each in enumerate(self.also, start=1)
        )
        return replace(self, **own, also=tuple(also))

    def asides(self) -> list[Annotation]:
        """Return each of its other lines as a note, under the name that locks give."""
        return [
            replace(
                self,
                id=f"{self.id}+{number}",
                title=each.says,
                anchor=each.anchor,
                place=each.place,
                also=(),
                claims=(),
            )
            for number, each in enumerate(self.also, start=1)
        ]


class ComparisonName(Entry, frozen=True):
    """A mini beside an upstream: what records, mirrors and commands call it."""

    name: Name
    mini: Name
    upstream: Name
    title: Text


class Concept(Claimed, frozen=True):
    """An entry of the memory map."""

    TEXTS: ClassVar = ("title", "summary")
    id: Id
    title: Text
    summary: Text
    pressure: Pressure | None = None
    """Which need it answers; nothing, in a book on other things. The same for next."""
    layer: Layer | None = None
    requires: Annotated[tuple[ConceptId, ...], ONCE] = ()
    recurs: Annotated[tuple[ConceptId, ...], ONCE] = ()
    references: tuple[Citation, ...] = ()
    estimates: Annotated[tuple[EstimateName, ...], SOME, ONCE] = ()
    """Sections of the page of estimates that compute what it is about."""

    @property
    def stamp(self) -> str:
        """The name of its texts: what a translation of it is ``of``."""
        return english_stamp(self, self.TEXTS)


class Condition(Claimed, frozen=True):
    """What notes presume: a setting, a device, how many ranks a group has."""

    TEXTS: ClassVar = ("title",)
    id: Id
    title: Annotated[Text, Meta(extra_json_schema={"maxLength": 120})]
    always: bool = False
    """Whether every note presumes it that does not say otherwise, and none names it."""

    @property
    def stamp(self) -> str:
        """The name of its text: what a translation of it is ``of``."""
        return english_stamp(self, self.TEXTS)


class CitedWork(Entry, frozen=True):
    """A work that notes cite."""

    key: Id
    title: Text
    authors: Text
    year: Annotated[int, Meta(ge=1950, le=2100)]
    url: Annotated[str, pattern('^https://[^\\s"<>]+$')]
    sections: Mapping[str, str]
    """Section number to its title; a title may be empty where nobody checked it."""


_CITATION_HAS = where(
    "kind",
    ["citation"],
    required=["decision", "why", "cost", "references"],
    properties={"references": {"minItems": 1}},
)
_NOTE_HAS = where("kind", ["note", "pitfall"], required=["text"])

ANNOTATIONS: Kind[Annotation] = Kind(
    "annotations",
    Annotated[Annotation, rules(_CITATION_HAS, _NOTE_HAS)],
    stand_in=Annotation("?", Anchor(TreePath("?"), symbol="?"), "note", "", ()),
)
COMPARISONS: Kind[ComparisonName] = Kind("comparisons", ComparisonName)
CONCEPTS: Kind[Concept] = Kind("concepts", Concept)
CONDITIONS: Kind[Condition] = Kind("conditions", Condition)
REFERENCES: Kind[CitedWork] = Kind("references", CitedWork)
UPSTREAMS: Kind[Upstream] = Kind("upstreams", Annotated[Upstream, PINNED_OR_FOLDER])
