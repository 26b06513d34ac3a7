"""What this machine can hold: more ranks are refused before any process starts."""

import os
from pathlib import Path

RANK_BYTES = 240_000_000
"""What a rank on a CPU holds of its own: torch 2.13, its compiler, a small model.

Measured: 234 MB of private memory of a rank of `readerkit run ddp`, whose launcher
holds as much.
"""

RANKS_PER_CORE = 8
"""More take turns so rarely that they time out waiting for one another."""

INSIST = "--oversubscribe"


def check_room(world_size: int, *, insist: bool = False) -> None:
    """Raise ValueError for more ranks than this machine can hold or give turns to."""
    if insist:
        return
    free, cores = free_bytes(), usable_cores()
    needed = (world_size + 1) * RANK_BYTES  # the launcher has imported torch as well
    if free is not None and needed > free:
        raise ValueError(
            f"--world {world_size} takes about {needed / 1e9:.1f} GB of memory, "
            f"{RANK_BYTES / 1e6:.0f} MB a rank: got {free / 1e9:.1f} GB free, enough "
            f"for {max(0, free // RANK_BYTES - 1)}; {INSIST} tries it all the same"
        )
    if world_size > RANKS_PER_CORE * cores:
        raise ValueError(
            f"--world {world_size} is more than {RANKS_PER_CORE} ranks a core: got "
            f"{cores} cores, expected at most {RANKS_PER_CORE * cores} ranks; {INSIST} "
            "tries it all the same"
        )


def usable_cores() -> int:
    """Return how many cores this process may run on."""
    return (
        len(os.sched_getaffinity(0))
        if hasattr(os, "sched_getaffinity")
        else (os.cpu_count() or 1)
    )


def free_bytes() -> int | None:
    """Return what memory processes could still get; None where nobody tells."""
    try:
        lines = Path("/proc/meminfo").read_text().splitlines()
        rows = dict(line.split(":", 1) for line in lines)
        free = 1024 * int(rows["MemAvailable"].split()[0])
    except (OSError, KeyError):
        return None
    return min([free, *_left_in_groups()])


def _left_in_groups() -> list[int]:
    """Return what the control groups of this process leave, as in a container."""
    left = []
    try:
        groups = Path("/proc/self/cgroup").read_text().splitlines()
    except OSError:
        return []
    for line in groups:
        if not line.startswith("0::"):
            continue
        group = Path("/sys/fs/cgroup") / line.removeprefix("0::/")
        for folder in (group, *group.parents):
            try:
                most = (folder / "memory.max").read_text().strip()
                used = int((folder / "memory.current").read_text())
            except (OSError, ValueError):
                continue
            if most != "max":
                left.append(max(0, int(most) - used))
    return left
