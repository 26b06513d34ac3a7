"""The recomputation mini beside torch's checkpoints and Megatron's.

The model's frame is the mini's on both sides. Whatever keeps and runs again is torch's
or Megatron's on the other; beside Megatron so are layers, loss, random streams, and the
walk over the layers that are checkpointed.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from importlib import import_module
from types import SimpleNamespace
from typing import Any

import torch
from torch import Tensor, nn
from torch.utils import checkpoint as torch_checkpoint

from mini_impls.compare import megatron
from mini_impls.compare.sides import (
    Alone,
    Comparison,
    Formula,
    Formulas,
    Sides,
    Tolerance,
    trained,
)
from mini_impls.compare.tensor_parallel import (
    MegatronLayers,
    TensorParallelSide,
    replace_layers,
)
from mini_impls.demos.recompute import (
    PRODUCTS,
    get_recompute_traffic,
    keeping_products,
    selective,
)
from mini_impls.launch import Rank
from mini_impls.model import GPT, GPTConfig, build_model
from mini_impls.recompute import RandomStreams, Run
from mini_impls.recompute_model import (
    Checkpoint,
    CoreAttention,
    Recompute,
    RecomputedGPT,
    RecomputedLayer,
)
from mini_impls.tensor_parallel import check_sizes, tensor_parallel
from mini_impls.vocab_parallel_loss import vocab_parallel_cross_entropy

CONFIG = GPTConfig(num_query_groups=4, hidden_dropout=0.1)
ATTENTION_DROPOUT = 0.1
"""Beside Megatron: torch's checkpoint knows nothing of a rank's own stream."""
SEED = 0
FULL = Recompute("full")
PARTS = selective("core_attn", "layernorm", "mlp")


def build_mini(
    rank: Rank, comparison: Comparison, plan: Recompute, p: float
) -> TensorParallelSide:
    """Return the mini, whose attention drops with probability `p`."""
    gpt = build_model(comparison.config).to(rank.device)
    tensor_parallel(gpt, rank.group)
    streams = RandomStreams(rank.device)
    streams.manual_seed(SEED, rank.rank)
    model = RecomputedGPT(gpt, plan, streams, rank.group, attention_dropout=p)
    return TensorParallelSide(model, loss_of(rank), comparison.learning_rate)


def loss_of(rank: Rank) -> Callable[[Tensor, Tensor], Tensor]:
    """Return the mini's loss of logits that are cut by vocabulary."""

    def loss(logits: Tensor, labels: Tensor) -> Tensor:
        return vocab_parallel_cross_entropy(logits, labels, rank.group).mean()

    return loss


def formulas(
    comparison: Comparison, rank: Rank, plan: Recompute, model: nn.Module
) -> Formulas:
    """Return what a step sends, and slices of everything."""
    config, layers = comparison.config, comparison.config.num_layers
    tokens = comparison.rows_per_rank * config.max_sequence_length
    again = layers * (2 if plan.granularity == "full" else 1)
    hidden = f"4 B x {tokens * config.hidden_size:,}"
    texts = {
        "all_reduce": f"({4 * layers} + 2 activations + {again} again) x {hidden} + "
        f"3 losses x 4 B x {tokens:,}",
        "all_gather": f"{layers} inputs x {hidden}",
    }
    traffic = get_recompute_traffic(config, tokens, rank.world_size, plan)
    sent = {op: Formula(n, texts[op]) for op, n in traffic.items()}
    return Formulas.alike(sent, trained(model.parameters(), "sliced parameters"))


# --- torch ---


def reentrant(run_function: Run, streams: RandomStreams, *args: Tensor) -> Tensor:
    """Call torch's checkpoint as the mini is called; it finds generators by itself."""
    out: Tensor = torch_checkpoint.checkpoint(run_function, *args, use_reentrant=True)
    return out


def with_policy(run_function: Run, streams: RandomStreams, *args: Tensor) -> Tensor:
    """Call torch's other checkpoint, which keeps products with weights."""
    contexts = torch_checkpoint.create_selective_checkpoint_contexts
    out: Tensor = torch_checkpoint.checkpoint(
        run_function,
        *args,
        use_reentrant=False,
        context_fn=partial(contexts, list(PRODUCTS)),
    )
    return out


def build_torch(
    ours: Checkpoint, theirs: Checkpoint, rank: Rank, comparison: Comparison
) -> Sides:
    """Return the mini, and its frame with torch's checkpoint."""
    plan = replace(FULL, checkpoint=ours)
    mini = build_mini(rank, comparison, plan, 0.0)
    upstream = build_mini(rank, comparison, replace(plan, checkpoint=theirs), 0.0)
    expected = formulas(comparison, rank, plan, mini.gpt)
    return Sides(mini, upstream, {rank.group.group_name: "tp"}, expected)


# --- Megatron ---


class MegatronStreams(RandomStreams):
    """The mini's interface to the streams of Megatron's tracker."""

    def __init__(self, rank: Rank) -> None:
        super().__init__(rank.device)
        self.random: Any = import_module("megatron.core.tensor_parallel.random")
        self.random.model_parallel_cuda_manual_seed(SEED)

    @contextmanager
    def fork(self, name: str = "model-parallel-rng") -> Iterator[None]:
        """Draw from Megatron's stream of this name."""
        with self.random.get_cuda_rng_tracker().fork(name):
            yield


class MegatronBlock(RecomputedGPT):
    """The mini's frame, whose layers Megatron's block walks over."""

    def run_layers(self, hidden: Tensor) -> Tensor:
        """(B, T, D) -> (B, T, D)."""
        if self.plan.granularity != "full":
            return super().run_layers(hidden)
        module: Any = import_module("megatron.core.transformer.transformer_block")
        block = SimpleNamespace(
            config=SimpleNamespace(
                fp8=None,
                fp4=None,
                distribute_saved_activations=self.plan.distribute_saved_activations,
                recompute_method=self.plan.method,
                recompute_num_layers=self.plan.num_layers,
            ),
            num_layers_per_pipeline_rank=len(self.layers),
            _get_layer=self.get_layer,
        )
        out: Tensor = module.TransformerBlock._checkpointed_forward(
            block,
            hidden_states=hidden,
            attention_mask=None,
            context=None,
            context_mask=None,
            rotary_pos_emb=None,
            attention_bias=None,
            packed_seq_params=None,
            use_inner_quantization_context=False,
        )
        return out

    def get_layer(self, number: int) -> Callable[..., tuple[Tensor, None]]:
        """Return a layer that is called, and answers, as Megatron's."""
        layer = self.layers[number]
        return lambda hidden_states, **rest: (layer(hidden_states), None)


def build_megatron(plan: Recompute, rank: Rank, comparison: Comparison) -> Sides:
    """Return the mini, and its frame with Megatron's parts."""
    groups = megatron.start(rank, tensor=rank.world_size)
    random: Any = import_module("megatron.core.tensor_parallel.random")
    cross_entropy: Any = import_module("megatron.core.tensor_parallel.cross_entropy")
    mini = build_mini(rank, comparison, plan, ATTENTION_DROPOUT)

    def loss(logits: Tensor, labels: Tensor) -> Tensor:
        each: Tensor = cross_entropy.vocab_parallel_cross_entropy(logits, labels)
        return each.mean()

    theirs = replace(
        plan,
        checkpoint=lambda run, streams, *args: random.checkpoint(run, False, *args),
        # Any other `fp8` but None asks Transformer Engine for its state.
        checkpoint_without_output=lambda streams: random.CheckpointWithoutOutput(None),
    )
    gpt: GPT = build_model(comparison.config).to(rank.device)
    tensor_parallel(gpt, rank.group)
    layers = MegatronLayers(comparison.config, rank.world_size)
    replace_layers(gpt, layers, rank.world_size)
    model = MegatronBlock(
        gpt,
        theirs,
        MegatronStreams(rank),
        rank.group,
        attention_dropout=ATTENTION_DROPOUT,
    )
    upstream = TensorParallelSide(model, loss, comparison.learning_rate)
    expected = formulas(comparison, rank, plan, mini.gpt)
    return Sides(mini, upstream, {rank.group.group_name: "tp", **groups}, expected)


# --- one process ---


class AttentionOfRanks(nn.Module):
    """Attention of one process, each slice of which drops as its rank would."""

    def __init__(self, parts: list[CoreAttention]) -> None:
        super().__init__()
        self.parts = nn.ModuleList(parts)

    def forward(self, mixed_qkv: Tensor) -> Tensor:
        """Map all groups, slice by slice."""
        slices = zip(self.parts, mixed_qkv.chunk(len(self.parts), -1), strict=True)
        return torch.cat([part(each.contiguous()) for part, each in slices], -1)


def alone(
    world_size: int,
    p: float,
    config: GPTConfig,
    microbatches: int,
    device: torch.device,
) -> Alone:
    """Return a model that draws the numbers of so many ranks."""
    streams = [RandomStreams(device) for _ in range(world_size)]
    model = RecomputedGPT(build_model(config).to(device), Recompute(), streams[0])
    for layer in model.layers:
        assert isinstance(layer, RecomputedLayer)
        parts = [CoreAttention(layer.self_attention, p, each) for each in streams]
        layer.add_module("core_attention", AttentionOfRanks(parts))
    for rank, each in enumerate(streams):
        each.manual_seed(SEED, rank)
    torch.manual_seed(0)  # as a comparison's sides begin
    return Alone(model)  # type: ignore[arg-type]


def resize(p: float, comparison: Comparison, world_size: int) -> Comparison:
    """Return the comparison whose one process draws for so many ranks."""
    return replace(comparison, alone=partial(alone, world_size, p))


def check(world_size: int) -> None:
    """Raise ValueError where the model cannot be cut so."""
    check_sizes(CONFIG, world_size)


def comparison(upstream: str, build: Callable[..., Sides], p: float) -> Comparison:
    """Return the comparison of this name."""
    of_megatron = upstream.startswith("megatron")
    return Comparison(
        mini="recompute",
        covers=frozenset({"activation checkpointing"}),
        upstream=upstream,
        build=build,
        tolerance=Tolerance(
            1e-4, "the loss is put together in another order of operations"
        ),
        config=CONFIG,
        data_parallel=False,
        upstreams=("megatron",) if of_megatron else ("pytorch",),
        shims=("current_device", "cpu_streams") if of_megatron else (),
        check=check,
        alone=partial(alone, 1, p),
        resize=partial(resize, p),
    )


SHARDED = replace(FULL, distribute_saved_activations=True)
COMPARISONS = (
    comparison(
        "torch_reentrant", partial(build_torch, FULL.checkpoint, reentrant), 0.0
    ),
    comparison(
        "torch_selective", partial(build_torch, keeping_products, with_policy), 0.0
    ),
    comparison("megatron", partial(build_megatron, SHARDED), ATTENTION_DROPOUT),
    comparison("megatron_selective", partial(build_megatron, PARTS), ATTENTION_DROPOUT),
)
