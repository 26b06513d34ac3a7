"""What an answer of each type earns, and what is said about it."""

from __future__ import annotations

import json

import pytest

from readerkit.quiz.messages import encode
from readerkit.quiz.variant import AnswerError
from tests.readerkit.quiz.sample import QUESTIONS, asked, sample_bank


def letter(name: str, text: str) -> str:
    """Return the label that an option has in the variant of seed 0."""
    shown = asked(name).prompt
    options = shown.items if name == "steps" else shown.options
    return next(option.label for option in options if text in option.text)


@pytest.mark.parametrize("name", sample_bank().questions)
@pytest.mark.parametrize("seed", [0, 1, 7])
def test_the_key_as_it_would_be_typed_is_right(name, seed):
    variant = sample_bank().variant(name, seed)
    assert variant.grade(variant.typed_key).credit == 1
    assert variant.told.solution


@pytest.mark.parametrize("name", sample_bank().questions)
@pytest.mark.parametrize(
    "answer", ["", "   ", "\0", "?", "z" * 5000, "9" * 400, "\n;\n"]
)
def test_what_cannot_be_read_is_typed_again(name, answer):
    if name in ("gap",) and answer.strip() not in ("",):
        assert asked(name).grade(answer).credit == 0
        return
    with pytest.raises(AnswerError):
        asked(name).grade(answer)


def test_wrong_option_says_why_with_its_lines():
    grade = asked("pick").grade(letter("pick", "copy"))
    assert grade.credit == 0
    [remark] = grade.remarks
    assert "Nothing is summed" in remark.text
    assert (remark.place.note, str(remark.place)) == ("close", "a.py:3-5")
    [other] = asked("pick").grade(letter("pick", "barrier")).remarks
    assert str(other.place) == "m.py:1-2"


def test_single_choice_takes_one_letter():
    with pytest.raises(AnswerError, match="expected one"):
        asked("pick").grade("a b")
    assert asked("pick").grade(letter("pick", "reduction").upper()).is_right


def test_several_choices_earn_by_coverage():
    right = [letter("several", "send"), letter("several", "broadcast")]
    wrong = letter("several", "view")
    assert asked("several").grade("".join(right)).credit == 1
    assert asked("several").grade(right[0]).credit == 0.5
    grade = asked("several").grade(" ".join([*right, wrong]))
    assert grade.credit == pytest.approx(2 / 3)
    assert "A view is local" in grade.remarks[0].text


@pytest.mark.parametrize(
    ("answer", "credit", "said"),
    [
        ("112", 1, ""),
        ("112 GB", 1, ""),
        ("0.112 TB", 1, ""),
        ("104.3 GiB", 1, ""),
        ("113 GB", 1, ""),
        ("114 GB", 0, ""),
        ("84", 0, "master copy of 28 GB"),
        ("104.3", 0, "right number of GiB"),
        ("112 s", 0, "time; bytes was asked for, in GB"),
        ("896", 0, "off by 8"),
        ("112 GiB", 0, "right in GB, but you wrote GiB"),
        ("112 MB", 0, "right in GB, but you wrote MB"),
    ],
)
def test_number_is_held_against_key_unit_and_misconceptions(answer, credit, said):
    grade = asked("bytes").grade(answer)
    assert grade.credit == credit
    assert said in " ".join(remark.text for remark in grade.remarks)


def test_number_without_unit_is_asked_for_as_such():
    text = QUESTIONS.replace("{value: 16 * p, unit: GB}", "{value: 16 * p}")
    plain = asked("bytes", questions=text)
    for answer in ("many", "5 furlongs", "48 Gb"):
        with pytest.raises(AnswerError, match=f"'{answer}', expected a number without"):
            plain.grade(answer)
    [remark] = plain.grade("112 GB").remarks
    assert "a number without a unit was asked for" in remark.text


def test_share_may_be_typed_as_a_fraction_of_one():
    text = QUESTIONS.replace(
        "{value: 16 * p, unit: GB}", '{value: 2.25 * p, unit: "%"}'
    )
    per_cent = asked("bytes", questions=text)
    assert per_cent.grade("15.75%").credit == 1
    assert per_cent.grade("15.75").credit == 1
    assert per_cent.grade("0.1575").credit == 1
    assert per_cent.grade("0.1575%").credit == 0


def test_order_earns_by_distance():
    items = [letter("steps", text) for text in ("forward", "loss", "backward", "step")]
    assert asked("steps").grade(" ".join(items)).credit == 1
    swapped = [items[1], items[0], *items[2:]]
    grade = asked("steps").grade(", ".join(swapped))
    assert grade.credit == pytest.approx(2 / 3)
    assert "Place 1" in grade.remarks[0].text
    with pytest.raises(AnswerError):
        asked("steps").grade("1 2 3")


def test_order_is_never_shown_in_order():
    bank = sample_bank()
    for seed in range(60):
        shown = bank.variant("steps", seed).prompt.items
        assert [item.text for item in shown] != [
            "forward",
            "loss",
            "backward",
            "step",
        ]


def test_pairs_earn_their_share():
    shown = asked("pairs").prompt
    key = asked("pairs").typed_key
    wrong = next(r.label for r in shown.right if f"1{r.label}" not in key)
    grade = asked("pairs").grade(f"1{wrong} {' '.join(key.split()[1:])}")
    assert grade.credit == pytest.approx(2 / 3)
    letters_alone = "".join(pair[1] for pair in key.split())
    assert asked("pairs").grade(" ".join(letters_alone)).credit == 1


@pytest.mark.parametrize(
    "answer",
    [
        "no_sync",
        "no sync",
        "No-Sync",
        "`no_sync`",
        "no_sync()",
        ".no_sync",
        "no_sync():",
    ],
)
def test_gap_is_filled_whatever_the_spelling(answer):
    assert asked("gap").grade(answer).is_right


def test_common_mistake_in_a_gap_is_named():
    [remark] = asked("gap").grade("no_grad").remarks
    assert "drops gradients" in remark.text


@pytest.mark.parametrize(
    ("answer", "credit", "said"),
    [
        ("12", 1, ""),
        ("13", 1, ""),
        ("12-13", 1, ""),
        ("a.py:12", 1, ""),
        ("line 13", 1, ""),
        ("11", 0, "further down"),
        ("14", 0, "further up"),
        ("11-20", 0, "too wide"),
    ],
)
def test_any_line_of_the_span_counts(answer, credit, said):
    grade = asked("line").grade(answer)
    assert grade.credit == credit
    assert said in " ".join(remark.text for remark in grade.remarks)


@pytest.mark.parametrize("answer", ["99", "9-12", "13-12", "10-20", "1-99999"])
def test_lines_that_were_not_offered_cost_no_try(answer):
    with pytest.raises(AnswerError, match="10 to 20"):
        asked("line").grade(answer)


def test_prediction_earns_up_to_the_first_that_is_wrong():
    assert asked("row").grade("F0 F1 B0").credit == 1
    assert asked("row").grade("f0, f1, b0").credit == 1
    grade = asked("row").grade("F0 F1 F2")
    assert grade.credit == pytest.approx(2 / 3)
    assert "Number 3" in grade.remarks[0].text


@pytest.mark.parametrize(
    ("answer", "credit"),
    [
        ("column 16x8\nrow 8x16", 1),
        ("up: column 16x8; down: row [8,16]", 1),
        ("Column 16×8\nROW (8,16)", 1),
        ("row 16x8\ncolumn 8x16", 0.5),
        ("column 8x16\nrow 8x16", 0.75),
    ],
)
def test_grid_earns_by_cells(answer, credit):
    assert asked("grid").grade(answer).credit == credit


def test_short_answer_is_marked_by_its_reader():
    assert asked("essay").grade("1 2 :: both of them").credit == 1
    grade = asked("essay").grade("2 :: the other")
    assert grade.credit == 0.5
    assert "one reason" in grade.remarks[0].text
    with pytest.raises(AnswerError):
        asked("essay").grade("3 :: a third")


SHOWN = {
    *("id", "kind", "topic", "objective", "difficulty", "prompt", "how"),
    *("type", "position", "of", "attempt", "seconds_left"),
}
OWN = {
    "single": {"options", "several"},
    "multiple": {"options", "several"},
    "numeric": {"unit", "tolerance"},
    "order": {"items"},
    "match": {"left", "right"},
    "fill": set(),
    "locate": {"search"},
    "predict": {"words", "length"},
    "sketch": {"columns", "rows", "words"},
    "short": {"rubric", "model", "self_marked"},
}


def test_what_is_shown_holds_no_key():
    bank = sample_bank()
    for name in bank.questions:
        shown = json.loads(encode(bank.variant(name, 0).prompt))
        assert shown.keys() == SHOWN | OWN[shown["kind"]]
