"""Ranks that run a mini with a fault in it. Imports no mini: its ranks do so later."""

from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Any

from ranks import CONTEXT, RankPool
from ranks import HANG_S as LIMIT_S

from mini_impls.faults.fault import Fault, Mutant, install
from mini_impls.faults.run import observe
from mini_impls.faults.symptoms import Outcome
from mini_impls.launch import Rank

HANG_S = 6.0
"""What a mutant that hangs may take."""


class MutantPool(RankPool):
    """New ranks whose mini has the fault before anything imports it."""

    def __init__(self, path: Path, *, hangs: bool = False, world_size: int = 2) -> None:
        super().__init__(world_size)
        self.limit_s = HANG_S if hangs else LIMIT_S
        super().run(install_in_rank, path)

    def run(self, fn: Callable[..., Any], *args: Any, timeout_s: float = 0.0) -> Any:
        """Run as any pool does; a failure ends it, and nothing starts it again."""
        assert self._processes, "the mutant's ranks have ended"
        return super().run(fn, *args, timeout_s=self.limit_s)


def observe_apart(fault: Fault) -> Outcome:
    """Return how a run of ranks of its own ended: an error ends the ranks of a pool.

    Its launcher has imported torch and no mini, and so have the ranks that it forks.
    """
    with ProcessPoolExecutor(1, CONTEXT) as apart:
        return apart.submit(_observe, fault).result()


def _observe(fault: Fault) -> Outcome:
    return observe(fault.work, Mutant.make(fault), world_size=2, timeout_s=30.0)


def install_in_rank(rank: Rank, path: Path) -> None:
    install(path)
