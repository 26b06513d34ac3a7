"""Holds the claims of a book, and lists the sentences that nothing proves."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import click

from readerkit.app.library import Library
from readerkit.app.open_ground import open_ground
from readerkit.claims.check_dispatch import hold
from readerkit.claims.checks_in_words import say_check
from readerkit.claims.ground import Ground
from readerkit.claims.proof import Claimable, Proof, ProofState, Sentence, sentences
from readerkit.claims.unproved import Unproved, unproved
from readerkit.claims.unquoted import WordCount
from readerkit.content.kind import Place
from readerkit.errors import ContentFault
from readerkit.model.freshness import Change, MadeFrom, changes
from readerkit.model.git_names import NO_COMMIT
from readerkit.upstreams import Lock, Upstream
from readerkit.wording.meant_name import choose
from readerkit.wording.next_command import typed
from readerkit.wording.numbers import counted

AT = "at"
"""In a lock: where a claim's lines stood, by which it is not held."""


def entries_of(library: Library, upstream: Upstream | None = None) -> list[Claimable]:
    """Return what may carry claims: the notes on an upstream, or all of a book."""
    book = library.book
    if upstream is not None:
        return [*book.notes_on(upstream.name)]
    entries: list[Claimable] = [*book.claimed(), *written_for_pages(library)]
    # What this brings along takes longer than the notes of a small book.
    if (library.root / "quizzes").is_dir():
        from readerkit.app.quiz_banks import QuizBanks

        entries += QuizBanks.at(library.root).questions()
    return entries


def written_for_pages(library: Library) -> Iterator[Claimable]:
    """Yield what may carry claims of all that is written for pages alone."""
    root = library.root
    if not (root / "site" / "pages").is_dir():
        return
    from readerkit.app.read_chapters import read_chapters, read_labs
    from readerkit.app.read_paths import read_routes

    yield from read_chapters(root)
    for lab in read_labs(root):
        yield from lab.texts
    paths = read_routes(library)
    yield from paths.failures
    yield from paths.pairs


def entry_named(library: Library, name: str) -> Claimable:
    """Return the entry that was meant, a note before what is called the same.

    Raises:
        ReaderkitError: none, or several.
    """
    entries = entries_of(library)
    what = "note, concept, mirror, tour, path, chapter, lab or question"
    meant = choose(what, name, dict.fromkeys(entry.id for entry in entries))
    return next(entry for entry in entries if entry.id == meant)


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


def claimed_upstreams(library: Library) -> set[str]:
    """Return the upstreams whose code the claims of a book are about."""
    ground = open_ground(library)
    claims = claims_of(library, None, ground)
    return {home for each in claims for home in ground.homes_of(each.claim)}


@dataclass(slots=True)
class HeldClaims:
    """The claims of a book or of an upstream, each with its verdict."""

    claims: list[tuple[Sentence, Proof]]
    unproved: list[tuple[str, Place, Unproved]]
    """Sentences that no claim covers, each with its entry's id and place."""
    words: WordCount
    locks: Mapping[str, Lock]
    """Those of the upstreams whose claims these are, all of them."""
    mine: frozenset[str]
    """The reader's own notes, of whose claims no lock tells."""
    living: frozenset[str] = frozenset()
    """The upstreams whose code changes every day: what is still true there is fine."""

    def _of(self, state: ProofState) -> list[tuple[Sentence, Proof]]:
        return [each for each in self.claims if each[1].state == state]

    def _locked(self, sentence: Sentence) -> MadeFrom | None:
        """Return what a lock says that a claim rests on, if it held there."""
        locked = (lock.claims.get(sentence.key) for lock in self.locks.values())
        return next((each for each in locked if each is not None), None)

    def faults(self) -> Iterator[ContentFault]:
        """Yield what is wrong with the words of each claim that does not hold."""
        for sentence, proof in self.claims:
            claim, was = sentence.claim, self._locked(sentence)
            words = f"{sentence.entry}: '{claim.says}'"
            if proof.state == "false":
                what = f"{words} is {'not' if was is None else 'no longer'} true"
                yield claim.place.fault(what, proof.found, say_check(claim))
            elif proof.state == "lost":
                at = (was or {}).get(AT)
                rows = [f"it was at {at}", *proof.near] if at else proof.near
                what = "\n    ".join((proof.found, *rows))
                yield claim.place.fault(f"{words} cannot be held here: {what}")

    def to_do(self) -> Iterator[str]:
        """Yield what each kind of fault asks of who moved a pin."""
        if false := len(self._of("false")):
            are = "is" if false == 1 else "are"
            yield (
                f"{counted(false, 'sentence')} {are} not true: say what is so now, and "
                "claim that"
            )
        if lost := len(self._of("lost")):
            yield (
                f"{counted(lost, 'sentence')} cannot be held here, and may still be "
                "so: read the code there, then mend the claim, or the words"
            )

    def to_lock(self, upstream: str) -> dict[str, MadeFrom]:
        """Return what a lock says of the claims; of one not at hand what it said."""
        was = self.locks[upstream].claims
        now: dict[str, MadeFrom] = {}
        shared = [each for each in self.claims if each[0].entry not in self.mine]
        for sentence, proof in shared:
            if proof.state == "open" and sentence.key in was:
                now[sentence.key] = was[sentence.key]
            elif proof.upstream == upstream and proof.state == "holds":
                at = {AT: proof.at} if proof.at else {}
                now[sentence.key] = {**proof.made_from, **at}
        return dict(sorted(now.items()))

    def moved(self) -> list[tuple[Sentence, Proof, list[Change]]]:
        """Return what holds on other grounds than those that the locks know."""
        found = []
        for sentence, proof in self._of("holds"):
            if proof.upstream in self.living:
                continue
            lock = self.locks.get(proof.upstream)
            was = lock.claims.get(sentence.key) if lock else None
            if was is None:
                continue
            grounds = {part: mark for part, mark in was.items() if part != AT}
            if changed := changes(grounds, proof.made_from):
                found.append((sentence, proof, changed))
        return found

    def differences(self) -> Iterator[ContentFault]:
        """Yield each sentence that is still true, on other grounds."""
        for sentence, proof, changed in self.moved():
            what = ", ".join(each.part for each in changed)
            at = (self._locked(sentence) or {}).get(AT)
            yield sentence.claim.place.fault(
                f"{sentence.entry}: '{sentence.claim.says}' is still true, and {what} "
                f"changed: {proof.found}" + (f"; it was at {at}" if at else "")
            )

    def not_locked(self) -> int:
        """Return how many hold of which no lock says what they rest on."""
        return sum(
            len({*self.to_lock(n)} - {*lock.claims}) for n, lock in self.locks.items()
        )

    def unproved_faults(self) -> Iterator[ContentFault]:
        """Yield a fault for each sentence that nothing proves."""
        for entry, place, each in self.unproved:
            words = ", ".join(f"'{word}'" for word in each.words)
            what = f"{entry}, {each.field}: a sentence without a claim ({words})"
            yield place.fault(what, f"'{each.sentence}'")

    def to_plain(self) -> dict[str, Any]:
        """Return each sentence by its verdict, and those that nothing proves."""
        return {
            "held": len(self._of("holds")),
            "not_locked": self.not_locked(),
            "still_true": [
                self._row(s, p, places=p.at, changed=[each.part for each in changed])
                for s, p, changed in self.moved()
            ],
            "not_true": [
                self._row(s, p, places=p.at, expected=say_check(s.claim))
                for s, p in self._of("false")
            ],
            "not_held": [self._row(s, p, near=[*p.near]) for s, p in self._of("lost")],
            "words": asdict(self.words),
            "open": [
                {**_named(sentence), "why": proof.found}
                for sentence, proof in self._of("open")
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

    def _row(self, sentence: Sentence, proof: Proof, **more: object) -> dict[str, Any]:
        was = self._locked(sentence)
        known = {"was_true": was is not None, "was_at": (was or {}).get(AT)}
        return {**_named(sentence), **known, "found": proof.found, **more}


def _named(sentence: Sentence) -> dict[str, Any]:
    claim = sentence.claim
    place = {"file": claim.place.file, "line": claim.place.line}
    return {"id": sentence.entry, "says": claim.says, "check": claim.kind, **place}


def hold_claims(
    library: Library,
    upstream: Upstream | None,
    entries: Sequence[Claimable] | None = None,
    *,
    lacking: bool = True,
) -> HeldClaims:
    """Hold the claims of a book, of one upstream of it, or of these entries alone.

    What no claim covers or says is looked for where ``lacking`` asks for it.
    """
    ground = open_ground(library)
    if entries is None:
        claims = claims_of(library, upstream, ground)
        entries = entries_of(library, upstream)
    else:
        claims = [each for entry in entries for each in sentences(entry)]
    held = [(each, hold(each.claim, ground)) for each in claims]
    unclaimed = [
        (entry.id, part.place, each)
        for entry in (entries if lacking else ())
        for part in entry.claimed()
        for each in unproved(part)
    ]
    book = library.book
    chosen_locks = [upstream] if upstream else [*book.upstreams.values()]
    locks = {
        each.name: book.locks.get(each.name, Lock(NO_COMMIT))
        for each in chosen_locks
        if each.name in book.locks or each.is_living
    }
    mine = frozenset(note.id for note in book.annotations.values() if note.mine)
    living = frozenset(each.name for each in chosen_locks if each.is_living)
    parts = [part for each in (entries if lacking else ()) for part in each.claimed()]
    words = WordCount.of(parts)
    return HeldClaims(held, unclaimed, words, locks, mine, living)


def print_claims(found: dict[str, Any]) -> None:
    """Say how many claims hold, and why others are open."""
    why: Counter[str] = Counter()
    undecided = "no program decides them, and each says why"
    for each in found["open"]:
        why[undecided if each["check"] == "undecided" else each["why"]] += 1
    if found["held"] or why:
        new = found["not_locked"]
        lock = (
            f", {new} not locked yet: {typed('annotate', '--update-lock')}"
            if new
            else ""
        )
        click.echo(f"claims: {counted(found['held'], 'sentence')} held{lock}")
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
    if count := found.get("words"):
        click.echo(f"said by no claim: {count['unquoted']:,} of {count['all']:,} words")
