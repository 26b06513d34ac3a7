"""Two agents of torchrun, as on two machines, over the loopback interface."""

from __future__ import annotations

import os
import re
import shlex
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
import yaml

from readerkit.evidence.record import Record
from tests.helpers import ROOT
from tests.processes import children, is_gone, is_training, wait_for

MACHINES = ROOT / "mini_impls" / "machines"
COMPARE = ("mini_impls.compare", "ddp", "--upstream", "torch")
SLURM, SKY = MACHINES / "slurm.sh", MACHINES / "sky.yaml"


@contextmanager
def agents(*module: str) -> Iterator[list[subprocess.Popen[str]]]:
    """Start torchrun twice with a rank each; end both whatever happens."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    command = [
        *(sys.executable, "-m", "torch.distributed.run", "--nnodes", "2"),
        *("--nproc-per-node", "1", "--rdzv-backend", "c10d", "--rdzv-id", "test"),
        *("--rdzv-endpoint", f"127.0.0.1:{port}", "--local-addr", "127.0.0.1"),
        *("-m", *module),
    ]
    env = {
        **os.environ,
        "PYTHONPATH": str(ROOT),
        "OMP_NUM_THREADS": "1",
        "GLOO_SOCKET_IFNAME": "lo",
    }
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    both = [subprocess.Popen(command, env=env, **pipes) for _ in range(2)]
    try:
        yield both
    finally:
        for agent in both:
            agent.kill()
            agent.communicate(timeout=60)


@pytest.mark.slow
def test_a_mini_runs_on_two_machines():
    with agents("mini_impls.ddp", "--steps", "2") as both:
        ended = [agent.communicate(timeout=150) for agent in both]
        assert [agent.returncode for agent in both] == [0, 0], ended
    told = "".join(out for out, _ in ended)
    assert told.count("step 1: loss") == 1, "rank 0 says it, on whichever machine it is"
    assert re.search(r"from the one process: 0\.0e\+00", told)
    assert {"[rank 0] holds", "[rank 1] holds"} <= {
        line[:14] for line in told.split("\n")
    }
    by_machine = [set(re.findall(r"\[rank \d\]", out)) for out, _ in ended]
    assert sorted(map(len, by_machine)) == [1, 1]


@pytest.mark.slow
def test_a_comparison_runs_on_two_machines(real_cache):
    with agents(*COMPARE, "--steps", "6", "--json") as both:
        ended = [agent.communicate(timeout=240) for agent in both]
        assert [agent.returncode for agent in both] == [0, 0], ended
    [printed] = [out for out, _ in ended if out.strip()]
    record = Record.parse(printed, "printed")
    assert record.agrees
    assert (record.world_size, len(record.events)) == (2, 2)


@pytest.mark.slow
def test_when_one_machine_is_gone_the_other_ends(real_cache):
    with agents(*COMPARE, "--steps", "10000") as both:

        def below() -> list[int]:
            return [pid for agent in both for pid in children(agent.pid)]

        wait_for(lambda: len([pid for pid in below() if is_training(pid)]) == 2, 120)
        everyone = below()
        both[1].send_signal(signal.SIGKILL)
        both[0].communicate(timeout=120)
        assert both[0].returncode != 0
        wait_for(lambda: all(map(is_gone, everyone)), 30)


# --- the same on a cluster ---


def launched(script: str) -> list[str]:
    """Return the options of torchrun in a script, without their values."""
    whole = script.replace("\\\n", " ")
    [line] = [line for line in whole.splitlines() if re.search(r"torchrun\s+--", line)]
    return [word for word in shlex.split(line) if word.startswith("-")]


def test_every_documented_command_launches_alike():
    task = yaml.safe_load(SKY.read_text())
    shown = (ROOT / "README.md").read_text().split("## Running the small ones")[1]
    [block] = [b for b in shown.split("```") if "--rdzv-endpoint" in b]
    by_hand = block.replace("$ ", "")
    assert launched(SLURM.read_text()) == launched(task["run"]) == launched(by_hand)[:6]


def test_script_of_slurm_without_a_module_says_what_it_wants():
    done = subprocess.run(["bash", SLURM], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith("slurm.sh: got no module: expected one such as")
