"""Prompts read on some ranks, continued on others, beside one process with one cache.

Every rank runs the one process too: the whole model around Megatron's cache, one prompt
after another. Nothing is trained, so there is no loss: what is held against it are the
tokens, and the keys and values of the last prompt.
"""

from collections import Counter
from collections.abc import Sequence
from importlib import import_module
from types import SimpleNamespace
from typing import Any

import torch.distributed as dist
from torch import Tensor

from mini_impls.compare import megatron
from mini_impls.compare.sides import (
    Comparison,
    Formula,
    Formulas,
    Held,
    SetPhase,
    Sides,
    Tolerance,
    all_bytes,
)
from mini_impls.demos.inference import get_handover_bytes, get_traffic
from mini_impls.inference import StaticInferenceContext, generate, tensor_parallel
from mini_impls.inference_apart import PromptSides, serve, split_ranks
from mini_impls.launch import Rank
from mini_impls.model import GPT, Batch, GPTConfig, build_model

CONFIG = GPTConfig(num_query_groups=4)
PROMPTS = ((4, 12), (4, 7))
"""Sequences and tokens of each."""
NUM_TOKENS = 6


def cut_prompts(batch: Batch) -> list[Tensor]:
    """Return the prompts of a step, each the beginnings of some rows."""
    rows = batch[0].split([b for b, _ in PROMPTS])
    lengths = [s for _, s in PROMPTS]
    return [r[:, :s].contiguous() for r, s in zip(rows, lengths, strict=True)]


class PromptsSide:
    """A side that continues prompts, seen as one rank of the mini sees it."""

    def __init__(
        self, gpt: GPT, context: StaticInferenceContext, sides: PromptSides
    ) -> None:
        self.gpt, self.context, self.sides = gpt, context, sides
        self.tokens: list[Tensor] = []

    def step(self, batch: Batch, set_phase: SetPhase) -> None:
        """Continue the prompts; there is no loss to return."""
        set_phase("forward")
        self.tokens = self.continued(cut_prompts(batch))

    def continued(self, prompts: Sequence[Tensor]) -> list[Tensor]:
        """Return the new tokens of each prompt, on ranks that have them."""
        raise NotImplementedError

    def of_rank(self, tensor: Tensor, dim: int) -> Tensor:
        """Return what this rank has of a tensor of this side."""
        raise NotImplementedError

    def parameters(self) -> dict[str, Tensor]:
        """Return weights, and what the last step made: tokens, keys and values."""
        named = dict(self.gpt.named_parameters())
        found = {name: self.of_rank(named[name], 0) for name in named if is_cut(name)}
        b, s = PROMPTS[-1]
        length = s if self.sides.reads else s + NUM_TOKENS - 1
        for layer, both in self.context.key_value_memory_dict.items():
            for what, memory in zip(("keys", "values"), both, strict=True):
                mine = self.of_rank(memory, 1)  # (B, G/P or G/W, S, H)
                found[f"{what} of layer {layer}"] = mine[:b, :, :length]
        if not self.sides.reads:
            for i, tokens in enumerate(self.tokens):
                found[f"tokens of prompt {i}"] = tokens.float()
        return found

    def gradients(self) -> dict[str, Tensor]:
        """Return none."""
        return {}

    def held(self) -> Held:
        """Return the weights; caches are what a step leaves behind."""
        weights: list[Tensor] = [*self.gpt.parameters()]
        return {"parameters": weights, "gradients": [], "optimizer state": []}

    def watched(self) -> tuple[()]:
        """Return nothing: there is no backward."""
        return ()


def is_cut(name: str) -> bool:
    """Tell whether ranks have rows of this weight, as of the whole model's."""
    return name.endswith(
        ("linear_qkv.weight", "linear_fc1.weight", "output_layer.weight")
    )


# --- the mini ---


class MiniSide(PromptsSide):
    """Ours: this rank reads, or it writes."""

    def continued(self, prompts: Sequence[Tensor]) -> list[Tensor]:
        """Do this rank's part."""
        return serve(self.gpt, self.context, prompts, NUM_TOKENS, self.sides).tokens

    def of_rank(self, tensor: Tensor, dim: int) -> Tensor:
        """Return all: this rank has no more."""
        return tensor


# --- one process, around Megatron's cache ---


class MegatronContext(StaticInferenceContext):
    """Megatron's cache, called as the mini's; its buffers are (S, B, G, H)."""

    def __init__(self, config: GPTConfig) -> None:
        rows, length = max(b for b, _ in PROMPTS), config.max_sequence_length
        super().__init__(rows, length)
        contexts: Any = import_module("megatron.core.inference.contexts.static_context")
        attention: Any = import_module("megatron.core.transformer.attention")
        self.theirs = contexts.StaticInferenceContext(rows, length)
        self.attention, self.enums = attention.Attention, attention.AttnMaskType
        self.frame = SimpleNamespace(
            attn_mask_type=self.enums.causal,
            training=False,
            config=SimpleNamespace(flash_decode=False),
            key_hidden_size=config.kv_channels,
            val_hidden_size=config.kv_channels,
            num_query_groups_per_partition=config.num_query_groups,
        )
        self.frame._allocate_memory = self.allocate

    def allocate(self, *args: Any) -> Tensor:
        """Allocate as Megatron's attention does."""
        buffer: Tensor = self.attention._allocate_memory(self.frame, *args)
        return buffer

    def adjust_key_value(
        self, layer_number: int, key: Tensor, value: Tensor
    ) -> tuple[Tensor, Tensor]:
        """Append (B, G, T, H) of one layer; return all so far, (B, G, S, H)."""
        self.frame.layer_number = layer_number
        self.theirs.sequence_len_offset = self.sequence_len_offset
        _, *both, _, mask, _ = self.attention._adjust_key_value_for_inference(
            self.frame,
            self.theirs,
            None,
            key.permute(2, 0, 1, 3),  # (T, B, G, H)
            value.permute(2, 0, 1, 3),
            None,
        )
        is_prompt = self.sequence_len_offset == 0  # then the mini's attention masks
        assert (mask is self.enums.causal) == is_prompt
        memory = self.theirs.key_value_memory_dict[layer_number]
        keys, values = (each.permute(1, 2, 0, 3) for each in memory)  # (B, G, S, H)
        self.key_value_memory_dict[layer_number] = keys, values
        keys, values = (each.permute(1, 2, 0, 3) for each in both)
        return keys, values


class OneProcessSide(PromptsSide):
    """The whole model on each rank, one prompt after another."""

    context: MegatronContext

    def continued(self, prompts: Sequence[Tensor]) -> list[Tensor]:
        """Read and write each prompt."""
        tokens = []
        for prompt in prompts:
            self.context.theirs.reset()
            self.context.sequence_len_offset = 0
            made = generate(self.gpt, prompt, NUM_TOKENS, self.context)
            tokens.append(made.tokens[:, -NUM_TOKENS:])
        return tokens

    def of_rank(self, tensor: Tensor, dim: int) -> Tensor:
        """Return what a rank of the mini has of it."""
        side = self.sides.tp_group
        return tensor.chunk(side.size(), dim)[side.rank()]


def build(rank: Rank, comparison: Comparison) -> Sides:
    """Return both sides."""
    made = megatron.start(rank)
    config = comparison.config
    sides = split_ranks(rank.group, rank.world_size // 2)
    alone = [dist.new_group([r]) for r in range(rank.world_size)][rank.rank]
    assert isinstance(alone, dist.ProcessGroup)
    mini, upstream = (build_model(config).to(rank.device) for _ in range(2))
    context = StaticInferenceContext(
        max(b for b, _ in PROMPTS), config.max_sequence_length
    )
    tensor_parallel(mini, context, sides.tp_group)
    theirs = MegatronContext(config)
    tensor_parallel(upstream, theirs, alone)
    names = {**made, rank.group.group_name: "all"}
    if sides.tp_group.size() > 1:
        names[sides.tp_group.group_name] = "tp"
    return Sides(
        MiniSide(mini, context, sides),
        OneProcessSide(upstream, theirs, sides),
        names,
        formulas(config, sides, mini, upstream),
    )


# --- what is sent and kept ---


def formulas(
    config: GPTConfig, sides: PromptSides, mini: GPT, upstream: GPT
) -> Formulas:
    """Return what this rank sends in a step: caches, and what its slices cost."""
    size = sides.tp_group.size()
    sent: Counter[str] = Counter()
    for b, s in PROMPTS:
        sent.update(get_handover_bytes(config, (b, s), sides))
        for t in [s] if sides.reads else [1] * (NUM_TOKENS - 1):
            sent.update(get_traffic(config, b, t, size))
    tokens = " + ".join(str(s) for _, s in PROMPTS)
    texts = {
        "all_reduce": "2 a layer x 4 B x tokens x hidden size",
        "all_gather": "a row of the vocabulary for each sequence and token",
    }
    handed = f"keys and values of {tokens} tokens in 4 B, and a token of 8 B a sequence"
    due = {op: Formula(n, texts.get(op, handed)) for op, n in sent.items()}
    what = "parameters of this rank's slices"
    return Formulas(
        {"mini": due, "upstream": {}},
        {
            "mini": {"parameters": all_bytes(mini.parameters(), what)},
            "upstream": {"parameters": all_bytes(upstream.parameters(), "parameters")},
        },
    )


def check(world_size: int) -> None:
    """Raise ValueError where query groups cannot be shared on both sides."""
    for ranks in (world_size // 2, world_size - world_size // 2):
        if CONFIG.num_query_groups % ranks:
            raise ValueError(
                f"{CONFIG.num_query_groups} query groups on {ranks} ranks of a side"
            )


COMPARISONS = (
    Comparison(
        mini="inference",
        upstream="megatron_alone",
        build=build,
        config=CONFIG,
        rows_per_rank=sum(b for b, _ in PROMPTS),
        data_parallel=False,
        tolerance=Tolerance(
            1e-4, "slices of a model add up in another order, and keys follow"
        ),
        of_two_ranks=Tolerance(
            0.0, "each side has the whole model; a copy is the same"
        ),
        upstreams=("megatron",),
        shims=("current_device",),
        uneven=True,
        check=check,
    ),
)
