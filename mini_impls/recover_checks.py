"""What tells that a run is not well: a loss that jumps, replicas apart, a slow rank.

None of them stops a run by itself. A bit that turns in memory, or in a multiplication,
is a number like others; a rank that is slow makes all of them slow, since they wait for
one another. So each compares: with what was before, with a copy, with the others.

Follows:
- NVIDIA/Megatron-LM: megatron/core/rerun_state_machine.py (`is_unexpectedly_large`)
- NVIDIA/Megatron-LM: megatron/core/utils.py (`check_param_hashes_across_dp_replicas`,
  `StragglerDetector`)

Leaves out:
- digests of what is sharded: no other rank has a copy, as with ZeRO's optimizer state
- events on a GPU's stream, temperature, power and clock; FLOP/s from the times
"""

import hashlib
import math
import statistics
import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

import torch
import torch.distributed as dist
from torch import Tensor, nn

DIGEST_BYTES = hashlib.sha1().digest_size

# --- 1. against what was before: a result that is unexpectedly large ---


class SpikeDetector:
    """Knows the largest of the first values; says which later ones are far above."""

    def __init__(self, *, threshold: float, num_samples: int = 100) -> None:
        self.threshold, self.num_samples = threshold, num_samples
        self.count, self.max_value = 0, 0.0

    def is_unexpectedly_large(self, result: Tensor) -> bool:
        """Tell whether a scalar is; inf and nan are not its business."""
        value = math.fabs(result.item())
        if not math.isfinite(value):
            return False
        if self.count < self.num_samples:
            self.count += 1
            self.max_value = max(self.max_value, value)
            return False
        return value >= self.max_value * self.threshold


# --- 2. plain: replicas against each other, by all that they hold ---


def largest_difference_across_dp_replicas(
    model: nn.Module, group: dist.ProcessGroup
) -> float:
    """Return the largest difference of a parameter between ranks; sends all of them.

    It is NaN where a parameter is on some rank, which Python's own max would drop.
    """
    found = [0.0]
    for param in model.parameters():  # (N, M)
        everyone = [torch.empty_like(param) for _ in range(group.size())]  # W x (N, M)
        dist.all_gather(everyone, param.detach().contiguous(), group=group)
        found += [(param.detach() - other).abs().max().item() for other in everyone]
    return torch.tensor(found, dtype=torch.float64).max().item()


# --- 3. digests: twenty bytes for each parameter ---


@dataclass(frozen=True, slots=True)
class OddReplica:
    """A parameter that is not the same on all ranks."""

    name: str
    majority: tuple[int, ...]
    """Ranks with the digest that more than half of them have; none, where none is."""
    others: tuple[int, ...]


def hash_params(model: nn.Module) -> Tensor:
    """Return a digest of each parameter.

    Shapes: (P, 20), bytes, on the CPU.
    """
    rows = []
    for param in model.parameters():
        flat = param.detach().cpu().reshape(-1).view(torch.uint8)  # its bytes
        rows.append(list(hashlib.sha1(flat.numpy().tobytes()).digest()))
    return torch.tensor(rows, dtype=torch.uint8).view(-1, DIGEST_BYTES)  # (P, 20)


def check_param_hashes_across_dp_replicas(
    model: nn.Module, group: dist.ProcessGroup
) -> list[OddReplica]:
    """Return the parameters that are not the same everywhere; alike on all ranks."""
    device = next(model.parameters()).device
    local = hash_params(model).to(device)  # (P, 20)
    everyone = [torch.empty_like(local) for _ in range(group.size())]
    dist.all_gather(everyone, local, group=group)  # W x (P, 20)
    names = [name for name, _ in model.named_parameters()]
    found = []
    for i, name in enumerate(names):
        digests = [bytes(of_rank[i].tolist()) for of_rank in everyone]
        if len(set(digests)) > 1:
            found.append(split_by_majority(name, digests))
    return found


def split_by_majority(name: str, digests: Sequence[bytes]) -> OddReplica:
    """Return who is odd: those not in the majority, or all where there is none."""
    (most, count), *_ = Counter(digests).most_common()
    if 2 * count <= len(digests):
        return OddReplica(name, (), tuple(range(len(digests))))
    agree = tuple(r for r, digest in enumerate(digests) if digest == most)
    others = tuple(r for r, digest in enumerate(digests) if digest != most)
    return OddReplica(name, agree, others)


def repair(
    model: nn.Module, odd: Sequence[OddReplica], group: dist.ProcessGroup
) -> None:
    """Give every rank what the majority has.

    Raises:
        ValueError: a parameter without a majority, before anything is sent.
    """
    for each in odd:
        if not each.majority:
            raise ValueError(
                f"{each.name}: no value has more than half of {len(each.others)} "
                "ranks: load a checkpoint"
            )
    params = dict(model.named_parameters())
    for each in odd:
        whole = params[each.name].detach().contiguous()  # (N, M)
        dist.broadcast(whole, group_src=each.majority[0], group=group)  # (N, M)
        params[each.name].detach().copy_(whole)


# --- 4. a straggler: who is slow, not who waits ---


@dataclass(frozen=True, slots=True)
class StragglerReport:
    """What all ranks know of one interval."""

    elapsed_s: tuple[float, ...]
    """Of each rank's own work, without what it waited for others."""
    stragglers: tuple[int, ...]
    """Ranks that were slow in this interval and in those before it."""


class StragglerDetector:
    """Adds up the time of a rank's own work, and compares it over the ranks.

    A step takes as long on the fastest rank as on the slowest: in a collective it waits
    for the others. So only work between collectives is timed.
    """

    def __init__(
        self, group: dist.ProcessGroup, *, factor: float = 1.5, patience: int = 2
    ) -> None:
        self.group, self.factor, self.patience = group, factor, patience
        self.elapsed_s = 0.0
        self.slow_reports: dict[int, int] = {}

    @contextmanager
    def timed(self, device: torch.device) -> Iterator[None]:
        """Time what is done inside; on a GPU, until it is done there."""
        start = time.perf_counter()
        yield
        if device.type == "cuda":
            torch.cuda.synchronize(device)
        self.elapsed_s += time.perf_counter() - start

    def report(self, device: torch.device) -> StragglerReport:
        """Return the same on all ranks, and begin another interval."""
        mine = torch.tensor([self.elapsed_s], dtype=torch.float64, device=device)
        everyone = [torch.empty_like(mine) for _ in range(self.group.size())]
        dist.all_gather(everyone, mine, group=self.group)  # W x (1)
        self.elapsed_s = 0.0
        times = [each.item() for each in everyone]
        self.slow_reports = count_slow(times, self.slow_reports, factor=self.factor)
        lasting = [r for r, n in self.slow_reports.items() if n >= self.patience]
        return StragglerReport(tuple(times), tuple(lasting))


def count_slow(
    times: Sequence[float], before: Mapping[int, int], *, factor: float
) -> dict[int, int]:
    """Return how many intervals in a row each slow rank has been slow.

    Slow is above `factor` times the median of the other ranks: with two ranks, too, one
    may be twice as slow as the other.
    """
    slow = {}
    for rank, elapsed in enumerate(times):
        others = [*times[:rank], *times[rank + 1 :]]
        if others and elapsed > factor * statistics.median(others):
            slow[rank] = before.get(rank, 0) + 1
    return slow
