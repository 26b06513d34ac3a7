"""A diagram that claims something about source, and the lines that bear it out."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from itertools import zip_longest
from typing import Annotated

from readerkit.content.kind import Document, Kind
from readerkit.content.translations import TranslatedDiagram, english_stamp
from readerkit.errors import AnchorError, ContentError, ContentFault
from readerkit.model.anchor import Anchor
from readerkit.model.base import SOME, Model, Text, UpstreamName

Lines = Callable[[str, Anchor], str | None]
"""From an upstream and an anchor to the text of its lines; AnchorError if none.

None where the upstream was not fetched."""


class DiagramClaim(Model, frozen=True):
    """A node, and the lines that hold what it says."""

    node: Text
    upstream: UpstreamName
    at: Anchor
    holds: Annotated[tuple[Text, ...], SOME]


class DiagramClaims(Model, frozen=True):
    """What stands beside a drawing: its title, the same in words, its claims."""

    title: Text
    alternative: Text
    claims: tuple[DiagramClaim, ...]


DIAGRAM: Kind[DiagramClaims] = Kind("diagram", DiagramClaims, "one")


@dataclass(frozen=True, slots=True)
class Diagram:
    """A Mermaid text whose claims hold."""

    name: str
    mermaid: str
    title: str
    alternative: str
    """The same in words."""
    spanish: Diagram | None = None
    is_outdated: bool = False
    """Whether the English changed after the Spanish was written."""

    @property
    def stamp(self) -> str:
        """The name of its texts: what a translation of it is ``of``."""
        return english_stamp(self, ("title", "alternative", "mermaid"))


def read_diagram(
    name: str, mermaid: str, claims: Document[DiagramClaims], lines_of: Lines
) -> Diagram:
    """Return a diagram, each claim of it held against the source.

    Raises:
        ContentError: another shape, a node that nobody draws, an anchor that does not
            resolve, lines that do not hold what the diagram says of them.
    """
    if claims.faults:
        raise ContentError(claims.faults)
    faults = [
        fault
        for index, claim in enumerate(claims.value.claims)
        for fault in _faults(claims, index, claim, mermaid, lines_of)
    ]
    if faults:
        raise ContentError(faults)
    words = " ".join(claims.value.alternative.split())
    return Diagram(name, mermaid, claims.value.title, words)


def in_spanish(
    diagram: Diagram, mermaid: str, file: str, texts: Document[TranslatedDiagram]
) -> Diagram:
    """Return a diagram with its Spanish: the same drawing with other words in it.

    Raises:
        ContentError: a drawing of another shape, texts that do not fit their schema.
    """
    faults = list(texts.faults)
    shapes = zip_longest(_shape(diagram.mermaid), _shape(mermaid), fillvalue="")
    for number, (english, spanish) in enumerate(shapes, 1):
        if english != spanish:
            got, expected = f"'{spanish}'", f"'{english}', as in English"
            faults.append(
                ContentFault(file, number, 1, "another drawing", got, expected)
            )
            break
    if faults:
        raise ContentError(faults)
    said = texts.value
    words = " ".join(said.alternative.split())
    told = Diagram(f"{diagram.name}.es", mermaid, said.title, words)
    return replace(diagram, spanish=told, is_outdated=said.is_outdated(diagram.stamp))


def _shape(mermaid: str) -> list[str]:
    """Return the lines of a drawing without the words in quotes."""
    return [re.sub('"[^"]*"', '""', line.strip()) for line in mermaid.splitlines()]


def _faults(
    claims: Document[DiagramClaims],
    index: int,
    claim: DiagramClaim,
    mermaid: str,
    lines_of: Lines,
) -> Iterator[ContentFault]:
    path = ("claims", index)
    if not re.search(rf"^\W*(.*\s)?{re.escape(claim.node)}\b", mermaid, re.M):
        yield claims.fault((*path, "node"), "a node that is not drawn", claim.node)
    try:
        lines = lines_of(claim.upstream, claim.at)
    except AnchorError as error:
        yield claims.fault((*path, "at"), f"anchor: {error}")
        return
    if lines is None:  # not at hand: nothing tells whether it holds
        return
    text = "".join(lines.split())
    for position, token in enumerate(claim.holds):
        if "".join(token.split()) not in text:
            where = (*path, "holds", position)
            yield claims.fault(where, "the lines do not hold this", f"'{token}'")
