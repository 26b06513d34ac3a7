"""Single and multiple choice: options in an order of their own for each variant."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any

from msgspec import Meta

from readerkit.model.base import Id, Model, Text, at_least
from readerkit.model.language import Told
from readerkit.quiz.kinds.base import (
    Grade,
    PlaceRef,
    Question,
    Remark,
    letters,
    read_labels,
)
from readerkit.quiz.scoring import coverage_credit
from readerkit.quiz.seeded_random import Draw
from readerkit.quiz.variant_context import AnswerError, ResolvedPlace, Scene


class Option(Model, frozen=True):
    """One answer to choose; a wrong one says why, with the lines that refute it."""

    text: Text
    right: bool = False
    why: Annotated[Text, Meta(description="Why a wrong option is wrong.")] = ""
    note: Annotated[Id, Meta(description="The annotation whose lines refute it.")] = ""
    at: Annotated[PlaceRef | None, Meta(description="The lines that refute it.")] = None


class Choice(Question, frozen=True):
    """Options as they were written."""

    options: Annotated[tuple[Option, ...], at_least(3, 8)]

    @property
    def several(self) -> bool:
        """Whether more than one option is right."""
        return self.type == "multiple"

    def own_places(self) -> dict[str, PlaceRef]:
        """Return the lines that refute options."""
        return {
            f"option/{index}": option.at
            for index, option in enumerate(self.options, 1)
            if option.at
        }

    def own_notes(self) -> list[str]:
        """Return the annotations that refute options."""
        return [option.note for option in self.options if option.note]

    def texts(self) -> list[str]:
        """Return options and reasons."""
        return [text for option in self.options for text in (option.text, option.why)]

    def ask(self, scene: Scene, draw: Draw) -> AskedChoice:
        """Return the options in the variant's order."""
        shown = []
        for index in draw.shuffled(range(len(self.options))):
            option = self.options[index]
            place = None
            if option.note:
                place = scene.place(f"note:{option.note}")
            elif option.at:
                place = scene.place(f"option/{index + 1}")
            shown.append(
                ShownOption(
                    scene.text(option.text),
                    option.right,
                    scene.text(option.why),
                    place,
                )
            )
        return AskedChoice(tuple(shown), self.several)


class Single(Choice, frozen=True, tag="single"):
    """A choice of one."""


class Multiple(Choice, frozen=True, tag="multiple"):
    """A choice of several."""


@dataclass(frozen=True, slots=True)
class ShownOption:
    """An option with its numbers filled in."""

    text: str
    right: bool
    why: str
    place: ResolvedPlace | None


@dataclass(frozen=True, slots=True)
class AskedChoice:
    """Options as they are shown."""

    options: tuple[ShownOption, ...]
    several: bool

    @property
    def labels(self) -> list[str]:
        """The letters of the options."""
        return letters(len(self.options))

    @property
    def help(self) -> str:
        """How to type an answer."""
        return Told(
            "the letters of all that are right, of {first} to {last}"
            if self.several
            else "one letter, {first} to {last}",
            first=self.labels[0],
            last=self.labels[-1],
        )

    @property
    def choices(self) -> int | None:
        """How many answers there are: options, or sets of them but the empty one."""
        count = len(self.options)
        return 2**count - 1 if self.several else count

    def shown(self) -> dict[str, Any]:
        """Return labels and texts."""
        pairs = zip(self.labels, self.options, strict=True)
        options = [{"label": label, "text": option.text} for label, option in pairs]
        return {"options": options, "several": self.several}

    def grade(self, answer: str) -> Grade:
        """Return the credit: one right letter, or t²/(C·n) for several."""
        chosen = read_labels(answer, self.labels)
        if not self.several and len(chosen) > 1:
            raise AnswerError(
                Told("got {count} letters, expected one", count=len(chosen))
            )
        by_label = dict(zip(self.labels, self.options, strict=True))
        picked = [by_label[label] for label in chosen]
        right = sum(option.right for option in picked)
        total = sum(option.right for option in self.options)
        credit = coverage_credit(right, total, len(picked))
        remarks = [
            Remark(f"{label}: {by_label[label].why}", by_label[label].place)
            for label in chosen
            if not by_label[label].right
        ]
        missed = total - right
        if self.several and missed:
            told = Told(
                "{missed} of {total} right ones are missing.",
                missed=missed,
                total=total,
            )
            remarks.append(Remark(told))
        return Grade(credit, tuple(remarks))

    def typed_key(self) -> str:
        """Return the key as it would be typed."""
        pairs = zip(self.labels, self.options, strict=True)
        return " ".join(label for label, each in pairs if each.right)

    def solution(self) -> str:
        """Return the right options with their letters."""
        pairs = zip(self.labels, self.options, strict=True)
        return "; ".join(f"{label}: {each.text}" for label, each in pairs if each.right)
