"""Fill: a gap, in which one of some words belongs."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Annotated

from readerkit.errors import ReaderkitError
from readerkit.model.base import SOME, Model, Text
from readerkit.model.language import Told, in_each, made_of
from readerkit.quiz.kinds.question import Question, squeezed
from readerkit.quiz.messages import Remark
from readerkit.quiz.prompts import FillPrompt
from readerkit.quiz.seeded_draw import SeededDraw
from readerkit.quiz.variant import AnswerError, Grade, Scene, Variant

_GAP = "____"


class Mistake(Model, frozen=True):
    """A word that is often put into the gap, and what to say to it."""

    text: Text
    says: Text


class Fill(Question, frozen=True, tag="fill"):
    """A gap, what is right in it, and what is often put there instead."""

    accept: Annotated[tuple[Text, ...], SOME]
    mistakes: tuple[Mistake, ...] = ()

    def check(self) -> None:
        """Refuse a prompt without its gap."""
        if _GAP not in self.prompt:
            raise ReaderkitError(f"the prompt has no gap: expected {_GAP} in it")

    @property
    def filled(self) -> str:
        """The prompt with the answer in the gap."""
        return self.prompt.replace(_GAP, self.accept[0])

    @property
    def texts(self) -> Mapping[str, str]:
        """What it says that is so."""
        return {"filled": self.filled, **super().texts}

    def unborne(self) -> Iterator[str]:
        """Yield the sentence with its gap filled, unless a claim quotes the answer."""
        sides = self.prompt.split(_GAP)
        if not self.is_borne_out(self.filled, by=self, beyond=sides):
            yield self.filled

    def own_texts(self) -> list[str]:
        """Return words and remarks."""
        return [
            *self.accept,
            *(part for each in self.mistakes for part in (each.text, each.says)),
        ]

    def ask(self, scene: Scene, draw: SeededDraw) -> AskedFill:
        """Return the gap with its numbers filled in."""
        accept = tuple(map(scene.text, self.accept))
        told = scene.solved(accept[0])
        whole = made_of(
            [scene.text(self.prompt), accept[0]],
            lambda said: next(said).replace(_GAP, next(said)),
        )
        return AskedFill(
            prompt=FillPrompt(*scene.head(Told("a word or a name"))),
            told=told,
            ends=tuple(Remark(whole, place) for place in told.links[:1]),
            typed_key=accept[0],
            accept=frozenset(_name(word) for text in accept for word in in_each(text)),
            mistakes={
                _name(word): scene.text(each.says)
                for each in self.mistakes
                for word in in_each(scene.text(each.text))
            },
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class AskedFill(Variant):
    """A gap to fill: words as they are compared, and code around a name aside."""

    accept: frozenset[str]
    mistakes: Mapping[str, str]
    """What to say to each."""
    ends: tuple[Remark, ...]
    """What else refutes any other word: the sentence whole, and its lines."""

    def grade(self, answer: str) -> Grade:
        """Return all or nothing; case, hyphens, blanks and `()` do not count."""
        given = _name(answer)
        if not given:
            raise AnswerError(Told("got nothing, expected a word"))
        # The object in front of a name is the reader's own: `model.no_sync`.
        names = {given, given.rpartition(".")[2]}
        if names & self.accept:
            return Grade(1)
        says = next(
            (self.mistakes[name] for name in names if name in self.mistakes), ""
        )
        return Grade(0, (Remark(says),) if says else ())

    def in_the_end(self, answer: str) -> tuple[Remark, ...]:
        """Return the sentence with its gap filled, and the lines that bear it out."""
        return self.ends


_CODE = re.compile(r"(?:with\s+)?(.*?)(?:\(.*\))?(?:\s+as\s+\w+)?\s*[:.]*")
PATTERNS = {"code": _CODE}
"""By which an answer is read, on a page too."""


def _name(text: str) -> str:
    """Return a word as it is compared; what is around a name in code aside."""
    bare = text.strip().strip("`'\"").lstrip(".@")
    match = _CODE.fullmatch(bare)
    return squeezed(match[1] if match else bare)
