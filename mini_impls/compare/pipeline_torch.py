"""Schedules of torch.distributed.pipelining around given stages."""

from collections.abc import Callable, Mapping
from typing import Any

from torch import Tensor, nn
from torch.distributed.pipelining import (
    PipelineStage,
    Schedule1F1B,
    ScheduleDualPipeV,
    ScheduleGPipe,
    ScheduleInterleaved1F1B,
    ScheduleInterleavedZeroBubble,
    ScheduleZBVZeroBubble,
)

from mini_impls.compare.sides import Schedule
from mini_impls.compare.steps import StepLog
from mini_impls.launch import Rank
from mini_impls.model import Batch, compute_loss

SPLIT = {
    "zb-h1": ScheduleInterleavedZeroBubble,
    "zb-v": ScheduleZBVZeroBubble,
    "dualpipe-v": ScheduleDualPipeV,
}
"""Those that make the weights' gradients apart."""


class TorchSchedule:
    """A schedule of torch, called alike on every rank."""

    def __init__(self, schedule: Any, num_stages: int) -> None:
        self.schedule, self.num_stages = schedule, num_stages

    def run(self, batch: Batch, *, first: bool, last: bool) -> list[float]:
        """Run a batch; return the microbatches' losses on the last stage's rank."""
        tokens, labels = batch
        losses: list[Tensor] = []
        args = (tokens,) if first else ()
        if last:
            self.schedule.step(*args, target=labels, losses=losses)
        else:
            self.schedule.step(*args)
        return [loss.item() for loss in losses]


def build_schedule(
    schedule: Schedule, modules: Mapping[int, nn.Module], rank: Rank, log: StepLog
) -> TorchSchedule:
    """Return the schedule of that name over this rank's stages."""
    num_stages = rank.world_size * schedule.chunks
    stages = [
        _watched(
            PipelineStage(module, index, num_stages, rank.device, group=rank.group),
            log,
            splits=schedule.name in SPLIT,
        )
        for index, module in modules.items()
    ]
    m = schedule.microbatches
    made: Any
    match schedule.name:
        case "gpipe":
            made = ScheduleGPipe(stages[0], m, loss_fn=compute_loss)
        case "1f1b":
            made = Schedule1F1B(stages[0], m, loss_fn=compute_loss)
        case name if name in SPLIT:
            made = SPLIT[name](stages, m, loss_fn=compute_loss)
        case _:
            made = ScheduleInterleaved1F1B(stages, m, loss_fn=compute_loss)
    return TorchSchedule(made, num_stages)


def _watched(stage: Any, log: StepLog, *, splits: bool) -> Any:
    """Have a stage say what it does; nothing else about it changes."""

    def timed(kind: Any, run: Callable[..., Any]) -> Callable[..., Any]:
        def wrapped(chunk: int, *args: Any, **kwargs: Any) -> Any:
            with log.step(kind, chunk, stage.stage_index):
                done = run(chunk, *args, **kwargs)
            if kind == "B" and splits and kwargs["full_backward"]:
                log.is_whole(chunk, stage.stage_index)
            return done

        return wrapped

    def marked(forward: bool, get: Callable[..., Any]) -> Callable[..., Any]:
        def wrapped(chunk: int) -> Any:
            ops = get(chunk)
            for op in ops:
                log.mark(*((op.tensor, None) if forward else (None, op.tensor)))
            return ops

        return wrapped

    stage.forward_one_chunk = timed("F", stage.forward_one_chunk)
    stage.backward_one_chunk = timed("B", stage.backward_one_chunk)
    stage.backward_weight_one_chunk = timed("W", stage.backward_weight_one_chunk)
    stage.get_fwd_recv_ops = marked(True, stage.get_fwd_recv_ops)
    stage.get_fwd_send_ops = marked(True, stage.get_fwd_send_ops)
    stage.get_bwd_recv_ops = marked(False, stage.get_bwd_recv_ops)
    stage.get_bwd_send_ops = marked(False, stage.get_bwd_send_ops)
    return stage
