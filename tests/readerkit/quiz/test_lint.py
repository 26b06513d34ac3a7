"""Lint: every way in which a bank can be wrong about its own answers."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from readerkit.quiz.lint import Known, lint_bank
from readerkit.quiz.lockfile import QuizLock, ResolvedPlace
from tests.readerkit.quiz.sample import LOCK, QUESTIONS, sample_bank

pytestmark = pytest.mark.sampled

KNOWN = Known(frozenset({"close"}), frozenset({"c"}), {"paper": frozenset({"3"})})


def found(questions: str = QUESTIONS, lock: QuizLock = LOCK) -> str:
    return "\n".join(map(str, lint_bank(sample_bank(questions, lock), KNOWN)))


def test_sample_is_clean():
    assert found() == ""


KEY = "{value: 16 * p, unit"
WRONG = "why: Nothing is summed., note: close"
MISCONCEPTIONS = QUESTIONS[QUESTIONS.index("  misconceptions") :].split("  expl")[0]
SECOND = "{text: broadcast, right: true, "


@pytest.mark.parametrize(
    ("before", "after", "said"),
    [
        (KEY, "{value: 16 * q, unit", "unknown name 'q'"),
        (KEY, "{value: 16 / (p - 7), unit", "division by zero"),
        (KEY, "{value: 112, unit", "depends on no parameter"),
        (KEY, "{value: price(of=p), unit", "unknown function 'price'"),
        ("{value: 12 * p,", "{value: 16.1 * p,", "a misconception equals the key"),
        (
            'missing."}\n',
            'missing."}\n    - {value: 24 * p / 2, says: Half.}\n',
            "two misconceptions are one number: 84",
        ),
        ("unit: GB}", "unit: GB, relative: 0.08}", "GiB passes for GB"),
        ("{p} billion parameters", "Many", "what the prompt does not tell"),
        ('"{16 * p} GB."', '"{16 * } GB."', "not a formula"),
        ('"{16 * p} GB."', '"{15 * p} GB."', "borne out by no other formula"),
        ("unit: GB}", "unit: GB}\n  again: 17 * p", "borne out by no other formula"),
        ("a reduction over {n}", "a copy", "two options are the same"),
        (SECOND, "{text: broadcast, ", "several, not all"),
        ("right: true, why: One sends.,", "right: true,", "a right one that may be mi"),
        ("right: true\n", "why: x\n      note: close\n", "right: got 0"),
        ("{says: a reduction,", "{says: elsewhere,", "'says' what no text says"),
        ("says: for all — all-reduce", "says: sum for all", "nothing bears out"),
        ("says: forward → loss", "says: forward", "nothing bears out"),
        ('says: "up: column"', 'says: "up"', "nothing bears out"),
        ('says: "ddp.no_sync():"', 'says: "with ddp."', "nothing bears out"),
        ("{text: send, why: It has one receiver., note: close}", "{text: send}", "why"),
        ("why: It adds., note: close", "why: It adds.", "note or at"),
        ("      why: It comes after.\n", "", "mistake/2"),
        ("schedule: gpipe", "schedule: 1f1b", "a mistake is the key"),
        (MISCONCEPTIONS, "", "foreseen and refuted: got 0"),
        (WRONG, "note: close", "without why"),
        (WRONG, "why: Nothing is summed.", "note or at"),
        ("note: close", "note: gone", "no annotation 'gone'"),
        ("notes: [close]", "notes: [gone]", "no annotation 'gone'"),
        ("concepts: [c]", "concepts: [d]", "no concept 'd'"),
        ("key: paper", "key: book", "no reference 'book'"),
        ('section: "3"', 'section: "4"', "paper has no section 4"),
        ('  references: [{key: paper, section: "3"}]\n', "", "no link"),
        ("m: {choose", "z: {choose: [1, 2]}, m: {choose", "'z' is never used"),
        ("m, rank: 0", "m, rank: 5", "rank 5: expected 0 to 1"),
        ("Bytes are bounded. The", "The", "model answer lacks the points 1"),
        ("prompt: Why?", "prompt: Are bytes bounded?", "prompt makes the points 1"),
        ("makes: [1]", "makes: [2]", "a trap makes the points 1"),
        ("shape: [4 * h / t, h]", "shape: [h / 3, h]", "expected a whole number"),
    ],
)
def test_fault_is_found(before, after, said):
    assert before in QUESTIONS
    assert said in found(QUESTIONS.replace(before, after, 1))


@pytest.mark.parametrize("value", [7, 8, 9])
def test_what_is_wrong_for_one_value_of_a_parameter_is_found(value):
    key = f"16 / (p - {value})"
    bank = QUESTIONS.replace("choose: [7, 7]", "choose: [7, 8, 9]")
    bank = bank.replace(KEY, f"{{value: {key}, unit")
    said = found(bank.replace('"{16 * p} GB."', f'"{{{key}}} GB."'))
    assert f"with p={value}: division by zero" in said


def test_objective_without_questions_is_found():
    assert "no question asks for objective 'two'" in found(
        QUESTIONS.replace("objective: two", "objective: one")
    )


def test_near_duplicates_are_found():
    twin = QUESTIONS[QUESTIONS.index("- id: several") : QUESTIONS.index("- id: bytes")]
    twin = twin.replace("id: several", "id: again").replace(
        "Which two", "Which of them"
    )
    assert "nearly the same question as several" in found(QUESTIONS + twin)


@pytest.mark.parametrize(
    ("slot", "place", "said"),
    [
        (
            "line/key",
            ResolvedPlace("sample", "a.py", 30, 31, "b" * 40),
            "is not within",
        ),
        (
            "line/mistake/1",
            ResolvedPlace("sample", "a.py", 9, 9, "b" * 40),
            "is not among",
        ),
        (
            "line/mistake/1",
            ResolvedPlace("sample", "a.py", 12, 12, "b" * 40),
            "of the key",
        ),
        ("line/key", ResolvedPlace("other", "a.py", 12, 13, "b" * 40), "is not within"),
        (
            "line/key",
            ResolvedPlace("sample", "a.py", 11, 19, "b" * 40),
            "narrow the key",
        ),
        (
            "line/within",
            ResolvedPlace("sample", "a.py", 1, 200, "b" * 40),
            "shows 200 lines",
        ),
    ],
)
def test_line_to_locate_lies_within_what_is_shown(slot, place, said):
    assert said in found(lock=replace(LOCK, places={**LOCK.places, slot: place}))


def test_missing_key_is_found():
    places = {slot: place for slot, place in LOCK.places.items() if slot != "line/key"}
    assert "line/key: the lock" in found(lock=replace(LOCK, places=places))


CHOICE = """\
- id: q{i}
  type: single
  objective: {objective}
  concepts: [c]
  difficulty: 1
  prompt: "{prompt} {i}?"
  options:
{options}
  explanation: So.
  notes: [close]
"""
WORDS = ["alpha", "gamma", "delta", "theta", "kappa", "sigma", "omega", "lamda"]


def choices(right: str, *wrong: str, prompt: str = "Question about") -> str:
    """Return eight questions with these options; ``#`` becomes a word of its own."""
    text = ""
    for i in range(8):
        claim = "{file: a.py, of: F, is: 1}"
        rows = [
            f'    - {{text: "{right}", right: true, '
            f'claims: [{{says: "{right}", default: {claim}}}]}}'
        ]
        rows += [f'    - {{text: "{w}", why: No., note: close}}' for w in wrong]
        options = "\n".join(rows).replace("#", WORDS[i])
        objective = "one" if i % 2 else "two"
        text += CHOICE.format(
            i=i * 1001,
            objective=objective,
            options=options,
            prompt=" ".join([prompt, WORDS[i], WORDS[-i], *WORDS[i:], *WORDS[:i]]),
        )
    return text


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (("the # that is long", "a #", "an #", "no #"), "longest option"),
        (("#", "one #.", "two #.", "tre #."), "shortest option"),
        (("# abc", "bravo", "delhi", "echos"), "repeats the prompt"),
        (("first", "other thing", "other money", "other woman"), "odd one out"),
        (("third woman", "third money", "other woman", "fifth thing"), "most like"),
    ],
)
def test_trick_that_beats_the_bank_is_found(options, said):
    assert said in found(choices(*options))


def test_bank_without_tricks_is_clean():
    # The same shape of options throughout: nothing tells them apart but the answer.
    assert found(choices("abcde", "fghij", "klmno", "pqrst")) == ""
