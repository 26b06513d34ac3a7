"""A section of a mini that is written anew: real copies, real ranks, real upstream."""

import json
import os
import subprocess
import sys
import time

import pytest

from readerkit.app.rebuilding import (
    BEGIN,
    END,
    Section,
    find_exercise,
    read_exercises,
)
from readerkit.errors import WrongUseError
from tests.helpers import ROOT
from tests.readerkit.commands.wrong_rebuilds import WRONG

pytestmark = pytest.mark.sampled

EXERCISES = {each.key: each for each in read_exercises()}


def run(tmp_path, *words, **env):
    return subprocess.run(
        [sys.executable, "-m", "readerkit", "rebuild", *map(str, words)],
        cwd=ROOT,
        env={**os.environ, "READERKIT_DATA": str(tmp_path / "data"), **env},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
    )


def write(path, exercise, body):
    """Write a copy with these lines between its marks."""
    section = Section.of(exercise)
    head, _, rest = section.blank().partition(BEGIN)
    tail = rest.partition(END)[2]
    indent = head.rpartition("\n")[2]
    path.write_text(f"{head}{BEGIN}\n{body}\n{indent}{END}{tail}")


def solution(exercise):
    return "\n".join(Section.of(exercise).solution)


def test_there_are_twelve_and_each_takes_something_out(tmp_path):
    assert len(EXERCISES) >= 12
    for exercise in EXERCISES.values():
        section, path = Section.of(exercise), tmp_path / "copy.py"
        assert "raise NotImplementedError" in section.blank()
        compile(section.blank(), exercise.at.file, "exec")
        own = {line.strip() for line in section.solution if len(line.strip()) > 20}
        assert own - {line.strip() for line in section.blank().splitlines()}
        write(path, exercise, solution(exercise))
        composed = section.composed(path.read_text(), path).splitlines()
        marks = (BEGIN, END)
        assert [line for line in composed if line.strip() not in marks] == [
            *section.lines
        ]


@pytest.mark.further
def test_what_is_graded_is_the_text_between_the_marks_alone(tmp_path):
    exercise = EXERCISES["ddp/mean"]
    path = tmp_path / "ddp.py"
    write(path, exercise, solution(exercise))
    path.write_text("import os; os.abort()\n" + path.read_text())
    ended = run(tmp_path, "ddp", "mean", "--file", path, "--json")
    assert ended.returncode == 0, ended.stdout + ended.stderr
    graded = json.loads(ended.stdout)
    assert graded["passed"]
    assert [check["passed"] for check in graded["checks"]] == [True] * graded["of"]


def test_a_wrong_section_fails_at_its_check_and_the_try_is_kept(tmp_path):
    begun = run(tmp_path, "ddp", "mean")
    path = tmp_path / "data/rebuild/ddp-mean/ddp.py"
    assert (begun.returncode, f"your copy: {path}" in begun.stdout) == (0, True)
    exercise = EXERCISES["ddp/mean"]
    write(path, exercise, solution(exercise).replace(*WRONG["ddp/mean"][0]))
    ended = run(tmp_path, "ddp", "mean", "--check")
    assert ended.returncode == 1
    assert "yes  it runs to its end\n" in ended.stdout
    assert "NO   the gradients are those of one process\n" in ended.stdout
    assert "gradient over one process's: 2, in the mini 1" in ended.stdout
    assert (
        "     hint: A mean is a sum of terms that were divided before.\n"
        in ended.stdout
    )
    assert "[1 of 6 checks, 1 try]" in run(tmp_path, "ddp").stdout
    shown = subprocess.run(
        [sys.executable, "-m", "readerkit", "progress", "35", "--json"],
        env={**os.environ, "READERKIT_DATA": str(tmp_path / "data")},
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    rebuilt = json.loads(shown.stdout)["rebuilt"]
    assert rebuilt == {"sections": len(EXERCISES), "tried": 1, "solved": 0}
    again = run(tmp_path, "ddp", "mean", "--again")
    assert again.returncode == 0
    assert "NotImplementedError" in path.read_text()
    assert "pass" in path.with_name("ddp.before.py").read_text()
    # Nor is a second try lost, or the first by it.
    path.write_text("second = 2\n")
    assert run(tmp_path, "ddp", "mean", "--again").returncode == 0
    assert "pass" in path.with_name("ddp.before.py").read_text()
    assert path.with_name("ddp.before-1.py").read_text() == "second = 2\n"


@pytest.mark.further
def test_an_error_is_told_by_the_line_of_the_copy(tmp_path):
    exercise = EXERCISES["collectives/ring"]
    path = tmp_path / "collectives.py"
    write(path, exercise, "    return chunks[rank]  # noqa: F821")
    ended = run(tmp_path, "collectives", "ring", "--file", path)
    assert ended.returncode == 1
    line = path.read_text().splitlines().index("    return chunks[rank]  # noqa: F821")
    assert f"collectives.py:{line + 1}, in ring_reduce_scatter" in ended.stdout
    assert "NameError" in ended.stdout
    assert "Traceback" not in ended.stdout + ended.stderr


@pytest.mark.further
def test_what_a_section_prints_is_not_among_the_results(tmp_path):
    exercise = EXERCISES["collectives/ring"]
    path = tmp_path / "collectives.py"
    write(path, exercise, '    print("here I am")\n    raise ValueError')
    ended = run(tmp_path, "collectives", "ring", "--file", path, "--json")
    assert json.loads(ended.stdout)["passed"] is False
    assert "here I am\n" in ended.stderr


@pytest.mark.slow
def test_what_never_ends_is_ended(tmp_path):
    exercise = EXERCISES["collectives/ring"]
    path = tmp_path / "collectives.py"
    write(path, exercise, "    while True:\n        pass")
    begun = time.monotonic()
    command = ["collectives", "ring", "--file", path, "--timeout", "1"]
    ended = run(tmp_path, *command)
    assert ended.returncode == 1
    assert time.monotonic() - begun < 60
    assert "it was ended after 34 s: does a loop never end?" in ended.stdout


@pytest.mark.parametrize(
    ("text", "status", "says"),
    [
        ("print(1)\n", 1, "got no marks, expected one line"),
        (f"{BEGIN}\nif:\n{END}\n", 1, "no Python yet"),
        (None, 2, "cannot be read: No such file or directory"),
        (b"\xff\xfe", 2, "cannot be read: it is no text"),
    ],
)
def test_a_file_that_cannot_be_graded_is_one_line(tmp_path, text, status, says):
    path = tmp_path / "ddp.py"
    if isinstance(text, bytes):
        path.write_bytes(text)
    elif text is not None:
        path.write_text(text)
    ended = run(tmp_path, "ddp", "mean", "--file", path)
    assert ended.returncode == status
    assert says in ended.stderr and str(path) in ended.stderr
    assert ended.stdout == ""


@pytest.mark.parametrize(
    ("words", "status", "says"),
    [
        (["ddp", "nothing"], 2, "unknown section of ddp"),
        (["nonsense"], 2, "nonsense"),
        (["ddp", "--check"], 2, "Missing argument 'NAME'"),
        (["ddp", "mean", "--hint", "--check"], 2, "at a time"),
        (["ddp", "mean", "--timeout", "0"], 2, "--timeout"),
        (["ddp", "mean", "--timeout", "nan", "--check"], 2, "--timeout"),
    ],
)
def test_a_wrong_question_is_told_and_writes_nothing(tmp_path, words, status, says):
    ended = run(tmp_path, *words)
    assert ended.returncode == status
    assert says in ended.stderr
    assert not (tmp_path / "data" / "rebuild").exists()


def test_a_mini_without_a_section_names_those_that_have_one():
    with pytest.raises(WrongUseError, match=r"no section of muon .* one of ddp$"):
        find_exercise([EXERCISES["ddp/mean"]], "muon", "rows")


def test_hints_come_one_by_one_and_the_solution_is_noted(tmp_path):
    exercise = EXERCISES["ddp/overlap"]
    for taken in (1, 2, 3, 3):
        out = run(tmp_path, "ddp", "overlap", "--hint").stdout
        assert out.count("hint ") == taken
        assert f"hint {taken} of 3: " in out
    shown = run(tmp_path, "ddp", "overlap", "--solution").stdout
    assert solution(exercise) in shown
    listed = json.loads(run(tmp_path, "ddp", "--json").stdout)
    (row,) = (each for each in listed if each["name"] == "overlap")
    assert (row["hints"], row["saw_solution"], row["solved"]) == (3, True, False)


@pytest.mark.parametrize("wanted", ["--hint", "--solution"])
def test_what_is_text_alone_is_refused_as_json(tmp_path, wanted):
    ended = run(tmp_path, "ddp", "mean", wanted, "--json")
    assert (ended.returncode, ended.stdout) == (2, "")
    assert "--json grades or lists: add --check" in ended.stderr


@pytest.mark.slow
def test_what_cannot_be_compared_here_did_not_pass(tmp_path):
    exercise = EXERCISES["tensor_parallel/row"]
    path = tmp_path / exercise.at.file.rpartition("/")[2]
    write(path, exercise, solution(exercise))
    command = (exercise.mini, exercise.name, "--file", path)
    ended = run(tmp_path, *command)  # with an empty cache
    assert ended.returncode == 0, ended.stdout + ended.stderr
    command_alone = "compare tensor_parallel --upstream megatron"
    assert f"\n?    it does what upstream does: {command_alone}\n" in ended.stdout
    assert "what ? stands before cannot be checked here" in ended.stdout
    graded = json.loads(run(tmp_path, *command, "--json").stdout)
    assert [check["passed"] for check in graded["checks"]][-2:] == [True, None]
    says, command = (graded["checks"][-1][name] for name in ("says", "command"))
    assert (says, command) == ("it does what upstream does", command_alone)


@pytest.mark.slow
@pytest.mark.parametrize("key", EXERCISES)
def test_the_minis_own_lines_pass(tmp_path, real_cache, key):
    exercise = EXERCISES[key]
    path = tmp_path / exercise.at.file.rpartition("/")[2]
    words = (exercise.mini, exercise.name, "--file", path, "--json", "--timeout", "30")
    write(path, exercise, solution(exercise))
    right = run(tmp_path, *words)
    assert right.returncode == 0, right.stdout + right.stderr
    assert not any("left out" in c["told"] for c in json.loads(right.stdout)["checks"])


@pytest.mark.slow
@pytest.mark.parametrize(
    ("key", "wrong"),
    [
        pytest.param(key, wrong, id=f"{key} {number}")
        for key in EXERCISES
        for number, wrong in enumerate(WRONG[key], 1)
    ],
)
def test_a_wrong_rebuild_is_caught(tmp_path, real_cache, key, wrong):
    exercise = EXERCISES[key]
    path = tmp_path / exercise.at.file.rpartition("/")[2]
    words = (exercise.mini, exercise.name, "--file", path, "--json", "--timeout", "30")
    old, new = wrong
    assert old in solution(exercise)
    write(path, exercise, solution(exercise).replace(old, new))
    ended = run(tmp_path, *words)
    assert ended.returncode == 1, ended.stdout + ended.stderr
    graded = json.loads(ended.stdout)
    assert not graded["passed"]
    *before, last = graded["checks"]
    assert (last["passed"], {each["passed"] for each in before}) in (
        (False, {True}),
        (False, set()),  # it did not run
    )
