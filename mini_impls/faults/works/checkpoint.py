"""What `checkpoint` is set to do: saved while training goes on, then resumed."""

from __future__ import annotations

import shutil
import tempfile
import threading
from contextlib import suppress
from pathlib import Path

import torch
import torch.distributed as dist

from mini_impls.checkpoint import save
from mini_impls.checkpoint_async import NAMED, AsyncCheckpointer, resume
from mini_impls.demos.checkpoint import ShardedTraining
from mini_impls.faults.works.measures import CONFIG, STEPS
from mini_impls.launch import Rank
from mini_impls.model import build_model, make_batch, train_one_process


def resume_in_another_layout(rank: Rank) -> dict[str, float]:
    """Train rows, resume on columns from what was saved while training went on.

    The disk is slow: each save is written when the step after it is over. One save
    fails: what it has beside the tensors is none of JSON's types.
    """
    folders = [tempfile.mkdtemp(prefix="checkpoint-") if rank.rank == 0 else ""]
    dist.broadcast_object_list(folders, group_src=0, group=rank.group)
    root, group = Path(folders[0]), rank.group
    batches = [
        make_batch(CONFIG, step=step, batch_size=4 * rank.world_size)
        for step in range(STEPS)
    ]
    half = STEPS // 2
    try:
        training = ShardedTraining(rank, CONFIG, "rows")
        checkpointer = AsyncCheckpointer(root, group)
        losses = [training.step(batch) for batch in batches[:half]]
        is_written = threading.Event()
        checkpointer.executor.submit(is_written.wait)
        checkpointer.save(half, training.state(), {"step": half})
        training.step(batches[half])
        is_written.set()
        checkpointer.close()
        with suppress(RuntimeError):
            name = NAMED.format(half + 1)
            save(root / name, training.state(), group, extra={"step": {half + 1}})
        training = ShardedTraining(rank, CONFIG, "columns", seed=1)
        found = resume(root, training.state(), group)
        assert found is not None
        losses += [training.step(batch) for batch in batches[found["step"] :]]
        dist.barrier(group)
    finally:
        if rank.rank == 0:
            shutil.rmtree(root, ignore_errors=True)
    alone = build_model(CONFIG)
    optimizer = torch.optim.AdamW(alone.parameters(), lr=3e-3)
    train_one_process(alone, optimizer, batches, chunks=rank.world_size)
    whole = training.whole()
    apart = max(
        (whole[name] - param.detach()).abs().max().item()
        for name, param in alone.named_parameters()
    )
    return {
        "first loss": losses[0],
        "last loss": losses[-1],
        "apart from one process": apart,
    }


WORKS = {
    "checkpoint": resume_in_another_layout,
}
