"""Exercises: a section of a mini that is taken out, and what shows that it is back."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated

from msgspec.structs import replace

from readerkit.content.kind import Kind
from readerkit.content.translations import Translation, english_stamp
from readerkit.model.anchor import Anchor
from readerkit.model.base import SOME, Id, Model, Name, Problem, Text


class ExerciseCheck(Model, frozen=True):
    """Something that is measured with the reader's section and with the mini's own."""

    says: Text
    """What holds once it passes."""
    measures: Annotated[tuple[Text, ...], SOME]
    """Names of what the work measures, which must come out as in the mini."""
    hint: int = 0
    """Which of the exercise's hints, from 1, helps where it fails; 0: none does."""


class Exercise(Model, frozen=True):
    """A function of a mini whose body a reader writes anew."""

    mini: Name
    name: Id
    title: Text
    at: Anchor
    """The function; its signature and its docstring stay."""
    asks: Text
    """What the body has to do, and what it has at hand."""
    hints: Annotated[tuple[Text, ...], SOME]
    work: Text
    """One of ``mini_impls.faults.works``: what is run to measure."""
    checks: Annotated[tuple[ExerciseCheck, ...], SOME]
    beside: Text | None = None
    """The upstream whose comparison grades the whole at last."""

    def problems(self) -> Iterator[Problem]:
        """Yield checks that name a hint there is not."""
        for check in self.checks:
            if not 0 <= check.hint <= len(self.hints):
                got = f"hint {check.hint} of '{check.says}'"
                yield "no such hint", got, f"1 to {len(self.hints)}"

    @property
    def key(self) -> str:
        """Return the name that no other exercise has."""
        return f"{self.mini}/{self.name}"


EXERCISES_FILE: Kind[Exercise] = Kind("exercises", Exercise)


class TranslatedExercise(Translation, frozen=True):
    """An exercise in another language: what it is called, and asks, and what helps."""

    title: Text = ""
    asks: Text = ""
    hints: tuple[Text, ...] = ()


EXERCISE_TRANSLATIONS: Kind[TranslatedExercise] = Kind(
    "exercise-translation", TranslatedExercise, "mapping", key=Text
)


def stamp(exercise: Exercise) -> str:
    """Return the name of what is translated of it."""
    return english_stamp(exercise, ("title", "asks", "hints"))


def told(exercise: Exercise, other: TranslatedExercise | None) -> Exercise:
    """Return an exercise with the texts of another language, `[en]` before the rest.

    A text whose English has changed since counts as one that has none.
    """
    other = other or TranslatedExercise()
    fresh = {*stamp(exercise).split()} & {*other.of.split()}
    kept = {mark.rpartition("-")[0] for mark in fresh}
    marked = tuple(f"[en] {hint}" for hint in exercise.hints)
    return replace(
        exercise,
        title=other.title if "title" in kept else f"[en] {exercise.title}",
        asks=other.asks if "asks" in kept else f"[en] {exercise.asks}",
        hints=other.hints if "hints" in kept else marked,
    )
