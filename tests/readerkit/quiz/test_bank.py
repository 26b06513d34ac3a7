"""Files of a bank: what is refused, where, and in which words."""

from __future__ import annotations

import pytest

from readerkit.errors import ContentError
from readerkit.quiz.bank import parse_bank
from readerkit.quiz.lockfile import QuizLock
from tests.readerkit.quiz.sample import BANK, QUESTIONS, documents, sample_bank


def faults(questions: str = QUESTIONS, bank: str = BANK) -> list[str]:
    with pytest.raises(ContentError) as caught:
        parse_bank(*documents(questions, bank), {}, QuizLock())
    return str(caught.value).splitlines()


@pytest.mark.parametrize(
    ("before", "after", "at", "said"),
    [
        ("difficulty: 1", "difficulty: 4", "difficulty: 4", "one of 1, 2, 3"),
        ("  explanation: Because of {n}.\n", "", "- id: pick", "key 'explanation'"),
        ("type: single", "type: sinlge", "type: sinlge", "expected one of single"),
        ("objective: one", "objective: six", "- id: pick", "objective: got 'six'"),
        ("id: several", "id: pick", "- id: pick\n  type: multiple", "duplicate id"),
        ("prompt: Why?", "promt: Why?", "promt: Why?", "unknown key: got 'promt'"),
        ("unit: GB", "unit: gigs", "- id: bytes", "unknown unit 'gigs'"),
        ("  items: [f", "  accept: [f", "- id: steps", "missing key 'items'"),
        (
            "  accept: [",
            "  items: [a, b, c]\n  accept: [",
            "items: [a",
            "unknown key: got 'items'",
        ),
        (', code: "g(...)"', "", "- id: line", "'within' is missing"),
        ("schedule: 1f1b", "plan: 1f1b", "plan: 1f1b", "unknown key: got 'plan'"),
        ("schedule: 1f1b, ", "", "- id: row", "a record or a schedule or a fault"),
        ("give: row", "give: calls", "- id: row", "does not give 'calls'"),
        ("word: column", "word: diagonal", "- id: grid", "got word 'diagonal'"),
        ("{word: row}, ", "", "- id: grid", "got 1 cells, expected 2"),
        ("{word: row}", "{word: row, number: 1}", "- id: grid", "expected one of word"),
        ("{choose: [7, 7]}", "{from: 7}", "- id: bytes", "choose, or from and to"),
        ("{choose: [7, 7]}", "{from: 7, to: 7}", "- id: bytes", "has 1 values"),
        ("{choose: [7, 7]}", "{from: 1, to: 9, step: 0}", "- id: bytes", "0 values"),
    ],
)
def test_fault_names_line_and_mend(before, after, at, said):
    assert before in QUESTIONS
    text = QUESTIONS.replace(before, after, 1)
    line = text.count("\n", 0, text.index(at)) + 1
    found = [row for row in faults(text) if said in row]
    assert found
    assert found[0].startswith(f"quizzes/7/all.yaml:{line}:")


def test_every_fault_of_every_file_is_told_at_once():
    broken = QUESTIONS.replace("difficulty: 3", "difficulty: 9")
    broken = broken.replace("prompt: Where is it?", "prompt: ''")
    found = faults(broken, BANK.replace("pass: 0.7", "pass: 7"))
    assert len(found) == 3
    assert {row.split(":")[0] for row in found} == {
        "quizzes/7/bank.yaml",
        "quizzes/7/all.yaml",
    }


def test_yaml_that_builds_things_is_refused():
    with pytest.raises(ContentError, match="a tag"):
        parse_bank(
            *documents(QUESTIONS.replace("A view", "!!python/x A view")), {}, None
        )


def test_variants_follow_version_and_seed():
    bank = sample_bank(QUESTIONS.replace("[2, 4]", "[2, 4, 8, 16, 32, 64]"))
    prompts = {bank.variant("pick", seed).prompt.prompt for seed in range(60)}
    assert len(prompts) == 6
    assert bank.variant("pick", 3) == bank.variant("pick", 3)
    orders = {bank.variant("pick", seed).prompt for seed in range(60)}
    assert len(orders) > 6


def test_key_is_computed_from_what_is_displayed():
    text = QUESTIONS.replace(
        "parameters: {p: {choose: [7, 7]}}",
        "parameters: {q: {choose: [3, 3]}, p: {is: q / 7, significant: 2}}",
    )
    variant = sample_bank(text).variant("bytes", 0)
    assert variant.prompt.prompt.startswith("0.43 billion")
    assert variant.key == pytest.approx(16 * 0.43)
    assert variant.told.explanation == "6.88 GB."


def test_numbers_in_texts_are_readable():
    text = QUESTIONS.replace('"{16 * p} GB."', '"{p * 10 ** 9} {p / 9} {1 / p ** 9}"')
    shown = sample_bank(text).variant("bytes", 0).told.explanation
    assert shown == "7,000,000,000 0.7778 2.478e-08"
