"""Zero bubble: a pipeline whose ranks fill their gaps with the gradients of weights.

A backward is two steps, B for the input and W for the weights. The stage before waits
for B, nobody for W, so W can run when a rank would idle. One executor carries out any
plan: plain 1F1B with whole backwards, ZB-H1, ZB-H2, ZB-V, and DualPipe's folded into a
V. It notes from when to when each step ran.

Follows:
- pytorch/pytorch: torch/distributed/pipelining/schedules.py
- pytorch/pytorch: torch/distributed/pipelining/stage.py

Leaves out:
- the two halves of a backward: `zero_bubble_backward.py`
- who does what when: `zero_bubble_plan.py`
- outputs freed when they are sent, frozen stages in front: `pipeline.py`
- a weight that two ranks share: `pipeline_stages.py`
- both steps of a DualPipe block at one time: here they run one after the other
- data parallelism around it, FSDP in the stages
"""

import time
from collections.abc import Iterable, Mapping, Sequence

import torch
import torch.distributed as dist
from torch import Tensor, nn

from mini_impls import model
from mini_impls.model import Batch
from mini_impls.schedules import Step
from mini_impls.timeline import Transfer, get_inputs
from mini_impls.zero_bubble_backward import (
    ParamGroup,
    stage_backward_input,
    stage_backward_weight,
)
from mini_impls.zero_bubble_plan import Block

# Dimension letters: B sequences of a microbatch, T tokens, D hidden, V vocabulary.

# --- 1. the executor ---


class ZeroBubbleExecutor:
    """Carries out one rank's plan, and notes from when to when each step ran."""

    def __init__(
        self,
        stages: Mapping[int, nn.Module],
        num_stages: int,
        tensor_shape: tuple[int, int, int],
        group: dist.ProcessGroup,
    ) -> None:
        self.stages, self.last = stages, num_stages - 1
        self.tensor_shape, self.group = tensor_shape, group  # (B, T, D)
        self.weights = {
            stage: [p for p in module.parameters() if p.requires_grad]
            for stage, module in stages.items()
        }
        self.like = next(p for stage in stages.values() for p in stage.parameters())
        self.ran: dict[Step, tuple[float, float]] = {}
        # Input and output, by the forward that had them; what W goes on from, by its B.
        self.fwd_cache: dict[Step, tuple[Tensor, Tensor]] = {}
        self.backward_state: dict[Step, list[ParamGroup]] = {}
        # What a step of another stage made: here, or on its way.
        self.received: dict[Step, Tensor] = {}
        self.made: dict[Step, Tensor] = {}
        self.recv_ops: dict[Step, dist.Work] = {}
        self.send_ops: list[tuple[dist.Work, Tensor]] = []

    def run(
        self, plan: Sequence[Block | Transfer], batches: Sequence[Batch]
    ) -> list[float]:
        """Run all microbatches; return their losses where the last stage is."""
        losses: list[Tensor] = []
        self.ran.clear()
        for item in plan:
            if isinstance(item, Transfer):
                self.post(item)
                continue
            for step in item:
                for needed in get_inputs(step, self.last + 1):
                    if needed in self.recv_ops:
                        self.recv_ops.pop(needed).wait()
                start = self.now()
                self.run_step(step, item, batches, losses)
                self.ran[step] = start, self.now()
        while self.send_ops:
            self.send_ops.pop()[0].wait()
        assert not (self.fwd_cache or self.backward_state or self.received or self.made)
        return [loss.item() for loss in losses]

    def now(self) -> float:
        """Return the time once this rank's stream has come this far, on a GPU too."""
        if torch.cuda.is_initialized():
            torch.cuda.current_stream().synchronize()
        return time.perf_counter()

    def run_step(
        self, step: Step, block: Block, batches: Sequence[Batch], losses: list[Tensor]
    ) -> None:
        """Run one step; a W is done already where its B in the block was whole."""
        if step.kind == "F":
            self.forward_step(step, batches, losses)
            return
        weights = Step("W", step.microbatch_id, step.stage)
        if step.kind == "B":
            self.backward_step(step, whole=weights in block)
        elif len(block) == 1:
            self.weight_step(step)

    def forward_step(
        self, step: Step, batches: Sequence[Batch], losses: list[Tensor]
    ) -> None:
        """Run a microbatch through a stage; keep what its backward needs."""
        tokens, labels = batches[step.microbatch_id]
        input_tensor = tokens  # (B, T)
        if step.stage > 0:
            before = Step("F", step.microbatch_id, step.stage - 1)
            input_tensor = self.received.pop(before).requires_grad_()  # (B, T, D)
        output_tensor = self.stages[step.stage](input_tensor)  # (B, T, D) or (B, T, V)
        if step.stage == self.last:
            loss = model.compute_loss(output_tensor, labels)
            losses.append(loss.detach())
            output_tensor = loss / len(batches)
        else:
            self.hand_over(step, output_tensor.detach())
        self.fwd_cache[step] = input_tensor, output_tensor

    def backward_step(self, step: Step, *, whole: bool) -> None:
        """Run a microbatch back: to its input alone, or to the weights as well.

        The first stage's tokens have no gradient: there all of it is W's.
        """
        forward = Step("F", step.microbatch_id, step.stage)
        if step.stage == 0 and not whole:
            return
        x, output = self.fwd_cache.pop(forward)
        grad_output = self.take_grad(step)
        if whole:
            output.backward(grad_output)
            grad = x.grad
        else:
            weights = self.weights[step.stage]
            grad, groups = stage_backward_input(output, grad_output, x, weights)
            self.backward_state[step] = groups
        if step.stage > 0:
            assert grad is not None
            self.hand_over(step, grad)

    def weight_step(self, step: Step) -> None:
        """Make the weights' gradients that were put off."""
        before = Step("B", step.microbatch_id, step.stage)
        if step.stage == 0:
            _, output = self.fwd_cache.pop(Step("F", step.microbatch_id, 0))
            output.backward(self.take_grad(before))
        else:
            stage_backward_weight(self.backward_state.pop(before))

    # --- 2. what stages exchange ---

    def hand_over(self, step: Step, tensor: Tensor) -> None:
        """Keep what a step made for its transfer, or for a next stage on this rank."""
        taken_by = step.stage + (1 if step.kind == "F" else -1)
        kept = self.received if taken_by in self.stages else self.made
        kept[step] = tensor.contiguous()

    def take_grad(self, step: Step) -> Tensor | None:
        """Return the gradient of the stage's output; none for the loss."""
        if step.stage == self.last:
            return None
        return self.received.pop(Step("B", step.microbatch_id, step.stage + 1))

    def post(self, transfer: Transfer) -> None:
        """Begin to send or to receive; nobody waits yet."""
        if transfer.action == "send":
            tensor = self.made.pop(transfer.made_by)  # (B, T, D)
            req = dist.isend(tensor, group=self.group, group_dst=transfer.peer)
            assert req is not None
            self.send_ops.append((req, tensor))
        else:
            buffer = self.like.new_empty(self.tensor_shape)  # (B, T, D)
            req = dist.irecv(buffer, group=self.group, group_src=transfer.peer)
            assert req is not None
            self.received[transfer.made_by] = buffer
            self.recv_ops[transfer.made_by] = req


# --- 3. training ---


def train(
    executor: ZeroBubbleExecutor,
    plan: Sequence[Block | Transfer],
    optimizer: torch.optim.Optimizer,
    batches: Iterable[Batch],
    num_microbatches: int,
) -> list[float]:
    """Train this rank's stages in place; return the losses where the last stage is."""
    losses = []
    for batch in batches:
        optimizer.zero_grad()
        microbatches = [
            model.shard_batch(batch, rank=i, world_size=num_microbatches)
            for i in range(num_microbatches)
        ]
        parts = executor.run(plan, microbatches)
        optimizer.step()
        if parts:
            losses.append(sum(parts) / num_microbatches)
    return losses


if __name__ == "__main__":
    from mini_impls.demos.zero_bubble import main

    raise SystemExit(main())
