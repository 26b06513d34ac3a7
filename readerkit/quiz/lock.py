"""The lock beside a bank: what its anchors and records resolved to.

With it a quiz starts without a syntax tree and without a record; lint and the tests
hold it against both.
"""

from __future__ import annotations

from collections.abc import Mapping

from readerkit.model import stored
from readerkit.model.freshness import Change, MadeFrom, changes, digest
from readerkit.model.stored import Stored
from readerkit.quiz.variant_context import Fact, Keys, ResolvedPlace, Work
from readerkit.wording.next_command import typed

FORMAT = 2


class LockedFact(Stored, frozen=True):
    """What a record, a schedule or a fault said, and what said it."""

    value: Fact
    made_from: MadeFrom


class QuizLock(Stored, frozen=True):
    """Every resolved key of a bank."""

    places: Mapping[str, ResolvedPlace] = {}
    facts: Mapping[str, LockedFact] = {}
    works: Mapping[str, Work] = {}
    format: int = FORMAT

    def keys(self) -> Keys:
        """Return the keys that variants are made with."""
        facts = {question: locked.value for question, locked in self.facts.items()}
        return Keys(self.places, facts, self.works)

    @classmethod
    def parse(cls, text: str, file: str) -> QuizLock:
        """Return the lock that ``to_text`` wrote.

        Raises:
            ContentError: text that is not such a lock.
        """
        expected = f"what {typed('quiz', 'lint', '--update-lock')} writes: run it"
        return stored.parse(
            text, cls, file, what="lock", expected=expected, version=FORMAT
        )

    def to_text(self) -> str:
        """Return JSON, sorted, a key on a line: made to be diffed."""
        places, facts, works = map(sorted, (self.places, self.facts, self.works))
        in_order = QuizLock(
            {name: self.places[name] for name in places},
            {name: self.facts[name] for name in facts},
            {name: self.works[name] for name in works},
        )
        return stored.write(in_order, width=1)


def differences(locked: QuizLock, now: QuizLock) -> list[Change]:
    """Return each key that is not what was locked.

    A source that was made anew and says the same is no difference: it is asked again
    each time.
    """
    return changes(_said(locked), _said(now))


def _said(lock: QuizLock) -> MadeFrom:
    """Return the digest of each key's value, by its name."""
    return {
        **{slot: _said_of(place) for slot, place in sorted(lock.places.items())},
        **{key: digest(repr(work)) for key, work in sorted(lock.works.items())},
        **{name: str(fact.value) for name, fact in sorted(lock.facts.items())},
    }


def _said_of(place: ResolvedPlace) -> str:
    """Return everything that the lock has of a place."""
    marks = (place.upstream, str(place), place.blob[:12], place.note, place.title)
    return " ".join(filter(None, marks))
