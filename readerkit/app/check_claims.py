"""Holds the claims of a book, and lists the sentences that nothing proves."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from typing import Any

import click

from readerkit.app.folders import read_at_most
from readerkit.app.library import Library
from readerkit.claims.ground import Ground, NotAtHand
from readerkit.claims.hold import hold
from readerkit.claims.proof import Proof, Sentence, Written, parts_of, sentences
from readerkit.claims.unproved import Unproved, unproved
from readerkit.claims.words import say_check
from readerkit.content.kind import Place
from readerkit.errors import ContentError, ContentFault
from readerkit.evidence.record import Record
from readerkit.upstreams import Upstream
from readerkit.wording.next_command import typed
from readerkit.wording.nouns import counted


def open_ground(library: Library) -> Ground:
    """Return what the claims of a book are held against; nothing is read yet."""
    root, book = library.root / "annotations", library.book
    paths = {name: frozenset(lock.files) for name, lock in book.locks.items()}
    paths |= {name: each.paths for name, each in library.folders().items()}

    @cache
    def record(name: str) -> Record | None:
        file = root / "records" / f"{name}.json"
        if name not in book.comparisons or not file.is_file():
            return None
        try:
            return Record.parse(read_at_most(file, library.root).decode(), str(file))
        except (ContentError, UnicodeDecodeError) as error:
            raise NotAtHand(f"the record {name} cannot be read: {error}") from None

    def program(name: str) -> str | None:
        file = root / "experiments" / f"{name}.py"
        is_there = file.is_file()
        return read_at_most(file, library.root).decode() if is_there else None

    return Ground(book.upstreams, paths, library.sources, record, program)


def entries_of(library: Library, upstream: Upstream | None = None) -> list[Written]:
    """Return what may carry claims: the notes on an upstream, or all of a book."""
    book = library.book
    if upstream is not None:
        return [*book.notes_on(upstream.name)]
    notes: list[Written] = [*book.annotations.values()]
    return [*notes, *book.mirrors.values(), *book.concepts.values()]


def claims_of(
    library: Library, upstream: Upstream | None, ground: Ground
) -> list[Sentence]:
    """Return the claims of a book, or those of notes on an upstream or of its code."""
    every = [each for entry in entries_of(library) for each in sentences(entry)]
    if upstream is None:
        return every
    own = {note.id for note in library.book.notes_on(upstream.name)}
    return [
        each
        for each in every
        if each.entry in own or upstream.name in ground.homes_of(each.claim)
    ]


@dataclass(slots=True)
class HeldClaims:
    """The claims of a book or of an upstream, each with its verdict."""

    claims: list[tuple[Sentence, Proof]]
    unproved: list[tuple[str, Place, Unproved]]
    """Sentences that no claim covers, each with its entry's id and place."""

    def faults(self) -> Iterator[ContentFault]:
        """Yield what is wrong with the words of each claim that does not hold."""
        for sentence, verdict in self.claims:
            claim = sentence.claim
            words = f"{sentence.entry}: '{claim.says}'"
            if verdict.state == "false":
                what = f"{words} is not true"
                yield claim.place.fault(what, verdict.found, say_check(claim))
            elif verdict.state == "lost":
                yield claim.place.fault(f"{words} cannot be held: {verdict.found}")

    def unproved_faults(self) -> Iterator[ContentFault]:
        """Yield a fault for each sentence that nothing proves."""
        for entry, place, each in self.unproved:
            words = ", ".join(f"'{word}'" for word in each.words)
            what = f"{entry}, {each.field}: a sentence without a claim ({words})"
            yield place.fault(what, f"'{each.sentence}'")

    def to_plain(self) -> dict[str, Any]:
        """Return how many hold, what is open and what nothing proves, as JSON."""
        return {
            "held": sum(verdict.state == "holds" for _, verdict in self.claims),
            "open": [
                {
                    "id": sentence.entry,
                    "says": sentence.claim.says,
                    "check": sentence.claim.kind,
                    "file": sentence.claim.place.file,
                    "line": sentence.claim.place.line,
                    "why": verdict.found,
                }
                for sentence, verdict in self.claims
                if verdict.state == "open"
            ],
            "unproved": [
                {
                    "id": entry,
                    "field": each.field,
                    "sentence": each.sentence,
                    "words": list(each.words),
                    "file": place.file,
                    "line": place.line,
                }
                for entry, place, each in self.unproved
            ],
        }


def hold_claims(library: Library, upstream: Upstream | None) -> HeldClaims:
    """Hold the claims of a book, or of one upstream of it."""
    ground = open_ground(library)
    held = [
        (each, hold(each.claim, ground))
        for each in claims_of(library, upstream, ground)
    ]
    lacking = [
        (entry.id, part.place, each)
        for entry in entries_of(library, upstream)
        for part in parts_of(entry)
        for each in unproved(part)
    ]
    return HeldClaims(held, lacking)


def print_claims(found: dict[str, Any]) -> None:
    """Say how many claims hold, and why others are open."""
    why: Counter[str] = Counter()
    said = {
        "experiment": f"programs prove them: {typed('prove', '--all')}",
        "undecided": "no program decides them, and each says why",
    }
    for each in found["open"]:
        why[said.get(each["check"], each["why"])] += 1
    if found["held"] or why:
        click.echo(f"claims: {counted(found['held'], 'sentence')} held")
    for reason, count in why.items():
        click.echo(f"  {count} not held here: {reason}")


def print_unproved(found: dict[str, Any]) -> None:
    """List the sentences that no claim proves."""
    lacking = found.get("unproved", [])
    for each in lacking:
        words = ", ".join(each["words"])
        place = f"{each['file']}:{each['line']}: {each['id']}, {each['field']}"
        click.echo(f"{place} ({words}): {each['sentence']}")
    click.echo(f"unproved: {counted(len(lacking), 'sentence')}")
