"""How many ranks a machine is asked to hold."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from mini_impls import machine
from tests.helpers import run_on_terminal, run_process

COMMANDS = [
    pytest.param(("run", "ddp"), id="run ddp"),
    *(
        pytest.param(command, id=" ".join(command), marks=pytest.mark.slow)
        for command in (
            ("run", "pipeline", "--layers", "1000"),
            ("compare", "ddp"),
            ("lab", "01", "--run"),
        )
    ),
]


@pytest.mark.further
@pytest.mark.parametrize("command", COMMANDS)
def test_more_ranks_than_the_machine_holds_are_refused_at_once(command, real_cache):
    done = run_process(*command, "--world", "1000")
    assert (done.code, done.out) == (2, "")
    assert "--world 1000 takes about" in done.err or "more than 8 ranks" in done.err
    assert done.err.rstrip().endswith("--oversubscribe tries it all the same")
    assert done.err.count("\n") == 1


@pytest.mark.slow
def test_what_is_refused_is_told_in_whole_words():
    rows = run_on_terminal(60, "run", "ddp", "--world", "1000").splitlines()
    assert max(map(len, rows)) <= 60 and len(rows) > 1
    assert "--oversubscribe tries it all the same" in " ".join(map(str.strip, rows))


def test_memory_is_held_against_what_is_free(monkeypatch):
    monkeypatch.setattr(machine, "free_bytes", lambda: 5 * machine.RANK_BYTES)
    monkeypatch.setattr(machine, "usable_cores", lambda: 64)
    machine.check_room(4)
    message = (
        r"--world 5 takes about 1\.4 GB of memory, 240 MB a rank: got 1\.2 GB free"
    )
    with pytest.raises(ValueError, match=rf"{message}, enough for 4;"):
        machine.check_room(5)
    machine.check_room(5, insist=True)


def test_ranks_take_turns_on_cores(monkeypatch):
    monkeypatch.setattr(machine, "free_bytes", lambda: None)  # nobody tells
    monkeypatch.setattr(machine, "usable_cores", lambda: 2)
    machine.check_room(16)
    message = r"more than 8 ranks a core: got 2 cores, expected at most 16 ranks"
    with pytest.raises(ValueError, match=message):
        machine.check_room(17)


def test_machine_is_asked(monkeypatch):
    assert machine.usable_cores() >= 1
    monkeypatch.delattr(os, "sched_getaffinity", raising=False)  # as on macOS
    assert machine.usable_cores() == os.cpu_count()
    free = machine.free_bytes()
    assert free is None or free > 10_000_000


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
def test_rank_takes_what_is_counted_for_it():
    program = (
        "import os, torch, torch._dynamo, torch.distributed, sys; "
        "print('there', flush=True); sys.stdin.read()"
    )
    with subprocess.Popen(
        [sys.executable, "-c", program],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stdout.readline() == "there\n"
        rows = Path(f"/proc/{process.pid}/smaps_rollup").read_text().splitlines()
        held = sum(
            1024 * int(row.split()[1]) for row in rows if row.startswith("Private_")
        )
        process.stdin.close()
    assert 0.5 < held / machine.RANK_BYTES < 1.5
