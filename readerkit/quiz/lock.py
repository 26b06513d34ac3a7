"""The lock beside a bank: what its anchors and records resolved to.

With it a quiz starts without a syntax tree and without a record; lint and the tests
hold it against both.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field, replace
from typing import Any, TypeVar

from readerkit.errors import ContentError, ContentFault
from readerkit.model.freshness import Change, MadeFrom, changes, digest
from readerkit.model.git_names import (
    NO_BLOB,
    parse_blob,
    parse_lines,
    parse_path,
    parse_upstream,
)
from readerkit.quiz.variant_context import Fact, Keys, ResolvedPlace, Work
from readerkit.system import json_file
from readerkit.wording.next_command import typed

FORMAT = 2
_T = TypeVar("_T")


@dataclass(frozen=True, slots=True)
class LockedFact:
    """What a record, a schedule or a fault said, and what said it."""

    value: Fact
    made_from: MadeFrom


@dataclass(frozen=True, slots=True)
class QuizLock:
    """Every resolved key of a bank."""

    places: Mapping[str, ResolvedPlace] = field(default_factory=dict)
    facts: Mapping[str, LockedFact] = field(default_factory=dict)
    works: Mapping[str, Work] = field(default_factory=dict)

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
        try:
            data = json_file.load(text)
            if data["format"] != FORMAT:
                raise ValueError(f"format {data['format']}, not {FORMAT}")
            places = _each(_place, data["places"])
            facts = _each(_fact, data["facts"])
            works = _each(_work, data["works"])
            return cls(places, facts, works)
        except (ValueError, KeyError, TypeError, AttributeError) as e:
            line = e.lineno if isinstance(e, json.JSONDecodeError) else 1
            expected = f"what {typed('quiz', 'lint', '--update-lock')} writes: run it"
            got = f"{type(e).__name__}: {e}"
            raise ContentError(
                [ContentFault(file, line, 1, "not a readable lock", got, expected)]
            ) from None

    def to_text(self) -> str:
        """Return JSON, sorted, a key on a line: made to be diffed."""
        places = [
            f"{json.dumps(slot)}: {json.dumps(_without_blanks(place))}"
            for slot, place in sorted(self.places.items())
        ]
        facts = [
            f"{json.dumps(name)}: {json.dumps(asdict(fact))}"
            for name, fact in sorted(self.facts.items())
        ]
        works = [
            f"{json.dumps(key)}: {json.dumps(asdict(work))}"
            for key, work in sorted(self.works.items())
        ]
        return (
            f'{{\n"format": {FORMAT},\n"places": {_block(places)},\n'
            f'"facts": {_block(facts)},\n"works": {_block(works)}\n}}\n'
        )


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


def _each(parse: Callable[[Any], _T], rows: Mapping[str, Any]) -> dict[str, _T]:
    """Return each row of a table; what is wrong in one is told with its name."""
    parsed = {}
    for name, value in rows.items():
        try:
            parsed[name] = parse(value)
        except ValueError as error:
            raise ValueError(f"{name}: {error}") from None
    return parsed


def _work(value: Mapping[str, Any]) -> Work:
    work = Work(**value)
    texts = (work.title, work.authors, work.url)
    if not all(isinstance(each, str) for each in texts) or type(work.year) is not int:
        raise ValueError("a reference of another shape")
    if not work.url.startswith("https://"):
        raise ValueError(f"url {work.url!r}: expected https://")
    return work


def _place(value: Mapping[str, Any]) -> ResolvedPlace:
    place = ResolvedPlace(**value)
    lines = parse_lines(place.first, place.last)
    if not all(isinstance(each, str) for each in (place.note, place.title)):
        raise ValueError("a note or a title that is no text")
    return replace(
        place,
        upstream=parse_upstream(place.upstream),
        path=parse_path(place.path),
        first=lines[0],
        last=lines[1],
        blob=parse_blob(place.blob) if "blob" in value else NO_BLOB,
    )


def _fact(value: Mapping[str, Any]) -> LockedFact:
    said = value["value"]
    fact: Fact = tuple(map(str, said)) if isinstance(said, list) else said
    if not isinstance(fact, (int, float, tuple)):
        raise ValueError(f"{said!r} as a fact")
    made_from = value["made_from"]
    if not all(isinstance(each, str) for each in (*made_from, *made_from.values())):
        raise ValueError("made_from: a digest that is no text")
    return LockedFact(fact, made_from)


def _without_blanks(place: ResolvedPlace) -> dict[str, Any]:
    return {key: value for key, value in asdict(place).items() if value != ""}


def _block(rows: list[str]) -> str:
    return "{\n" + ",\n".join(rows) + "\n}" if rows else "{}"
