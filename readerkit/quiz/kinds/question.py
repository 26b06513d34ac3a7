"""What every type of question has in common, as written and as asked."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Annotated, ClassVar, Literal

from msgspec import Meta

from readerkit.content.annotations import Citation
from readerkit.content.claims import Claimed, one_spaced
from readerkit.content.translations import TranslatedQuestion, english_stamp
from readerkit.errors import ContentFault, ReaderkitError
from readerkit.model.anchor import Anchor
from readerkit.model.base import (
    ONCE,
    SOME,
    UNWRITTEN,
    ConceptId,
    Formula,
    Id,
    Model,
    Name,
    Problem,
    Text,
    UpstreamName,
    at_least,
    pattern,
)
from readerkit.model.expression import Functions, Number, evaluate
from readerkit.model.language import Told, made_of
from readerkit.quiz.messages import Remark
from readerkit.quiz.seeded_draw import SeededDraw
from readerkit.quiz.variant import AnswerError, Scene, Variant
from readerkit.wording.next_command import typed

_PARAMETER_KEYS = {"first": "from", "last": "to", "formula": "is"}

Amount = int | float
MARK = "[en] "
"""Before a text that is in English where another language was asked for."""


class PlaceRef(Anchor, frozen=True, kw_only=True):
    """Lines that a question names: an upstream and an anchor, not resolved yet."""

    upstream: UpstreamName


class Refutation(Claimed, frozen=True, kw_only=True):
    """Why one wrong answer is wrong, with the lines that refute it."""

    TEXTS: ClassVar[tuple[str, ...]] = ("why",)
    why: Annotated[Text, Meta(description="Why that answer is wrong.")] = ""
    note: Annotated[Id, Meta(description="The annotation whose lines refute it.")] = ""
    at: Annotated[PlaceRef | None, Meta(description="The lines that refute it.")] = None

    @property
    def is_told(self) -> bool:
        """Whether it says why, and leads to lines, a figure or a run."""
        shown = any(c.value or c.experiment or c.run for c in self.claims)
        return bool(self.why) and (shown or bool(self.note or self.at))

    def remark(self, scene: Scene, slot: str, label: str = "") -> Remark:
        """Return what is said to who gave that answer."""
        why = made_of([label, scene.text(self.why)], "".join)
        if any(claim.experiment for claim in self.claims):
            command = typed("prove", scene.written.id)
            why = Told("{why} To see it run: {command}", why=why, command=command)
        if self.note or self.at:
            place = scene.place(f"note:{self.note}" if self.note else slot)
            return Remark(why, place)
        return Remark(why)


class Parameter(Model, frozen=True, rename=_PARAMETER_KEYS):
    """A number that differs from variant to variant."""

    choose: Annotated[tuple[Amount, ...], at_least(2)] = ()
    first: Amount | None = None
    last: Amount | None = None
    step: Amount = 1
    formula: Formula | None = None
    own: Annotated[
        str,
        pattern(r"^[a-z0-9]+\.[a-z_]+$"),
        Meta(description="A figure of the reader's own; choose stands in for it."),
    ] = ""
    significant: Annotated[int, Meta(ge=1, le=9)] | None = None
    """Digits that a formula's value is rounded to, as it is displayed."""

    def check(self, name: str) -> None:
        """Hold against each other what says where it comes from.

        Raises:
            ReaderkitError: not exactly one of: choices, a range, a formula.
        """
        ranged = {"from": self.first, "to": self.last}
        ways = {"choose": self.choose or None, **ranged, "is": self.formula}
        given = [key for key, value in ways.items() if value is not None]
        if self.own and not self.choose:
            raise ReaderkitError(
                f"parameter '{name}': got own alone, expected choose beside it, from "
                "which its value is drawn where there is no reader"
            )
        if given not in (["choose"], ["from", "to"], ["is"]):
            raise ReaderkitError(
                f"parameter '{name}': got {', '.join(given) or 'nothing'}, "
                "expected choose, or from and to, or is"
            )
        if self.first is not None and not 1 < self._steps() <= 10_000:
            raise ReaderkitError(
                f"parameter '{name}': {self.first} to {self.last} by {self.step} has "
                f"{self._steps()} values, expected 2 to 10,000"
            )

    def _steps(self) -> int:
        if self.first is None or self.last is None or self.step <= 0:
            return 0
        return int((self.last - self.first) / self.step + 1e-9) + 1

    @property
    def choices(self) -> tuple[Number, ...]:
        """What it is drawn from; empty where a formula gives it."""
        if self.first is None:
            return self.choose
        return tuple(self.first + self.step * index for index in range(self._steps()))

    def value(
        self,
        draw: SeededDraw,
        known: Mapping[str, Number],
        functions: Functions,
        figures: Mapping[str, Number] | None = None,
    ) -> Number:
        """Return its value in a variant, with a reader's own figures or without.

        Raises:
            ReaderkitError: the reader has no such figure, or a formula has no value.
        """
        if self.own and figures is not None:
            if self.own not in figures:
                raise ReaderkitError(f"the quiz keeps no figure '{self.own}' of yours")
            return figures[self.own]
        if self.formula is None:
            return draw.choice(self.choices)
        number = evaluate(str(self.formula), known, functions)
        if self.significant:
            number = float(f"{number:.{self.significant}g}")
        return int(number) if number == int(number) else number


class Question(Claimed, frozen=True, kw_only=True, tag_field="type"):
    """Everything that a person wrote about one question; each type adds its own."""

    TEXTS: ClassVar = ("explanation",)
    id: Annotated[Id, Meta(description="Unique in the bank; never changes.")]
    objective: Id
    concepts: Annotated[tuple[ConceptId, ...], SOME, ONCE]
    difficulty: Literal[1, 2, 3]
    asks: Literal["", "explain", "decide", "diagnose"] = ""
    """What it wants beyond a key that is read or reckoned."""
    prompt: Annotated[Text, Meta(description="{name} shows a parameter.")]
    explanation: Text
    parameters: Mapping[Name, Parameter] = {}
    notes: Annotated[
        tuple[Id, ...], ONCE, Meta(description="Annotations to read next.")
    ] = ()
    code: tuple[PlaceRef, ...] = ()
    references: tuple[Citation, ...] = ()
    topic: Annotated[str, UNWRITTEN] = ""
    """The file it stands in."""

    @property
    def title(self) -> str:
        """What it asks."""
        return self.prompt

    @property
    def type(self) -> str:
        """The name of its type."""
        return str(self.__struct_config__.tag)

    @property
    def rest(self) -> tuple[str, ...]:
        """The texts of its own part, as a translation has them in their order."""
        return tuple(text for text in self.own_texts() if text)

    @property
    def stamp(self) -> str:
        """Which English texts it has, for a translation to say of which it is."""
        return english_stamp(self, ("prompt", "explanation", "rest"))

    def spoken(
        self, told: TranslatedQuestion | None, *, is_marked: bool = True
    ) -> dict[str, str]:
        """Return what to say instead of its English texts.

        A text that is not translated, or was from another English, is marked, or else
        left out.
        """
        own = (self.prompt, self.explanation) if is_marked else ()
        said = {text: MARK + text for text in own}
        if told is None:
            return said
        changed = {change.part for change in told.changes(self.stamp)}
        if told.prompt and not changed & {"prompt", "rest"}:
            said[self.prompt] = told.prompt
            said |= zip(self.rest, told.rest, strict=False)
        if told.explanation and "explanation" not in changed:
            said[self.explanation] = told.explanation
        return said

    @property
    def own_figures(self) -> tuple[str, ...]:
        """The figures of the reader's own that it asks about; none where it is alike.

        Such a question is asked of who has them, in practice alone.
        """
        return tuple(each.own for each in self.parameters.values() if each.own)

    def problems(self) -> Iterator[Problem]:
        """Yield the first thing that no schema tells."""
        try:
            for name, parameter in self.parameters.items():
                parameter.check(name)
            self.check()
        except ReaderkitError as error:
            yield f"{self.id}: {error}", "", ""

    def check(self) -> None:
        """Hold its own part against itself; ReaderkitError says what is wrong."""

    def fault(self, what: str, got: str = "", expected: str = "") -> ContentFault:
        """Return a fault of this question, at its place."""
        return self.place.fault(f"{self.id}: {what}", got, expected)

    def refutations(self) -> Mapping[str, Refutation]:
        """Return what is said to each wrong answer of its own part, by slot."""
        return {}

    def claimed(self) -> Iterator[Claimed]:
        """Yield the question and the parts of it that may carry claims."""
        yield from (self, *self.refutations().values())

    def unborne(self) -> Iterator[str]:
        """Yield each part of a typed key that no claim bears out."""
        return iter(())

    def is_borne_out(
        self, text: str, *, by: Claimed, beyond: Sequence[str] = ()
    ) -> bool:
        """Tell whether a claim of a part quotes a key, and more than a side of it.

        A claim that no program decides counts where a work is cited that tells it.
        """
        whole = one_spaced(text)
        sides = [one_spaced(side) for side in beyond]
        return any(
            (words := one_spaced(claim.says)) in whole
            and not any(words in side for side in sides)
            and (claim.undecided is None or bool(self.references))
            for claim in by.claims
        )

    def own_places(self) -> dict[str, PlaceRef]:
        """Return the lines that its own part names, by slot."""
        told = self.refutations().items()
        return {slot: each.at for slot, each in told if each.at}

    def own_notes(self) -> list[str]:
        """Return the annotations that its own part names."""
        return [each.note for each in self.refutations().values() if each.note]

    def formulas(self) -> list[str]:
        """Return every formula that is computed for a variant."""
        return []

    def own_texts(self) -> list[str]:
        """Return every text of its own part that may hold ``{formulas}``."""
        return []

    def ask(self, scene: Scene, draw: SeededDraw) -> Variant:
        """Return the question made concrete."""
        raise NotImplementedError

    def places(self) -> dict[str, PlaceRef]:
        """Return every anchor of the question, by slot."""
        links = {f"code/{i}": each for i, each in enumerate(self.code, 1)}
        return {**self.own_places(), **links}

    def all_notes(self) -> list[str]:
        """Return every annotation that it names."""
        return list(dict.fromkeys([*self.notes, *self.own_notes()]))


_BETWEEN = {"and", "y", "both", "option", "options", "answer"}
"""What is said around labels."""


GAPS = re.compile(r"[\s_\-\u2010-\u2013]+")
"""What parts the parts of a word."""


def plain(text: str) -> str:
    """Return a word or phrase as it is compared: case, hyphens and blanks aside."""
    return GAPS.sub(" ", text.replace("`", "").casefold()).strip()


def squeezed(text: str) -> str:
    """Return a word as it is compared, whatever parts its parts: `no_sync`, nosync."""
    return plain(text).replace(" ", "")


def read_labels(answer: str, known: Sequence[str]) -> list[str]:
    """Return the labels in an answer, each once.

    Raises:
        AnswerError: something else, a label twice, or none.
    """
    said = re.findall(r"[^\s,;.&+()/|`'\"\[\]]+", answer.lower())
    found = [word for word in said if word in known or word not in _BETWEEN]
    if len(found) == 1 and len(found[0]) > 1 and all(c in known for c in found[0]):
        found = list(found[0])
    wrong = [label for label in found if label not in known]
    if wrong or not found or len(set(found)) < len(found):
        form = Told("letters among {labels}, each once", labels=joined(known))
        raise not_read(answer, form)
    return found


def not_read(answer: str, expected: str) -> AnswerError:
    """Return what to raise for an answer of another form than was expected."""
    got = answer.strip()[:60]
    return AnswerError(
        Told("got '{got}', expected {expected}", got=got, expected=expected)
    )


def letters(count: int) -> list[str]:
    """Return the labels of so many options: a, b, c, ..."""
    return [chr(ord("a") + index) for index in range(count)]


def joined(items: Iterable[str]) -> str:
    """Return items as one line."""
    return ", ".join(items)
