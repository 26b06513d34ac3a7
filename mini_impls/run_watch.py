"""Looks at a run while it goes on: a table of all ranks, drawn anew after some steps.

Each rank records a step by itself, says in the run's store where its time went, and
goes on; nobody waits for the table. The first draws what all have said by then.

Follows:
- pytorch/pytorch: torch/profiler/profiler.py (whose schedule skips steps, too)

Leaves out:
- the most memory of tensors: a recorder that begins at a step has not seen what was
  allocated before; what the whole process holds stands in its place
"""

import json
import os
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass, field, replace
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING

import torch.distributed as dist

from mini_impls.recorder import Expected, Predicted, Rates, Recorder
from mini_impls.run_metrics import RankMetrics, RankSummary, predict, summarize
from mini_impls.run_table import part_tables, screen
from readerkit.system.private_files import make_folder

if TYPE_CHECKING:
    from mini_impls.launch import Rank


MEET_S = 2.0
"""How long a rank waits for the others to begin a step that is looked at."""


def is_looked_at(step: int) -> bool:
    """Tell whether a step is recorded: the first eight are, then ever fewer.

    Every rank comes to the same answer, so that all are slowed by the same steps.

    >>> [step for step in range(33) if is_looked_at(step)]
    [0, 1, 2, 3, 4, 5, 6, 7, 8, 10, 12, 14, 16, 20, 24, 28, 32]
    """
    return step % (1 << max(0, step.bit_length() - 3)) == 0


@dataclass(kw_only=True)
class WatchingRecorder(Recorder):
    """Records some of the steps, each by itself, and shows the last of them."""

    rank: "Rank"
    seen: dict[str, RankMetrics] = field(default_factory=dict)
    """Of this rank, the last step of each part that was looked at."""
    _speed: float = 0.0
    _meets: bool = True

    @contextmanager
    def step(self, tokens: int) -> Iterator[None]:
        """Take a step: `tokens` are those of all ranks together."""
        number = self._steps[self.part]
        self._steps[self.part] += 1
        if not is_looked_at(number):
            yield
            return
        self._meet(number)
        one = Recorder(is_on=True, sees_memory=False, part=self.part)
        with one, one.step(tokens):
            yield
        found = summarize(one.take(self.rank.rank, self.rank.device))
        self._speed = found.product_flops_per_s
        held = resident_bytes()
        for part, of in found.parts.items():
            self.seen[part] = replace(of, resident_bytes=held)
        self._tell(number)

    def _meet(self, number: int) -> None:
        """Begin a step together: some have still drawn or told of the one before.

        Ranks whose steps are others never come, and are waited for once.
        """
        store, rank = self.rank.store, self.rank
        if store is None or not self._meets:
            return
        begins = f"watch/begins/{self.part}/{number}"
        store.set(f"{begins}/{rank.rank}", "")
        try:
            all_of_them = [f"{begins}/{r}" for r in range(rank.world_size)]
            store.wait(all_of_them, timedelta(seconds=MEET_S))
        except RuntimeError:
            self._meets = False
        else:
            dist.barrier(rank.group)  # to the same moment: the store is asked in turns

    @property
    def last_step(self) -> int:
        """The number of the step that was taken last."""
        return max(self._steps.values(), default=0) - 1

    def summary(self) -> RankSummary:
        """Return what was seen of this rank."""
        predicted = predict(self.seen, self.expected, self.rates)
        known = self.seen, self.expected, self._speed, self.rates, predicted
        return RankSummary(self.rank.rank, *known)

    def _tell(self, number: int) -> None:
        store = self.rank.store
        if store is None:
            return
        store.set(f"watch/{self.rank.rank}", json.dumps(asdict(self.summary())))
        if self.rank.rank == 0:
            keys = [f"watch/{rank}" for rank in range(self.rank.world_size)]
            told = [_read(store.get(key)) for key in keys if store.check([key])]
            shown = in_common(told)
            room = self.rank.status.room_below()
            self.rank.status.show_below(screen(shown, *room) if shown else [])
            leave_for_a_page(shown, number)


def _read(told: bytes) -> RankSummary:
    data = json.loads(told)
    data["parts"] = {name: RankMetrics(**of) for name, of in data["parts"].items()}
    data["expected"] = {name: Expected(**of) for name, of in data["expected"].items()}
    data["rates"] = data["rates"] and Rates(**data["rates"])
    predicted = data["predicted"].items()
    data["predicted"] = {name: Predicted(**of) for name, of in predicted}
    return RankSummary(**data)


def in_common(ranks: Sequence[RankSummary]) -> list[RankSummary]:
    """Return the parts that all these ranks have come to; nothing, if there is none."""
    common = set.intersection(*(set(each.parts) for each in ranks))
    shown = [
        replace(each, parts={n: of for n, of in each.parts.items() if n in common})
        for each in ranks
    ]
    return shown if common else []


def leave_for_a_page(
    ranks: Sequence[RankSummary], step: int, *, has_ended: bool = False
) -> None:
    """Write the table where ``readerkit site serve`` finds it, if that is wanted.

    A run does not end because a disk is full: the page then shows what was before.
    """
    path = os.environ.get("READERKIT_WATCHED")
    if not path or not ranks:
        return
    told = {
        "command": os.environ.get("READERKIT_COMMAND", ""),
        "process": os.getpid(),
        "step": step,
        "told_at": time.time(),
        "has_ended": has_ended,
        "parts": [asdict(part) for part in part_tables(ranks)],
    }
    with suppress(OSError):
        make_folder(Path(path).parent)
        beside = Path(f"{path}.{os.getpid()}")
        beside.write_text(json.dumps(told))
        beside.replace(path)


def resident_bytes() -> int | None:
    """Return the memory that this process holds now; None where nobody counts it."""
    counters = Path("/proc/self/statm")
    if not counters.exists():  # Linux alone has it
        return None
    pages = int(counters.read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE")
