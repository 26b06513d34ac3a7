"""Questions as other programs know them: six forms, whatever our own kinds are.

A variant is drawn; its numbers are filled in, its key is beside it. What a form cannot
hold (a typed unit, a grid of words) becomes the nearest that it can.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from msgspec import Struct
from msgspec.structs import asdict, replace

from readerkit.model.language import Say, said
from readerkit.quiz.bank import Bank
from readerkit.quiz.kinds.choice import AskedChoice, Option
from readerkit.quiz.kinds.fill import AskedFill, Fill
from readerkit.quiz.kinds.locate import AskedLine
from readerkit.quiz.kinds.numeric import AskedNumber
from readerkit.quiz.kinds.predict import AskedWords
from readerkit.quiz.kinds.question import Question
from readerkit.quiz.kinds.sequence import AskedMatch, AskedOrder, Match
from readerkit.quiz.kinds.sketch import AskedSketch
from readerkit.quiz.messages import Remark, Solution
from readerkit.quiz.prompts import MatchPrompt, OrderPrompt, Prompt
from readerkit.quiz.variant import Scene, Variant


class PortableOption(Struct, frozen=True):
    """One answer to choose."""

    text: str
    right: bool
    why: Remark | None = None
    """Why it is wrong."""


class ChoiceForm(Struct, frozen=True):
    """Options in the order of the variant."""

    options: tuple[PortableOption, ...]
    several: bool


class NumberForm(Struct, frozen=True):
    """A number, how far from it an answer may be, and known mistakes."""

    key: float
    within: float
    mistakes: tuple[tuple[float, float, Remark], ...] = ()
    """Number, how far from it, what to say."""


class PairsForm(Struct, frozen=True):
    """Left sides with their right ones, and right ones that belong to nothing."""

    pairs: tuple[tuple[str, str], ...]
    spare: tuple[str, ...] = ()
    reasons: tuple[tuple[str, Remark], ...] = ()
    """Right sides with what is said of them where they do not belong."""

    @property
    def rights(self) -> tuple[str, ...]:
        """Every right side once."""
        return tuple(dict.fromkeys([*(right for _, right in self.pairs), *self.spare]))


class OrderForm(Struct, frozen=True):
    """Items as they are shown, and every right order of them: places from 0."""

    items: tuple[str, ...]
    valid: tuple[tuple[int, ...], ...]
    reasons: tuple[tuple[str, Remark], ...] = ()
    """Two neighbours, and why they stand so."""


class WordsForm(Struct, frozen=True):
    """A text to type, and texts that are often typed instead."""

    accept: tuple[str, ...]
    mistakes: tuple[tuple[str, Remark], ...] = ()


class TextForm(Struct, frozen=True):
    """A text that no machine marks: the solution is the model."""


Form = ChoiceForm | NumberForm | PairsForm | OrderForm | WordsForm | TextForm


class PortableQuestion(Struct, frozen=True):
    """A variant of a question, with its key."""

    phase: int
    kind: str
    prompt: Prompt
    form: Form
    told: Solution
    objective: str
    """Its id."""
    code: tuple[str, ...] = ()
    """The lines to look at, numbered."""
    language: str = "en"
    rows: str = "Rows"
    columns: str = "Columns"
    words: str = "Words"
    """What stands before the labels of a grid, and before words to choose from."""

    def spoken(self, language: str, say: Say) -> PortableQuestion:
        """Return it with every phrase around its own texts in a language."""
        spoken: PortableQuestion = _spoken(self, say)
        heads = {"rows": say("Rows"), "columns": say("Columns"), "words": say("Words")}
        return replace(spoken, language=language, **heads)


def _spoken(told: Any, say: Say) -> Any:
    if isinstance(told, Struct):
        parts = {name: _spoken(part, say) for name, part in asdict(told).items()}
        return replace(told, **parts)
    if isinstance(told, tuple):
        return tuple(_spoken(part, say) for part in told)
    return said(told, say) if isinstance(told, str) else told


def portable(
    bank: Bank, name: str, seed: int, code: Sequence[str] = ()
) -> PortableQuestion:
    """Return a question as other programs know it.

    Raises:
        ReaderkitError: a key that does not compute or is not in the lock.
    """
    written, variant = bank.questions[name], bank.variant(name, seed)
    scene, _ = bank.scene(name, seed)
    form = _form(written, scene, variant)
    return PortableQuestion(
        bank.rules.phase,
        written.type,
        variant.prompt,
        form,
        variant.told,
        written.objective,
        tuple(code),
    )


def _form(written: Question, scene: Scene, variant: Variant) -> Form:
    match variant:
        case AskedChoice(options=options, several=several):
            # As the question says it: without the letter, which the others mix anew.
            why = {
                scene.text(each.text): each.remark(scene, slot)
                for slot, each in written.refutations().items()
                if isinstance(each, Option)
            }
            shown = (
                PortableOption(o.text, o.right, None if o.right else why.get(o.text))
                for o in options.values()
            )
            return ChoiceForm(tuple(shown), several)
        case AskedFill() if isinstance(written, Fill):
            accept = tuple(map(scene.text, written.accept))
            typed = (
                (scene.text(each.text), Remark(scene.text(each.says)))
                for each in written.mistakes
            )
            return WordsForm(accept, tuple(typed))
        case AskedNumber(key=key, tolerance=near):
            mistakes = (
                (value, near.limit(value), remark) for value, remark in variant.mistakes
            )
            return NumberForm(key, near.limit(key), tuple(mistakes))
        case AskedLine(key=place):
            return NumberForm(*_middle(place.first, place.last), tuple(_lines(variant)))
        case AskedOrder(valid=valid):
            assert isinstance(variant.prompt, OrderPrompt)
            items = tuple(each.text for each in variant.prompt.items)
            orders = tuple(tuple(number - 1 for number in order) for order in valid)
            reasons = (
                (f"{items[one - 1]} → {items[other - 1]}", remark)
                for (one, other), remark in variant.refuted.items()
            )
            return OrderForm(items, orders, tuple(reasons))
        case AskedMatch() if isinstance(written, Match):
            return _pairs(written, scene, variant)
        case AskedSketch(columns=columns, rows=rows, words=words):
            cells = [
                (f"{label}: {title}", cell)
                for label, row in rows
                for (title, _), cell in zip(columns, row, strict=True)
            ]
            used = {cell for _, cell in cells}
            return PairsForm(
                tuple(cells), tuple(word for word in words if word not in used)
            )
        case AskedWords(key=(word,), words=words) if words:
            said = {given[0]: remark for given, remark in variant.refuted}
            offered = (PortableOption(w, w == word, said.get(w)) for w in words)
            return ChoiceForm(tuple(offered), several=False)
        case AskedWords(key=key):
            wrong = ((" ".join(given), remark) for given, remark in variant.refuted)
            return WordsForm((" ".join(key),), tuple(wrong))
    return TextForm()


def _pairs(written: Match, scene: Scene, variant: AskedMatch) -> PairsForm:
    assert isinstance(variant.prompt, MatchPrompt)
    texts = {each.label: each.text for each in variant.prompt.right}
    pairs = tuple((variant.lefts[at], texts[to]) for at, to in variant.key.items())
    used = {*variant.key.values()}
    spare = tuple(text for label, text in texts.items() if label not in used)
    rights = [pair.right for pair in written.pairs] + [s.text for s in written.spare]
    reasons = (
        (scene.text(right), each.remark(scene, slot))
        for right, (slot, each) in zip(
            rights, written.refutations().items(), strict=True
        )
        if each.why
    )
    return PairsForm(pairs, spare, tuple(dict(reasons).items()))


def _lines(variant: AskedLine) -> Iterator[tuple[float, float, Remark]]:
    for place, remark in variant.refuted:
        yield (*_middle(place.first, place.last), remark)


def _middle(first: int, last: int) -> tuple[float, float]:
    """Return a range as its middle and how far it goes."""
    return (first + last) / 2, (last - first) / 2


def reasons(form: Form) -> list[tuple[str, Remark]]:
    """Return each wrong answer of a form that is known, with why it is wrong."""
    match form:
        case ChoiceForm(options=options):
            return [(each.text, each.why) for each in options if each.why]
        case NumberForm(mistakes=mistakes):
            return [(f"{value:.12g}", remark) for value, _, remark in mistakes]
        case PairsForm(reasons=found) | OrderForm(reasons=found):
            return [*found]
        case WordsForm(mistakes=found):
            return [*found]
    return []


def key_lines(question: PortableQuestion) -> list[str]:
    """Return the key without the labels of a variant, which other programs mix anew."""
    match question.form:
        case ChoiceForm(options=options):
            return [each.text for each in options if each.right]
        case PairsForm(pairs=pairs):
            return [f"{left} — {right}" for left, right in pairs]
        case OrderForm(items=items, valid=valid):
            return [" → ".join(items[at] for at in order) for order in valid]
    return question.told.solution.split("\n")
