"""Single and multiple choice: options in an order of their own for each variant."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Annotated

from readerkit.content.claims import Claimed
from readerkit.model.base import Text, at_least
from readerkit.model.language import Told, made_of
from readerkit.quiz.kinds.question import (
    PlaceRef,
    Question,
    Refutation,
    letters,
    plain,
    read_labels,
)
from readerkit.quiz.messages import Remark
from readerkit.quiz.prompts import Labelled, MultiplePrompt, SinglePrompt
from readerkit.quiz.scoring import choice_credit
from readerkit.quiz.seeded_draw import SeededDraw
from readerkit.quiz.variant import AnswerError, Grade, Scene, Variant


class Option(Refutation, frozen=True):
    """One answer to choose; a wrong one says why, with the lines that refute it.

    Where several are right, each of them says why too, to whoever missed it. Claims
    are about what is so: the words of a right one, and what either says as its reason.
    """

    text: Text
    right: bool = False

    @property
    def texts(self) -> Mapping[str, str]:
        """What it says that is so."""
        true = {"text": self.text} if self.right else {}
        return {**true, "why": self.why} if self.why else true


class Choice(Question, frozen=True):
    """Options as they were written."""

    options: Annotated[tuple[Option, ...], at_least(3, 8)]

    @property
    def several(self) -> bool:
        """Whether more than one option is right."""
        return self.type == "multiple"

    def claimed(self) -> Iterator[Claimed]:
        """Yield the question and its options."""
        yield from (self, *self.options)

    def refutations(self) -> Mapping[str, Refutation]:
        """Return the wrong options."""
        options = enumerate(self.options, 1)
        return {f"option/{at}": option for at, option in options if not option.right}

    def told_why(self) -> Mapping[str, Option]:
        """Return the options that say why, right or wrong, by slot."""
        options = enumerate(self.options, 1)
        return {f"option/{at}": option for at, option in options if option.why}

    def own_places(self) -> dict[str, PlaceRef]:
        """Return the lines that options name."""
        told = self.told_why().items()
        return {slot: each.at for slot, each in told if each.at}

    def own_notes(self) -> list[str]:
        """Return the annotations that options name."""
        return [each.note for each in self.told_why().values() if each.note]

    def unborne(self) -> Iterator[str]:
        """Yield each right option of which no claim holds words."""
        for option in self.options:
            if option.right and not self.is_borne_out(option.text, by=option):
                yield option.text

    def own_texts(self) -> list[str]:
        """Return options and reasons."""
        return [text for option in self.options for text in (option.text, option.why)]

    def order(self, draw: SeededDraw) -> dict[str, int]:
        """Return the index of the option behind each letter of a variant."""
        options = draw.shuffled(range(len(self.options)))
        return dict(zip(letters(len(options)), options, strict=True))

    def ask(self, scene: Scene, draw: SeededDraw) -> AskedChoice:
        """Return the options in the variant's order."""
        order = self.order(draw)
        labels = list(order)
        shown = {}
        for label, index in order.items():
            option = self.options[index]
            shown[label] = ShownOption(
                scene.text(option.text),
                option.right,
                option.remark(scene, f"option/{index + 1}", f"{label}: "),
            )
        how = Told(
            "the letters of all that are right, of {first} to {last}"
            if self.several
            else "one letter, {first} to {last}",
            first=labels[0],
            last=labels[-1],
        )
        right = [label for label in labels if shown[label].right]
        key = made_of(
            (shown[label].text for label in right),
            lambda said: "; ".join(map("{}: {}".format, right, said)),
        )
        kind = MultiplePrompt if self.several else SinglePrompt
        texts = (option.text for option in shown.values())
        return AskedChoice(
            prompt=kind(
                *scene.head(how),
                options=Labelled.each(labels, texts),
                several=self.several,
            ),
            told=scene.solved(key),
            typed_key=" ".join(right),
            choices=2 ** len(labels) - 1 if self.several else len(labels),
            options=shown,
            several=self.several,
        )


class Single(Choice, frozen=True, tag="single"):
    """A choice of one."""


class Multiple(Choice, frozen=True, tag="multiple"):
    """A choice of several."""


@dataclass(frozen=True, slots=True)
class ShownOption:
    """An option with its numbers filled in."""

    text: str
    right: bool
    told: Remark
    """Why it is wrong; of a right one among several, why it is not."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AskedChoice(Variant):
    """Options to choose from, by their letters."""

    options: Mapping[str, ShownOption]
    several: bool

    def step(self) -> str:
        """Return a wrong option, and why it is wrong; none where one would be left."""
        wrong = [each.told for each in self.options.values() if not each.right]
        return Told("Not {why}", why=wrong[0].text) if len(wrong) > 1 else ""

    def shows_key(self, text: str) -> bool:
        """Tell whether a text says what a right option does."""
        said = plain(text)
        return any(
            plain(each.text) in said for each in self.options.values() if each.right
        )

    def grade(self, answer: str) -> Grade:
        """Return the credit: one right letter, or t/C - w/W for several."""
        chosen = read_labels(answer, list(self.options))
        if not self.several and len(chosen) > 1:
            raise AnswerError(
                Told("got {count} letters, expected one", count=len(chosen))
            )
        wrong = [label for label in chosen if not self.options[label].right]
        right = len(chosen) - len(wrong)
        total = sum(option.right for option in self.options.values())
        remarks = [self.options[label].told for label in wrong]
        if self.several and right < total:
            told = Told(
                "{missed} of {total} right ones are missing.",
                missed=total - right,
                total=total,
            )
            remarks.append(Remark(told))
        others = len(self.options) - total
        credit = choice_credit(right, total, len(wrong), others)
        return Grade(credit, tuple(remarks))

    def in_the_end(self, answer: str) -> tuple[Remark, ...]:
        """Return why each option is right that was missed, where several are."""
        if not self.several:
            return ()
        chosen = read_labels(answer, list(self.options))
        missed = (o for at, o in self.options.items() if o.right and at not in chosen)
        return tuple(option.told for option in missed)
