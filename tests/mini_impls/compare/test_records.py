import json
import subprocess
import sys

import pytest
from msgspec.structs import replace

from mini_impls.compare.environment import versions
from readerkit.errors import ContentError
from readerkit.evidence.clock import StepClock
from readerkit.evidence.line_ranges import lines_from_text, lines_to_text
from readerkit.evidence.record import (
    PARAMETERS,
    EventMatch,
    ExecutedLine,
    Held,
    Limit,
    Lit,
    Peak,
    PipelineRecord,
    RankEvents,
    Record,
    Shim,
    TimelineBar,
    Times,
    Total,
    Verdict,
    Wire,
    distance_line,
)
from tests.events import event

SITE = ExecutedLine("minis", "mini_impls/ddp.py", 100, "start")
END = distance_line(PARAMETERS[-1])
RECORD = Record(
    comparison="ddp_torch",
    mini="ddp",
    upstream="torch",
    made="2026-01-01 00:00:00",
    command="readerkit compare ddp",
    world_size=2,
    backend="gloo",
    steps=12,
    warm_up_steps=3,
    traced_step=3,
    watched_steps=5,
    pins={"pytorch": "c" * 40},
    blobs={
        "pytorch": {"torch/a.py": "a" * 40},
        "minis": {"mini_impls/ddp.py": "b" * 40},
    },
    program={"mini_impls/compare/ddp.py": "d" * 40},
    versions=versions(),
    environment={"cores": "2"},
    work={"layers": 2, "lr": 1e-3},
    sizes={"world": 2},
    shims=(Shim("a", "because"),),
    losses={"mini": ((1.0, 0.5), ()), "upstream": ((1.0, 0.5), ())},
    verdicts=(Verdict(END, None, 1.0, 1.0, 0.0, 0.0, "agree", "equal"),),
    limits=(Limit("uncovered", "dropout", ""), Limit("unseen", "order", "no clock")),
    events=(
        RankEvents(
            0,
            (event(site=SITE, stack=1),),
            (event(),),
            (EventMatch(0, 0, "matched"),),
            29,
            ((), (SITE,)),
        ),
    ),
    totals=(Total(0, "mini", "all_reduce", 1, 8, None, "", 8.0),),
    wire=(Wire(0, "mini", 9, 8.0, "1 all_reduce"),),
    held=(Held(0, "mini", "parameters", 8, 8, "4 B x 2"),),
    peaks=(Peak(0, "mini", "backward", 80, {"parameters": 8}),),
    times=(Times(0, (0.1, 0.2), (0.1, 0.3)),),
    lit=(Lit("minis", "mini_impls/ddp.py", "1-2", {"0": "3", "1-4": "5"}),),
    pipeline=PipelineRecord(
        "1f1b",
        2,
        4,
        1,
        {"mini": 0.25, "upstream": 0.25},
        0.25,
        "(p - 1) / m",
        (TimelineBar(0, "mini", "F", 0, 0, 0.0, 1.0),),
        False,
    ),
    clocks=(
        StepClock(0, "mini", 9, ((1, 2),), (None,), ((2, 8),), ((3, 4),), ((3, 4),)),
    ),
)


def test_a_record_reads_back_equal():
    assert Record.parse(RECORD.to_text(), "a.json") == RECORD
    without = replace(RECORD, pipeline=None)
    assert Record.parse(without.to_text(), "a.json") == without


@pytest.mark.parametrize("value", [float("nan"), float("inf"), -float("inf")])
def test_what_json_has_no_number_for_reads_back(value):
    worse = replace(RECORD.verdicts[0], mini=value, difference=value)
    text = replace(RECORD, verdicts=(worse,)).to_text()
    json.loads(text, parse_constant=pytest.fail)  # NaN is no JSON
    [verdict] = Record.parse(text, "a.json").verdicts
    assert str(verdict.mini) == str(verdict.difference) == str(value)


def test_an_event_has_a_line_of_its_own():
    lines = RECORD.to_text().splitlines()
    assert sum('"reduction"' in line for line in lines) == 2


@pytest.mark.parametrize(
    ("path", "value", "named"),
    [
        (("events", 0, "mini", 0, "payload_bytes"), "8", "payload_bytes"),
        (("events", 0, "mini", 0, "phase"), "sideways", "phase"),
        (("verdicts", 0, "state"), "maybe", "state"),
        (("world_size",), True, "world_size"),
        (("pins",), [], "pins"),
        (("held", 0, "extra"), 1, "extra"),
        (("format",), 99, "another version"),
        (("traced_step",), 5, "beyond the 5 watched"),
        (("lit", 0, "steps"), {"3-5": "1"}, "beyond the 5 watched"),
    ],
)
def test_what_is_wrong_is_named(path, value, named):
    data = json.loads(RECORD.to_text())
    inner = data
    for key in path[:-1]:
        inner = inner[key]
    inner[path[-1]] = value
    with pytest.raises(ContentError, match=named):
        Record.parse(json.dumps(data), "a.json")


@pytest.mark.parametrize("text", ["", "[]", "{}", "null", '{"format": 1}', "{"])
def test_text_that_is_no_record_is_one_clear_error(text):
    with pytest.raises(ContentError, match=r"a\.json"):
        Record.parse(text, "a.json")


def test_a_record_agrees_only_without_differences_and_flags():
    assert RECORD.agrees
    differing = replace(RECORD.verdicts[0], state="differ")
    assert not replace(RECORD, verdicts=(differing,)).agrees
    explained = replace(RECORD.verdicts[0], state="explained")
    assert replace(RECORD, verdicts=(explained,)).agrees
    flagged = replace(
        RECORD.events[0], matches=(EventMatch(0, None, "flagged", "only-mini"),)
    )
    assert not replace(RECORD, events=(flagged,)).agrees


@pytest.mark.parametrize("lines", [set(), {1}, {1, 2, 3}, {1, 3, 4, 5, 9, 10}])
def test_lines_survive_as_text(lines):
    assert lines_from_text(lines_to_text(lines)) == lines


def test_the_schema_needs_neither_torch_nor_a_mini():
    code = (
        "import sys, readerkit.evidence.record; "
        "assert not {'torch', 'mini_impls'} & set(sys.modules)"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
