"""What records show of lines: seen, counted, and never guessed."""

import dataclasses

import pytest
from msgspec.structs import replace

from readerkit.anchors import Span
from readerkit.app.interface_translation import say_in
from readerkit.content.kind import Place
from readerkit.content.mirrors import Mirror, MirroredEvent, MirrorSection
from readerkit.evidence.executed_lines import (
    LitLines,
    Sent,
    lit,
    lit_section,
    say_lit,
    say_section,
    say_sent,
    say_when,
    unseen_events,
)
from readerkit.evidence.record import ExecutedLine, Lit, RankEvents, Record
from tests.events import event

NOT_RUN = "not run (watched: set-up and steps 0 to 4, imports aside)"
PATH = "lib/linear.py"
PLAIN = event(phase="forward", group="tp", payload_bytes=600_000)
CALL = ExecutedLine("sample", PATH, 30, "reduce")
CALLER = ExecutedLine("sample", PATH, 12, "Linear.forward")
MINI_CALL = ExecutedLine("minis", "mini_impls/tp.py", 5, "reduce")


def record(name="tp_sample", *, upstream=(PLAIN,), mini=(), step="10-12,30", **more):
    stacks = ((CALL, CALLER), (CALL,), (MINI_CALL,))
    ranks = tuple(
        RankEvents(rank, tuple(mini), tuple(upstream), (), None, stacks)
        for rank in range(2)
    )
    values = {
        "comparison": name,
        "mini": "tp",
        "upstream": "sample",
        "made": "2026-01-01 00:00:00",
        "command": "",
        "world_size": 2,
        "backend": "gloo",
        "steps": 6,
        "warm_up_steps": 3,
        "traced_step": 3,
        "watched_steps": 5,
        "pins": {"sample": "c" * 40},
        "blobs": {
            "sample": {PATH: "a" * 40},
            "minis": {"mini_impls/tp.py": "b" * 40},
        },
        "program": {},
        "versions": {},
        "environment": {},
        "work": {},
        "sizes": {},
        "shims": (),
        "losses": {},
        "verdicts": (),
        "limits": (),
        "events": ranks,
        "totals": (),
        "wire": (),
        "held": (),
        "peaks": (),
        "times": (),
        "lit": (
            Lit("sample", PATH, "1-3", {"0": "50-51", "0-4": step}),
            Lit("minis", "mini_impls/tp.py", "", {"0-4": "4-5"}),
        ),
        "pipeline": None,
    }
    return Record(**{**values, **more})


def look(first, last, records=None, path=PATH, upstream="sample", blob="a" * 40):
    return lit(
        [record()] if records is None else records,
        upstream,
        Span(path, first, last),
        commit="c" * 40 if upstream == "sample" else "",
        blob=blob,
    )


def test_lines_that_led_to_a_call_sent_it():
    [found] = look(10, 20)
    assert found.step_lines == {10, 11, 12}
    assert found.sent == ((Sent("all_reduce", 1, 600_000),),) * 2
    assert not found.stale
    assert say_lit([found]) == [
        "ran in tp_sample (2 ranks): 1 all-reduce, 600 kB a rank"
    ]


def test_the_line_that_issued_it_did_too():
    two = (PLAIN, replace(PLAIN, op="all_gather", stack=1, payload_bytes=2_000_000))
    [found] = look(30, 30, [record(upstream=two)])
    assert [sent.op for sent in found.sent[0]] == ["all_reduce", "all_gather"]
    assert "1 all-reduce, 1 all-gather, 2.6 MB a rank" in say_lit([found])[0]


def test_lines_that_ran_without_a_call_sent_nothing():
    [found] = look(10, 11)
    assert found.ran
    assert found.sent == ((), ())
    assert say_lit([found]) == ["ran in tp_sample (2 ranks): sent nothing"]


def test_lines_that_did_not_run_are_said_not_to_have():
    [found] = look(52, 60)
    assert not found.ran
    assert say_lit([found]) == [f"{NOT_RUN}: tp_sample"]


def test_lines_that_ran_in_another_step_are_said_to_have_run_there():
    [found] = look(40, 60)
    assert (found.ran, found.ran_elsewhere) == (False, True)
    assert say_lit([found]) == [
        "ran in step 0 only (watched: set-up and steps 0 to 4): tp_sample"
    ]


@pytest.mark.parametrize(
    ("setup", "steps", "english", "spanish"),
    [
        ("", {}, "not run (", "no se ejecutó ("),
        ("7", {}, "ran in set-up only (", "se ejecutó solo al prepararlo ("),
        (
            "7",
            {"1": "8"},
            "in set-up and step 1 only",
            "al prepararlo y en el paso 1 (",
        ),
        ("", {"0-2,4": "7"}, "ran in steps 0 to 2, 4 only", "en los pasos 0 a 2, 4 ("),
    ],
)
def test_what_is_said_names_what_was_watched(setup, steps, english, spanish):
    [found] = look(7, 8, [record(lit=(Lit("sample", PATH, setup, steps),))])
    assert english in say_when(found)
    assert "watched: set-up and steps 0 to 4" in say_when(found)
    assert spanish in say_when(found, say_in("es"))
    assert "observado: preparación y los pasos 0 a 4" in say_when(found, say_in("es"))


def test_a_file_that_never_ran_was_watched_all_the_same():
    [found] = look(1, 9, path="lib/other.py", blob="f" * 40)
    assert say_lit([found]) == [f"{NOT_RUN}: tp_sample"]


def test_setup_is_told_apart_from_the_step():
    [found] = look(1, 3)
    assert say_lit([found]) == [
        "ran in set-up only (watched: set-up and steps 0 to 4): tp_sample"
    ]


def test_nothing_is_said_of_code_that_no_record_watched():
    assert look(1, 9, upstream="elsewhere") == []
    assert say_lit([]) == []


@pytest.mark.parametrize(
    ("commit", "blob"), [("d" * 40, "a" * 40), ("c" * 40, "d" * 40)]
)
def test_a_record_of_other_code_says_so_and_nothing_else(commit, blob):
    span = Span(PATH, 10, 20)
    found = lit([record()], "sample", span, commit=commit, blob=blob)
    [said] = say_lit(found)
    was, now = ("c", "d") if commit[0] == "d" else ("a", "d")
    part = "sample" if commit[0] == "d" else PATH
    assert said == (
        "the record is of other code, run it again: tp_sample "
        f"({part} has changed: was {was * 12}, is {now * 12})"
    )


def test_a_mini_is_asked_about_its_own_side():
    mine = (replace(PLAIN, stack=2, payload_bytes=7),)
    [found] = look(
        4,
        5,
        [record(mini=mine)],
        path="mini_impls/tp.py",
        upstream="minis",
        blob="b" * 40,
    )
    assert found.sent[0] == (Sent("all_reduce", 1, 7),)
    assert look(1, 9, path="mini_impls/pp.py", upstream="minis") == []


def test_ranks_that_sent_different_things_are_told_apart():
    one, none = (Sent("send", 2, 10),), ()
    assert say_sent([one, none]) == "rank 0 2 sends, 10 B; rank 1 nothing"
    assert say_sent([one, one]) == "2 sends, 10 B a rank"


def test_several_records_each_have_a_row():
    rows = say_lit(look(10, 20, [record("a_x"), record("b_y", step="")]))
    assert rows == ["ran in a_x (2 ranks): 1 all-reduce, 600 kB a rank"]


def test_a_section_has_the_events_that_it_names():
    named = (MirroredEvent(("tp_sample",), "forward", "all_reduce"),)
    section = MirrorSection("t", "same", ("a",), events=named)
    other = replace(PLAIN, phase="backward")
    [found] = lit_section([record(upstream=(PLAIN, other)), record("b_y")], section)
    assert found.comparison == "tp_sample"
    assert found.upstream == ((Sent("all_reduce", 1, 600_000),),) * 2
    assert found.mini == ((), ())
    assert say_section([found]) == [
        "in tp_sample (2 ranks): mini sent nothing; "
        "upstream 1 all-reduce, 600 kB a rank"
    ]
    alike = dataclasses.replace(found, mini=found.upstream)
    assert say_section([alike]) == [
        "in tp_sample (2 ranks): both 1 all-reduce, 600 kB a rank"
    ]


@pytest.mark.parametrize(
    ("comparison", "op", "said"),
    [
        ("tp_sample", "all_reduce", []),
        ("tp_sample", "send", ["an event that its record does not show"]),
        ("pp_sample", "all_reduce", ["a comparison without a record"]),
    ],
)
def test_an_event_that_no_record_shows_is_a_fault(comparison, op, said):
    place = Place("a.yaml", 4, 3)
    named = (MirroredEvent((comparison,), "forward", op),)
    section = MirrorSection("t", "same", ("a",), events=named, place=place)
    mirror = Mirror("m", "t", "i", (section,))
    faults = unseen_events([mirror], [record()])
    assert [fault.what for fault in faults] == said
    assert all(str(fault).startswith("a.yaml:4:3: ") for fault in faults)


def test_it_reads_as_json_takes_it():
    [found] = look(10, 20)
    assert isinstance(found, LitLines)
    plain = found.to_plain()
    assert plain["step_lines"] == [10, 11, 12]
    assert plain["lines_by_step"] == [[10, 11, 12]] * 5
    assert plain["sent"][0] == [
        {"op": "all_reduce", "calls": 1, "payload_bytes": 600_000}
    ]
