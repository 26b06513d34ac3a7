"""A mirror: one idea, the places that hold it, and how the two sides may differ."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Annotated, ClassVar

from msgspec import Meta
from msgspec.structs import force_setattr, replace

from readerkit.content.claims import Claimed
from readerkit.content.kind import Entry, Kind, Place
from readerkit.content.translations import TranslatedMirror, TranslatedSection, stamp_of
from readerkit.content.vocabulary import (
    EVENT_DIFFERENCES,
    WHOLE_DIFFERENCES,
    DifferenceKind,
    Operation,
    Phase,
    Relation,
)
from readerkit.model.anchor import Anchor
from readerkit.model.base import (
    ONCE,
    SOME,
    UNWRITTEN,
    ConceptId,
    Id,
    Model,
    Name,
    Problem,
    Text,
    rules,
    where,
)
from readerkit.model.expression import (
    ExpressionError,
    calls_in,
    evaluate,
    names_in,
    parse_expression,
)

ANYTHING = "anything"
"""What values may be apart where they come out of memory that is not theirs."""
NAMES = (
    *("world", "rank", "layers", "microbatches", "chunks", "parameters"),
    *("tokens", "hidden", "vocabulary", "layer_bytes"),
)
"""Sizes of a run that a bound may speak of; ``parameters`` counts tensors, ``tokens``
are those of a rank's batch, ``layer_bytes`` the parameters of one layer."""
MAX_LENGTH = 80
_EXPECTED = f"a formula of numbers and the names {', '.join(NAMES)}"


@dataclass(frozen=True, slots=True)
class BoundFormula:
    """A bound as it was written."""

    text: str

    @classmethod
    def parse(cls, text: str) -> BoundFormula:
        """Return a bound that ``evaluate`` understands.

        Raises:
            ValueError: anything else than such an expression; says what was expected.
        """
        if len(text) > MAX_LENGTH:
            raise ValueError(f"at most {MAX_LENGTH} characters")
        count = cls(text)
        if text == ANYTHING:
            return count
        try:
            tree = parse_expression(text)
            known = names_in(tree) <= set(NAMES) and not calls_in(tree)
            count.evaluate(dict.fromkeys(NAMES, 1))
        except ExpressionError as error:
            raise ValueError(f"{_EXPECTED} ({error})") from None
        if not known:
            raise ValueError(_EXPECTED)
        return count

    def evaluate(self, sizes: Mapping[str, int]) -> int | float:
        """Return its value for a run.

        Raises:
            ExpressionError: an expression that ``parse`` would refuse.
        """
        return math.inf if self.text == ANYTHING else evaluate(self.text, sizes)


Comparisons = Annotated[tuple[Name, ...], SOME, ONCE]
Bound = Annotated[
    int | float | str,
    Meta(
        description="How many on a rank, or how far values may be apart: a number, or "
        "an expression of the sizes of a run: world, rank, layers and others."
    ),
]


class LeftOut(Claimed, frozen=True):
    """Something upstream does and the mini does not."""

    TEXTS: ClassVar = ("what", "why")
    what: Text
    why: Text


class MirroredEvent(Model, frozen=True):
    """A collective of comparisons that belongs to a mirror's section."""

    comparisons: Comparisons
    phase: Phase
    op: Operation
    group: Name = ""


class DifferentEvent(Model, frozen=True):
    """An event in which the sides may differ, and how often on one rank."""

    phase: Phase
    op: Operation
    at_most: Bound
    group: Name = ""

    def problems(self) -> Iterator[Problem]:
        """Yield what is wrong with the bound."""
        return _bound_problems(self.at_most)


class AllowedDifferences(Claimed, frozen=True):
    """What may differ in some comparisons, and why: in these events, or as a whole."""

    TEXTS: ClassVar = ("why",)
    comparisons: Comparisons
    what: DifferenceKind
    why: Text
    events: Annotated[tuple[DifferentEvent, ...], SOME] = ()
    at_most: Bound | None = None
    note: Id = ""
    """Of ``values``, which upstream has wrong here: the annotation that tells why."""

    def problems(self) -> Iterator[Problem]:
        """Yield what is wrong with the bound."""
        return iter(()) if self.at_most is None else _bound_problems(self.at_most)

    def each(self) -> Iterator[Difference]:
        """Yield every difference that it allows."""
        for event in self.events:
            most = BoundFormula.parse(str(event.at_most))
            keys = (event.phase, event.op, event.group)
            yield Difference(self.what, most, self.why, *keys)
        if self.at_most is not None:
            most = BoundFormula.parse(str(self.at_most))
            yield Difference(self.what, most, self.why, note=self.note)


@dataclass(frozen=True, slots=True)
class Difference:
    """One way in which the sides of a comparison may differ, how often, and why."""

    what: DifferenceKind
    at_most: BoundFormula
    """Events on one rank; of ``values`` and ``memory``: how far they may be apart."""
    why: str
    phase: str = ""
    """Empty: any phase. The same for the next two."""
    op: str = ""
    group: str = ""
    note: str = ""
    """Of ``values``: the annotation that tells why upstream's are wrong."""


def _words(texts: Iterable[str]) -> Iterator[str]:
    """Yield the words of texts, whatever the white space between them."""
    return (word for text in texts for word in text.split())


def _bound_problems(bound: int | float | str) -> Iterator[Problem]:
    try:
        BoundFormula.parse(str(bound))
    except ValueError as error:
        yield "wrong value for 'at_most'", f"'{bound}'", str(error)


_DIFFERENCE_HAS = rules(
    where("what", EVENT_DIFFERENCES, required=["events"]),
    where("what", WHOLE_DIFFERENCES, required=["at_most"]),
    where("what", ["values"], required=["note"]),
)
_SECTION_HAS = rules(
    where("relation", ["upstream-only"], required=["why"], properties={"mini": False}),
    where("relation", ["same", "simplified", "differs"], required=["mini"]),
)


class MirrorSection(Claimed, frozen=True):
    """One step of an idea: the upstream notes and the mini lines that hold it."""

    TEXTS: ClassVar = ("title", "why")
    title: Text
    relation: Relation
    upstream: Annotated[tuple[Id, ...], SOME, ONCE]
    """Annotation ids, of any upstream."""
    mini: Annotated[tuple[Anchor, ...], SOME] = ()
    leaves_out: Annotated[tuple[LeftOut, ...], SOME] = ()
    why: Text = ""
    events: tuple[MirroredEvent, ...] = ()
    differences: Annotated[
        tuple[Annotated[AllowedDifferences, _DIFFERENCE_HAS], ...], SOME
    ] = ()
    places: Annotated[tuple[Place, ...], UNWRITTEN] = ()
    """Where each anchor of ``mini`` is written."""

    @property
    def stamp(self) -> str:
        """What a translation of it writes as ``of``."""
        omissions = (text for each in self.leaves_out for text in (each.what, each.why))
        texts = {
            "title": (self.title,),
            "why": (self.why,),
            "leaves_out": omissions,
            "differences": (each.why for each in self.differences),
        }
        return stamp_of({name: _words(parts) for name, parts in texts.items()})

    def with_texts(self, other: TranslatedSection) -> MirrorSection:
        """Return it with the texts of a translation, where that has them."""
        omissions, reasons = len(other.leaves_out), len(other.differences)
        return replace(
            self,
            title=other.title or self.title,
            why=other.why or self.why,
            leaves_out=(
                *(
                    replace(each, what=said.what or each.what, why=said.why or each.why)
                    for each, said in zip(
                        self.leaves_out, other.leaves_out, strict=False
                    )
                ),
                *self.leaves_out[omissions:],
            ),
            differences=(
                *(
                    replace(each, why=why)
                    for each, why in zip(
                        self.differences, other.differences, strict=False
                    )
                ),
                *self.differences[reasons:],
            ),
        )

    def named_events(self) -> Iterator[tuple[str, MirroredEvent]]:
        """Yield each of its events with each comparison that it is of."""
        for event in self.events:
            for comparison in event.comparisons:
                yield comparison, event

    def settle(self, place_at: Callable[..., Place]) -> None:
        """Take the places of the section and of its anchors."""
        Entry.settle(self, place_at)
        places = tuple(place_at("mini", index) for index in range(len(self.mini)))
        force_setattr(self, "places", places)


class Mirror(Claimed, frozen=True):
    """One idea, and every place that holds it."""

    TEXTS: ClassVar = ("title", "idea")
    id: Id
    title: Text
    idea: Text
    sections: Annotated[tuple[Annotated[MirrorSection, _SECTION_HAS], ...], SOME]
    concepts: Annotated[tuple[ConceptId, ...], ONCE] = ()

    @property
    def stamp(self) -> str:
        """What a translation of it writes as ``of``; each section has its own."""
        texts = {"title": (self.title,), "idea": (self.idea,)}
        return stamp_of({name: _words(parts) for name, parts in texts.items()})

    def with_texts(self, other: TranslatedMirror) -> Mirror:
        """Return it with the texts of a translation, where that has them."""
        none = TranslatedSection()
        return replace(
            self,
            title=other.title or self.title,
            idea=other.idea or self.idea,
            sections=tuple(
                each.with_texts(other.sections.get(each.title, none))
                for each in self.sections
            ),
        )

    def claimed(self) -> Iterator[Claimed]:
        """Yield every part of it that may carry claims."""
        yield self
        for section in self.sections:
            yield from (section, *section.leaves_out, *section.differences)


MIRROR: Kind[Mirror] = Kind("mirror", Mirror, "one")
