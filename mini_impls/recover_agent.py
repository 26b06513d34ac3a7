"""An elastic agent: workers that are started again, all of them, when one dies.

A group of ranks cannot go on without one of them, and cannot take one in: its
collectives wait for exactly those ranks. So whatever happens to one worker, all are
ended and started anew, under a new rendezvous, and find their way back by themselves:
by a checkpoint.

    HEALTHY ----> SUCCEEDED          every worker has ended, and well
      |  ^
      |  '-- restart -- FAILED       a worker died: one of `max_restarts` is used up
      |                 '----------> none is left: the run has failed
      '--- restart                   a node waits to join: none is used up

Follows:
- pytorch/pytorch: torch/distributed/elastic/agent/server/api.py (`_invoke_run`)
- pytorch/pytorch: torch/distributed/elastic/agent/server/local_elastic_agent.py

Leaves out:
- an agent on each machine: one agent here has the workers of all nodes
- roles, logs, metrics, health checks, and the barrier at which agents leave together
"""

import contextlib
import multiprocessing
import os
import signal
import time
from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import Any


@dataclass(frozen=True, slots=True)
class Worker:
    """What a worker is told; torchrun says it by variables of the environment."""

    rank: int
    world_size: int
    local_rank: int
    restart_count: int
    """How many starts had failed before; torchrun's TORCHELASTIC_RESTART_COUNT."""
    store: Path
    """Where its ranks find one another, of this start alone."""
    agent_pid: int


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkerSpec:
    """What is to run, and how often it may fail."""

    entrypoint: Callable[..., None]
    rdzv_handler: "FolderRendezvous"
    args: tuple[Any, ...] = ()
    max_restarts: int = 3
    monitor_interval: float = 0.1
    start_method: str = "spawn"


class WorkerState(Enum):
    """Of all workers as one."""

    INIT = "INIT"
    HEALTHY = "HEALTHY"
    STOPPED = "STOPPED"
    SUCCEEDED = "SUCCEEDED"
    FAILED = "FAILED"


@dataclass(frozen=True, slots=True)
class RunResult:
    """How the workers are, or how they ended."""

    state: WorkerState
    failures: dict[int, int]
    """The exit code of each rank that failed; a signal's number below zero."""
    restarts: int = 0
    """Of those that count."""
    rendezvous: int = 0


# --- 1. plain: one death ends the run ---


def run_once(spec: WorkerSpec) -> None:
    """Run the workers; raise RuntimeError where one of them does not end well."""
    agent = ElasticAgent(spec)
    try:
        agent._initialize_workers()
        while (result := agent._monitor_workers()).state is WorkerState.HEALTHY:
            time.sleep(spec.monitor_interval)
    finally:
        agent._stop_workers()
    if result.failures:
        raise RuntimeError(f"exit codes of the ranks that failed: {result.failures}")


# --- 2. rendezvous: which nodes are there ---


class FolderRendezvous:
    """Nodes that stand in a folder, each a file with how many workers it has."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.round = 0
        self.nodes: dict[str, int] = {}

    def join(self, node: str, local_world_size: int) -> None:
        """Let a node come; from the next rendezvous on its workers are ranks."""
        aside = self.folder / f".{node}"  # no agent reads half of a file
        aside.write_text(str(local_world_size))
        aside.rename(self.folder / node)

    def leave(self, node: str) -> None:
        """Let a node go; its workers are ranks until the next rendezvous."""
        (self.folder / node).unlink()

    def _there(self) -> dict[str, int]:
        there = {}
        for path in sorted(p for p in self.folder.iterdir() if p.name[0] != "."):
            with contextlib.suppress(FileNotFoundError):  # it goes at this moment
                there[path.name] = int(path.read_text())
        return there

    def next_rendezvous(self) -> tuple[int, dict[str, int]]:
        """Return a number that no start had before, and the nodes of this one."""
        self.round += 1
        self.nodes = self._there()
        return self.round, self.nodes

    def num_nodes_waiting(self) -> int:
        """Return how many have come since."""
        return len(self._there().keys() - self.nodes.keys())


# --- 3. the agent ---


class ElasticAgent:
    """Starts workers, watches them, and starts all of them again."""

    def __init__(self, spec: WorkerSpec) -> None:
        self.spec = spec
        self._remaining_restarts = spec.max_restarts
        self.state = WorkerState.INIT
        self._processes: list[BaseProcess] = []

    def run(self) -> RunResult:
        """Return how it ended; whatever happens, no worker is left."""
        try:
            return self._invoke_run()
        finally:
            self._stop_workers()

    def _invoke_run(self) -> RunResult:
        self._initialize_workers()
        while True:
            time.sleep(self.spec.monitor_interval)
            run_result = self._monitor_workers()
            self.state = run_result.state
            if self.state is WorkerState.SUCCEEDED:
                return run_result
            if self.state is WorkerState.FAILED:
                if self._remaining_restarts == 0:
                    self._stop_workers()
                    return run_result
                self._remaining_restarts -= 1
                self._restart_workers()
            # membership changes do not count as retries
            elif self.spec.rdzv_handler.num_nodes_waiting() > 0:
                self._restart_workers()

    def _restart_workers(self) -> None:
        """Stop all workers, those too that are well, and start as many as there are."""
        self._stop_workers()
        self.state = WorkerState.STOPPED
        self._initialize_workers()

    def _initialize_workers(self) -> None:
        self._start_workers(self._rendezvous())
        self.state = WorkerState.HEALTHY

    def _rendezvous(self) -> list[Worker]:
        """Return the workers of the nodes that are there, ranks in order of nodes."""
        number, nodes = self.spec.rdzv_handler.next_rendezvous()
        if not nodes:
            raise RuntimeError(f"no node in {self.spec.rdzv_handler.folder}")
        restart_count = self.spec.max_restarts - self._remaining_restarts
        local_ranks = [local for size in nodes.values() for local in range(size)]
        return [
            Worker(
                rank=rank,
                world_size=len(local_ranks),
                local_rank=local_rank,
                restart_count=restart_count,
                # Keys of ranks that are gone would mislead those that come.
                store=self.spec.rdzv_handler.folder / f".store-{number}",
                agent_pid=os.getpid(),
            )
            for rank, local_rank in enumerate(local_ranks)
        ]

    def _start_workers(self, workers: list[Worker]) -> None:
        context: Any = multiprocessing.get_context(self.spec.start_method)
        for worker in workers:
            args = (self.spec.entrypoint, worker, *self.spec.args)
            process = context.Process(target=_work, args=args, daemon=True)
            self._processes.append(process)
            process.start()

    def _monitor_workers(self) -> RunResult:
        """Return one state for all: failed as soon as one of them is."""
        codes = dict(enumerate(process.exitcode for process in self._processes))
        failures = {rank: code for rank, code in codes.items() if code}
        state = WorkerState.HEALTHY
        if failures:
            state = WorkerState.FAILED
        elif all(code == 0 for code in codes.values()):
            state = WorkerState.SUCCEEDED
        restarts = self.spec.max_restarts - self._remaining_restarts
        return RunResult(state, failures, restarts, self.spec.rdzv_handler.round)

    def _stop_workers(self, timeout: float = 30.0) -> None:
        """Ask them to end, then make them: one may wait for the rank that is gone."""
        alive = [process for process in self._processes if process.is_alive()]
        for process in alive:
            process.terminate()
        deadline = time.monotonic() + timeout
        for process in alive:
            process.join(max(0.0, deadline - time.monotonic()))
            if process.is_alive():
                process.kill()
                process.join()
        self._processes = []


def _work(entrypoint: Callable[..., None], worker: Worker, *args: Any) -> None:
    # What the agent's process answers to a signal, a fork would inherit.
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    entrypoint(worker, *args)
