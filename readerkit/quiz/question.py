"""One variant of a question, as it is asked."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from readerkit.model.expression import Functions, Number
from readerkit.quiz.kinds import Asked, Grade, Question
from readerkit.quiz.seeded_random import Draw
from readerkit.quiz.variant_context import Keys, ResolvedPlace, Scene, Work


@dataclass(frozen=True, slots=True)
class Variant:
    """A question made concrete by a seed: what is shown, and the key behind it."""

    question: Question
    seed: int
    prompt: str
    explanation: str
    asked: Asked
    links: tuple[ResolvedPlace, ...]
    works: Mapping[str, Work]
    """What its references stand for."""

    def grade(self, answer: str) -> Grade:
        """Return the grade of an answer, a pure function of variant and answer.

        Raises:
            AnswerError: an answer that cannot be read as one.
        """
        return self.asked.grade(answer)


def make_variant(
    question: Question, *, version: int, seed: int, functions: Functions, keys: Keys
) -> Variant:
    """Return the variant that a bank's version, the question and a seed name.

    Raises:
        ReaderkitError: a key that does not compute or is not in the lock.
    """
    draw = Draw(version, question.id, seed)
    values: dict[str, Number] = {}
    for name, parameter in question.parameters.items():
        values[name] = parameter.value(draw, values, functions)
    scene = Scene(question.id, values, functions, keys)
    links = [scene.place(f"note:{note}") for note in question.notes]
    links += [scene.place(f"code/{i}") for i in range(1, len(question.code) + 1)]
    return Variant(
        question,
        seed,
        scene.text(question.prompt),
        scene.text(question.explanation),
        question.ask(scene, draw),
        tuple(links),
        {cited.key: scene.work(cited.key) for cited in question.references},
    )
