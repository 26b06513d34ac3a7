from dataclasses import replace

from test_records import RECORD

from mini_impls.compare.show import render
from readerkit.records import Match
from tests.events import event


def test_every_line_says_agree_or_differ():
    text = render(RECORD)
    assert "agree" in text
    assert "DIFFER" not in text
    assert text.endswith("0 events have neither a match nor a reason")


def test_a_difference_stands_out_with_its_numbers():
    worse = replace(RECORD.verdicts[0], state="differ", difference=float("nan"))
    text = render(replace(RECORD, verdicts=(worse,)))
    assert "DIFFER" in text
    assert "nan" in text


def test_an_event_shows_its_line_and_a_flag_its_reason():
    rank = replace(
        RECORD.events[0],
        upstream=(event(wait=None),),
        matches=(Match(0, None, "flagged", "only mini has this"),),
    )
    text = render(replace(RECORD, events=(rank,)))
    assert "mini_impls/ddp.py:100" in text
    assert "! only mini has this (1 events)" in text
    assert "1 events have neither a match nor a reason" in text


def test_a_pipeline_is_drawn():
    text = render(RECORD)
    assert "mini     rank 0 |F0" in text
    assert "more ranks than cores" not in text
