"""Checkpoints in the background: the state is copied to the host, training goes on.

What training waits for is the copy. The plan, the files and the name come from a thread
of each rank, over a group of their own. Beside it what a run needs around a save: which
checkpoint to start from, and room made by removing old ones.

Follows:
- pytorch/pytorch: torch/distributed/checkpoint/state_dict_saver.py (`async_save`)
- pytorch/pytorch: torch/distributed/checkpoint/_async_thread_executor.py
- pytorch/pytorch: torch/distributed/checkpoint/staging.py

Leaves out:
- a process instead of a thread, which would share neither Python's lock nor a crash
- a copy that itself runs beside the next step, until the optimizer needs the state
- copying only what this rank will write: the plan is made after the copy
"""

import json
import shutil
from collections.abc import Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor

from mini_impls.checkpoint import load, save
from mini_impls.checkpoint_plan import HeldTensor

NAMED = "step-{:08}"

# --- 1. which checkpoints there are ---


def saved_steps(root: Path) -> list[int]:
    """Return the steps that have a whole checkpoint, oldest first.

    What is being written, or removed, has another name: nothing has to be opened.
    """
    names = [path.name.removeprefix("step-") for path in root.glob("step-*")]
    return sorted(int(name) for name in names if name.isdecimal())


def resume(
    root: Path, state: Mapping[str, HeldTensor], group: dist.ProcessGroup
) -> dict[str, Any] | None:
    """Fill the state from the newest checkpoint; return its `extra`, None without one.

    Rank 0 says which one it is: two ranks may look at two moments.
    """
    newest: list[Any] = [None]
    if group.rank() == 0:
        newest = saved_steps(root)[-1:] or [None]
    dist.broadcast_object_list(newest, group=group, group_src=0)
    if newest[0] is None:
        return None
    return load(root / NAMED.format(newest[0]), state, group)


def remove_older(root: Path, keep: int) -> None:
    """Remove all but the newest checkpoints.

    A folder is not removed at once. It first loses the name of a whole one, or a kill
    half-way would leave a checkpoint without its files.
    """
    for step in saved_steps(root)[:-keep]:
        directory = root / NAMED.format(step)
        directory.rename(directory.with_name(directory.name + ".old"))
    for leftover in root.glob("step-*.old"):  # those of a run that was killed too
        shutil.rmtree(leftover)


# --- 2. the copy that training waits for ---


class Stager:
    """Copies states to the host, into the same memory each time."""

    def __init__(self) -> None:
        self.copies: dict[str, Tensor] = {}

    def stage(self, state: Mapping[str, HeldTensor]) -> dict[str, HeldTensor]:
        """Return the state as it is now, whatever training does to it from here on."""
        staged = {}
        for name, held in state.items():
            here, copy = held.data.detach(), self.copies.get(name)
            if copy is None or (copy.shape, copy.dtype) != (here.shape, here.dtype):
                # Pinned: a GPU fills it while the next copy is being asked for.
                copy = torch.empty_like(
                    here,
                    device="cpu",
                    memory_format=torch.contiguous_format,
                    pin_memory=here.is_cuda,
                )
            self.copies[name] = copy.copy_(here, non_blocking=here.is_cuda)
            staged[name] = HeldTensor(copy, held.offsets, held.size)
        if any(held.data.is_cuda for held in state.values()):
            torch.cuda.synchronize()  # the next step writes over what is copied
        return staged


# --- 3. a save that training does not wait for ---


class AsyncCheckpointer:
    """Writes a state while training goes on; at most one at a time.

    `group` is gloo's and nobody else's: calls of two threads on one group have no
    order, and one rank's all-reduce would meet another's gather.
    """

    def __init__(self, root: Path, group: dist.ProcessGroup, *, keep: int = 2) -> None:
        if keep < 1:
            raise ValueError(f"at least 1 checkpoint is kept, not {keep}")
        self.root, self.group, self.keep = root, group, keep
        self.stager = Stager()
        self.executor = ThreadPoolExecutor(1, "checkpoint")
        self.writing: Future[None] | None = None

    def save(
        self, step: int, state: Mapping[str, HeldTensor], extra: Mapping[str, Any]
    ) -> None:
        """Copy the state, and leave the rest to the thread.

        Raises:
            RuntimeError: the save before this one failed.
        """
        self.wait()  # its copies are in the memory that the next ones go to
        staged = self.stager.stage(state)
        as_it_is = json.loads(json.dumps(extra))
        self.writing = self.executor.submit(self._write, step, staged, as_it_is)

    def _write(
        self, step: int, staged: Mapping[str, HeldTensor], extra: Mapping[str, Any]
    ) -> None:
        save(self.root / NAMED.format(step), staged, self.group, extra=extra)
        if self.group.rank() == 0:
            remove_older(self.root, self.keep)

    def wait(self) -> None:
        """Return once the last save has its name; raise what it raised."""
        writing, self.writing = self.writing, None
        if writing is not None:
            writing.result()

    def close(self) -> None:
        """Wait for the last save and end the thread."""
        try:
            self.wait()
        finally:
            self.executor.shutdown()
