"""What the minis print when they are run: each claim is there, and it holds."""

import contextlib
import io
import os
import re
import subprocess
import sys
import tempfile
from argparse import Namespace
from dataclasses import replace
from importlib import import_module

import pytest

from mini_impls.demos import collectives as demo_collectives
from mini_impls.recorder import MOST_STEPS, Recorder, written_bytes
from tests.helpers import ROOT
from tests.terminals import Terminal

pytestmark = pytest.mark.sampled

STEPS = 3
OPTIONS = {
    "checkpoint": {"directory": ""},
    "collectives": {"numel": 100},
    "context_parallel": {},
    "ddp": {"bucket_cap_mb": 0.1},
    "fsdp": {},
    "fsdp_flat": {},
    "fsdp_state": {},
    "offload": {"mb_per_s": 50.0},
    "recompute": {},
    "recover": {"directory": "", "kill": ""},
    "sequence_parallel": {},
    "tensor_parallel": {},
    "zero": {},
}
MORE = {
    "compression": {"share": 0.01, "columns": 2},
    "experts": {"etp": 1},
    "inference": {},
    "layout": {"tp": 0, "cp": 0, "pp": 0, "ep": 0},
    "mixed_precision": {"scale": 2.0**20},
    "zero_bubble": {
        "schedule": "zb-v",
        "microbatches": 0,
        "layers": 0,
        "step_ms": 1.0,
    },
}
"""Those of demos whose other claims are tested beside their minis."""
TABLES = {
    ("gpipe", 1): [
        "F0 F1 F2 F3 .  .  B0 B1 B2 B3",
        ".  F0 F1 F2 F3 B0 B1 B2 B3 .",
    ],
    ("1f1b", 1): [
        "F0 F1 .  B0 F2 B1 F3 B2 .  B3",
        ".  F0 B0 F1 B1 F2 B2 F3 B3 .",
    ],
    ("interleaved", 2): [
        "F0a F1a F0b F1b F2a B0b F3a B1b F2b B0a F3b B1a .   B2b .   B3b B2a B3a",
        ".   F0a F1a F0b B0b F1b B1b F2a B0a F3a B1a F2b B2b F3b B3b B2a B3a .",
    ],
}


def run_demo(rank, name, options):
    """Return what a demo prints on this rank."""
    demo = import_module(f"mini_impls.demos.{name}").demo
    args = Namespace(world=rank.world_size, backend="gloo", steps=STEPS, **options)
    with contextlib.redirect_stdout(io.StringIO()) as out:
        demo(rank, args)
    return out.getvalue()


def differences(text):
    lines = re.findall(r"largest difference.*", text)
    return [float(n) for line in lines for n in re.findall(r"\d\.\de[+-]\d\d", line)]


def formulas(text):
    """Return the figures that are said to follow from a formula, and what it gives."""
    return re.findall(r"(\S+)(?: bytes)? \(formula ([^)]+)\)", text)


def losses(text):
    """Return the losses of all steps, or of the first and the last."""
    steps = re.findall(r"^step \d+: loss ([\d.]+)", text, re.M)
    row = re.search(r"loss: ([\d. ]+)$", text, re.M)
    ends = re.search(r"loss ([\d.]+) -> ([\d.]+)", text)
    found = steps or (row[1].split() if row else ends.groups())
    return [float(loss) for loss in found]


class StepBytes(Recorder):
    """Counts what each step writes, and records nothing else."""

    def __init__(self):
        super().__init__()
        self.written = {}

    @contextlib.contextmanager
    def step(self, tokens):
        before = written_bytes()
        yield
        self.written.setdefault(self.part, []).append(written_bytes() - before)


def count_bytes(rank, name, options):
    """Return what each part of a demo wrote in a step, and what it was to write."""
    recorder = StepBytes()
    run_demo(replace(rank, recorder=recorder), name, options)
    found = {}
    for part, written in recorder.written.items():
        warm = written[1:MOST_STEPS] or written
        found[part] = sum(warm) / len(warm), recorder.expected[part].sent_bytes
    return recorder.parts, found


PARTS = {
    "checkpoint": 2,
    "collectives": 1,
    "compression": 5,
    "context_parallel": 3,
    "experts": 6,
    "fsdp_state": 1,
    "inference": 2,
    "layout": 2,
    "mixed_precision": 7,
    "recover": 1,
    "zero_bubble": 1,
}
"""How many ways to do the same each has, of those whose bytes are counted here."""
MORE_IS_WRITTEN = {
    # Meanwhile a thread writes the file of the step before.
    "checkpoint": 2.1,
    # A reduce-scatter of gloo's sends more than its part.
    **dict.fromkeys(("context_parallel", "experts", "fsdp_state", "layout"), 1.7),
    # Messages are short beside their headers.
    "inference": 1.7,
}
"""How many times what a formula says, where that is more than a tenth above."""


@pytest.mark.parametrize("name", sorted(PARTS))
def test_each_part_of_a_demo_writes_what_it_said_it_would(pool2, name):
    for parts, found in pool2.run(count_bytes, name, (OPTIONS | MORE)[name]):
        assert len(found) == parts == PARTS[name]
        for part, (written, due) in found.items():
            most = MORE_IS_WRITTEN.get(name, 1.1)  # headers
            assert 0.9 < written / due < most, (part, written, due)


def test_all_demos_are_run():
    files = {path.stem for path in (ROOT / "mini_impls/demos").glob("[!_]*.py")}
    labs = {"lab", "lab_ddp", "lab_fsdp", "lab_generation"}  # test_lab runs them
    elsewhere = {"pipeline", "inference", "schedules", "compression", *labs}
    elsewhere |= {"zero_bubble", "experts", "mixed_precision", "muon", "layout"}
    recorders = {name for name in files if name.split("_")[0] == "play"}
    shared = {"expected", "formulas", "full_disk", "layout_traffic", "peaks"}
    shared |= {"training"}
    elsewhere |= {"recover_elastic"}  # test_recover_agent
    assert files - {*shared, *recorders} == {*OPTIONS, *elsewhere}


@pytest.mark.parametrize(
    "pool", [2, pytest.param(4, marks=pytest.mark.slow)], indirect=True
)
@pytest.mark.parametrize("name", sorted(OPTIONS))
def test_a_demo_ends_where_one_process_ends(pool, name):
    texts = pool.run(run_demo, name, OPTIONS[name])
    assert differences(texts[0]) and losses(texts[0])
    for text in texts:
        assert all(difference < 1e-4 for difference in differences(text))
        assert all(sent == formula for sent, formula in formulas(text))
    for ours, alone in re.findall(r"loss (.+), one process ([^;,\n]+)", texts[0]):
        assert ours == alone
    assert losses(texts[0])[-1] < losses(texts[0])[0]


@pytest.mark.parametrize("name", ["offload", "zero", "fsdp", "fsdp_flat", "ddp"])
def test_what_three_ranks_move_is_the_formula_where_rows_do_not_divide(pool3, name):
    for text in pool3.run(run_demo, name, OPTIONS[name]):
        assert all(sent == formula for sent, formula in formulas(text))
        assert all(difference < 1e-4 for difference in differences(text))


@pytest.mark.parametrize("name", ["sequence_parallel", "tensor_parallel"])
def test_a_demo_holds_what_was_sent_against_the_formula(pool2, name):
    text = pool2.run(run_demo, name, {})[0]
    assert len(formulas(text)) == text.count("one step: ") > 0


def test_collectives_shows_each_with_rounds_and_bytes(pool):
    w = pool.world_size
    for text in pool.run(run_demo, "collectives", {"numel": 101}):
        rows = re.findall(
            r"(\w+): (\d+) rounds, (\d+) with a send, sent (\d+) bytes", text
        )
        assert [name for name, *_ in rows] == list(demo_collectives.ALGORITHMS)
        assert len(formulas(text)) == len(rows)
        found = {name: tuple(map(int, numbers)) for name, *numbers in rows}
        numel = -(-101 // w) * w
        assert found["pairwise_all_to_all"] == (w - 1, w - 1, 4 * numel * (w - 1) // w)
        assert found["ring_all_reduce"][:2] == (2 * (w - 1), 2 * (w - 1))


@pytest.mark.parametrize(("schedule", "chunks"), TABLES)
def test_a_pipeline_draws_the_order_it_keeps(pool2, schedule, chunks):
    options = {"schedule": schedule, "microbatches": 4, "chunks": chunks, "layers": 4}
    first, last = pool2.run(run_demo, "pipeline", options)
    for text in (first, last):
        assert differences(text) and max(differences(text)) < 1e-6
        assert formulas(text) and all(sent == due for sent, due in formulas(text))
        held = re.search(r"at most (\d+) activations held \(schedule: (\d+)\)", text)
        assert held[1] == held[2]
    assert losses(last)[-1] < losses(last)[0]
    drawn = [line.rstrip().partition(" | ")[2] for line in first.splitlines()[:2]]
    assert drawn == TABLES[schedule, chunks]


@pytest.mark.parametrize(
    ("name", "argv", "message"),
    [
        ("ddp", ["--steps", "0"], "--steps 0 is not above 0"),
        ("ddp", ["--timeout", "nan"], "--timeout nan is not above 0"),
        ("fsdp_state", ["--steps", "1"], "--steps 1: at least 2, saved half-way"),
        ("checkpoint", ["--steps", "1"], "--steps 1: at least 2, resumed half-way"),
        ("checkpoint", ["--directory", __file__], "test_demos.py is no folder"),
        ("recover", ["--steps", "2"], "--steps 2: at least 3, struck in the third"),
        ("recover", ["--world", "1"], "--world 1: at least 2, one beside the other"),
        ("recover", ["--kill", "1:2"], "--kill is for a run under torchrun"),
        ("offload", ["--mb_per_s", "-1"], "--mb_per_s -1 is no speed"),
        ("collectives", ["--numel", "0"], "--numel 0 is below 1"),
        ("ddp", ["--bucket-cap-mb", "nan"], "--bucket-cap-mb nan is no size above 0"),
        ("ddp", ["--bucket-cap-mb", "-1"], "--bucket-cap-mb -1 is no size above 0"),
        ("compression", ["--share", "nan"], "--share nan is no share above 0"),
        ("compression", ["--share", "2"], "--share 2 is no share above 0, at most 1"),
        ("compression", ["--columns", "0"], "--columns 0 is below 1"),
        ("zero_bubble", ["--step-ms", "inf"], "--step-ms inf is no time"),
        ("zero_bubble", ["--step-ms", "-1"], "--step-ms -1 is no time"),
        ("pipeline", ["--layers", "-1"], "into 2 equal stages, 2 can"),
        (
            "pipeline",
            ["--world", "3", "--layers", "4"],
            "--layers: 4 layers cannot be cut into 3 equal stages, 6 can",
        ),
    ],
)
def test_what_cannot_be_shown_is_one_line(capfd, name, argv, message):
    assert import_module(f"mini_impls.demos.{name}").main(argv) == 2
    captured = capfd.readouterr()
    assert captured.out == ""
    assert message in captured.err
    assert captured.err.count("\n") == 1


def fail_in_a_step(rank, folder):
    """Run a demo whose first step raises; return what it left in `folder`."""
    demo = import_module("mini_impls.demos.fsdp_state")
    train_step, demo.train_step = demo.train_step, None
    tempfile.tempdir = str(folder)
    try:
        run_demo(rank, "fsdp_state", {})
    except TypeError:
        return [path.name for path in folder.iterdir()]
    finally:
        demo.train_step, tempfile.tempdir = train_step, None


def test_a_demo_that_fails_leaves_no_files(pool2, tmp_path):
    # The first rank made the folder, and takes it away.
    assert pool2.run(fail_in_a_step, tmp_path)[0] == []


@pytest.mark.parametrize("name", ["pipeline", "recover", "offload", "zero", "fsdp"])
@pytest.mark.further
def test_words_of_a_demo_stay_whole_on_a_narrow_terminal(name):
    more = "--microbatches 8" if name == "pipeline" else ""
    run = f"{sys.executable} -m mini_impls.{name} --steps 3 {more} 2> /dev/null"
    with Terminal("sh", "-c", run, columns=40, cwd=ROOT) as terminal:
        assert terminal.close() == 0
    lines = terminal.shown.splitlines()
    assert any(len(line) > 30 for line in lines)
    assert [line for line in lines if len(line) > 40 and " " in line.strip()] == []
    if name == "pipeline":  # what stands above another step stays there
        drawn = [line.partition(" | ") for line in lines if line.startswith("rank")]
        assert [head for head, *_ in drawn] == ["rank 0", "rank 1"] * 2
        assert [cells.split()[0] for *_, cells in drawn] == ["F0", ".", "F5", "B4"]


@pytest.mark.slow
def test_a_reader_that_leaves_early_is_no_failure():
    with subprocess.Popen(
        [sys.executable, "-m", "mini_impls.tensor_parallel", "--steps", "1"],
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stdout.readline().startswith("[rank 0] holds")
        process.stdout.close()
        assert process.wait(60) == 0
        assert process.stderr.read() == ""
