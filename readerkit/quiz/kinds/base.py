"""What every type of question has in common, as written and as asked."""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from readerkit.quiz.draw import Draw
from readerkit.quiz.scene import AnswerError, Place, Scene

WHOLE = 1 - 1e-9
"""Credit that counts as right, whatever binary fractions add up to."""


@dataclass(frozen=True, slots=True)
class PlaceRef:
    """Lines that a question names: an upstream and an anchor, not resolved yet."""

    upstream: str
    at: Mapping[str, Any]

    @classmethod
    def parse(cls, value: Mapping[str, Any]) -> PlaceRef:
        """Return the reference that a mapping with an upstream and an anchor gives."""
        at = {key: item for key, item in value.items() if key != "upstream"}
        return cls(value["upstream"], at)


@dataclass(frozen=True, slots=True)
class Remark:
    """One thing said about an answer, and the lines that bear it out."""

    text: str
    place: Place | None = None


@dataclass(frozen=True, slots=True)
class Grade:
    """What an answer earned, from 0 to 1, and what is said about it."""

    credit: float
    remarks: tuple[Remark, ...] = ()

    @property
    def is_right(self) -> bool:
        """Whether all of it was right."""
        return self.credit >= WHOLE


class Asked(Protocol):
    """A question made concrete: what the reader sees, and the key behind it."""

    @property
    def help(self) -> str:
        """How to type an answer."""

    @property
    def choices(self) -> int | None:
        """How many answers there are to guess among; None where nobody can guess."""

    def shown(self) -> dict[str, Any]:
        """Return what the reader sees beside the prompt, as JSON values; no key."""

    def grade(self, answer: str) -> Grade:
        """Return what an answer earns; AnswerError where it cannot be read."""

    def typed_key(self) -> str:
        """Return the key as a reader would type it; ``grade`` gives it all credit."""

    def solution(self) -> str:
        """Return the key in words."""


class Body(ABC):
    """The part of a question that its type decides, as it was written."""

    __slots__ = ()

    def places(self) -> dict[str, PlaceRef]:
        """Return the lines that it names, by slot."""
        return {}

    def notes(self) -> list[str]:
        """Return the annotations that it names."""
        return []

    def formulas(self) -> list[str]:
        """Return every formula that is computed for a variant."""
        return []

    def texts(self) -> list[str]:
        """Return every text that may hold ``{formulas}``."""
        return []

    @abstractmethod
    def ask(self, scene: Scene, draw: Draw) -> Asked:
        """Return the question made concrete."""


def plain(text: str) -> str:
    """Return a word or phrase as it is compared: case, hyphens and blanks aside."""
    return re.sub(
        r"[\s_\-\u2010-\u2013]+", " ", text.replace("`", "").casefold()
    ).strip()


def read_labels(answer: str, known: Sequence[str]) -> list[str]:
    """Return the labels in an answer, each once.

    Raises:
        AnswerError: something else, a label twice, or none.
    """
    found = re.findall(r"[^\s,;.]+", answer.lower())
    if len(found) == 1 and len(found[0]) > 1 and all(c in known for c in found[0]):
        found = list(found[0])
    wrong = [label for label in found if label not in known]
    if wrong or not found or len(set(found)) < len(found):
        raise AnswerError(
            f"got '{answer.strip()}', expected letters among {', '.join(known)}, "
            "each once"
        )
    return found


def read_place(line: str, scene: Scene, slot: str, note: str) -> Remark:
    """Return a remark with the lines of a note, or of a slot of the question."""
    return Remark(line, scene.place(f"note:{note}" if note else slot))


def letters(count: int) -> list[str]:
    """Return the labels of so many options: a, b, c, ..."""
    return [chr(ord("a") + index) for index in range(count)]


def joined(items: Iterable[str]) -> str:
    """Return items as one line."""
    return ", ".join(items)
