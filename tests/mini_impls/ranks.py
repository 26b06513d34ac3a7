"""Ranks that stay alive between tests: one process group serves a whole session."""

import gc
import multiprocessing
import os
import pickle
import shutil
import tempfile
import time
import traceback
from collections.abc import Callable
from datetime import timedelta
from multiprocessing.connection import Connection, wait
from pathlib import Path
from typing import Any

import torch
import torch.distributed as dist
from torch.distributed import distributed_c10d

from mini_impls.failures import is_felt
from mini_impls.launch import Rank
from mini_impls.supervise import die_with_parent

# One clean process imports torch once and every rank is forked from it: a quick start
# without forking pytest, whose autograd threads would not survive it. Optimizers and
# dispatch modes import torch._dynamo at first use: seconds, if every rank does it. No
# mini is among them, nor what imports one: ranks may put a mutant in its place.
CONTEXT = multiprocessing.get_context("forkserver")
CONTEXT.set_forkserver_preload(
    [
        "pytest",
        "torch._dynamo",
        "torch.distributed",
        "torch.distributed.checkpoint",
        "torch.distributed.optim",
        "torch.distributed.pipelining",
    ]
)


COLLECTIVE_S = 60.0
"""What one collective may take: a guard, that a crowded machine should not reach."""

GONE_S = 60.0
"""What a process may take to end on a crowded machine, where no time is promised."""

HANG_S = 180.0
"""What one call of all ranks may take: a guard as well, for hangs outside of them."""


class RankFailure(AssertionError):
    """A rank raised; the message is the first failed rank's traceback."""


def _serve(rank: int, world_size: int, store_path: str, calls: Connection) -> None:
    die_with_parent(os.getppid())
    os.environ["GLOO_SOCKET_IFNAME"] = "lo"
    torch.set_num_threads(1)
    gc.freeze()  # nobody looks for garbage among what was imported
    # To the session it stays a daemon; an agent on it starts workers of its own.
    multiprocessing.current_process()._config["daemon"] = False  # type: ignore
    dist.init_process_group(
        "gloo",
        store=dist.FileStore(store_path, world_size),
        rank=rank,
        world_size=world_size,
        timeout=timedelta(seconds=COLLECTIVE_S),
    )
    group = dist.group.WORLD
    assert group is not None
    while True:
        try:
            fn, args = pickle.loads(calls.recv_bytes())
        except EOFError:
            os._exit(0)  # the session is over
        # Groups of the last call, now that all ranks have answered it: one that is slow
        # may still be joining a group that another has done with. Each has a thread of
        # gloo that looks up a hundred times a second.
        for made in set(distributed_c10d._world.pg_map) - {group}:
            dist.destroy_process_group(made)
        try:
            torch.manual_seed(0)
            value = fn(Rank(rank, world_size, torch.device("cpu"), group), *args)
            answer = pickle.dumps((True, value))
        except BaseException:
            answer = pickle.dumps((False, (time.monotonic(), traceback.format_exc())))
        calls.send_bytes(answer)


class RankPool:
    """`world_size` processes with a gloo group, started at the first `run`."""

    def __init__(self, world_size: int) -> None:
        self.world_size = world_size
        self._processes: list[Any] = []
        self._calls: list[Connection] = []

    def run(
        self, fn: Callable[..., Any], *args: Any, timeout_s: float = HANG_S
    ) -> list[Any]:
        """Return what `fn(Rank, *args)` returned on each rank.

        A failure ends the pool, since its neighbours may be stuck in a collective; the
        next `run` starts a new one.
        """
        if not self._processes:
            self._start()
        message = pickle.dumps((fn, args))
        for calls in self._calls:
            calls.send_bytes(message)
        values: dict[int, Any] = {}
        failures: list[tuple[float, int, str]] = []
        deadline = time.monotonic() + timeout_s
        waiting = {calls: rank for rank, calls in enumerate(self._calls)}
        while waiting:
            # Once one has failed, the others get a moment to say what they saw.
            limit = 0.5 if failures else deadline - time.monotonic()
            ready = wait(list(waiting), max(0.0, limit))
            if not ready:
                break
            for calls in ready:
                assert isinstance(calls, Connection)
                rank = waiting.pop(calls)
                try:
                    ok, value = pickle.loads(calls.recv_bytes())
                except EOFError:
                    ok, value = False, (0.0, "the process died")
                if ok:
                    values[rank] = value
                else:
                    failures.append((value[0], rank, value[1]))
        if failures or waiting:
            self.close()
        if failures:
            # A neighbour may be quicker to say that a connection closed.
            _, rank, text = min(failures, key=lambda f: (is_felt(f[2]), f))
            raise RankFailure(f"rank {rank} of {self.world_size}: {text}")
        if waiting:
            missing = sorted(waiting.values())
            raise RankFailure(f"ranks {missing} gave no answer in {timeout_s} s")
        return [values[rank] for rank in range(self.world_size)]

    def _start(self) -> None:
        self._directory = Path(tempfile.mkdtemp(prefix="mini-impls-pool-"))
        path = self._directory / "store"
        for rank in range(self.world_size):
            ours, theirs = CONTEXT.Pipe()
            process = CONTEXT.Process(
                target=_serve,
                args=(rank, self.world_size, str(path), theirs),
                daemon=True,
            )
            process.start()
            theirs.close()
            self._processes.append(process)
            self._calls.append(ours)

    def close(self) -> None:
        """End the processes."""
        for calls in self._calls:
            calls.close()
        for process in self._processes:
            process.kill()
            process.join(5)
        if self._processes:
            shutil.rmtree(self._directory)
        self._processes, self._calls = [], []
