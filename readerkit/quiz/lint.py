"""What is wrong with a bank: keys that do not compute, dead links, doubles.

Pure: the bank comes with its resolved keys, the book with the names it knows.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import combinations

from readerkit.errors import ContentFault, ReaderkitError
from readerkit.model.expression import calls_in, names_in, parse_expression
from readerkit.model.number_with_unit import binary_twin, convert
from readerkit.quiz.bank import Bank
from readerkit.quiz.guessing import tricks_that_work
from readerkit.quiz.kinds.choice import AskedChoice, Choice
from readerkit.quiz.kinds.locate import AskedLine, Locate
from readerkit.quiz.kinds.numeric import AskedNumber, Numeric
from readerkit.quiz.kinds.predict import AskedWords, Predict
from readerkit.quiz.kinds.question import Question, Refutation, plain
from readerkit.quiz.kinds.sequence import Match, Order
from readerkit.quiz.kinds.short import AskedShort
from readerkit.quiz.variant import Variant, formulas_of

SEEDS = 200
SHUFFLED = (Choice, Order, Match)
"""What draws more from a seed than the values of its parameters."""
MAX_SEARCHED_LINES = 90
MAX_KEY_LINES = 12
NEAR_DUPLICATE = 0.6
"""Share of three-word runs that two prompts may have in common."""


@dataclass(frozen=True, slots=True)
class Known:
    """The names that links may use."""

    notes: frozenset[str]
    concepts: frozenset[str]
    references: Mapping[str, frozenset[str]]
    """Key to the sections that are listed under it."""
    figures: frozenset[str] = frozenset()
    """Of readers, that questions may ask about."""


def lint_bank(bank: Bank, known: Known) -> list[ContentFault]:
    """Return everything that is wrong with a bank."""
    faults: list[ContentFault] = []
    for question in bank.questions.values():
        faults += _names(question, bank)
        faults += _links(question, known)
        faults += [each for p in question.claimed() for each in p.claim_faults()]
        try:
            faults += _keys(question, bank)
        except ReaderkitError as error:
            faults.append(question.fault(f"{error}"))
    faults += _near_duplicates(bank)
    faults += _without_questions(bank)
    return sorted(set(faults)) or [*tricks_that_work(bank, range(SEEDS))]


# --- one question ---


def _names(question: Question, bank: Bank) -> Iterator[ContentFault]:
    """Yield names that are used and not declared, or declared and not used."""
    texts = [question.prompt, question.explanation, *question.own_texts()]
    shown = [formula for text in texts for formula in formulas_of(text)]
    derived = [*_derived(question).values()]
    declared = {*question.parameters}
    used: set[str] = set()
    for formula in (*shown, *derived, *question.formulas()):
        try:
            tree = parse_expression(formula)
        except ReaderkitError as error:
            yield question.fault(f"{error}")
            continue
        used |= names_in(tree)
        for name in sorted(calls_in(tree) - set(bank.functions)):
            yield question.fault(f"unknown function '{name}'")
    for name in sorted(used - declared):
        yield question.fault(f"unknown name '{name}' in a formula")
    for name in sorted(declared - used):
        yield question.fault(f"parameter '{name}' is never used")
    if isinstance(question, Numeric):
        value = str(question.answer.value)
        tree = parse_expression(value)
        if not names_in(tree):
            what = "the key depends on no parameter"
            yield question.fault(what, f"'{value}'", "a formula")
        told = {n for text in formulas_of(question.prompt) for n in names_in_text(text)}
        own = {name for name, each in question.parameters.items() if each.own}
        hidden = _free(question, names_in(tree)) - _free(question, told) - own
        if hidden:
            what = "the key needs what the prompt does not tell"
            yield question.fault(what, ", ".join(sorted(hidden)))


def names_in_text(formula: str) -> set[str]:
    """Return the names of a formula; none where it is no formula."""
    try:
        return names_in(parse_expression(formula))
    except ReaderkitError:
        return set()


def _derived(question: Question) -> dict[str, str]:
    """Return the formula of each parameter that is given by one."""
    parameters = question.parameters.items()
    return {name: str(p.formula) for name, p in parameters if p.formula is not None}


def _free(question: Question, names: set[str]) -> set[str]:
    """Return names with what they are derived from, down to drawn parameters."""
    formulas = _derived(question)
    found: set[str] = set(names)
    for name in names:
        if name in formulas:
            found |= _free(question, names_in_text(formulas[name]))
    return {name for name in found if name not in formulas}


def _links(question: Question, known: Known) -> Iterator[ContentFault]:
    for figure in question.own_figures:
        if figure not in known.figures:
            yield question.fault(f"no figure of the reader's own is '{figure}'")
    for note in question.all_notes():
        if note not in known.notes:
            yield question.fault(f"no annotation '{note}'")
    for concept in question.concepts:
        if concept not in known.concepts:
            yield question.fault(f"no concept '{concept}'")
    for cited in question.references:
        key, section = cited.key, cited.section
        if key not in known.references:
            yield question.fault(f"no reference '{key}'")
        elif section and section not in known.references[key]:
            yield question.fault(f"{key} has no section {section}")
    if not (question.notes or question.code or question.references):
        yield question.fault("no link: notes, code, references")
    if isinstance(question, Choice):
        yield from _options(question)
    yield from _refutations(question)
    for text in question.unborne():
        expected = "a claim that quotes it (of a pair, both sides), and is decided"
        yield question.fault(
            "a typed key that nothing bears out", f"'{text}'", expected
        )


def _options(question: Choice) -> Iterator[ContentFault]:
    options, several = question.options, question.several
    right = sum(option.right for option in options)
    if (right != 1) if not several else not 1 < right < len(options):
        expected = "several, not all" if several else "one"
        what = "options that are right"
        yield question.fault(what, str(right), expected)
    for at, option in enumerate(options, 1):
        if several and option.right and not option.is_told:
            what = f"option/{at}: a right one that may be missed, without why"
            yield question.fault(what, "", "why, and note, at or a claim that shows it")


def _refutations(question: Question) -> Iterator[ContentFault]:
    """Yield each wrong answer that nothing refutes, and where too few are foreseen."""
    told = question.refutations()
    for slot, each in told.items():
        if not each.is_told:
            what = f"{slot}: a wrong answer without why, and note or at"
            expected = "a claim with a figure or a run will do in place of lines"
            yield question.fault(what, "", expected)
    few = {Locate: 2, Predict: 1, Order: 1}
    least = next((n for kind, n in few.items() if isinstance(question, kind)), 0)
    if isinstance(question, Predict) and question.source.fault:
        least = len(question.words) - 1
    if isinstance(question, Numeric):
        told, least = {wrong.says: Refutation() for wrong in question.misconceptions}, 1
    if len(told) < least:
        what = "wrong answers that are foreseen and refuted"
        yield question.fault(what, str(len(told)), f"{least} at least")


def _keys(question: Question, bank: Bank) -> Iterator[ContentFault]:
    """Make many variants; yield what is wrong with any of them, once."""
    seen = set()
    for seed in range(SEEDS if question.parameters else 1):
        scene, draw = bank.scene(question.id, seed)
        values = repr(scene.values)
        if values in seen and not isinstance(question, SHUFFLED):
            continue  # word for word the variant of an earlier seed
        seen.add(values)
        asked = question.ask(scene, draw)
        if problem := _variant_problem(asked):
            yield question.fault(f"{problem} (seed {seed})")
            return
        if (
            isinstance(question, Numeric)
            and isinstance(asked, AskedNumber)
            and not question.borne_out(scene, asked)
        ):
            what = f"the key is borne out by no other formula (seed {seed})"
            expected = "its value in 'again' or in a formula of the explanation"
            yield question.fault(what, asked.typed_key, expected)
            return
        if not asked.grade(asked.typed_key).is_right:
            what = f"its own key is not right (seed {seed})"
            yield question.fault(what, f"'{asked.typed_key}'")
            return


def _variant_problem(asked: Variant) -> str:
    if isinstance(asked, AskedNumber):
        return _number_problem(asked)
    if isinstance(asked, AskedLine):
        return _line_problem(asked)
    if isinstance(asked, AskedWords):
        same = [words for words, _ in asked.refuted if words == asked.key]
        return "a mistake is the key" if same else ""
    if isinstance(asked, AskedShort):
        return asked.problem()
    if isinstance(asked, AskedChoice):
        texts = {plain(option.text) for option in asked.options.values()}
        return "two options are the same" if len(texts) < len(asked.options) else ""
    return ""


def _number_problem(asked: AskedNumber) -> str:
    if not math.isfinite(asked.key):
        return f"the key is {asked.key}"
    for value, wrong in asked.mistakes:
        if asked.accepts(value):
            return f"a misconception equals the key: {value:g} — {wrong.text[:40]}"
    for (one, says), (other, also) in combinations(asked.mistakes, 2):
        if asked.tolerance.accepts(one, other) or asked.tolerance.accepts(other, one):
            return (
                f"two misconceptions are one number: {one:g} — {says.text[:40]}, "
                f"{also.text[:40]}"
            )
    twin = binary_twin(asked.unit)
    if twin:
        pairs = (asked.unit, twin), (twin, asked.unit)
        if any(asked.accepts(convert(asked.key, *pair)) for pair in pairs):
            return f"the tolerance is so wide that {twin} passes for {asked.unit}"
    return ""


def _line_problem(asked: AskedLine) -> str:
    key, around = asked.key, asked.within
    if (key.path, key.upstream) != (around.path, around.upstream) or not (
        around.first <= key.first <= key.last <= around.last
    ):
        return f"the key {key} is not within {around}"
    shown, wanted = around.last - around.first + 1, key.last - key.first + 1
    if shown > MAX_SEARCHED_LINES:
        return f"shows {shown} lines, expected at most {MAX_SEARCHED_LINES}"
    if wanted > min(MAX_KEY_LINES, shown / 3):
        return f"{wanted} of {shown} lines are right: narrow the key"
    for lines, _ in asked.refuted:
        if not around.first <= lines.first <= lines.last <= around.last:
            return f"the mistake at {lines} is not among the lines shown"
        if lines.first <= key.last and key.first <= lines.last:
            return f"the mistake at {lines} holds a line of the key"
    return ""


# --- the bank ---


def _without_questions(bank: Bank) -> Iterator[ContentFault]:
    asked = {question.objective for question in bank.questions.values()}
    for objective in bank.objectives:
        if objective not in asked:
            yield ContentFault(
                bank.file, 1, 1, f"no question asks for objective '{objective}'"
            )


def _near_duplicates(bank: Bank) -> Iterator[ContentFault]:
    runs = {question.id: _runs(question) for question in bank.questions.values()}
    for (one, first), (two, second) in combinations(runs.items(), 2):
        both = first & second
        if both and len(both) / len(first | second) >= NEAR_DUPLICATE:
            question = bank.questions[two]
            yield question.fault(f"nearly the same question as {one}")


def _runs(question: Question) -> set[tuple[str, ...]]:
    words = re.findall(r"\w+", question.prompt.casefold())
    words += re.findall(r"\w+", " ".join(question.own_texts()).casefold())
    if isinstance(question, (Numeric, Choice)) or question.own_texts():
        return {tuple(words[i : i + 3]) for i in range(len(words) - 2)}
    at = [str(place) for place in question.own_places().values()]
    return {tuple(words[i : i + 3]) for i in range(len(words) - 2)} | {tuple(at)}
