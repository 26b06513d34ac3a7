"""A model cut into the stages of a pipeline, and the weight that two of them share.

A stage is some consecutive layers; with the embedding in front on the first and the
head behind on the last. On p ranks of v chunks each, stages go round:

    layers    | 0 1 | 2 3 | 4 5 | 6 7 |      p = 2, v = 2
    stage     |  0  |  1  |  2  |  3  |
    rank      |  0  |  1  |  0  |  1  |

Follows:
- NVIDIA/Megatron-LM: megatron/core/pipeline_parallel/schedules.py
- NVIDIA/Megatron-LM: megatron/core/distributed/finalize_model_grads.py

Leaves out:
- stages of unequal length, or with a part of a layer
- building only the stages that a rank holds: they are taken from a whole model
- freezing a parameter after the cut
"""

from collections.abc import Iterable, Iterator, Mapping

import torch.distributed as dist
from torch import Tensor, nn

from mini_impls.model import GPT, GPTConfig
from mini_impls.schedules import Step
from mini_impls.timeline import Exchange

# Dimension letters: B sequences of a microbatch, T tokens, D hidden, V vocabulary.
# p ranks, v model chunks a rank, as in `schedules.py`.

# --- 1. the stages of a model ---


class PipelineStage(nn.Module):
    """Some consecutive layers; the first stage has the embedding, the last the head."""

    def __init__(self, gpt: GPT, stage: int, num_stages: int) -> None:
        super().__init__()
        self.pre_process, self.post_process = stage == 0, stage == num_stages - 1
        self.first_trained = find_first_trained(gpt, num_stages)
        per_stage = len(gpt.layers) // num_stages
        first = stage * per_stage
        # A ModuleDict keeps the names that the layers have in the full model.
        self.layers = nn.ModuleDict(
            {str(i): gpt.layers[i] for i in range(first, first + per_stage)}
        )
        if self.pre_process:
            self.embedding = gpt.embedding
        if self.post_process:
            self.final_layernorm = gpt.final_layernorm
            self.output_layer = gpt.output_layer

    def forward(self, input_tensor: Tensor) -> Tensor:
        """Map tokens (B, T) or hidden states (B, T, D) to hidden states or logits."""
        hidden = self.embedding(input_tensor) if self.pre_process else input_tensor
        for layer in self.layers.values():
            hidden = layer(hidden)  # (B, T, D)
        if self.post_process:
            hidden = self.output_layer(self.final_layernorm(hidden))  # (B, T, V)
        output: Tensor = hidden
        return output


def split_model(
    gpt: GPT, rank: int, world_size: int, num_model_chunks: int = 1
) -> dict[int, PipelineStage]:
    """Return the stages of one rank: rank, p + rank, 2p + rank, ..."""
    num_stages = world_size * num_model_chunks
    check_sizes(gpt.config, num_stages)
    return {
        stage: PipelineStage(gpt, stage, num_stages)
        for stage in range(rank, num_stages, world_size)
    }


def check_sizes(config: GPTConfig, num_stages: int) -> None:
    """Raise ValueError where the model cannot be cut into that many stages."""
    if config.num_layers % num_stages:
        raise ValueError(
            f"{config.num_layers} layers cannot be cut into {num_stages} equal stages"
        )
    if config.hidden_dropout:
        raise ValueError(f"hidden_dropout must be 0 here, not {config.hidden_dropout}")


# --- 2. frozen stages, to which no gradient goes ---


def find_first_trained(gpt: GPT, num_stages: int) -> int:
    """Return the first stage that has something to train; none before has gradients."""
    params = [list(layer.parameters()) for layer in gpt.layers]
    params[0] += gpt.embedding.parameters()
    trained = [any(param.requires_grad for param in layer) for layer in params]
    per_stage = len(gpt.layers) // num_stages
    return trained.index(True) // per_stage if any(trained) else num_stages - 1


def without_frozen(
    plan: Iterable[Step | Exchange], first_trained: int
) -> Iterator[Step | Exchange]:
    """Yield a rank's plan without gradients from the first trained stage or before."""
    for item in plan:
        if not isinstance(item, tuple):
            yield item
        elif exchange := tuple(
            transfer
            for transfer in item
            if transfer.made_by.kind == "F" or transfer.made_by.stage > first_trained
        ):
            yield exchange


# --- 3. tied weights, on two ranks ---


def allreduce_word_embedding_grads(
    stages: Mapping[int, PipelineStage], embd_group: dist.ProcessGroup
) -> None:
    """Add up the gradients of the weight that first and last stage have a copy of.

    For the group of these two ranks alone; equal gradients keep the copies equal. A
    frozen weight has none on either.
    """
    for stage in stages.values():
        weight = None
        if stage.pre_process:
            weight = stage.embedding.word_embeddings.weight
        elif stage.post_process:
            weight = stage.output_layer.weight
        if weight is not None and weight.requires_grad:
            assert weight.grad is not None
            dist.all_reduce(weight.grad, group=embd_group)  # (V, D)
