"""A section of a mini that is written anew: real copies, real ranks, real upstream."""

import json
import os
import subprocess
import sys
import time

import pytest

from readerkit.app.rebuilding import BEGIN, END, Section, read_exercises
from tests.helpers import ROOT

pytestmark = pytest.mark.sampled

EXERCISES = {each.key: each for each in read_exercises()}

WRONG = {
    "ddp/mean": ("self.grad_data *= self.gradient_scaling_factor", "pass"),
    "ddp/overlap": ("self.start_grad_sync()", "pass"),
    "ddp/buckets": ("reversed(params)", "params"),
    "zero/partition": ("rank = sizes.index(min(sizes))", "rank = 0"),
    "zero/share": ("if owner == rank", "if owner == rank == 0"),
    "fsdp/gather": ("self.is_unsharded = True", "pass"),
    "fsdp/scatter": ("dist.ReduceOp.AVG", "dist.ReduceOp.SUM"),
    "layout/groups": ("if name not in free", "if name in free"),
    "layout/experts": (
        "weight = move(self.router.weight, stay, all_reduce, tp)",
        "weight = self.router.weight",
    ),
    "muon/deal": ("loop = ranks + ranks[::-1]", "loop = ranks"),
    "muon/rows": ("whole[: self.num_rows[p]]", "mine"),
    "mixed_precision/scale": ("self.hysteresis_tracker <= 0", "True"),
    "mixed_precision/unscale": ("grad *= inv_scale", "pass"),
    "fsdp_flat/reduce": ("padded /= self.gradient_predivide_factor", "pass"),
    "tensor_parallel/row": (
        "output = reduce_from_tensor_model_parallel_region(output, self.tp_group)",
        "pass",
    ),
    "tensor_parallel/hide": (
        "handle = dist.all_reduce(grad_input, group=ctx.tp_group, async_op=True)",
        "handle = dist.all_reduce(grad_input, group=ctx.tp_group, async_op=True)\n"
        "        handle.wait()",
    ),
    "sequence_parallel/back": ("if ctx.partial else", "if not ctx.partial else"),
    "schedules/one-f-one-b": (
        "for i in range(num_warmup_microbatches):",
        "num_warmup_microbatches = total\n"
        "    num_microbatches_remaining = 0\n"
        "    for i in range(num_warmup_microbatches):",
    ),
    "pipeline/backward": (
        "self.output_tensors.pop(forward)",
        "self.output_tensors[forward]",
    ),
    "collectives/ring": ("accumulate(mine, received, op)", "mine.copy_(received)"),
    "recover/validate": ("self.rerun_requested = True", "pass"),
    "recover/digests": ("if len(set(digests)) > 1:", "if len(set(digests)) > 2:"),
    "offload/update": ("self._arrive(param)", "pass"),
    "offload/gather": ("padded.view(column.shape).copy_(column)", "padded.zero_()"),
    "recompute/again": ("ctx.streams.replay(ctx.rng_states), ", ""),
    "checkpoint/reads": ("for box in stored[name]", "for box in stored[name][:1]"),
    "inference/receive": ("context.sequence_len_offset = s", "pass"),
    "fsdp_state/norm": ("norm_type, dtype", "1.0, dtype"),
    "inference/cache": ("start = self.sequence_len_offset", "start = 0"),
}
"""Something in the mini's own lines, and what makes them wrong."""


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
    write(path, exercise, solution(exercise).replace(*WRONG["ddp/mean"]))
    ended = run(tmp_path, "ddp", "mean", "--check")
    assert ended.returncode == 1
    assert "yes  it runs to its end\n" in ended.stdout
    assert "NO   the gradients are those of one process\n" in ended.stdout
    assert "gradient over one process's: 2, in the mini 1" in ended.stdout
    assert "[1 of 5 checks, 1 try]" in run(tmp_path, "ddp").stdout
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


@pytest.mark.slow
def test_what_never_ends_is_ended(tmp_path):
    exercise = EXERCISES["collectives/ring"]
    path = tmp_path / "collectives.py"
    write(path, exercise, "    while True:\n        pass")
    begun = time.monotonic()
    command = ["collectives", "ring", "--file", path, "--timeout", "1"]
    ended = run(tmp_path, *command)
    assert ended.returncode == 1
    assert time.monotonic() - begun < 200
    assert "does a loop never end?" in ended.stdout


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
        (["ddp", "nothing"], 2, "unknown exercise of ddp"),
        (["compression"], 2, "no section of compression is to be rebuilt"),
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


@pytest.mark.slow
def test_what_cannot_be_compared_here_did_not_pass(tmp_path):
    exercise = EXERCISES["tensor_parallel/row"]
    path = tmp_path / exercise.at.file.rpartition("/")[2]
    write(path, exercise, solution(exercise))
    command = (exercise.mini, exercise.name, "--file", path)
    ended = run(tmp_path, *command)  # with an empty cache
    assert ended.returncode == 0, ended.stdout + ended.stderr
    assert (
        "\n?    it does what upstream does: compare tensor_parallel\n" in ended.stdout
    )
    assert "what ? stands before cannot be checked here" in ended.stdout
    graded = json.loads(run(tmp_path, *command, "--json").stdout)
    assert [check["passed"] for check in graded["checks"]][-2:] == [True, None]
    says, command = (graded["checks"][-1][name] for name in ("says", "command"))
    assert (says, command) == ("it does what upstream does", "compare tensor_parallel")


@pytest.mark.slow
@pytest.mark.parametrize("key", EXERCISES)
def test_the_minis_own_lines_pass_and_wrong_ones_do_not(tmp_path, real_cache, key):
    exercise = EXERCISES[key]
    path = tmp_path / exercise.at.file.rpartition("/")[2]
    words = (exercise.mini, exercise.name, "--file", path, "--json", "--timeout", "30")
    write(path, exercise, solution(exercise))
    right = run(tmp_path, *words)
    assert right.returncode == 0, right.stdout + right.stderr
    assert not any("left out" in c["told"] for c in json.loads(right.stdout)["checks"])
    old, new = WRONG[key]
    assert old in solution(exercise)
    write(path, exercise, solution(exercise).replace(old, new))
    wrong = run(tmp_path, *words)
    assert wrong.returncode == 1, wrong.stdout + wrong.stderr
    assert not json.loads(wrong.stdout)["passed"]
