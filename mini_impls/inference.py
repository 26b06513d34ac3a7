"""Tensor-parallel generation: the prompt once, then a token at a time.

Training sees every position at once; generation asks for one more token, again and
again. Kept between two tokens are each layer's keys and values, on a rank only those of
its own query groups. A token is few multiplications and two all-reduces a layer: on a
slow link more ranks are slower.

Follows:
- NVIDIA/Megatron-LM: megatron/core/inference/contexts/static_context.py
- NVIDIA/Megatron-LM: megatron/core/transformer/attention.py
  (`_adjust_key_value_for_inference`)
- NVIDIA/Megatron-LM: megatron/core/tensor_parallel/layers.py (forward only)

Leaves out:
- sampling (the most likely token is taken), requests of different lengths, paging
- fewer query groups than ranks, where Megatron shares a group: refused here
- an embedding cut along the vocabulary: it is whole here, and its all-reduce missing
- what backward needs: `tensor_parallel.py`; prompts read apart: `inference_apart.py`
"""

import time
from dataclasses import dataclass, field

import torch
import torch.distributed as dist
from torch import Tensor, nn
from torch.nn import functional as F

from mini_impls.model import GPT, Embedding, GPTConfig, SelfAttention, TransformerLayer

# Dimension letters: B sequences, T tokens of one step, S tokens so far, D hidden,
# V vocabulary, N heads, G query groups, H width of a head, W world_size.

# --- 1. what is kept between two tokens ---


@dataclass(slots=True)
class StaticInferenceContext:
    """Keys and values of the tokens so far, in buffers as long as they may become."""

    max_batch_size: int
    max_sequence_length: int
    sequence_len_offset: int = 0
    """Tokens whose keys and values are in the buffers."""
    key_value_memory_dict: dict[int, tuple[Tensor, Tensor]] = field(
        default_factory=dict
    )
    """Per layer: keys and values, each (B, G/W, max_sequence_length, H)."""

    def adjust_key_value(
        self, layer_number: int, key: Tensor, value: Tensor
    ) -> tuple[Tensor, Tensor]:
        """Append (B, G/W, T, H) of one layer; return all so far, (B, G/W, S, H)."""
        if layer_number not in self.key_value_memory_dict:
            b, g, _, h = key.shape
            shape = (b, g, self.max_sequence_length, h)
            memory = (key.new_empty(shape), value.new_empty(shape))
            self.key_value_memory_dict[layer_number] = memory
        keys, values = self.key_value_memory_dict[layer_number]
        start = self.sequence_len_offset
        stop = start + key.size(2)
        keys[:, :, start:stop], values[:, :, start:stop] = key, value
        return keys[:, :, :stop], values[:, :, :stop]  # (B, G/W, S, H) each

    def num_bytes(self) -> int:
        """Return the bytes that the buffers take on this rank."""
        pairs = self.key_value_memory_dict.values()
        return sum(tensor.nbytes for pair in pairs for tensor in pair)


# --- 2. the layers, forward only ---


def shard(master: Tensor, partition_dim: int, group: dist.ProcessGroup) -> nn.Parameter:
    """Return this rank's slice of a full weight."""
    mine = master.detach().chunk(group.size(), dim=partition_dim)[group.rank()]  # 1/W
    return nn.Parameter(mine.clone(), requires_grad=False)


class ColumnParallelLinear(nn.Module):
    """Maps (B, T, I), the same on every rank, to this rank's (B, T, O/W)."""

    def __init__(self, master: nn.Linear, tp_group: dist.ProcessGroup) -> None:
        super().__init__()
        self.weight = shard(master.weight, 0, tp_group)  # (O/W, I)
        self.bias = None if master.bias is None else shard(master.bias, 0, tp_group)

    def forward(self, input_: Tensor) -> Tensor:
        """Send nothing."""
        return F.linear(input_, self.weight, self.bias)


class RowParallelLinear(nn.Module):
    """Maps this rank's (B, T, I/W) to (B, T, O), the same on every rank."""

    def __init__(self, master: nn.Linear, tp_group: dist.ProcessGroup) -> None:
        super().__init__()
        self.tp_group = tp_group
        self.weight = shard(master.weight, 1, tp_group)  # (O, I/W)
        self.bias = master.bias  # whole, on every rank

    def forward(self, input_: Tensor) -> Tensor:
        """Add up what the ranks made: one of a layer's two all-reduces."""
        output = F.linear(input_, self.weight)  # (B, T, O), one part of W
        if self.tp_group.size() > 1:
            dist.all_reduce(output, group=self.tp_group)  # (B, T, O)
        # After the sum: before it, the bias would count world_size times.
        return output if self.bias is None else output + self.bias


class CachedAttention(nn.Module):
    """Attends with the query groups of one rank, over all the tokens so far."""

    def __init__(
        self,
        master: SelfAttention,
        layer_number: int,
        context: StaticInferenceContext,
        tp_group: dist.ProcessGroup,
    ) -> None:
        super().__init__()
        self.layer_number, self.context = layer_number, context
        self.heads_per_group = master.heads_per_group
        self.kv_channels = master.kv_channels
        self.linear_qkv = ColumnParallelLinear(master.linear_qkv, tp_group)
        self.linear_proj = RowParallelLinear(master.linear_proj, tp_group)

    def forward(self, hidden: Tensor) -> Tensor:
        """(B, T, D) -> (B, T, D), and the cache is T tokens longer."""
        b, t, _ = hidden.shape
        qkv = self.linear_qkv(hidden)  # (B, T, G/W (N/G+2) H)
        qkv = qkv.view(b, t, -1, self.heads_per_group + 2, self.kv_channels)
        query, key, value = qkv.split([self.heads_per_group, 1, 1], dim=3)
        query = query.flatten(2, 3).transpose(1, 2)  # (B, N/W, T, H)
        key = key.squeeze(3).transpose(1, 2)  # (B, G/W, T, H)
        value = value.squeeze(3).transpose(1, 2)  # (B, G/W, T, H)
        key, value = self.context.adjust_key_value(self.layer_number, key, value)
        # Past the prompt there is one query, and every key is before it: no mask.
        is_prompt = self.context.sequence_len_offset == 0
        context = F.scaled_dot_product_attention(
            query, key, value, is_causal=is_prompt, enable_gqa=True
        )  # (B, N/W, T, H)
        context = context.transpose(1, 2).reshape(b, t, -1)  # (B, T, NH/W)
        return self.linear_proj.forward(context)


class OffsetEmbedding(nn.Module):
    """Words, and positions that go on where the cache ends; whole on every rank."""

    def __init__(self, master: Embedding, context: StaticInferenceContext) -> None:
        super().__init__()
        self.context = context
        self.word_embeddings = master.word_embeddings
        self.position_embeddings = master.position_embeddings

    def forward(self, tokens: Tensor) -> Tensor:
        """Tokens (B, T) -> hidden states (B, T, D)."""
        start = self.context.sequence_len_offset
        positions = torch.arange(start, start + tokens.size(1), device=tokens.device)
        out: Tensor = self.word_embeddings(tokens) + self.position_embeddings(positions)
        return out


class LastTokenLogits(nn.Module):
    """Scores of the next token alone, gathered: every rank picks the same one."""

    def __init__(self, master: nn.Linear, tp_group: dist.ProcessGroup) -> None:
        super().__init__()
        self.tp_group = tp_group
        self.weight = shard(master.weight, 0, tp_group)  # (V/W, D)

    def forward(self, hidden: Tensor) -> Tensor:
        """(B, T, D) -> (B, V), the same on every rank."""
        logits = F.linear(hidden[:, -1], self.weight)  # (B, V/W)
        if self.tp_group.size() == 1:
            return logits
        world_size = self.tp_group.size()
        shards = logits.new_empty(world_size * logits.size(0), logits.size(1))
        dist.all_gather_single(shards, logits, group=self.tp_group)  # (WB, V/W)
        return torch.cat(shards.chunk(world_size), dim=-1)  # (B, V)


# --- 3. a model that generates ---


def check_sizes(config: GPTConfig, world_size: int) -> None:
    """Raise ValueError where the model cannot be cut into that many slices."""
    sizes = {
        "query groups": config.num_query_groups,
        "MLP channels": config.ffn_hidden_size,
        "vocabulary entries": config.vocab_size,
    }
    for what, size in sizes.items():
        if size % world_size:
            raise ValueError(f"{size} {what} are not divisible by {world_size} ranks")


def tensor_parallel(
    gpt: GPT, context: StaticInferenceContext, tp_group: dist.ProcessGroup
) -> None:
    """Put this rank's slices, and the cache, in the place of a full model's layers."""
    check_sizes(gpt.config, tp_group.size())
    gpt.requires_grad_(False)
    gpt.add_module("embedding", OffsetEmbedding(gpt.embedding, context))
    for layer_number, layer in enumerate(gpt.layers, 1):
        assert isinstance(layer, TransformerLayer)
        attention = layer.self_attention
        attention_shard = CachedAttention(attention, layer_number, context, tp_group)
        layer.add_module("self_attention", attention_shard)
        mlp = layer.mlp
        mlp.add_module("linear_fc1", ColumnParallelLinear(mlp.linear_fc1, tp_group))
        mlp.add_module("linear_fc2", RowParallelLinear(mlp.linear_fc2, tp_group))
    gpt.add_module("output_layer", LastTokenLogits(gpt.output_layer, tp_group))


@dataclass(frozen=True, slots=True)
class Generation:
    """What was generated, and how long it took."""

    tokens: Tensor
    """The prompt and what follows it, (B, S)."""
    prefill_s: float
    """Seconds until the first new token: the whole prompt in one step."""
    token_s: list[float]
    """Seconds of every further token."""


@torch.inference_mode()
def generate(
    gpt: GPT, prompt: Tensor, num_tokens: int, context: StaticInferenceContext
) -> Generation:
    """Continue (B, T) tokens by the `num_tokens` most likely ones.

    Raises:
        ValueError: where prompt and continuation do not fit the cache.
    """
    for what, size, limit in (
        ("tokens", prompt.size(1) + num_tokens, context.max_sequence_length),
        ("sequences", prompt.size(0), context.max_batch_size),
    ):
        if size > limit:
            raise ValueError(f"{size} {what} do not fit a cache for {limit}")
    gpt.eval()
    tokens, tokens2use, seconds = prompt, prompt, []
    for _ in range(num_tokens):
        start = time.perf_counter()
        logits = gpt(tokens2use)  # (B, V)
        context.sequence_len_offset += tokens2use.size(1)
        tokens2use = logits.argmax(dim=-1, keepdim=True)  # (B, 1), the same everywhere
        tokens = torch.cat([tokens, tokens2use], dim=1)  # (B, S)
        if tokens.is_cuda:
            torch.cuda.synchronize()
        seconds.append(time.perf_counter() - start)
    return Generation(tokens, sum(seconds[:1]), seconds[1:])


if __name__ == "__main__":
    from mini_impls.demos.inference import main

    raise SystemExit(main())
