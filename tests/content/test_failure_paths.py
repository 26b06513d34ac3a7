"""The failure path: from each symptom of a large run to a check that runs."""

from __future__ import annotations

import shlex
from functools import cache

import pytest

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


@pytest.mark.slow
@pytest.mark.parametrize("name", FAILURES)
def test_the_check_of_a_path_runs(name):
    words = shlex.split(FAILURES[name].run)[1:]
    done = run_process(*words)
    assert done.code == 0, done.err
