"""The zero-bubble mini beside torch's schedules that split the backward."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import Any

from torch import Tensor

from mini_impls import zero_bubble, zero_bubble_plan
from mini_impls.compare.pipeline import PipelineSide, TorchSide, cut
from mini_impls.compare.sides import (
    Comparison,
    Formula,
    Formulas,
    Schedule,
    Sides,
    Tolerance,
    trained,
)
from mini_impls.compare.steps import StepLog
from mini_impls.demos.formulas import get_pipeline_traffic, get_v_pipeline_traffic
from mini_impls.demos.zero_bubble import get_stages
from mini_impls.launch import Rank
from mini_impls.model import Batch, GPTConfig, build_model
from mini_impls.schedules import Step
from mini_impls.timeline import Transfer
from mini_impls.zero_bubble_plan import V_SHAPED, Block

ROWS = 2
"""Sequences of a microbatch."""


class LoggedZeroBubble(zero_bubble.ZeroBubbleExecutor):
    """The mini's executor, saying what it does when."""

    log: StepLog

    def run_step(
        self, step: Step, block: Block, batches: Sequence[Batch], losses: list[Tensor]
    ) -> None:
        """Run a step."""
        if step.kind == "W" and len(block) > 1:
            self.log.is_whole(step.microbatch_id, step.stage)
            return
        with self.log.step(step.kind, step.microbatch_id, step.stage):
            super().run_step(step, block, batches, losses)

    def post(self, transfer: Transfer) -> None:
        """Say of what phase a transfer is."""
        forward = transfer.made_by.kind == "F"
        self.log.set_phase("forward" if forward else "backward")
        super().post(transfer)


def with_torchs_turns(blocks: Sequence[Block], microbatches: int) -> list[Block]:
    """Return a rank's blocks with empty ones where torch has other work of its own.

    Where a stage has made its last gradient, torch reduces it over data-parallel ranks,
    and frees gathered weights. Neither is in the mini; but in the walk that places
    receives both take a turn of their rank, and the receives of its peers move.
    """
    found: list[Block] = []
    done: Counter[int] = Counter()
    for block in blocks:
        found.append(block)
        done.update(step.stage for step in block if step.kind == "W")
        if any(s.kind == "W" and done[s.stage] == microbatches for s in block):
            found += [(), ()]
    return found


class MiniSide(PipelineSide):
    """Ours."""

    def __init__(
        self, schedule: Schedule, shape: tuple[int, int, int], *args: Any
    ) -> None:
        super().__init__(*args)
        p, m = self.rank.world_size, schedule.microbatches
        blocks = zero_bubble_plan.get_blocks(schedule.name, p, m)
        blocks = [with_torchs_turns(of_rank, m) for of_rank in blocks]
        self.plan = zero_bubble_plan.add_send_recv(blocks)[self.rank.rank]
        self.microbatches = m
        self.executor = LoggedZeroBubble(
            self.stages, p * schedule.chunks, shape, self.rank.group
        )
        self.executor.log = self.log

    def run(self, batch: Batch) -> list[float]:
        """Carry out the plan."""
        return self.executor.run(self.plan, cut(batch, self.microbatches))


def build(name: str, rank: Rank, comparison: Comparison) -> Sides:
    """Return the mini and torch's schedule of the same kind."""
    config, chunks = comparison.config, comparison.chunks
    schedule = Schedule(name, comparison.microbatches, chunks, splits_backward=True)
    rows = comparison.rows_per_rank // comparison.microbatches
    shape = (rows, config.max_sequence_length, config.hidden_size)
    logs = [StepLog("mini", rank.rank), StepLog("upstream", rank.rank)]
    lr = comparison.learning_rate

    def stages() -> Any:
        return get_stages(build_model(config).to(rank.device), name, rank)

    mini = MiniSide(schedule, shape, rank, stages(), logs[0], lr)
    upstream = TorchSide(schedule, rank, stages(), logs[1], lr)
    return Sides(
        mini,
        upstream,
        {rank.group.group_name: "pp"},
        formulas(mini, shape, schedule),
        schedule,
        lambda: tuple(logs[0].bars + logs[1].bars),
    )


def formulas(
    side: PipelineSide, shape: tuple[int, int, int], schedule: Schedule
) -> Formulas:
    """Return one activation and one gradient a boundary and microbatch."""
    m = schedule.microbatches
    if schedule.name in V_SHAPED:
        traffic, stages = get_v_pipeline_traffic(shape, m, side.rank), "both stages"
    else:
        traffic, stages = get_pipeline_traffic(shape, m, side.rank, 1), "the stage"
    text = f"{m} microbatches x neighbours of {stages} on other ranks x {shape}"
    sent = {op: Formula(n, text) for op, n in traffic.items()}
    kept = trained(side.params, "parameters of this rank's stages")
    return Formulas.alike(sent, kept)


def resize(comparison: Comparison, world_size: int) -> Comparison:
    """Return the comparison with a layer a stage, and enough microbatches to fill it.

    Their number is a power of two: dividing by it rounds nothing, whether before the
    backward, as in the mini, or after it, as torch does.
    """
    microbatches = 1 << (2 * world_size - 1).bit_length()
    return replace(
        comparison,
        config=GPTConfig(num_layers=world_size * comparison.chunks),
        microbatches=microbatches,
        rows_per_rank=ROWS * microbatches,
    )


def comparison(upstream: str, schedule: str) -> Comparison:
    """Return the comparison with one schedule of torch."""
    return Comparison(
        mini="zero_bubble",
        upstream=upstream,
        build=partial(build, schedule),
        tolerance=Tolerance(
            0.0, "the same steps on the same tensors, whoever orders them"
        ),
        data_parallel=False,
        chunks=2 if schedule in V_SHAPED else 1,
        resize=resize,
    )


COMPARISONS = (
    comparison("torch_interleaved_zero_bubble", "zb-h1"),
    comparison("torch_zbv", "zb-v"),
    comparison("torch_dualpipe_v", "dualpipe-v"),
)
