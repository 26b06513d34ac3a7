"""Pipeline parallelism: each rank holds some layers and hands activations on.

One executor runs any schedule: `schedules.py` says in which order a rank takes its
forwards and backwards, `timeline.py` where it sends and receives; here these steps are
carried out. Between two steps all transfers are posted together, an activation is freed
as soon as it is sent, and gradients add up over the microbatches in the order of one
process.

Follows:
- NVIDIA/Megatron-LM: megatron/core/pipeline_parallel/schedules.py
- NVIDIA/Megatron-LM: megatron/core/pipeline_parallel/p2p_communication.py

Leaves out:
- how a model is cut into stages: `pipeline_stages.py`
- dropout (its streams would have to follow the microbatches), forward-only runs
- tensors whose shape changes from one microbatch to the next
- data parallelism around it: holding back the gradients' all-reduce until the end
- schedules that split the backward (ZB-H1): autograd runs both halves in one call
"""

from collections.abc import Iterable, Mapping, Sequence

import torch
import torch.distributed as dist
from torch import Tensor

from mini_impls import model
from mini_impls.model import Batch
from mini_impls.pipeline_stages import (
    PipelineStage,
    allreduce_word_embedding_grads,
    without_frozen,
)
from mini_impls.schedules import Step
from mini_impls.timeline import Exchange, Transfer

# Dimension letters: B sequences of a microbatch, T tokens, D hidden, V vocabulary.

# --- 1. activations, freed once sent ---


def deallocate_output_tensor(out: Tensor) -> None:
    """Let go of the data of an output that was sent; its graph is still needed."""
    assert out._base is None, "a view would keep the data of its base"
    out.data = torch.empty((1,), device=out.device, dtype=out.dtype)


def custom_backward(output: Tensor, grad_output: Tensor) -> None:
    """Run backward from an output whose data is gone.

    `Tensor.backward` would compare shapes with what is left of the output; the engine
    itself goes by the shape that the graph has noted.
    """
    assert output.numel() == 1, "its data should have been let go of"
    torch.autograd.Variable._execution_engine.run_backward(
        tensors=(output,),
        grad_tensors=(grad_output,),
        keep_graph=False,
        create_graph=False,
        inputs=(),
        allow_unreachable=True,
        accumulate_grad=True,
    )


# --- 2. one executor for every schedule ---
#
#   A tensor's life, by the step that made it: F forward, B backward, of stage s.
#
#   receive -> received[F s-1] -> input_tensors[F s] ---|
#   F s     -> output_tensors[F s], the graph ----------|-> B s
#           -> made[F s], the data -> send              |
#   receive -> received[B s+1] -------------------------|
#   B s     -> made[B s] -> send


class PipelineExecutor:
    """Carries out one rank's plan: forward steps, backward steps, exchanges."""

    def __init__(
        self,
        stages: Mapping[int, PipelineStage],
        tensor_shape: tuple[int, int, int],
        group: dist.ProcessGroup,
        *,
        overlap: bool = False,
    ) -> None:
        self.stages, self.tensor_shape = stages, tensor_shape  # (B, T, D)
        self.group, self.overlap = group, overlap
        self.like = next(p for stage in stages.values() for p in stage.parameters())
        self.first_trained = min(stage.first_trained for stage in stages.values())
        self.peak_in_flight = 0
        # What a backward needs, by its forward step.
        self.input_tensors: dict[Step, Tensor] = {}
        self.output_tensors: dict[Step, Tensor] = {}
        # What is to be sent and what was received, by the step that made it.
        self.made: dict[Step, Tensor] = {}
        self.received: dict[Step, Tensor] = {}
        # Overlapped: what nobody has waited for yet. A send keeps its tensor alive.
        self.recv_reqs: dict[Step, dist.Work] = {}
        self.send_reqs: list[tuple[dist.Work, Tensor]] = []

    def run(
        self, plan: Sequence[Step | Exchange], batches: Sequence[Batch]
    ) -> list[float]:
        """Run all microbatches; return their losses where the last stage is."""
        losses: list[Tensor] = []
        for item in without_frozen(plan, self.first_trained):
            if isinstance(item, tuple):
                self.communicate(item)
            elif item.kind == "F":
                self.forward_step(item, batches, losses)
            else:
                self.backward_step(item)
        self.wait_for_sends()
        assert not (self.output_tensors or self.made or self.received)
        return [loss.item() for loss in losses]

    def forward_step(
        self, step: Step, batches: Sequence[Batch], losses: list[Tensor]
    ) -> None:
        """Run a microbatch through a stage; keep what its backward needs."""
        stage = self.stages[step.stage]
        tokens, labels = batches[step.microbatch_id]
        if stage.pre_process:
            input_tensor = tokens  # (B, T)
        else:
            input_tensor = self.take(Step("F", step.microbatch_id, step.stage - 1))
            input_tensor.requires_grad_(step.stage > self.first_trained)  # a leaf
        output_tensor = stage(input_tensor)  # (B, T, D), or logits (B, T, V)
        if stage.post_process:
            loss = model.compute_loss(output_tensor, labels)
            losses.append(loss.detach())
            output_tensor = loss / len(batches)
        else:
            # The alias has the data until it is sent; the original has the graph.
            self.hand_over(step, output_tensor.detach())
            deallocate_output_tensor(output_tensor)
        self.input_tensors[step] = input_tensor
        self.output_tensors[step] = output_tensor
        self.peak_in_flight = max(self.peak_in_flight, len(self.output_tensors))

    def backward_step(self, step: Step) -> None:
        """Run a microbatch back; gradients add up in the stage's parameters."""
        stage = self.stages[step.stage]
        forward = Step("F", step.microbatch_id, step.stage)
        input_tensor = self.input_tensors.pop(forward)
        output_tensor = self.output_tensors.pop(forward)
        if stage.post_process:
            output_tensor.backward()
        elif step.stage >= self.first_trained:
            behind = Step("B", step.microbatch_id, step.stage + 1)
            custom_backward(output_tensor, self.take(behind))
        if step.stage > self.first_trained:
            assert input_tensor.grad is not None
            self.hand_over(step, input_tensor.grad)

    # --- 3. sends and receives ---

    def hand_over(self, step: Step, tensor: Tensor) -> None:
        """Keep what a step made for its exchange, or for a next stage on this rank."""
        taken_by = step.stage + (1 if step.kind == "F" else -1)
        kept = self.received if taken_by in self.stages else self.made
        kept[step] = tensor.contiguous()

    def take(self, made_by: Step) -> Tensor:
        """Return what a step of another stage made, once it is here."""
        if made_by in self.recv_reqs:
            self.recv_reqs.pop(made_by).wait()
        return self.received.pop(made_by)  # (B, T, D)

    def get_tensor(self, transfer: Transfer) -> Tensor:
        """Return what is to be sent, or a buffer for what is to be received."""
        if transfer.action == "send":
            return self.made.pop(transfer.made_by)
        buffer = torch.empty(
            self.tensor_shape, dtype=self.like.dtype, device=self.like.device
        )  # (B, T, D)
        self.received[transfer.made_by] = buffer
        return buffer

    def communicate(self, exchange: Exchange) -> None:
        """Post all transfers between two steps as one batch, and wait for all of them.

        A send may wait for its receive: two ranks that both send first, and receive
        then, would wait for ever.
        """
        if self.overlap:
            self.communicate_overlapped(exchange)
            return
        isend, irecv, group = dist.isend, dist.irecv, self.group
        ops = [
            dist.P2POp(
                isend if transfer.action == "send" else irecv,
                self.get_tensor(transfer),  # (B, T, D)
                group=group,
                group_peer=transfer.peer,
            )
            for transfer in exchange
        ]
        for req in dist.batch_isend_irecv(ops):
            req.wait()

    def communicate_overlapped(self, exchange: Exchange) -> None:
        """Post each transfer; wait for a receive when a step needs it, for a send now.

        There is something to hide only where a message comes before its step's turn,
        as between the chunks of an interleaved schedule.
        """
        self.wait_for_sends()
        for transfer in exchange:
            tensor = self.get_tensor(transfer)
            if transfer.action == "send":
                req = dist.isend(tensor, group=self.group, group_dst=transfer.peer)
                assert req is not None  # (B, T, D), as all that stages exchange
                self.send_reqs.append((req, tensor))
            else:
                req = dist.irecv(tensor, group=self.group, group_src=transfer.peer)
                assert req is not None
                self.recv_reqs[transfer.made_by] = req

    def wait_for_sends(self) -> None:
        """Wait for the sends of the last exchange, and let go of what they sent."""
        for req, _ in self.send_reqs:
            req.wait()
        self.send_reqs.clear()


# --- 4. training ---


def train(
    executor: PipelineExecutor,
    plan: Sequence[Step | Exchange],
    optimizer: torch.optim.Optimizer,
    batches: Iterable[Batch],
    num_microbatches: int,
    embd_group: dist.ProcessGroup | None = None,
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
        if embd_group is not None:
            allreduce_word_embedding_grads(executor.stages, embd_group)
        optimizer.step()
        if parts:
            losses.append(sum(parts) / num_microbatches)
    return losses


if __name__ == "__main__":
    from mini_impls.demos.pipeline import main

    raise SystemExit(main())
