"""A step on a layout: 1F1B over the stages, gradients summed over who holds the same.

A weight's gradient is summed over the ranks that hold the same and saw other tokens:
all of dp and cp for dense weights, fewer for experts, which have seen tokens of several
ranks already. It is divided by the number of ranks with a loss of their own, for both.

    pp 2, 3 microbatches     stage 0 | F0 F1 .  B0 F2 B1 .  B2 | sum, update
                             stage 1 | .  F0 B0 F1 B1 F2 B2 .  | sum, update

Follows:
- NVIDIA/Megatron-LM: megatron/core/pipeline_parallel/schedules.py
  (`forward_backward_pipelining_without_interleaving`)
- NVIDIA/Megatron-LM: megatron/core/pipeline_parallel/p2p_communication.py
- NVIDIA/Megatron-LM: megatron/core/distributed/param_and_grad_buffer.py

Leaves out:
- buckets that leave during backward (`ddp.py`), sharded state (`zero.py`, `fsdp.py`)
- other orders of a pipeline, outputs freed once sent, frozen stages: `pipeline.py`
- clipping by the norm of a model that is cut in several ways, a loss scale
"""

from collections.abc import Iterable, Sequence

import torch
import torch.distributed as dist
from torch import Tensor, nn

from mini_impls.layout_gpt import ParallelRoutedMLP
from mini_impls.layout_stages import LayoutGroups, LayoutStage, local_batch
from mini_impls.model import Batch, compute_loss, shard_batch

# Dimension letters: B sequences of a microbatch, T tokens, D hidden.

# --- 1. between two stages ---


class Neighbours:
    """Sends to the stages before and behind this one, and receives from them."""

    def __init__(self, pp: dist.ProcessGroup, shape: Sequence[int], like: Tensor):
        self.pp, self.shape, self.like = pp, shape, like  # (B, T/cp, D)

    def communicate(
        self,
        *,
        send_prev: Tensor | None = None,
        recv_prev: bool = False,
        send_next: Tensor | None = None,
        recv_next: bool = False,
    ) -> tuple[Tensor | None, Tensor | None]:
        """Post all at once and wait; return what came from before and from behind.

        Who is at an end of the pipeline has nobody there, and nothing is sent.
        """
        rank, last = self.pp.rank(), self.pp.size() - 1
        ops: list[dist.P2POp] = []
        received: list[Tensor | None] = []
        for peer, tensor, wanted in (
            (rank - 1, send_prev, recv_prev),
            (rank + 1, send_next, recv_next),
        ):
            is_there = 0 <= peer <= last
            if is_there and tensor is not None:
                sent = tensor.contiguous()  # (B, T/cp, D)
                ops.append(dist.P2POp(dist.isend, sent, group=self.pp, group_peer=peer))
            buffer = self.get_buffer(peer) if is_there and wanted else None
            if buffer is not None:
                ops.append(
                    dist.P2POp(dist.irecv, buffer, group=self.pp, group_peer=peer)
                )  # (B, T/cp, D)
            received.append(buffer)
        for request in dist.batch_isend_irecv(ops) if ops else ():
            request.wait()
        return received[0], received[1]

    def get_buffer(self, peer: int) -> Tensor:
        """Return memory for an output from before, or a gradient from behind."""
        return self.like.new_empty(self.shape)  # (B, T/cp, D)


# --- 2. one forward, one backward ---


class OneForwardOneBackward:
    """Takes the microbatches through one stage and back, as Megatron's 1F1B does."""

    def __init__(self, stage: LayoutStage, neighbours: Neighbours) -> None:
        self.stage, self.neighbours = stage, neighbours

    def run(self, microbatches: Sequence[Batch]) -> list[float]:
        """Return the losses of the microbatches, where the last stage is."""
        communicate = self.neighbours.communicate
        pp = self.neighbours.pp
        warmup = min(pp.size() - pp.rank() - 1, len(microbatches))
        remaining = len(microbatches) - warmup
        kept: list[tuple[Tensor | None, Tensor]] = []  # the oldest comes back first
        losses: list[float] = []
        for i in range(warmup):
            input_tensor, _ = communicate(recv_prev=True)
            output = self.forward_step(microbatches, i, input_tensor, kept, losses)
            communicate(send_next=output)
        if remaining:
            input_tensor, _ = communicate(recv_prev=True)
        for i in range(remaining):
            output = self.forward_step(
                microbatches, warmup + i, input_tensor, kept, losses
            )
            _, grad = communicate(send_next=output, recv_next=True)
            input_grad = self.backward_step(*kept.pop(0), grad)
            is_more = i < remaining - 1
            input_tensor, _ = communicate(send_prev=input_grad, recv_prev=is_more)
        for _ in range(warmup):
            _, grad = communicate(recv_next=True)
            communicate(send_prev=self.backward_step(*kept.pop(0), grad))
        return losses

    def forward_step(
        self,
        microbatches: Sequence[Batch],
        i: int,
        input_tensor: Tensor | None,
        kept: list[tuple[Tensor | None, Tensor]],
        losses: list[float],
    ) -> Tensor | None:
        """Run a microbatch through the stage; return what the next stage gets."""
        tokens, labels = microbatches[i]
        if input_tensor is not None:
            input_tensor.requires_grad_()  # a leaf, whose gradient is what goes back
        output: Tensor = self.stage(tokens if input_tensor is None else input_tensor)
        if not self.stage.post_process:
            kept.append((input_tensor, output))
            return output.detach()  # (B, T/cp, D)
        loss = compute_loss(output, labels)
        losses.append(loss.item())
        kept.append((input_tensor, loss / len(microbatches)))
        return None

    def backward_step(
        self, input_tensor: Tensor | None, output: Tensor, grad: Tensor | None
    ) -> Tensor | None:
        """Run the oldest microbatch back; return the gradient of what came in."""
        output.backward(grad)
        return None if input_tensor is None else input_tensor.grad


# --- 3. gradients ---


class GradBuffer:
    """Gradients of some parameters below each other; each `.grad` is a view."""

    def __init__(
        self, params: Sequence[nn.Parameter], group: dist.ProcessGroup, losses: int
    ) -> None:
        self.group, self.losses = group, losses
        sizes = [param.numel() for param in params]
        like = params[0]
        self.data = torch.zeros(sum(sizes), dtype=like.dtype, device=like.device)
        for param, view in zip(params, self.data.split(sizes), strict=True):  # (numel)
            param.grad = view.view_as(param)  # in its own shape

    def finish_grad_sync(self) -> None:
        """Make the gradients those of the mean loss of all ranks."""
        self.data /= self.losses
        if self.group.size() > 1:
            dist.all_reduce(self.data, group=self.group)  # (all elements)


def split_params(stage: LayoutStage) -> tuple[list[nn.Parameter], list[nn.Parameter]]:
    """Return what trains of a stage: its dense parameters, and those of its experts."""
    layers = [m for m in stage.modules() if isinstance(m, ParallelRoutedMLP)]
    of_experts = {param for layer in layers for param in layer.experts.parameters()}
    trained = [param for param in stage.parameters() if param.requires_grad]
    dense = [param for param in trained if param not in of_experts]
    return dense, [param for param in trained if param in of_experts]


def make_buffers(stage: LayoutStage, groups: LayoutGroups) -> list[GradBuffer]:
    """Return a buffer of the dense gradients of a stage, and one of its experts."""
    dense, experts = split_params(stage)
    losses = groups.dp_cp.size()
    pairs = ((dense, groups.dp_cp), (experts, groups.expert_dp))
    return [GradBuffer(params, group, losses) for params, group in pairs if params]


# --- 4. a step ---


class LayoutTrainer:
    """Trains one rank's stage in place."""

    def __init__(
        self,
        stage: LayoutStage,
        groups: LayoutGroups,
        *,
        microbatches: int,
        microbatch_shape: Sequence[int],
        learning_rate: float,
    ) -> None:
        self.stage, self.groups, self.microbatches = stage, groups, microbatches
        self.buffers = make_buffers(stage, groups)
        self.optimizer = torch.optim.AdamW(stage.parameters(), learning_rate)
        like = next(stage.parameters())
        neighbours = Neighbours(groups.pp, microbatch_shape, like)
        self.schedule = OneForwardOneBackward(stage, neighbours)

    def step(self, batch: Batch) -> float | None:
        """Train on this rank's part of a batch; return its loss on the last stage."""
        for buffer in self.buffers:
            buffer.data.zero_()
        mine, count = local_batch(batch, self.groups), self.microbatches
        parts = [shard_batch(mine, rank=i, world_size=count) for i in range(count)]
        losses = self.schedule.run(parts)
        for buffer in self.buffers:
            buffer.finish_grad_sync()
        self.optimizer.step()
        return sum(losses) / count if losses else None

    def train(self, batches: Iterable[Batch]) -> list[float]:
        """Return the losses of all tokens, on the last stage."""
        losses = []
        for batch in batches:
            loss = self.step(batch)
            if loss is not None:
                total = torch.tensor(loss, device=self.buffers[0].data.device)
                dist.all_reduce(total, group=self.groups.dp_cp)  # ()
                losses.append(total.item() / self.groups.dp_cp.size())
        return losses
