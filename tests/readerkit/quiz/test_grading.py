"""What an answer of each type earns, and what is said about it."""

from __future__ import annotations

import json
import re

import pytest

from readerkit.quiz.messages import encode
from readerkit.quiz.number_reasons import shown_formula
from readerkit.quiz.rank_groups import wrong_groups
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
    is_word = name == "essay" and answer.isalnum()
    if is_word or (name == "gap" and answer.strip()):
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


def test_several_choices_lose_by_what_is_wrong():
    right = [letter("several", "send"), letter("several", "broadcast")]
    wrong = letter("several", "view")
    assert asked("several").grade("".join(right)).credit == 1
    assert asked("several").grade(right[0]).credit == 0.5
    grade = asked("several").grade(" ".join([*right, wrong]))
    assert grade.credit == pytest.approx(1 / 2)
    assert asked("several").grade("a b c d").credit == 0
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
    with pytest.raises(AnswerError, match="read as 112 GB, which measures bytes"):
        plain.grade("112 GB")


@pytest.mark.parametrize(
    ("unit", "answer", "credit"),
    [
        ("parameters", "112", 1),
        ("parameters", "0.112k", 1),
        ("parameters", "112e-9 B", 1),
        ("parameters", "112e-9 billion parameters", 1),
        ("parameters", "112B", 0),
        ("billion", "112", 1),
        ("billion", "112B", 1),
        ("billion", "112 bn", 1),
        ("billion", "1.12e11", 1),
        ("billion", "112 billion params", 1),
        ("billion", "112,000 million", 1),
        ("million", "112M", 1),
        ("million", "112e6", 1),
        ("million", "0.112 billion", 1),
        ("million", "112B", 0),
        ("GB", "112e9", 1),
        ("GB", "112,000,000,000", 1),
        ("GB", "16*7e9", 1),
        ("GB", "112 gigabytes", 1),
        ("GB", "112 GBytes", 1),
        ("", "7*2^4", 1),
        ("", "7 * 16", 1),
        ("", "1.12·10²", 1),
        ("", "~112.", 1),
        ("$", "$0.112k", 1),
        ("GB", "~112 GB.", 1),
        ("GB", "about 7*16 GB", 1),
        ("GB/s", "112 GBps", 1),
        ("GB/s", "112 GB per second", 1),
    ],
)
def test_number_may_be_typed_as_the_field_does(unit, answer, credit):
    written = f"{{value: 16 * p, unit: {unit}}}" if unit else "{value: 16 * p}"
    text = QUESTIONS.replace("{value: 16 * p, unit: GB}", written)
    assert asked("bytes", questions=text).grade(answer).credit == credit


@pytest.mark.parametrize(
    ("answer", "said"),
    [
        ("112 s", "read as 112 s, which measures time; expected bytes, in GB"),
        ("7*16 s", "read as 112 s"),
        ("48 Gb", "GB for bytes or Gbit for bits"),
        ("many", "got 'many', expected a number and a unit"),
        ("16 * 7B", "read as 112 bytes; a billion is e9: 16 * 7e9 B, or GB"),
        ("112B", "read as 112 bytes"),
    ],
)
def test_quantity_of_another_kind_is_asked_again_with_what_was_understood(answer, said):
    with pytest.raises(AnswerError, match=re.escape(said)):
        asked("bytes").grade(answer)


@pytest.mark.parametrize(
    ("formula", "answer", "whole", "part"),
    [
        ("1.125 * p", "7,875 GB", "7875", "7.8750"),
        ("1.125 * p", "~7,875", "7875", "7.8750"),
        ("1.125 * p", "2,125 GB", "2125", "2.1250"),
        ("160 * p", "1.120 GB", "1120", "1.1200"),
        ("160 * p", "1.120", "1120", "1.1200"),
        ("160 * p", "2.120", "2120", "2.1200"),
    ],
)
def test_sign_that_parts_thousands_here_and_a_fraction_there_costs_no_try(
    formula, answer, whole, part
):
    text = QUESTIONS.replace("{value: 16 * p,", f"{{value: {formula},")
    variant = asked("bytes", questions=text)
    with pytest.raises(AnswerError, match=f"{whole} or {part}: type one of the two"):
        variant.grade(answer)
    assert variant.grade(whole).credit == (whole == "1120")
    assert variant.grade(f"{part} GB").credit == (part == "7.8750")


@pytest.mark.parametrize("answer", ["1,120 GB", "11.200", "0.112", "1,120.5"])
def test_number_that_is_nearer_as_it_is_read_is_marked(answer):
    assert asked("bytes").grade(answer).credit == 0


def test_wrong_arithmetic_says_what_it_was_read_as():
    [remark] = asked("bytes").grade("3*2^5 GB").remarks
    assert remark.text == "Read as 96 GB."


@pytest.mark.parametrize(
    ("unit", "answer", "read"),
    [
        ("GB", "480e9", "480 GB"),
        ("GB", "480000000000", "480 GB"),
        ("billion", "8.7e9", "8.7 billion"),
        ("billion", "8.7B", "8.7 billion"),
        ("billion", "600 million", "0.6 billion"),
        ("million", "7B params", "7000 million"),
    ],
)
def test_wrong_number_in_full_is_read_in_the_unit_that_was_asked(unit, answer, read):
    text = QUESTIONS.replace("16 * p, unit: GB}", f"16 * p, unit: {unit}}}")
    variant = asked("bytes", questions=text)
    assert f"Read as {read}." in [each.text for each in variant.grade(answer).remarks]


@pytest.mark.parametrize(("answer", "is_told"), [("111.6", True), ("111", False)])
def test_number_that_is_not_rounded_yet_is_told_that_a_count_is_asked(answer, is_told):
    text = QUESTIONS.replace(
        "{value: 16 * p, unit: GB}", "{value: 16 * p, absolute: 0}"
    )
    remarks = asked("bytes", questions=text).grade(answer).remarks
    told = "Near; a whole number is asked for."
    assert (told in [each.text for each in remarks]) == is_told


@pytest.mark.parametrize(
    ("near", "how"),
    [
        ("", "within 1% of the answer itself, not points"),
        (", absolute: 0.5", "within 0.5 percentage points"),
    ],
)
def test_tolerance_of_a_share_says_points_or_share(near, how):
    written = f'{{value: 2.25 * p, unit: "%"{near}}}'
    text = QUESTIONS.replace("{value: 16 * p, unit: GB}", written)
    share = asked("bytes", questions=text)
    assert share.prompt.how == f"per cent, {how}"
    away = "16.4"
    assert how in share.grade(away).remarks[0].text


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
    assert "Of outputs" in grade.remarks[0].text
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
    assert grade.credit == pytest.approx(1 / 2)
    assert asked("pairs").grade(" ".join("aaa")).credit == 0
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
        "nosync",
        "model.no_sync",
        "self.ddp.no_sync()",
        "with no_sync():",
        "with ddp.no_sync() as context:",
        "'no_sync'",
        "no_sync.",
    ],
)
def test_gap_is_filled_whatever_the_spelling(answer):
    assert asked("gap").grade(answer).is_right


def test_common_mistake_in_a_gap_is_named():
    for answer in ("no_grad", "torch.no_grad()", "with torch.no_grad():"):
        [remark] = asked("gap").grade(answer).remarks
        assert "drops gradients" in remark.text


@pytest.mark.parametrize(
    ("answer", "credit", "said"),
    [
        ("12", 1, ""),
        ("13", 1, ""),
        ("12-13", 1, ""),
        ("a.py:12", 1, ""),
        ("line 13", 1, ""),
        ("lines 12 to 13", 1, ""),
        ("a.py#L12-L13", 1, ""),
        ("12 \u2013 13.", 1, ""),
        ("12\u201413", 1, ""),
        ("12..13", 1, ""),
        ("a.py, line 12", 1, ""),
        ("a.py:12:15", 1, ""),
        ("src/a.py:14:12", 0, "further up"),
        ("https://example.com/a.py#L12-L13", 1, ""),
        ("línea 12", 1, ""),
        ("líneas 12 a 13", 1, ""),
        ("lineas 12 al 13", 1, ""),
        ("10", 0, "further down"),
        ("11", 0, "It calls another"),
        ("14", 0, "further up"),
        ("11-20", 0, "too wide"),
    ],
)
def test_any_line_of_the_span_counts(answer, credit, said):
    grade = asked("line").grade(answer)
    assert grade.credit == credit
    assert said in " ".join(remark.text for remark in grade.remarks)


@pytest.mark.parametrize("answer", ["b.py:12", "src/b.py#L12-L13", "b.py, line 12"])
def test_line_of_another_file_costs_no_try(answer):
    with pytest.raises(AnswerError, match=r"expected a line of a\.py, 10 to 20"):
        asked("line").grade(answer)


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
    assert "hold the activations of 3 forwards" in grade.remarks[1].text
    assert "another schedule" in grade.remarks[2].text


@pytest.mark.parametrize(
    ("answer", "why"),
    [
        ("F0 F0 B0", "has run already, in place 1"),
        ("F0 F2 B0", "F1 comes before it"),
        ("F0 F1 B1", "B0 comes before it"),
        ("F0 B1 F1", "needs F1, which has not run"),
        ("F0 B0 F1", "2 forwards before its first backward; 1 have run"),
        ("F0 . F1", "an order of steps, in which nobody waits"),
        ("F0 W9 F1", "no such step"),
    ],
)
def test_step_that_nobody_foresaw_has_its_reason(answer, why):
    assert why in asked("row").grade(answer).remarks[1].text


@pytest.mark.parametrize(
    ("answer", "said", "lines"),
    [
        ("14", "Line 14: a comment, which runs nothing.", (14, 14)),
        ("16", "Lines 15 to 16: keeps what `k` returns as `x`.", (15, 16)),
        ("14-17", "Line 14: a comment, which runs nothing.", (14, 14)),
        ("10", "Line 10: opens the definition of `f`", (10, 10)),
    ],
)
def test_line_that_nobody_foresaw_is_told_what_it_does(answer, said, lines):
    variant = asked("line")
    remark, where = variant.grade(answer).remarks
    assert remark.text.startswith(said)
    assert (remark.place.first, remark.place.last) == lines
    assert "What is asked for is further" in where.text
    [end] = variant.in_the_end(answer)
    assert end.text == "Lines 12 to 13, asked for: calls `g`."
    assert (end.place.first, end.place.last) == (12, 13)


@pytest.mark.parametrize(
    ("answer", "factor"),
    [
        ("224", "2"),
        ("100 GB", "0.8929"),
        ("130.6667", "7/6"),  # of the 7 in the question
        ("0.112 MB", "1/1,000,000"),
        ("114.688", "1024/1000"),
    ],
)
def test_number_that_nobody_foresaw_is_held_against_the_key_in_the_end(answer, factor):
    variant = asked("bytes")
    assert f"Yours is {factor} times the answer." in said_in_the_end(variant, answer)
    assert said_in_the_end(variant, answer)[-1] == "16 × 7 = 112 GB."


def test_foreseen_number_is_not_told_its_factor():
    assert said_in_the_end(asked("bytes"), "84") == ["16 × 7 = 112 GB."]
    assert said_in_the_end(asked("bytes"), "112 GiB") == ["16 × 7 = 112 GB."]
    assert said_in_the_end(asked("bytes"), "896") == ["16 × 7 = 112 GB."]  # bits
    assert said_in_the_end(asked("bytes"), "0") == ["16 × 7 = 112 GB."]


def test_right_choice_that_was_missed_has_its_own_reason_in_the_end():
    variant = asked("several")
    send, broadcast = letter("several", "send"), letter("several", "broadcast")
    [missed] = variant.in_the_end(send)
    assert missed.text == f"{broadcast}: All get it."
    assert missed.place.note == "close"
    assert not variant.in_the_end(f"{send} {broadcast}")


def said_in_the_end(variant, answer):
    return [str(remark.text) for remark in variant.in_the_end(answer)]


def test_wrong_cell_is_reckoned_and_its_row_has_a_reason_in_the_end():
    variant = asked("grid")
    ends = variant.in_the_end("up: column 8x8; down: column 8x16")
    assert [remark.text for remark in ends] == [
        "up, shape: [4 h / t, h] = [4 × 8 / 2, 8] = 16x8.",
        "up: Its outputs are cut.",
        "down: Its inputs are cut.",
    ]
    assert ends[-1].place.note == "close"


@pytest.mark.parametrize(
    ("groups", "why"),
    [
        ("0,1|2,3|4,5|6,7", "ranks 0 and 1 differ in tp, 0 and 1"),
        ("0,2|1,3|4,6|5,8", "there is no rank 8"),
        ("0,2|1,3|4,6|5", "rank 7 stands in 0 of these groups"),
        ("0,2|1,3|4,6|5,5", "rank 5 stands in 2 of these groups"),
        ("0,2|1,3|4|6|5,7", "a group of 1 ranks is too small: dp is 2"),
    ],
)
def test_wrong_groups_are_told_from_their_ranks(groups, why):
    given = [[int(rank) for rank in group.split(",")] for group in groups.split("|")]
    assert why in wrong_groups(given, {"tp": 2, "dp": 2, "pp": 2}, "dp")


@pytest.mark.parametrize(
    ("answer", "credit"),
    [
        ("column 16x8\nrow 8x16", 1),
        ("up: column 16x8; down: row [8,16]", 1),
        ("Column 16×8\nROW (8,16)", 1),
        ("column-parallel [16, 8]\nrow parallel, 8 x 16", 1),
        ("col (16 8)\nrowwise 8*16", 1),
        ("columns 2*8 x 8\nrow 8x16", 2 / 3),
        ("down: row 8x16\nup: column 16x8", 1),
        ("row 16x8\ncolumn 8x16", 1 / 3),
        ("column 8x16\nrow 8x16", 2 / 3),
    ],
)
def test_grid_earns_by_cells(answer, credit):
    assert asked("grid").grade(answer).credit == pytest.approx(credit)


GROUPS = """
  columns: [groups]
  layout: {tp: 4, dp: 2}
  rows:
    - {label: tp, cells: [{groups: tp}]}
    - {label: dp, cells: [{groups: dp}]}
"""


def grid_of_groups():
    head, _, rest = QUESTIONS.partition("  columns: [cut, shape]\n")
    _, _, after = rest.partition("  explanation: In pairs.")
    text = f"{head}{GROUPS[1:]}  explanation: In pairs.{after}"
    return asked("grid", questions=text.replace("{h}, {t} ranks?", "{h}, {t}?"))


@pytest.mark.parametrize(
    ("row", "credit"),
    [
        ("0,4|1,5|2,6|3,7", 1),
        ("[[0, 4], [1, 5], [2, 6], [3, 7]]", 1),
        ("[[0,4],[1,5],[2,6],[3,7]]", 1),
        ("(0, 4), (1, 5), (2, 6), (3, 7)", 1),
        ("{3,7} {2,6} {1,5} {0,4}", 1),
        ("0 4 | 1 5 | 2 6 | 3 7", 1),
        ("0, 4 / 1, 5 / 2, 6 / 7, 3", 1),
        ("dp: 0,4|1,5|2,6|3,7", 1),
        ("0,1|4,5|2,6|3,7", 0.5),
    ],
)
def test_groups_are_read_as_people_write_them(row, credit):
    assert grid_of_groups().grade(f"0,1,2,3|4,5,6,7\n{row}").credit == credit


@pytest.mark.parametrize(
    "row",
    [
        *("0-4|1-5", "a,b|c,d", "0,4||1,5", "[[0,4],[1,5]", "|"),
        *("0,4 1,5 2,6 3,7", "0,4  1,5  2,6  3,7", "0, 4 1, 5 | 2, 6 3, 7"),
    ],
)
def test_groups_that_say_nothing_are_asked_again(row):
    with pytest.raises(AnswerError, match="dp, groups: got"):
        grid_of_groups().grade(f"0,1,2,3|4,5,6,7\n{row}")


@pytest.mark.parametrize(
    ("answer", "said"),
    [
        ("pillar 16x8\nrow 8x16", "up, cut: got 'pillar', expected one of column, row"),
        ("column 16x8\nrow wide", "down, shape: got 'wide', expected sizes such as"),
        ("column 16x8", "got 1, expected 2 rows"),
    ],
)
def test_cell_that_says_nothing_is_asked_again_and_named(answer, said):
    with pytest.raises(AnswerError, match=re.escape(said)):
        asked("grid").grade(answer)


@pytest.mark.parametrize(
    ("answer", "whole"),
    [
        ("down: row 8x16", "up: row 16x8\ndown: row 8x16"),
        ("UP column 16x8", "up: column 16x8\ndown: column 8x16"),
        ("row 1x1", "row 1x1"),
    ],
)
def test_row_that_is_named_is_corrected_by_itself(answer, whole):
    before = "row 16x8\ncolumn 8x16"
    assert asked("grid").completed(answer, before) == whole


@pytest.mark.parametrize(
    ("name", "answer"),
    [
        ("several", "{0} and {1}"),
        ("several", "{0} & {1}"),
        ("several", "both {0} and {1}"),
        ("several", "({0}), ({1})"),
        ("several", "{0}+{1}"),
        ("steps", "{0}{1}{2}{3}"),
        ("steps", "{0} > {1} > {2} > {3}"),
        ("steps", "[{0}, {1}, {2}, {3}]"),
        ("row", "[F0, F1, B0]"),
        ("row", "f0 -> f1 -> b0".replace("->", "→")),
        ("row", "F0 > F1 > B0"),
    ],
)
def test_list_is_read_as_people_write_it(name, answer):
    variant = asked(name)
    assert variant.grade(answer.format(*variant.typed_key.split())).is_right


@pytest.mark.parametrize(
    ("name", "answer", "said"),
    [
        ("row", "F0 forward B0", "got 'forward', expected 3 cells in order"),
        ("pairs", "1a 1b 2c 3d", "in the form 1x 2y"),
    ],
)
def test_list_that_cannot_be_read_costs_no_try(name, answer, said):
    with pytest.raises(AnswerError, match=said):
        asked(name).grade(answer)


@pytest.mark.parametrize(
    ("answer", "credit", "said"),
    [
        ("The BYTES are bounded.\nLatency\ngrows.", 1, "1 found: “The BYTES are"),
        ("Bytes are not bounded", 0, "1 not found: one reason"),
        ("Bytes aren\u2019t bounded", 0, "1 not found: one reason"),
        ("The bytes aren't bounded", 0, "1 not found: one reason"),
        ("Latency grows. Or latency is constant.", 0, "2 contradicted: “Or latency"),
        ("2 :: the other", 0.5, "2 marked by you as made: another reason"),
        ("2 :: bytes are bounded", 0.5, "1 marked by you as not made: one reason"),
        ("std::vector of bytes, bounded", 0.5, "1 found"),
    ],
)
def test_points_are_found_in_a_text_and_its_reader_corrects_them(answer, credit, said):
    grade = asked("essay").grade(answer)
    assert grade.credit == credit
    assert said in " ".join(str(remark.text) for remark in grade.remarks)


@pytest.mark.parametrize(
    "answer", ["3 :: a third", "0 1 :: x", "1 ::", " ", "word " * 201]
)
def test_text_that_is_none_costs_no_try(answer):
    with pytest.raises(AnswerError):
        asked("essay").grade(answer)


SHOWN = {
    *("id", "kind", "topic", "objective", "difficulty", "prompt", "how"),
    *("type", "position", "of", "attempt", "hints", "hint_costs", "seconds_left"),
}
OWN = {
    "single": {"options", "several"},
    "multiple": {"options", "several"},
    "numeric": {"unit", "tolerance"},
    "order": {"items"},
    "match": {"left", "right"},
    "fill": set(),
    "locate": {"search"},
    "predict": {"words", "length", "schedule"},
    "sketch": {"columns", "rows", "words", "cells", "ranks", "given"},
    "short": {"points"},
}


def test_what_is_shown_holds_no_key():
    bank = sample_bank()
    for name in bank.questions:
        shown = json.loads(encode(bank.variant(name, 0).prompt))
        assert shown.keys() == SHOWN | OWN[shown["kind"]]


def test_formula_that_nobody_can_follow_is_not_shown():
    long = "min(1, max(0, ceil((p - 3) / 1000))) + " * 3 + "p"
    found = shown_formula([long, "2 * p"], {"p": 3}, lambda value: True, "6")
    assert [remark.text for remark in found] == ["2 × 3 = 6."]
