"""What the measurements of all labs share: options, a clock, what is written down."""

import argparse
import json
import os
import platform
import sys
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import torch
import torch.distributed as dist
from torch.distributed.elastic.multiprocessing import SignalException

from mini_impls import launch
from mini_impls.failures import RankFailedError
from mini_impls.launch import Rank
from mini_impls.limits import MOST_STEPS, Options, complain
from mini_impls.machine import INSIST, check_room, usable_cores
from readerkit.errors import ReaderkitError
from readerkit.system.status import take_over
from readerkit.upstreams.store import blob_id, write_atomically
from readerkit.wording.next_command import written

MODEL = "mini_impls.model"
"""What every lab trains."""


def main(
    lab: str,
    description: str,
    module: Any,
    measure: Callable[[argparse.Namespace], dict[str, Any]],
    argv: list[str] | None = None,
    *,
    world: int = 2,
) -> int:
    """Parse, measure, write the result; return the exit status.

    `world` is how many ranks there are at most where nobody says.
    """
    parser = Options(written("lab", lab, "--run"), description)
    most = f"most ranks (default {world})"
    parser.add_argument("--world", type=int, default=world, help=most)
    parser.add_argument("--backend", choices=["gloo", "nccl"], default="gloo")
    parser.add_argument("--rounds", type=int, default=9, help="times each is measured")
    parser.add_argument("--timeout", type=float, default=60.0, help="of a collective")
    parser.add_argument("--out", type=Path, required=True, help="the result's file")
    parser.add_argument(INSIST, action="store_true", help="start them all the same")
    take_over()
    args = parser.parse_args(argv)
    options = ("--world", str(args.world), "--backend", args.backend)
    command = written("lab", lab, "--run", *options)
    try:
        if args.world < 2:
            raise ValueError(
                f"a lab compares 1 rank with more: got --world {args.world}"
            )
        if args.rounds < 3:
            raise ValueError(f"a median needs 3 rounds or more: got {args.rounds}")
        if args.rounds > MOST_STEPS:
            raise ValueError(f"--rounds {args.rounds} is above {MOST_STEPS}")
        check_room(args.world, insist=args.oversubscribe)
        said = {"world_size": args.world, "rounds": args.rounds}
        numbers = {**said, **measure(args)}
        write(args.out, lab, module, command, args.backend, numbers)
    except (ValueError, RankFailedError, ReaderkitError) as error:
        return complain(f"lab {lab}", error)
    except SignalException as error:
        return 128 + error.sigval
    return 0


def run(
    args: argparse.Namespace, world_size: int, on_rank: Callable[..., Any], *given: Any
) -> list[Any]:
    """Return what each of so many ranks returns of `on_rank(rank, *given, rounds)`."""
    return launch.run(
        on_rank,
        (*given, args.rounds),
        world_size=world_size,
        backend=args.backend,
        timeout_s=args.timeout,
    )


def seconds(rank: Rank, work: Callable[[], object]) -> float:
    """Return how long the slowest rank took, all having started together."""
    dist.barrier(rank.group)
    start = time.perf_counter()
    work()
    if rank.device.type == "cuda":
        torch.cuda.synchronize(rank.device)
    took = torch.tensor(
        time.perf_counter() - start, dtype=torch.float64, device=rank.device
    )
    dist.all_reduce(took, op=dist.ReduceOp.MAX, group=rank.group)
    return float(took)


def environment(backend: str) -> dict[str, Any]:
    """Return what a reader of a time must know about the machine it was taken on."""
    on_gpu = backend == "nccl"
    return {
        "python": platform.python_version(),
        "torch": str(torch.__version__),
        "platform": platform.platform(),
        "backend": backend,
        "device": torch.cuda.get_device_name(0) if on_gpu else platform.machine(),
        "devices": torch.cuda.device_count() if on_gpu else usable_cores(),
        "load_average": round(os.getloadavg()[0], 2),
    }


def made_from(module: Any) -> dict[str, str]:
    """Return the ids of the files that are measured: a mini's own, and its model."""
    loaded = sorted(n for n in sys.modules if n.startswith((module.__name__, MODEL)))
    files = (Path(str(sys.modules[name].__file__)) for name in loaded)
    return {f"mini_impls/{file.name}": blob_id(file.read_bytes()) for file in files}


def write(
    path: Path,
    lab: str,
    module: Any,
    command: str,
    backend: str,
    numbers: Mapping[str, Any],
) -> None:
    """Write a lab's result beside `path` and move it there in one step."""
    result = {
        "lab": lab,
        "made": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
        "command": command,
        "made_from": made_from(module),
        "environment": environment(backend),
        **numbers,
    }
    write_atomically(path, (json.dumps(result, indent=1) + "\n").encode())
