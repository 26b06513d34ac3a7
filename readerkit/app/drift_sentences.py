"""What the claims of a book are in another revision: held, moved, no longer so."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from readerkit.app.check_claims import AT, claims_of
from readerkit.app.drift_claims import ClaimMover, MovedClaim
from readerkit.app.drift_renames import Moves
from readerkit.app.library import Library
from readerkit.app.open_ground import open_ground
from readerkit.claims.check_dispatch import hold
from readerkit.claims.ground import Ground
from readerkit.claims.proof import Proof, Sentence
from readerkit.model.freshness import MadeFrom
from readerkit.upstreams import Lock, Upstream


@dataclass(frozen=True, slots=True)
class DriftedSentence:
    """A claimed sentence that does not hold in the other revision, and held before."""

    sentence: Sentence
    proof: Proof

    def to_plain(self) -> dict[str, Any]:
        """Return it for a program."""
        return {
            "id": self.sentence.entry,
            "says": self.sentence.claim.says,
            "is": "not true" if self.proof.state == "false" else "not held",
            "found": self.proof.found,
            "near": list(self.proof.near),
        }


@dataclass(frozen=True, slots=True)
class DriftedClaims:
    """All claims of an upstream, held in the other revision."""

    wrong: list[DriftedSentence]
    moved: list[MovedClaim]
    """Those whose check is to be written anew; some of them are wrong all the same."""
    held: int
    """How many hold there, the moved ones too."""
    grounds: Mapping[str, MadeFrom]
    """By the key of each of those: what it rests on there."""


def drifted_claims(
    library: Library, upstream: Upstream, moves: Moves, lock: Lock
) -> DriftedClaims:
    """Return what is no longer so, what moved, and what the rest rests on."""
    ground = open_ground(library)
    after = moves.after
    there = Ground(
        ground.upstreams,
        {**ground.paths, upstream.name: after.paths},
        lambda each: after if each.name == upstream.name else ground.open(each),
        ground.record,
        ground.program,
        ground.output,
    )
    mover = ClaimMover(moves, there)
    wrong, moved, held = [], [], 0
    grounds: dict[str, MadeFrom] = {}
    # What it was locked for is told by the files as they were: they may be gone.
    was = Ground(
        ground.upstreams,
        {**ground.paths, upstream.name: moves.before.paths},
        ground.open, ground.record, ground.program,
    )  # fmt: skip
    for sentence in claims_of(library, upstream, was):
        proof = hold(sentence.claim, there)
        if other := mover.move(sentence, proof):
            moved.append(other)
            proof, new = other.proof, other.sentence
        else:
            new = sentence
        is_known = sentence.key in lock.claims or upstream.is_living
        if proof.state in ("false", "lost") and is_known:
            wrong.append(DriftedSentence(new, proof))
        held += proof.state == "holds"
        if proof.state == "holds" and proof.upstream == upstream.name:
            at = {AT: proof.at} if proof.at else {}
            grounds[new.key] = {**proof.made_from, **at}
    return DriftedClaims(wrong, moved, held, grounds)
