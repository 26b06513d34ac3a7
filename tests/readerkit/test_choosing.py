import pytest

from readerkit.errors import ReaderkitError
from readerkit.wording.meant_name import choose, choose_all

NAMES = [
    "tp-row-forward",
    "tp-dgrad-overlap",
    "tp-row",
    "zero_step",
    "fsdp",
    "fsdp_flat",
    "experts",
]
ALIASES = {
    "fsdp2": "fsdp",
    "moe": "experts",
    "ep": "experts",
    "zb": "fsdp_flat",
    "gone": "not-here",
}


@pytest.mark.parametrize(
    ("given", "meant"),
    [
        ("fsdp_flat", "fsdp_flat"),
        ("tp-dgrad", "tp-dgrad-overlap"),
        ("TP-Dgrad-Overlap", "tp-dgrad-overlap"),
        ("tp_row_f", "tp-row-forward"),
        ("tp-row", "tp-row"),  # whole, though another begins so
        ("FSDP", "fsdp"),
        ("zero-step", "zero_step"),
        ("ze", "zero_step"),
        ("FSDP2", "fsdp"),
        ("mo", "experts"),  # moe, though no name begins so
        ("e", "experts"),  # both of its names
    ],
)
def test_a_name_is_known_by_as_much_of_it_as_is_its_own(given, meant):
    assert choose("note", given, NAMES, aliases=ALIASES) == meant


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (
            "tp-",
            "which note? 'tp-' begins 3 of them: tp-row-forward, tp-dgrad-overlap, "
            "tp-row",
        ),
        ("z", "'z' begins 2 of them: zero_step, zb for fsdp_flat"),
        ("fsdpflat", "did you mean fsdp_flat or fsdp?"),
        ("", "unknown note: got '', expected one of tp-row-forward, "),
        ("gone", "unknown note: got 'gone'"),
        ("zzz", "(fsdp2 for fsdp, moe for experts, "),
    ],
)
def test_what_is_not_one_name_is_said_with_those_there_are(given, message):
    with pytest.raises(ReaderkitError) as error:
        choose("note", given, NAMES, aliases=ALIASES)
    assert message in str(error.value)


def test_of_many_names_the_near_ones_are_said():
    many = [f"note-{number}" for number in range(100)]
    with pytest.raises(ReaderkitError) as error:
        choose("note", "node-42", many)
    assert str(error.value).startswith(
        "unknown note: got 'node-42', expected one of 100: did you mean note-42 or"
    )
    with pytest.raises(ReaderkitError) as error:
        choose("note", "note", many)
    assert str(error.value).endswith(", note-10, note-11 and 88 more")


def test_every_wrong_one_of_several_is_told():
    assert choose_all("note", ["z", "tp-row"], NAMES) == ("zero_step", "tp-row")
    with pytest.raises(ReaderkitError) as error:
        choose_all("note", ["z", "tp-", "zzz"], NAMES)
    assert [row.split()[0] for row in str(error.value).splitlines()] == [
        "which",
        "unknown",
    ]
