"""Ranks of torchrun that are started again meet one another, and none of the dead."""

from __future__ import annotations

import os
import re
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from tests.helpers import ROOT

PROGRAM = """
import os, time
import torch
import torch.distributed as dist
from mini_impls import launch

count = int(os.environ["TORCHELASTIC_RESTART_COUNT"])
again = os.path.exists("died")

def work(rank):
    total = torch.full((1,), float(rank.rank + 1))
    dist.all_reduce(total, group=rank.group)
    if not again and rank.rank == 1:
        open("died", "w").close()
        os._exit(1)
    if not again:
        time.sleep(600)  # the agent ends it
    print(f"rank {rank.rank}: sum {total.item():.0f}, count {count}", flush=True)

if again and os.environ["RANK"] == "0":
    time.sleep(2)  # whatever the others find meanwhile is of the start before
launch.join(work, (), backend="gloo", timeout_s=60.0)
"""


def run_agents(folder: Path, agents: int, *options: str) -> str:
    """Run two ranks under so many agents, one of whom dies once; return what they say.

    All of it, of each agent that ended well.
    """
    program = folder / "program.py"
    program.write_text(PROGRAM)
    command = [
        *(sys.executable, "-m", "torch.distributed.run", "--nnodes", str(agents)),
        *("--nproc-per-node", str(2 // agents), "--max-restarts", "1", *options),
        str(program),
    ]
    env = {
        **os.environ,
        "PYTHONPATH": str(ROOT),
        "OMP_NUM_THREADS": "1",
        "GLOO_SOCKET_IFNAME": "lo",
    }
    env.pop("TORCH_DISABLE_SHARE_RDZV_TCP_STORE", None)
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    started = [
        subprocess.Popen(command, env=env, cwd=folder, **pipes) for _ in range(agents)
    ]
    try:
        ended = [agent.communicate(timeout=200) for agent in started]
    finally:
        for agent in started:
            agent.kill()
    assert [agent.returncode for agent in started] == [0] * agents, ended
    return "".join(out for out, _ in ended)


def free_port() -> int:
    """Return a port that nobody listens on."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        return int(free.getsockname()[1])


def c10d() -> tuple[str, ...]:
    """Return the options of a rendezvous that nodes may join."""
    place = ("--rdzv-endpoint", f"127.0.0.1:{free_port()}")
    return "--rdzv-backend", "c10d", *place, "--local-addr", "127.0.0.1"


def static() -> tuple[str, ...]:
    """Return those of the rendezvous that torchrun takes without one."""
    return "--master-addr", "127.0.0.1", "--master-port", str(free_port())


@pytest.mark.slow
@pytest.mark.parametrize("rendezvous", [c10d, static])
def test_ranks_that_are_started_again_meet_one_another(tmp_path, rendezvous):
    said = run_agents(tmp_path, 1, *rendezvous())
    assert sorted(re.findall(r"rank \d: .*", said)) == [
        "rank 0: sum 3, count 1",
        "rank 1: sum 3, count 1",
    ]


@pytest.mark.slow
def test_agents_need_not_count_alike(tmp_path):
    """Only the node whose worker died uses up a restart."""
    said = run_agents(tmp_path, 2, *c10d(), "--rdzv-id", "test")
    found = dict(re.findall(r"rank (\d): sum 3, count (\d)", said))
    assert sorted(found) == ["0", "1"]
    assert sorted(found.values()) in (["0", "1"], ["1", "1"])
