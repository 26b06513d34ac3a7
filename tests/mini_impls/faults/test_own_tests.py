"""A mini's own tests on a copy with a reader's section in it: pytest itself, ranks."""

import json
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from mini_impls.faults import own_tests
from readerkit.app.rebuilding import Section, read_exercises
from tests.helpers import ROOT

EXERCISES = {each.key: each for each in read_exercises()}
MERGE = EXERCISES["context_parallel/merge"]
PAIRS = EXERCISES["context_parallel/pairs"]


def with_lines(tmp_path, exercise, lines):
    """Return a copy of a mini's file with these lines in the place of a section."""
    section, path = Section.of(exercise), tmp_path / Path(exercise.at.file).name
    kept = section.lines[: section.first - 1], section.lines[section.last :]
    path.write_text("\n".join([*kept[0], *lines, *kept[1], ""]))
    return path


def changed(tmp_path, exercise, old, new):
    text = "\n".join(Section.of(exercise).solution)
    assert old in text
    return with_lines(tmp_path, exercise, [text.replace(old, new)])


def grade(tmp_path, exercise, path, *limits):
    """Return the exit status and the results of the grader as a process."""
    results = tmp_path / "results"
    words = [exercise.mini, exercise.name, str(path), str(results)]
    ended = subprocess.run(
        [
            sys.executable,
            "-P",
            "-m",
            "mini_impls.faults.grade_rebuilt",
            *words,
            *limits,
        ],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert ended.returncode in (0, 1), ended.stderr
    rows = map(json.loads, results.read_text().splitlines())
    return ended.returncode, {row["says"]: row for row in rows}


@pytest.mark.parametrize("key", EXERCISES)
def test_every_section_has_tests(key):
    assert own_tests.tests_of(EXERCISES[key])
    assert own_tests.why_left_out(EXERCISES[key]) == ""


def test_where_no_tests_are_it_is_said(tmp_path):
    said = own_tests.why_left_out(MERGE, tmp_path)
    assert said.startswith("the tests are in readerkit's repository")


@pytest.mark.further
def test_what_measures_alike_fails_the_test_whose_rule_it_breaks(tmp_path):
    logarithm = "(logsumexp.exp() + other_logsumexp.exp()).log()"
    old = "torch.logaddexp(logsumexp, other_logsumexp)"
    path = changed(tmp_path, MERGE, old, logarithm)
    code, results = grade(tmp_path, MERGE, path, "--timeout", "15", "--limit", "180")
    *before, last = results.values()
    assert (code, {each["passed"] for each in before}) == (1, {True})
    assert (last["says"], last["passed"]) == ("it passes the mini's own tests", False)
    assert last["told"].startswith("scores may be past the end of the exponential (")
    assert "tests/mini_impls/test_context_parallel.py test_scores_may" in last["told"]


@pytest.mark.slow
def test_a_section_runs_in_copies_alone(tmp_path):
    seen = tmp_path / "seen"
    lines = [
        f"    with open({str(seen)!r}, 'a') as file:",
        "        print(__file__, file=file)",
        *Section.of(PAIRS).solution,
    ]
    path = with_lines(tmp_path, PAIRS, lines)
    code, results = grade(tmp_path, PAIRS, path, "--timeout", "15", "--limit", "180")
    assert results["it passes the mini's own tests"]["passed"], results
    files = {*seen.read_text().splitlines()}
    copies = [file for file in files if file != str(path)]
    assert code == 0 and copies and str(path) in files
    assert all(
        file.startswith(f"{tempfile.gettempdir()}/readerkit-") for file in copies
    )
    assert not any(Path(file).exists() for file in copies)
    assert not any(file.startswith(str(ROOT)) for file in files)


@pytest.mark.slow
def test_what_hangs_in_a_test_is_ended_and_named(tmp_path):
    # The work runs on two ranks: a test of three or four is the first to hang.
    lines = [
        "    while world_size > 2:",
        "        pass",
        *Section.of(PAIRS).solution,
    ]
    path = with_lines(tmp_path, PAIRS, lines)
    code, results = grade(tmp_path, PAIRS, path, "--timeout", "15", "--limit", "40")
    own = results["it passes the mini's own tests"]
    assert (code, own["passed"]) == (1, False)
    assert own["told"].startswith("they were ended when their time was over: test_")
