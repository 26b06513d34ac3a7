"""Ranks, groups and devices: how a mini starts; `supervise` is how it ends.

`main` is the whole command line of a mini. Under torchrun the process is a rank
already (see `torchrun`); otherwise it starts the ranks itself, over a file and the
loopback interface, so that nothing listens to the outside and nothing outlives the
launcher.

Follows:
- pytorch/pytorch: torch/distributed/elastic/multiprocessing/api.py
- pytorch/pytorch: torch/distributed/run.py

Leaves out:
- restarts, log files and rendezvous between machines: that is torchrun's work
"""

import argparse
import contextlib
import faulthandler
import importlib
import logging
import os
import signal
import sys
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from multiprocessing import resource_tracker
from pathlib import Path
from typing import Any

import torch
import torch.distributed as dist
from torch.distributed import distributed_c10d
from torch.distributed.elastic.multiprocessing import (
    DefaultLogsSpecs,
    SignalException,
    start_processes,
)

from mini_impls import failures
from mini_impls.failures import RankFailedError
from mini_impls.gpus import check_devices, take_device
from mini_impls.limits import (
    START_S,
    Options,
    add_run_options,
    check_timeout,
    complain,
    program,
)
from mini_impls.machine import check_room
from mini_impls.recorder import Recorder
from mini_impls.run_trace import check_target
from mini_impls.run_wrapped import Traced, Watched
from mini_impls.supervise import TYPED, die_with_parent, ending_once, wait
from mini_impls.torchrun import (
    complain_once,
    is_under_torchrun,
    of_this_start,
    ranks_of,
)
from readerkit.system.garbage import kept
from readerkit.system.output import OutputError, printing
from readerkit.system.status import Status, take_over
from readerkit.system.temporary import temporary_folder
from readerkit.wording.fold import fitting
from readerkit.wording.numbers import counted

GRACE_S = 1.0
"""How long a failed rank lingers, so that neighbours can say where they stand."""

FELT_GRACE_S = 3.0
"""How long one lingers that lost a neighbour: whoever failed itself ends the run."""


# --- 1. what a rank knows about itself ---


@dataclass(frozen=True, slots=True)
class Rank:
    """What the function that every process runs gets as its first argument."""

    rank: int
    world_size: int
    device: torch.device
    group: dist.ProcessGroup
    status: Status = field(default_factory=Status)
    recorder: Recorder = field(default_factory=Recorder)
    store: dist.Store | None = None
    """What ranks can leave words in for one another, without waiting."""

    def show(self, doing: str, done: int = 0, of: int = 0) -> None:
        """Say how far the work is, from rank 0, on a terminal alone."""
        if self.rank == 0:
            self.status.show(doing, done, of)

    def say(self, text: str) -> None:
        """Print once, from rank 0."""
        if self.rank == 0:
            self._print(text)

    def say_each(self, text: str) -> None:
        """Print one text from every rank, in rank order."""
        self.status.show_below(())  # others could not print above it
        for rank in range(self.world_size):
            if rank == self.rank:
                self._print(f"[rank {rank}] {text}")
            dist.barrier(self.group)

    def _print(self, text: str) -> None:
        self.status.clear()
        tell(text)
        self.status.draw_again()


def tell(text: str) -> None:
    """Print, with words that stay whole on a terminal; go on where nobody reads on."""
    with printing():
        print(fitting(text, sys.stdout), flush=True)


# --- 2. inside a rank ---


def _with_group(
    store: dist.Store,
    rank: int,
    world_size: int,
    local_rank: int,
    backend: str,
    timeout_s: float,
    fn: Callable[..., Any],
    args: tuple[Any, ...],
) -> Any:
    device = torch.device("cpu")
    if backend == "nccl":
        local_ranks = int(os.environ.get("LOCAL_WORLD_SIZE", world_size))
        device = take_device(local_rank, local_ranks)
    torch.set_num_threads(1)  # ranks share the cores, and one thread sums in one order
    timeout = timedelta(seconds=timeout_s)
    # For groups of some ranks too: whoever makes one without a timeout gets these.
    distributed_c10d.default_pg_timeout = timeout
    distributed_c10d.default_pg_nccl_timeout = timeout
    dist.init_process_group(
        backend,
        store=store,
        rank=rank,
        world_size=world_size,
        timeout=timeout,
        device_id=device if backend == "nccl" else None,
    )
    group = dist.group.WORLD
    assert group is not None
    value = fn(Rank(rank, world_size, device, group, store=store), *args)
    # A socket closed too soon would fail a neighbour that still reads from it, so wait
    # for the others; not for ever, since they may need more of a rank that has left.
    store.set(f"done/{rank}", "")
    with contextlib.suppress(RuntimeError):
        store.wait([f"done/{r}" for r in range(world_size)], timedelta(seconds=5))
    dist.destroy_process_group()
    return value


def _rank_main(
    rank: int,
    world_size: int,
    backend: str,
    timeout_s: float,
    run_dir: Path,
    parent_pid: int,
    fn: Callable[..., Any],
    args: tuple[Any, ...],
) -> Any:
    die_with_parent(parent_pid)
    # The launcher ends stuck ranks with SIGTERM; each then leaves where it stood. Its
    # own answer to that signal, which a fork inherits, is not theirs.
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    stack = (run_dir / f"{rank}.stack").open("w")
    faulthandler.register(signal.SIGTERM, stack, all_threads=False, chain=True)
    store = dist.FileStore(str(run_dir / "store"), world_size)

    def work(itself: Rank, *args: Any) -> Any:
        value = fn(itself, *args)
        (run_dir / f"{rank}.done").touch()  # now: others may need it, and wait in vain
        return value

    try:
        # `timeout_s` is for collectives; that the last of many ranks has imported torch
        # may take longer, and a rank that dies meanwhile is the launcher's to notice.
        store.set(f"up/{rank}", "")
        store.wait([f"up/{r}" for r in range(world_size)], timedelta(seconds=START_S))
        return _with_group(
            store, rank, world_size, rank, backend, timeout_s, work, args
        )
    except BaseException as error:
        failures.write_report(run_dir, rank, error)
        time.sleep(FELT_GRACE_S if failures.is_felt(str(error)) else GRACE_S)
        os._exit(1)  # no teardown: it could wait for the very ranks that failed


# --- 3. the launcher ---


def can_fork(backend: str) -> bool:
    """Tell whether ranks may share what this process has imported already.

    Then torch is imported once, not once a rank. A process that has used CUDA cannot be
    forked, and macOS promises nothing for the threads of its libraries.
    """
    return backend == "gloo" and sys.platform == "linux"


def run(
    fn: Callable[..., Any],
    args: tuple[Any, ...] = (),
    *,
    world_size: int,
    backend: str = "gloo",
    timeout_s: float = 60.0,
    anew: bool = False,
    share_gpus: bool = False,
) -> list[Any]:
    """Run `fn(Rank, *args)` in `world_size` processes; return what each returned.

    With `anew` they import everything themselves, whatever this process has imported.
    With `share_gpus` there may be more of them than GPUs.

    Raises `ValueError` where world or timeout do not fit, `RankFailedError`
    where a rank raised, died, left early or waited past `timeout_s`, and
    `SignalException` where this process was told to end and has ended its ranks.
    """
    check_devices(backend, world_size, share=share_gpus)
    check_timeout(timeout_s)
    for name in ("torch.distributed.elastic", "torch.multiprocessing.spawn"):
        logging.getLogger(name).setLevel(logging.CRITICAL)  # `failures` says it once
    names = ("GLOO_SOCKET_IFNAME", "NCCL_SOCKET_IFNAME")
    env = dict.fromkeys(names, "lo") if sys.platform == "linux" else {}
    common = (world_size, backend, timeout_s)
    forks = can_fork(backend) and not anew
    if forks and "torch._dynamo" not in sys.modules:
        starting = f"starting {counted(world_size, 'rank')} on {os.cpu_count()} cores"
        # Optimizers import it at their first use: two seconds, if every rank does it.
        with Status().waiting(starting), kept():
            importlib.import_module("torch._dynamo")
    os.environ["TORCHELASTIC_SIGNALS_TO_HANDLE"] = ""  # see `ending_once`
    with (
        temporary_folder("mini-impls-") as name,
        ending_once() as ranks_are_known,
    ):
        run_dir = Path(name)
        rest = (run_dir, os.getpid(), fn, args)
        # Ranks inherit the mask: ^C reaches the whole terminal, and only the launcher
        # may answer it, or every rank prints a traceback of its own. The tracker
        # would unblock it if it were started by the first rank.
        resource_tracker.ensure_running()
        signal.pthread_sigmask(signal.SIG_BLOCK, TYPED)
        try:
            ranks = start_processes(
                name="rank",
                entrypoint=_rank_main,
                args={r: (r, *common, *rest) for r in range(world_size)},
                envs={r: env for r in range(world_size)},
                logs_specs=DefaultLogsSpecs(log_dir=str(run_dir / "logs")),
                start_method="fork" if forks else "spawn",
            )
        finally:
            signal.pthread_sigmask(signal.SIG_UNBLOCK, TYPED)
        try:
            ranks_are_known()
            return wait(ranks, run_dir, timeout_s)
        finally:  # whatever happened: Python does not exit before what it has started
            ranks.close(signal.SIGKILL, timeout=5)


def join(
    fn: Callable[..., Any], args: tuple[Any, ...], *, backend: str, timeout_s: float
) -> Any:
    """Return `fn(Rank, *args)` of the rank that torchrun has made of this process."""
    die_with_parent(os.getppid())
    shared, rank, world_size = next(dist.rendezvous("env://"))
    store = of_this_start(shared, rank, world_size)
    local_rank = int(os.environ["LOCAL_RANK"])
    return _with_group(
        store, rank, world_size, local_rank, backend, timeout_s, fn, args
    )


# --- 4. the command line of every mini ---


def main(
    demo: Callable[[Rank, argparse.Namespace], None],
    *,
    description: str,
    check: Callable[[argparse.Namespace], None] | None = None,
    options: Mapping[str, tuple[Any, str]] | None = None,
    argv: list[str] | None = None,
) -> int:
    """Parse, check, run `demo(rank, args)` on every rank; return the exit status.

    `options` maps the name of an extra `--option` to its default and its help; `check`
    raises ValueError for a combination that cannot run, before any process starts.
    """
    take_over()
    under_torchrun = is_under_torchrun()
    parser = Options(program(), description)
    add_run_options(parser, steps=10)
    for name, (default, text) in (options or {}).items():
        parser.add_argument(f"--{name}", type=type(default), default=default, help=text)
    args = parser.parse_args(argv)
    try:
        args.world = ranks_of(args.world)
        if under_torchrun:
            local = int(os.environ["LOCAL_WORLD_SIZE"])
            check_devices(args.backend, local, share=args.oversubscribe)
        if args.steps < 1:
            raise ValueError(f"--steps {args.steps} is not above 0")
        check_timeout(args.timeout)
        if check is not None:
            check(args)
        work: Callable[[Rank, argparse.Namespace], None] = demo
        if args.trace is not None:
            if args.watch:
                raise ValueError("--trace and --watch: got both, expected one")
            check_target(args.trace)
            work = Traced(demo, args.trace)
        elif args.watch:
            work = Watched(demo)
        if not under_torchrun:
            check_devices(args.backend, args.world, share=args.oversubscribe)
            check_room(args.world, insist=args.oversubscribe)
            run(
                work,
                (args,),
                world_size=args.world,
                backend=args.backend,
                timeout_s=args.timeout,
                share_gpus=args.oversubscribe,
            )
            return 0
    except (ValueError, RankFailedError) as error:
        return complain_once(parser.prog, error)
    except SignalException as error:
        return 128 + error.sigval
    try:
        join(work, (args,), backend=args.backend, timeout_s=args.timeout)
    except OutputError as error:
        return complain(parser.prog, error)
    return 0
