"""The command, from its arguments to what it prints; real launches."""

import json
import os
import re
import signal

import click
import pytest

from mini_impls.faults.__main__ import main
from mini_impls.faults.fault import read_faults
from readerkit.cli import main as readerkit
from tests.helpers import ROOT, run_process
from tests.terminals import READERKIT, Terminal

pytestmark = pytest.mark.sampled

FAULTS = read_faults()


def test_without_a_fault_the_faults_are_listed(capsys):
    assert main([]) == 0
    rows = capsys.readouterr().out.splitlines()
    assert [row.split()[:2] for row in rows] == [[f.mini, f.name] for f in FAULTS]
    assert main(["zero"]) == 0
    rows = capsys.readouterr().out.splitlines()
    of_zero = ["unsharded-state", "stale-shard", "frozen-rate"]
    assert [row.split()[1] for row in rows] == of_zero
    assert main(["--json"]) == 0
    rows = json.loads(capsys.readouterr().out)
    assert [(row["mini"], row["fault"]) for row in rows] == [
        (f.mini, f.name) for f in FAULTS
    ]


@pytest.mark.parametrize(
    ("argv", "message"),
    [
        (
            ["ddp", "nope"],
            "unknown fault of ddp: got 'nope', expected one of no-sync, sum-",
        ),
        (["model"], "model has no faults: got 'model', expected one of ddp, zero"),
        (["ddp", "no-sync", "--world", "3"], "shown on 2 or 4 ranks, not on 3"),
        (["ddp", "no-sync", "--timeout", "inf"], "--timeout inf is above 31536000"),
        (["ddp", "no-sync", "--predict", "5"], "--predict 5 is not one of 1 to 4"),
    ],
)
def test_a_mistake_is_one_line_and_status_two(argv, message, capsys):
    assert main(argv) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert message in err
    assert len(err.splitlines()) == 1


@pytest.mark.slow
def test_json_alone_is_printed(capfd, real_cache):
    assert main(["zero", "unsharded-state", "--json", "--predict", "2"]) == 0
    found = json.loads(capfd.readouterr().out)
    assert found["symptoms"] == ["memory"]
    assert (found["shown"], found["prediction"]) == ([2], 2)
    assert found["why_not"] is None
    held = [rank["bytes of optimizer state"] for rank in found["measured_right"]]
    full = {rank["bytes of optimizer state"] for rank in found["measured_wrong"]}
    assert len(full) == 1
    # Two moments of everything; the step counts go with the tensors.
    assert sum(held) == full.pop()
    source = (ROOT / found["path"]).read_text().splitlines()
    assert source[found["first"] - 1 : found["last"]] == found["right"]
    assert found["wrong"] == ["        return list(params)"]
    assert found["guards"][0]["upstream"] == "pytorch"


@pytest.mark.slow
def test_a_deadlock_ends_and_is_told(capfd, real_cache):
    argv = ["pipeline", "send-order", "--timeout", "5", "--predict", "1"]
    assert main(argv) == 0
    out = capfd.readouterr().out
    assert "Timed out waiting 5000ms" in out
    assert "the ranks wait for one another" in out
    assert "it stood in communicate" in out
    assert "You said 1: wrong." in out
    assert (
        "Not so: it would be no measure that differs between the two runs; the" in out
    )
    assert "Shown: 3  It hangs" in out
    assert "reqs = torch.distributed.batch_isend_irecv(ops)" in out


@pytest.mark.slow
@pytest.mark.parametrize("columns", [40, 80])
def test_no_word_is_broken_on_a_narrow_terminal(real_cache, columns):
    command = ("break", "ddp", "no-sync", "--predict", "1")
    with Terminal(*READERKIT, *command, columns=columns) as terminal:
        assert terminal.close() == 0
    written = click.unstyle(terminal.shown)
    assert [
        line
        for line in re.sub(r"\r\x1b\[J.*\r", "", written).splitlines()
        if len(line) > columns and " " in line.strip()
    ] == []


@pytest.mark.slow
def test_a_person_is_asked_before_anything_runs(real_cache):
    with Terminal(*READERKIT, "break", "fsdp", "stale-shard") as terminal:
        asked = terminal.read_until("go on without")
        assert "with the fault" not in asked and "guards" not in asked
        terminal.type("9\n")
        terminal.read_until("Expected a number from 0 to 4.")
        terminal.type("4\n")
        terminal.read_until("You said 4: right.")
        assert terminal.close() == 0


@pytest.mark.parametrize(
    ("act", "code"),
    [
        (Terminal.interrupt, 130),
        (Terminal.quit, 131),
        (Terminal.hang_up, 129),
        (lambda terminal: terminal.type("\x04"), 130),
        (lambda terminal: os.kill(terminal.pid, signal.SIGTERM), 143),
        (lambda terminal: os.kill(terminal.pid, signal.SIGKILL), -9),
    ],
    ids=["^C", "^\\", "hung up", "^D", "told to end", "killed"],
)
def test_whoever_is_asked_can_always_leave(act, code):
    with Terminal(*READERKIT, "break", "ddp", "no-sync") as terminal:
        terminal.read_until("go on without")
        terminal.stop()
        terminal.resume()
        terminal.wait_until_asked()
        act(terminal)
        assert terminal.close() == code


@pytest.mark.slow
def test_a_prediction_in_a_pipe_is_not_dropped_without_a_word(real_cache):
    done = run_process("break", "zero", "unsharded-state", stdin="2\n")
    assert done.code == 0
    assert "no terminal to ask on: --predict N, 1 to 4" in done.err
    assert "You said" not in done.out


def test_the_alias_of_a_mini_works_through_readerkit(capfd):
    with pytest.raises(SystemExit) as ended:
        readerkit(["break", "tp", "--json"])
    assert not ended.value.code
    rows = json.loads(capfd.readouterr().out)
    assert {row["mini"] for row in rows} == {"tensor_parallel"}
    with pytest.raises(SystemExit) as ended:
        readerkit(["break", "--json"])
    assert not ended.value.code
    assert len(json.loads(capfd.readouterr().out)) == len(FAULTS)
