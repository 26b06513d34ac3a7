"""Holds the sentences of everything that has a page; what was held before is known."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace

from readerkit.app.folders import read_at_most
from readerkit.app.ground import open_ground
from readerkit.app.library import Library
from readerkit.app.read_chapters import read_chapters
from readerkit.app.records import code_today
from readerkit.claims.hold import hold
from readerkit.claims.proof import Claimable, Proof, Sentence, sentences
from readerkit.content.resolved_notes import Sources
from readerkit.model.freshness import digest, digest_all
from readerkit.quiz.bank import Bank

Proofs = dict[tuple[str, str], Proof]
"""By the digest of what they are held against, and the key of a claim."""


def prove(
    library: Library,
    sources: Mapping[str, Sources],
    banks: Iterable[Bank],
    links_id: str,
    known: Proofs,
) -> dict[str, list[tuple[Sentence, Proof]]]:
    """Return the claims of what has a page, held, by the id of what they stand in.

    ``known`` are the proofs of before, and afterwards those of now: ``links_id`` is the
    digest of all code that the site shows.
    """
    ground = replace(
        open_ground(library),
        open=lambda each: sources.get(each.name) or library.sources(each),
    )
    held_against = f"{links_id} {_evidence_id(library)}"
    found: dict[str, list[tuple[Sentence, Proof]]] = {}
    now: Proofs = {}
    book = library.book
    entries: list[Claimable] = [*book.annotations.values(), *book.mirrors.values()]
    entries += [*book.concepts.values(), *book.tours.values()]
    entries += read_chapters(library.root)
    entries += [each for bank in banks for each in bank.questions.values()]
    for entry in entries:
        for each in sentences(entry):
            key = held_against, each.key
            now[key] = known.get(key) or hold(each.claim, ground)
            found.setdefault(entry.id, []).append((each, now[key]))
    known.clear()
    known.update(now)
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
