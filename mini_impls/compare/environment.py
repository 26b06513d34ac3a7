"""Where a comparison ran, with what and on what work, as its record tells it."""

import os
import platform
import shlex
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path

import torch

from mini_impls.compare.sides import Comparison
from mini_impls.compare.unpinned import give_names
from mini_impls.gpus import ranks_per_gpu
from mini_impls.torchrun import is_under_torchrun


def command(
    comparison: Comparison,
    world_size: int,
    backend: str,
    steps: int,
    options: Sequence[str],
) -> str:
    """Return what makes such a record again."""
    return shlex.join(
        [
            "readerkit",
            "compare",
            comparison.mini,
            *("--upstream", comparison.upstream, "--world", str(world_size)),
            *("--backend", backend, "--steps", str(steps)),
            *options,
        ]
    )


def versions() -> dict[str, str]:
    """Return what ran it."""
    return {"python": platform.python_version(), "torch": str(torch.__version__)}


def load_before() -> str:
    """Return how busy the machine was: processes that wanted a core, of late."""
    if not hasattr(os, "getloadavg"):
        return ""
    return f"{os.getloadavg()[0]:.2f} processes in the last minute"


def environment() -> dict[str, str]:
    """Return where it ran."""
    found = {
        "system": f"{platform.system()} {platform.machine()}",
        "cores": str(len(os.sched_getaffinity(0))),
        "threads per rank": "1",
    }
    cpuinfo = Path("/proc/cpuinfo")
    if cpuinfo.exists():
        rows = cpuinfo.read_text().splitlines()
        model = next((row for row in rows if row.startswith("model name")), "")
        found["cpu"] = model.partition(":")[2].strip()
    return {key: value for key, value in found.items() if value}


def local_ranks(world_size: int) -> int:
    """Return how many of the ranks are on this machine."""
    if is_under_torchrun():
        return int(os.environ["LOCAL_WORLD_SIZE"])
    return world_size


def gpus(local_ranks: int) -> dict[str, str]:
    """Return on which GPUs this machine's ranks were, and what sent between them."""
    found = {
        "gpu": torch.cuda.get_device_name(),
        "cuda": str(torch.version.cuda),
        "nccl": ".".join(map(str, torch.cuda.nccl.version())),
    }
    if (sharing := ranks_per_gpu(local_ranks)) > 1:
        found["ranks on one gpu"] = (
            f"{sharing}: NCCL sends between them through sockets, and their kernels "
            "take turns"
        )
    return found


def answered_to() -> dict[str, str]:
    """Return which calls of torch have other names than the pinned torch gives them."""
    given = [f"{ours} is its {old}" for ours, old in give_names().items()]
    return {"torch's names": ", ".join(given)} if given else {}


def not_measured(comparison: Comparison) -> dict[str, str]:
    """Return what a record lacks, and why."""
    if comparison.writes_files:
        why = "a step writes files, which the kernel counts with what is sent"
    elif comparison.uneven:
        why = "what a rank sends to each of the others follows from the data"
    else:
        return {}
    return {"bytes on the wire": f"not measured: {why}"}


def describe_work(comparison: Comparison, world_size: int) -> dict[str, int | float]:
    """Return what was trained: sizes, batch, seeds."""
    shared = 1 if not comparison.data_parallel else world_size
    work: dict[str, int | float] = {
        key: value
        for key, value in asdict(comparison.config).items()
        if isinstance(value, int | float)
    }
    return {
        **{key: int(v) if isinstance(v, bool) else v for key, v in work.items()},
        "batch_size": comparison.rows_per_rank * shared,
        "microbatches": comparison.microbatches,
        "learning_rate": comparison.learning_rate,
        "model_seed": 0,
        "data_seed": 0,
    }
