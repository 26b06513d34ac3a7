"""Training that is killed and goes on: under an agent of its own, or torchrun's."""

import argparse
import importlib
import math
import os
import signal
import sys
import tempfile
import time
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path

import torch
import torch.distributed as dist

from mini_impls import launch
from mini_impls.checkpoint import save
from mini_impls.checkpoint_async import NAMED, resume
from mini_impls.demos.checkpoint import ShardedTraining
from mini_impls.failures import is_felt
from mini_impls.launch import Rank
from mini_impls.model import GPTConfig, build_model, make_batch, train_one_process
from mini_impls.recover_agent import (
    ElasticAgent,
    FolderRendezvous,
    Worker,
    WorkerSpec,
)
from mini_impls.supervise import die_with_parent, ending_once

CONFIG = GPTConfig()
STOPPED_S = 30.0
"""How long a worker waits to be stopped, once it has called for another node."""

# --- what every worker does, whoever started it ---


def train_on(
    rank: Rank,
    root: Path,
    steps: int,
    rows: int,
    before_step: Callable[[int], None],
) -> None:
    """Train from the newest checkpoint on, saving each step; say what came of it."""
    training = ShardedTraining(rank, CONFIG, "rows")
    found = resume(root, training.state(), rank.group)
    done = found["step"] if found else 0
    rank.say(f"{rank.world_size} workers, from step {done}")
    for step in range(done, steps):
        before_step(step)
        loss = training.step(make_batch(CONFIG, step=step, batch_size=rows))
        rank.say(f"elastic step {step}: loss {loss:.4f}")
        done = step + 1
        save(
            root / NAMED.format(done),
            training.state(),
            rank.group,
            extra={"step": done},
        )
    whole = training.whole()
    if rank.rank == 0:
        alone = build_model(CONFIG)
        batches = [make_batch(CONFIG, step=s, batch_size=rows) for s in range(steps)]
        optimizer = torch.optim.AdamW(alone.parameters(), lr=3e-3)
        train_one_process(alone, optimizer, batches, chunks=rank.world_size)
        apart = max(
            (whole[name].cpu() - param.detach()).abs().max().item()
            for name, param in alone.named_parameters()
        )
        rank.say(f"largest difference from one process: parameter {apart:.1e}")


def kill_itself() -> None:
    """End as a process ends whose machine is gone: without a word."""
    sys.stdout.flush()
    os.kill(os.getpid(), signal.SIGKILL)


# --- under the mini's agent ---


def work(worker: Worker, root: Path, steps: int, rows: int) -> None:
    """Be one worker: the last one dies in the first start, in the second a node comes.

    Whoever called for the node waits to be stopped: what it would do meanwhile is lost.
    """
    die_with_parent(worker.agent_pid)
    os.environ["GLOO_SOCKET_IFNAME"] = "lo"
    torch.set_num_threads(1)
    store = dist.FileStore(str(worker.store), worker.world_size)
    dist.init_process_group(
        "gloo",
        store=store,
        rank=worker.rank,
        world_size=worker.world_size,
        timeout=timedelta(seconds=60),
    )
    group = dist.group.WORLD
    assert group is not None
    rank = Rank(worker.rank, worker.world_size, torch.device("cpu"), group)
    nodes = FolderRendezvous(root / "nodes")

    is_last = worker.rank == worker.world_size - 1
    is_whole = (root / "nodes" / "node-b").exists()

    def before_step(step: int) -> None:
        if worker.restart_count == 0 and is_last and step == steps // 3:
            kill_itself()
        if worker.restart_count == 1 and not is_whole and step == 2 * steps // 3:
            if worker.rank == 0:
                nodes.join("node-b", 1)
            time.sleep(STOPPED_S)

    try:
        train_on(rank, root / "saved", steps, rows, before_step)
        dist.barrier(group)
    except RuntimeError as error:
        if not is_felt(str(error)):
            raise
        launch.tell(
            f"[rank {rank.rank}] waited for a worker that is gone: it ends, too"
        )
        sys.exit(1)
    dist.destroy_process_group()


def run_elastic(args: argparse.Namespace) -> None:
    """Run the workers to their end, whatever happens to them; say how often."""
    launch.tell("--- a worker dies, later a node comes")
    with (
        tempfile.TemporaryDirectory(prefix="recover-") as name,
        ending_once() as workers_are_known,
    ):
        workers_are_known()  # those that are started end with this process
        root = Path(name)
        for folder in ("nodes", "saved"):
            (root / folder).mkdir()
        nodes = FolderRendezvous(root / "nodes")
        nodes.join("node-a", args.world)
        rows = 2 * math.lcm(args.world, args.world + 1)
        forks = launch.can_fork("gloo")
        if forks:  # optimizers import it at their first use: here once for all
            importlib.import_module("torch._dynamo")
        spec = WorkerSpec(
            entrypoint=work,
            rdzv_handler=nodes,
            args=(root, args.steps, rows),
            max_restarts=1,
            start_method="fork" if forks else "spawn",
        )
        result = ElasticAgent(spec).run()
    launch.tell(
        f"{result.state.value}: {result.rendezvous} starts, of which {result.restarts} "
        "for a worker that died"
    )


# --- under torchrun's agent ---


def work_under_torchrun(rank: Rank, args: argparse.Namespace) -> None:
    """Train; in the first start a worker kills itself, if the command line says so."""
    attempt = int(os.environ["TORCHELASTIC_RESTART_COUNT"])
    victim, _, at = args.kill.partition(":")

    def before_step(step: int) -> None:
        if attempt == 0 and (str(rank.rank), str(step)) == (victim, at):
            kill_itself()

    root = Path(args.directory)
    root.mkdir(parents=True, exist_ok=True)
    rank.say(f"start {attempt} of torchrun's agent")
    rows = 4 * rank.world_size
    train_on(rank, root, args.steps, rows, before_step)
