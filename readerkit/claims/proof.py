"""What holding a claim gives: whether it is so, what was found, and where."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Literal, Protocol

from msgspec import json

from readerkit.content.claims import Claim, Claimed, one_spaced
from readerkit.evidence.experiment_output import Output
from readerkit.model.anchor import Span
from readerkit.model.freshness import MadeFrom, digest

MAX_PLACES = 3
ProofState = Literal["holds", "false", "lost", "open"]
"""``false``: the contrary was found; ``lost``: what the claim names is not there, so
that the words may still be so; ``open``: not decided here: by a program of its own, by
nobody, or for want of the source."""


@dataclass(frozen=True, slots=True)
class Proof:
    """Whether a claim holds, and why."""

    state: ProofState
    found: str
    """What was found, in words; of what is false, instead of what was claimed; of what
    is lost, what is not there."""
    upstream: str = ""
    """Whose source it looked at; empty where at none."""
    places: tuple[Span, ...] = ()
    """The lines that it looked at, those that tell first."""
    made_from: MadeFrom = field(default_factory=dict)
    """What of the source it rests on: where any of it changes, the words are read
    again."""
    near: tuple[str, ...] = ()
    """Of what is lost: each place or name that may be meant now, in words."""
    output: Output | None = None
    """Of an experiment: what it printed, fresh or not."""
    program: str = ""
    """Its text."""

    @property
    def at(self) -> str:
        """Where the first of its lines stand."""
        return ", ".join(map(str, self.places[:MAX_PLACES]))


@dataclass(frozen=True, slots=True)
class Sentence:
    """A claim, and the entry whose words it holds."""

    entry: str
    """The id of the note, the concept, the chapter or whatever else it is."""
    claimed: Claimed
    claim: Claim

    @property
    def key(self) -> str:
        """What locks know it by: a claim that says or asks another thing is another."""
        asked = json.encode(self.claim.check, order="sorted").decode()
        says = one_spaced(self.claim.says)
        return f"{self.entry} {digest(f'{says} {self.claim.kind} {asked}')[:10]}"


def lines_of(sentence: Sentence, proof: Proof) -> tuple[str, ...]:
    """Return the lines that a program printed of the figures of a claim."""
    check, output = sentence.claim.experiment, proof.output
    return output.lines_of(check.prints) if check and output else ()


class Claimable(Protocol):
    """What may carry claims: a note, a concept, a chapter, a lab, a question."""

    @property
    def id(self) -> str:
        """What it is called."""

    @property
    def title(self) -> str:
        """What it is about."""

    def claimed(self) -> Iterable[Claimed]:
        """Return its parts that may carry claims."""


def sentences(entry: Claimable) -> list[Sentence]:
    """Return every claim of an entry and of its parts."""
    return [
        Sentence(entry.id, part, claim)
        for part in entry.claimed()
        for claim in part.claims
    ]
