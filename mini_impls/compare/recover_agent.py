"""The elastic agent beside torch's, the one that torchrun starts.

Each rank is a node with an agent of its own. In every step the agent's two workers,
forks of the rank, compute the gradients of its rows, and some of them die on the way,
by a signal or an exit code: in one step none, then in one start, in two, and in as many
as end the run, which a new job takes up. What comes of it trains the rank's model, and
what each worker was told is compared as one tensor more.
"""

import logging
import os
import signal
import sys
import tempfile
import time
from abc import abstractmethod
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor, nn
from torch.distributed.elastic.agent import server
from torch.distributed.elastic.agent.server.local_elastic_agent import LocalElasticAgent
from torch.distributed.elastic.multiprocessing import DefaultLogsSpecs
from torch.distributed.elastic.rendezvous.c10d_rendezvous_backend import (
    C10dRendezvousBackend,
)
from torch.distributed.elastic.rendezvous.dynamic_rendezvous import (
    DynamicRendezvousHandler,
)

from mini_impls import recover_agent
from mini_impls.compare.sides import (
    Comparison,
    DataParallelSide,
    Formula,
    Formulas,
    SetPhase,
    Sides,
    Tolerance,
    trained,
)
from mini_impls.launch import Rank
from mini_impls.model import Batch, build_model, compute_loss
from readerkit.system.children import end_with_parent

WORKERS = 2
"""Of one agent."""
MAX_RESTARTS = 2
DOOMED_STARTS = (0, 1, MAX_RESTARTS, MAX_RESTARTS + 1)
"""How many starts end by a death, of a step and the three after it."""
MONITOR_INTERVAL_S = 0.02
SOON_S = 0.005
EXIT_CODE = 3
TIMEOUT = timedelta(seconds=60)
HERE = "127.0.0.1"


@dataclass(frozen=True, slots=True)
class AgentJob:
    """What one agent's workers compute, and where they leave it."""

    model: nn.Module
    batch: Batch
    folder: Path
    doomed_starts: int

    @property
    def result(self) -> Path:
        """The file of the loss and the gradients."""
        return self.folder / "result"

    def work(self, store: dist.Store, rank: int, world_size: int, restart: int) -> None:
        """Be one worker: note the start, and die or leave gradients of all workers."""
        end_with_parent()
        # A fork inherits the agent's answer to it, which waits for a collective's end.
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        _leave_terminal()
        (self.folder / f"start-{restart}-{rank}-{world_size}").touch()
        if restart < self.doomed_starts and rank == world_size - 1:
            while len(list(self.folder.glob(f"start-{restart}-*"))) < world_size:
                time.sleep(SOON_S)
            if restart % 2:
                os._exit(EXIT_CODE)
            os.kill(os.getpid(), signal.SIGKILL)
        tokens, labels = (part[rank::world_size] for part in self.batch)
        loss = compute_loss(self.model(tokens), labels)
        loss.backward()
        grads = [p.grad.view(-1) for p in self.model.parameters() if p.grad is not None]
        flat = torch.cat([loss.detach().view(1), *grads])  # (1 + all elements)
        group = _join(dist.PrefixStore(f"{restart}", store), rank, world_size)
        group.allreduce([flat]).wait()  # where another is dead, until the agent ends it
        if rank == 0:
            torch.save(flat / world_size, self.folder / "part")
            (self.folder / "part").rename(self.result)

    def starts(self) -> list[list[int]]:
        """Return restart count, rank and world size that each worker was told."""
        names = [path.name.split("-")[1:] for path in self.folder.glob("start-*")]
        return sorted([int(part) for part in name] for name in names)


def _leave_terminal() -> None:
    """Say nothing: the other worker's collective fails aloud when one dies."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, sys.stdout.fileno())
    os.dup2(nowhere, sys.stderr.fileno())


def _join(store: dist.Store, rank: int, world_size: int) -> Any:
    """Return a group beside the default one, which is the ranks' of the comparison."""
    gloo: Any = dist.ProcessGroupGloo
    options = gloo._Options()
    options._devices = [gloo.create_device(hostname=HERE)]
    options._timeout = TIMEOUT
    return gloo(store, rank, world_size, options)


# --- the two agents ---


class AgentSide(DataParallelSide):
    """What both sides do around an agent of their own."""

    def __init__(self, rank: Rank, comparison: Comparison) -> None:
        model = build_model(comparison.config).to(rank.device)
        optimizer = torch.optim.AdamW(model.parameters(), comparison.learning_rate)
        super().__init__(rank, model, model, optimizer)
        self.count = 0
        self.told: list[int] = []
        """Of each job: what its workers were told, and whether it went well."""

    @abstractmethod
    def run(self, job: AgentJob) -> bool:
        """Have an agent run the job; return whether it went well in the end."""

    def step(self, batch: Batch, set_phase: SetPhase) -> float:
        """Train on the gradients that workers leave, in as many jobs as it takes."""
        doomed = DOOMED_STARTS[self.count % len(DOOMED_STARTS)]
        self.count += 1
        self.zero_grad()
        set_phase("backward")
        found = self.run_job(batch, doomed)
        if found is None:
            found = self.run_job(batch, 0)
        assert found is not None, "no worker died, and nothing was left"
        loss, flat = found[0].item(), found[1:]
        dist.all_reduce(flat.div_(self.rank.world_size), group=self.rank.group)
        params = list(self.model.parameters())
        for param, grad in zip(
            params, flat.split([p.numel() for p in params]), strict=True
        ):
            param.grad = grad.view_as(param).clone()
        set_phase("optimizer")
        self.optimizer.step()
        return loss

    def run_job(self, batch: Batch, doomed_starts: int) -> Tensor | None:
        """Return loss and gradients in one tensor; None where the job failed."""
        with tempfile.TemporaryDirectory() as name:
            rows = self.of_this_rank(batch)
            job = AgentJob(self.model, rows, Path(name), doomed_starts)
            with _quiet():
                went_well = self.run(job)
            starts = [number for start in job.starts() for number in start]
            self.told += [*starts, went_well]
            if not went_well:
                return None
            found: Tensor = torch.load(job.result)
            return found.to(self.rank.device)

    def parameters(self) -> dict[str, Tensor]:
        """Return all parameters, and what the workers were told as one more."""
        told = torch.tensor([0.0, *self.told])
        return {**super().parameters(), "what workers were told": told}

    def watched(self) -> list[Tensor]:
        """Return nothing: the workers' backward is in processes of their own."""
        return []


@contextmanager
def _quiet() -> Iterator[None]:
    """Silence what torch's agent logs of each death; leave the signals as they were."""
    kept = {
        each: signal.getsignal(each)
        for each in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGQUIT)
    }
    before = logging.root.manager.disable
    logging.disable(logging.CRITICAL)
    try:
        yield
    finally:
        logging.disable(before)
        for each, handler in kept.items():
            signal.signal(each, handler)


class MiniSide(AgentSide):
    """Ours."""

    def run(self, job: AgentJob) -> bool:
        """Let one node join, and have its workers watched."""
        nodes = job.folder / "nodes"
        nodes.mkdir()
        handler = recover_agent.FolderRendezvous(nodes)
        handler.join("node", WORKERS)
        spec = recover_agent.WorkerSpec(
            entrypoint=_mini_work,
            rdzv_handler=handler,
            args=(job,),
            max_restarts=MAX_RESTARTS,
            monitor_interval=MONITOR_INTERVAL_S,
            start_method="fork",
        )
        result = recover_agent.ElasticAgent(spec).run()
        return result.state is recover_agent.WorkerState.SUCCEEDED


def _mini_work(worker: recover_agent.Worker, job: AgentJob) -> None:
    store = dist.FileStore(str(worker.store), worker.world_size)
    job.work(store, worker.rank, worker.world_size, worker.restart_count)


class TorchSide(AgentSide):
    """Torch's, with the rendezvous that torchrun takes for nodes that may join."""

    def __init__(self, rank: Rank, comparison: Comparison) -> None:
        super().__init__(rank, comparison)
        self.store = dist.TCPStore(HERE, 0, is_master=True, wait_for_workers=False)
        self.jobs = 0

    def run(self, job: AgentJob) -> bool:
        """Have the workers watched by one agent under a run of its own."""
        self.jobs += 1
        name = f"job-{self.jobs}"
        backend = C10dRendezvousBackend(self.store, name)
        handler = DynamicRendezvousHandler.from_backend(
            name, self.store, backend, 1, 1, local_addr=HERE
        )
        spec = server.WorkerSpec(
            "worker",
            WORKERS,
            handler,
            entrypoint=_torch_work,
            args=(job,),
            max_restarts=MAX_RESTARTS,
            monitor_interval=MONITOR_INTERVAL_S,
        )
        logs = DefaultLogsSpecs(log_dir=str(job.folder / "logs"))
        agent = LocalElasticAgent(spec, logs, start_method="fork")
        result = agent.run()
        return result.state is server.WorkerState.SUCCEEDED


def _torch_work(job: AgentJob) -> None:
    env = os.environ
    rank, world_size = int(env["RANK"]), int(env["WORLD_SIZE"])
    store = next(dist.rendezvous("env://"))[0]
    job.work(store, rank, world_size, int(env["TORCHELASTIC_RESTART_COUNT"]))


def build(rank: Rank, comparison: Comparison) -> Sides:
    """Return both sides."""
    params = list(build_model(comparison.config).parameters())
    grads = sum(param.nbytes for param in params)
    sent = Formula(grads, f"{grads:,} B of gradients, once whatever dies")
    return Sides(
        MiniSide(rank, comparison),
        TorchSide(rank, comparison),
        {rank.group.group_name: "dp"},
        Formulas.alike({"all_reduce": sent}, trained(params)),
    )


COMPARISONS = (
    Comparison(
        mini="recover",
        upstream="torch_agent",
        build=build,
        tolerance=Tolerance(
            0.0, "both agents' workers compute by the same code, and are told the same"
        ),
        writes_files=True,
    ),
)
