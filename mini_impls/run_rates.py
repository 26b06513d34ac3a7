"""What this machine reaches, on all ranks at once: a training step, and all-reduces.

Recorded as the steps of the run are, so that what the profiler costs is in both.

Leaves out:
- other sizes than these: a smaller product takes longer for each FLOP, and a collective
  of another kind has latencies of its own
"""

from collections.abc import Callable
from functools import partial
from statistics import median
from time import perf_counter
from typing import TYPE_CHECKING

import torch
import torch.distributed as dist

from mini_impls.model import GPTConfig, build_model, compute_loss, make_batch
from mini_impls.recorder import MOST_STEPS, Rates, Recorder
from mini_impls.run_watch import resident_bytes

if TYPE_CHECKING:
    from mini_impls.launch import Rank

ROWS = 8
"""Of a batch of most demonstrations, for each rank."""
LARGE = 1 << 18
"""Elements of fp32 of the large all-reduce: 1 MiB."""


def measure_rates(rank: "Rank", *, sees_memory: bool) -> Rates:
    """Return what this rank reaches while the others do the same, in medians."""
    config = GPTConfig()
    gpt = build_model(config).to(rank.device)
    optimizer = torch.optim.AdamW(gpt.parameters(), lr=1e-3)
    batch = make_batch(config, step=0, batch_size=ROWS)
    tokens, labels = (each.to(rank.device) for each in batch)

    def train() -> None:
        optimizer.zero_grad()
        compute_loss(gpt(tokens), labels).backward()
        optimizer.step()

    def send(data: torch.Tensor) -> None:
        dist.all_reduce(data, group=rank.group)

    rank.show("measuring what this machine reaches")
    with Recorder(is_on=True, sees_memory=sees_memory) as recorder:
        trained = []
        for _ in range(MOST_STEPS - 1):  # behind the last one it records nothing
            with recorder.step(tokens.numel()):
                trained.append(_time(train, rank))
        one, many = (torch.ones(n, device=rank.device) for n in (1, LARGE))
        call_s = median(_time(partial(send, one), rank) for _ in range(20))
        large_s = median(_time(partial(send, many), rank) for _ in range(5))
    return Rates(
        ranks=rank.world_size,
        rows=ROWS,
        train_s=median(trained[1:]),
        call_s=call_s,
        large_bytes=4 * LARGE,
        large_s=large_s,
        resident_bytes=resident_bytes(),
    )


def _time(work: Callable[[], None], rank: "Rank") -> float:
    dist.barrier(rank.group)
    start = perf_counter()
    work()
    if rank.device.type == "cuda":
        torch.cuda.synchronize(rank.device)
    return perf_counter() - start
