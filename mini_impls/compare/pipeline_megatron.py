"""Megatron's two pipeline schedules around given stages."""

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from importlib import import_module
from typing import Any

import torch
from torch import Tensor, nn

from mini_impls.compare import megatron
from mini_impls.compare.sides import Schedule
from mini_impls.compare.steps import StepLog
from mini_impls.launch import Rank
from mini_impls.model import Batch, GPTConfig, compute_loss


def start(rank: Rank, chunks: int) -> dict[str, str]:
    """Start Megatron with every rank a stage of one pipeline."""
    return megatron.start(
        rank, pipeline=rank.world_size, chunks=chunks if chunks > 1 else None
    )


class MegatronStage(nn.Module):
    """A stage with what Megatron's schedules ask of a model."""

    def __init__(self, module: nn.Module, config: Any, stage: int, chunk: int) -> None:
        super().__init__()
        self.module, self.config = module, config
        self.stage, self.vp_stage = stage, chunk
        enums: Any = import_module("megatron.core.enums")
        self.model_type = enums.ModelType.encoder_or_decoder
        self.input_tensor: Tensor | None = None

    def set_input_tensor(self, input_tensor: Sequence[Tensor | None]) -> None:
        """Take what the stage before has sent; None for the first stage."""
        self.input_tensor = input_tensor[0]

    def forward(self, tokens: Tensor) -> Tensor:
        """Run the stage on tokens, or on what was received."""
        received = self.input_tensor
        output: Tensor = self.module(tokens if received is None else received)
        return output


@dataclass(frozen=True, slots=True)
class SendOptions:
    """How the schedule sends, and what it lets go of."""

    overlap_p2p_comm: bool = False
    batch_p2p_comm: bool = True
    deallocate_pipeline_outputs: bool = False


OPTIONS: Mapping[str, SendOptions] = {
    "megatron_1f1b": SendOptions(deallocate_pipeline_outputs=True),
    "megatron_interleaved": SendOptions(overlap_p2p_comm=True, batch_p2p_comm=False),
    # Two traps. With two ranks both directions of the interleaved schedule join the
    # same pair, and gloo pairs messages by order: batched ones get mixed up.
    "megatron_interleaved_batched": SendOptions(),
    # Letting go of an output whose send is still under way is safe on a stream; gloo
    # sends whatever lies in that memory next.
    "megatron_interleaved_freed": SendOptions(
        overlap_p2p_comm=True, batch_p2p_comm=False, deallocate_pipeline_outputs=True
    ),
}
"""By the name of the comparison; the defaults of both schedules are the first one's."""


class MegatronSchedule:
    """1F1B or interleaved 1F1B, called as Megatron's training loop calls it."""

    def __init__(
        self,
        schedule: Schedule,
        options: SendOptions,
        sizes: GPTConfig,
        rows: int,
        modules: Mapping[int, nn.Module],
        rank: Rank,
        log: StepLog,
    ) -> None:
        transformer: Any = import_module("megatron.core.transformer")
        self.schedules: Any = import_module("megatron.core.pipeline_parallel.schedules")
        self.p2p: Any = import_module(
            "megatron.core.pipeline_parallel.p2p_communication"
        )
        interleaved = schedule.chunks > 1
        self.config = transformer.TransformerConfig(
            num_layers=sizes.num_layers,
            hidden_size=sizes.hidden_size,
            num_attention_heads=sizes.num_attention_heads,
            pipeline_model_parallel_size=rank.world_size,
            virtual_pipeline_model_parallel_size=schedule.chunks
            if interleaved
            else None,
            pipeline_dtype=torch.float32,
            deallocate_pipeline_outputs=options.deallocate_pipeline_outputs,
            overlap_p2p_comm=options.overlap_p2p_comm,
            batch_p2p_comm=options.batch_p2p_comm,
        )
        self.microbatches, self.rows, self.log = schedule.microbatches, rows, log
        self.length = sizes.max_sequence_length
        self.stages = [
            MegatronStage(module, self.config, stage, chunk)
            for chunk, (stage, module) in enumerate(modules.items())
        ]

    def run(self, microbatches: Sequence[Batch]) -> list[float]:
        """Run a batch; return the microbatches' losses on the last stage's rank."""
        interleaved = len(self.stages) > 1
        name = "with" if interleaved else "without"
        run = getattr(
            self.schedules, f"forward_backward_pipelining_{name}_interleaving"
        )
        iterators = [iter(microbatches) for _ in self.stages]
        with self._watched():
            losses = run(
                forward_step_func=forward_step_func,
                data_iterator=iterators if interleaved else iterators[0],
                model=self.stages if interleaved else self.stages[0],
                num_microbatches=self.microbatches,
                # Only the shape of a message is made of these two, and our hidden
                # states have the sequences of a microbatch first.
                seq_length=self.rows,
                micro_batch_size=self.length,
                forward_only=False,
            )
        return [entry["loss"].item() for entry in losses]

    @contextmanager
    def _watched(self) -> Iterator[None]:
        """Have the schedule say what it does; nothing else about it changes."""
        steps = self.schedules.forward_step, self.schedules.backward_step
        sends = self.p2p._p2p_ops, self.p2p._batched_p2p_ops
        self.schedules.forward_step, self.schedules.backward_step = self._timed(*steps)
        self.p2p._p2p_ops, self.p2p._batched_p2p_ops = map(self._marked, sends)
        try:
            yield
        finally:
            self.schedules.forward_step, self.schedules.backward_step = steps
            self.p2p._p2p_ops, self.p2p._batched_p2p_ops = sends

    def _timed(
        self, forward: Callable[..., Any], backward: Callable[..., Any]
    ) -> tuple[Callable[..., Any], Callable[..., Any]]:
        done: Counter[int] = Counter()
        outputs: dict[int, tuple[int, int]] = {}

        def forward_step(
            func: Any, data: Any, model: MegatronStage, *args: Any, **kwargs: Any
        ) -> Any:
            microbatch = done[model.stage]
            done[model.stage] += 1
            with self.log.step("F", microbatch, model.stage):
                result = forward(func, data, model, *args, **kwargs)
            outputs[id(_first(result[0]))] = microbatch, model.stage
            return result

        def backward_step(inputs: Any, output: Any, *args: Any) -> Any:
            with self.log.step("B", *outputs.pop(id(_first(output)))):
                return backward(inputs, output, *args)

        return forward_step, backward_step

    def _marked(self, send: Callable[..., Any]) -> Callable[..., Any]:
        def wrapped(**kwargs: Any) -> Any:
            # What goes on, or comes from before, is an activation.
            self.log.mark(kwargs["tensor_send_next"], kwargs["tensor_send_prev"])
            self.log.mark(kwargs["tensor_recv_prev"], kwargs["tensor_recv_next"])
            return send(**kwargs)

        return wrapped


def forward_step_func(
    data_iterator: Iterator[Batch], model: MegatronStage
) -> tuple[Tensor, Callable[[Tensor], tuple[Tensor, dict[str, Tensor]]]]:
    """Run a microbatch; return the output and what makes a loss of the last one."""
    tokens, labels = next(data_iterator)

    def loss_func(output: Tensor) -> tuple[Tensor, dict[str, Tensor]]:
        loss = compute_loss(output, labels)
        return loss, {"loss": loss.detach().clone()}

    return model(tokens), loss_func


def _first(value: Any) -> Any:
    return value[0] if isinstance(value, list) else value
