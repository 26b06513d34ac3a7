"""Holds the sentences of everything that has a page; what was held before is known."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace

from readerkit.app.check_claims import written_for_pages
from readerkit.app.folders import read_at_most
from readerkit.app.library import Library
from readerkit.app.open_ground import open_ground
from readerkit.app.records import code_today
from readerkit.claims.check_dispatch import hold
from readerkit.claims.ground import Ground
from readerkit.claims.proof import Claimable, Proof, Sentence, sentences
from readerkit.content.resolved_notes import Sources
from readerkit.model.freshness import digest, digest_all
from readerkit.quiz.bank import Bank

Proofs = dict[tuple[str, str], Proof]
"""By the digest of what they are held against, and the key of a claim."""


@dataclass(slots=True)
class Prover:
    """Holds sentences against one state of code and records, each of them once."""

    held_against: str
    """The digest of all that."""
    ground: Ground
    before: Proofs
    """What another prover found."""
    proofs: Proofs = field(default_factory=dict)

    def held(self, entry: Claimable) -> list[tuple[Sentence, Proof]]:
        """Return the claims of an entry, each as it is held."""
        found = []
        for each in sentences(entry):
            key = self.held_against, each.key
            proof = self.proofs.get(key) or self.before.get(key)
            self.proofs[key] = proof = proof or hold(each.claim, self.ground)
            found.append((each, proof))
        return found


def open_prover(
    library: Library, sources: Mapping[str, Sources], links_id: str, before: Proofs
) -> Prover:
    """Return what holds the sentences of a book, and knows what was found ``before``.

    ``links_id`` is the digest of all code that the site shows.
    """
    ground = replace(
        open_ground(library),
        open=lambda each: sources.get(each.name) or library.sources(each),
    )
    return Prover(f"{links_id} {_evidence_id(library)}", ground, before)


def prove(
    library: Library, banks: Iterable[Bank], prover: Prover
) -> dict[str, list[tuple[Sentence, Proof]]]:
    """Return the claims of what has a page, held, by the id of what they stand in."""
    entries: list[Claimable] = [*library.book.claimed(), *written_for_pages(library)]
    entries += [each for bank in banks for each in bank.questions.values()]
    found: dict[str, list[tuple[Sentence, Proof]]] = {}
    for entry in entries:
        if held := prover.held(entry):
            found.setdefault(entry.id, []).extend(held)
    prover.before = {}  # what nobody says any more is forgotten
    return found


def _evidence_id(library: Library) -> str:
    """Return the digest of what was seen in runs, and of what it has to be of."""
    parts = dict(code_today(library))
    root = library.root / "annotations"
    for folder in ("records", "experiments"):
        for path in sorted((root / folder).rglob("*")):
            if path.is_file():
                parts[str(path)] = digest(read_at_most(path, library.root))
    return digest_all({**parts, "compared": " ".join(sorted(library.book.comparisons))})
