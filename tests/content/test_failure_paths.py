"""The failure path: from each symptom of a large run to a check that runs."""

from __future__ import annotations

import shlex
from fractions import Fraction
from functools import cache

import pytest

from mini_impls.schedules import one_f_one_b
from mini_impls.timeline import get_bubble, get_timeline
from readerkit.claims.proof import sentences
from tests.content.test_annotations import library
from tests.content.test_translated_paths import routes
from tests.helpers import run, run_process

SYMPTOMS = {
    "oom-at-load",
    "oom-at-first-step",
    "oom-in-activations",
    "oom-at-checkpoint",
    "oom-after-evaluation",
    "silent-hang",
    "loss-differs",
    "loss-diverges",
    "loss-nan",
    "slow-step",
    "slow-start",
    "dead-node",
    "wrong-resume",
}
FAILURES = {failure.id: failure for failure in routes().failures}


@cache
def listed(*words):
    return run_process(*words).out


def test_every_symptom_of_a_large_run_has_a_path():
    assert not SYMPTOMS - FAILURES.keys()


@pytest.mark.parametrize("name", FAILURES)
def test_a_path_ends_in_a_check_that_one_can_run(name, capsys):
    failure = FAILURES[name]
    assert len(failure.check) > 80, "say what to look at, and what it tells"
    program, command, *rest = shlex.split(failure.run)
    assert program == "readerkit"
    if command == "estimate":
        assert run(capsys, command, *rest).code == 0
    elif command == "prove":
        note = library().book.annotations[rest[0]]
        assert any(each.claim.experiment for each in sentences(note))
    elif command == "break":
        assert " ".join(rest[:2]) in listed("break")
    else:
        assert command == "run"
        assert f"  {rest[0]} " in listed("run", "--help")


def longer(order, by):
    """Return the order with so many forwards more before its first backward."""
    forwards = [step for step in order if step.kind == "F"]
    backwards = [step for step in order if step.kind == "B"]
    first = next(at for at, step in enumerate(order) if step.kind == "B")
    lead = min(first - 1 + by, len(forwards) - 1)  # 1F1B: a forward, then a backward
    turns = zip(forwards[lead:], backwards, strict=False)
    steady = [step for turn in turns for step in turn]
    return [*forwards[:lead], *steady, *backwards[len(steady) // 2 :]]


@pytest.mark.parametrize("by", [0, 1, 2, 16])
def test_a_longer_warm_up_is_no_reason_why_a_pipeline_waits(by):
    orders = [longer([*one_f_one_b(rank, 4, 16)], by) for rank in range(4)]
    ideal, _ = get_bubble(get_timeline(orders, backward_cost=2), 4)
    assert ideal == Fraction(3, 16)  # (p - 1) / m
    told = FAILURES["pipeline-waits"].cause
    assert "longer than the schedule needs costs memory and no time" in told


@pytest.mark.slow
@pytest.mark.parametrize("name", FAILURES)
def test_the_check_of_a_path_runs(name):
    words = shlex.split(FAILURES[name].run)[1:]
    done = run_process(*words)
    assert done.code == 0, done.err
