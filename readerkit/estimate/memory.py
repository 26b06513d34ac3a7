"""Memory of the most loaded GPU: what a layout keeps where, and what fails first.

Leaves out what depends on the allocator (fragmentation), the CUDA context and the
buffers of NCCL; a caller keeps a share of the GPU for them.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

from readerkit.estimate.activations import (
    PAPER,
    in_flight,
    kv_cache_bytes,
    layer_activations,
)
from readerkit.estimate.layout import Layout, check_fit, stage_layers
from readerkit.estimate.quantity import (
    Estimate,
    Item,
    Number,
    check_amount,
    check_fraction,
    divide,
)
from readerkit.estimate.shape import (
    SOURCE,
    Shape,
    Weights,
    embedding_parameters,
    head_parameters,
    layer_parameters,
    padded_vocab,
    parameter_count,
)
from readerkit.estimate.states import Precision, precision

STEADY = "second forward"


# --- 1. which weights a rank holds ----------------------------------------------------


def layers_of_rank(shape: Shape, layout: Layout, rank: int) -> tuple[int, int]:
    """Return how many dense and how many expert layers a pipeline rank holds."""
    counts = stage_layers(shape.layers, layout.pp, layout.virtual_stages)
    if not shape.experts:
        return counts[rank], 0
    v, size = layout.virtual_stages, counts[rank] // layout.virtual_stages
    if v == 1:
        held = range(sum(counts[:rank]), sum(counts[: rank + 1]))
        dense = sum(1 for layer in held if layer < shape.dense_layers)
        return dense, len(held) - dense
    starts = ((chunk * layout.pp + rank) * size for chunk in range(v))
    dense = sum(
        1
        for start in starts
        for layer in range(start, start + size)
        if layer < shape.dense_layers
    )
    return dense, counts[rank] - dense


def rank_weights(
    shape: Shape, layout: Layout, rank: int, *, vocab_multiple: int = 1
) -> tuple[Number, Number]:
    """Return the parameters on one rank of a pipeline stage: dense, and of experts."""
    tp = layout.tp
    vocab = padded_vocab(vocab=shape.vocab, multiple=vocab_multiple, tensor_parallel=tp)
    dense, moe = layers_of_rank(shape, layout, rank)
    held = Weights()
    if dense:
        held += layer_parameters(shape, moe=False, tensor_parallel=tp).times(dense)
    if moe:
        held += layer_parameters(shape, moe=True, tensor_parallel=tp).times(moe)
    first, last = rank == 0, rank == layout.pp - 1
    if first:
        held += embedding_parameters(shape, vocab)
    if last:
        # A tied table stands on the first and the last stage, as two copies.
        tied = shape.tied_embeddings and first
        held += head_parameters(shape, vocab, tied=tied)
    return (
        divide(held.split, tp) + held.whole,
        divide(held.expert, tp * layout.ep),
    )


# --- 2. bytes on one rank -------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class RankMemory:
    """Bytes on one GPU of one pipeline rank."""

    rank: int
    params: Number
    weights: Number
    gradients: Number
    optimizer: Number
    master: Number
    """The part of the optimizer's that exists before the first step."""
    gathered: Number
    """Weights, and one unit's gradients, that stage 3 holds whole for a while."""
    activations: Number
    recomputed: Number
    """The working set of one layer that is computed anew in the backward pass."""
    logits: Number

    @property
    def total(self) -> Number:
        """All of it, at the peak of a step."""
        return (
            self.weights
            + self.gradients
            + self.optimizer
            + self.gathered
            + self.activations
            + self.recomputed
            + self.logits
        )


def rank_memory(
    shape: Shape, layout: Layout, kept: Precision, rank: int, *, vocab_multiple: int = 1
) -> RankMemory:
    """Return the bytes on one GPU of a pipeline rank."""
    dense, expert = rank_weights(shape, layout, rank, vocab_multiple=vocab_multiple)
    replicas = layout.replicas

    def held(size: int, sharded_from: int) -> Number:
        if layout.zero < sharded_from:
            return (dense + expert) * size
        return divide(dense * size, replicas) + divide(
            expert * size, replicas // layout.ep
        )

    activations, recomputed = _activations(shape, layout, rank)
    return RankMemory(
        rank=rank,
        params=dense + expert,
        weights=held(kept.weight, 3),
        gradients=held(kept.gradient, 2),
        optimizer=held(kept.optimizer, 1),
        master=held(kept.master, 1),
        gathered=_gathered(shape, layout, kept, rank),
        activations=activations,
        recomputed=recomputed,
        logits=_logits(shape, layout, vocab_multiple) if rank == layout.pp - 1 else 0,
    )


def _gathered(shape: Shape, layout: Layout, kept: Precision, rank: int) -> Number:
    """Two layers' weights in flight, and one layer's gradients before their sum."""
    if layout.zero < 3 or layout.replicas == 1:
        return 0
    _, moe = layers_of_rank(shape, layout, rank)
    unit = layer_parameters(shape, moe=bool(moe), tensor_parallel=layout.tp)
    params = divide(unit.split, layout.tp) + unit.whole
    params += divide(unit.expert, layout.tp * layout.ep)
    return params * (2 * kept.weight + kept.gradient)


@lru_cache(maxsize=4096)
def _layer(shape: Shape, layout: Layout, recompute: str, moe: bool) -> Number:
    tensors = layer_activations(
        shape,
        sequence=layout.sequence // layout.cp,
        micro_batch=layout.micro_batch,
        tensor_parallel=layout.tp,
        sequence_parallel=layout.shards_sequence,
        recompute=recompute,
        flash=layout.flash,
        moe=moe,
    )
    return sum(tensors.values())


def _activations(shape: Shape, layout: Layout, rank: int) -> tuple[Number, Number]:
    """Return the bytes held for the backward pass, and those of one layer anew."""
    dense, moe = layers_of_rank(shape, layout, rank)
    chunks = in_flight(
        schedule=layout.schedule,
        pipeline_parallel=layout.pp,
        microbatches=layout.microbatches,
        virtual_stages=layout.virtual_stages,
        rank=rank,
    )
    one_pass: Number = 0
    again: Number = 0
    for count, is_moe in ((dense, False), (moe, True)):
        if count:
            kept = _layer(shape, layout, layout.recompute, is_moe)
            one_pass += count * kept
            if layout.recompute != "none":
                whole = _layer(shape, layout, "none", is_moe)
                again = max(again, whole - kept)
    held = divide(one_pass * chunks, layout.virtual_stages)
    if rank == 0 and shape.dropout:
        # Only the first chunk of the first rank has the embedding and its mask.
        tokens = layout.sequence // layout.cp * layout.micro_batch
        shard = layout.tp if layout.shards_sequence else 1
        passes = min(layout.microbatches, -(-chunks // layout.virtual_stages))
        held += divide(tokens * shape.hidden * passes, shard)
    return held, again


def _logits(shape: Shape, layout: Layout, vocab_multiple: int) -> Number:
    """Return 4 s b h (1 + V/h) / t: last norm, output matrix, fp32 logits."""
    tokens = layout.sequence // layout.cp * layout.micro_batch
    shard = layout.tp if layout.shards_sequence else 1
    vocab = padded_vocab(
        vocab=shape.vocab, multiple=vocab_multiple, tensor_parallel=layout.tp
    )
    return divide(4 * tokens * shape.hidden, shard) + divide(
        4 * tokens * vocab, layout.tp
    )


def most_loaded(
    shape: Shape, layout: Layout, kept: Precision, *, vocab_multiple: int = 1
) -> RankMemory:
    """Return the pipeline rank whose GPU holds most.

    Between the first and the last rank, weights are the same and fewer microbatches
    are in flight: the first of them and the two ends are enough to look at.
    """
    ranks = {0, min(1, layout.pp - 1), layout.pp - 1}
    if shape.dense_layers:
        ranks = set(range(layout.pp))
    each = (
        rank_memory(shape, layout, kept, rank, vocab_multiple=vocab_multiple)
        for rank in sorted(ranks)
    )
    return max(each, key=lambda memory: memory.total)


# --- 3. as an estimate ----------------------------------------------------------------


def estimate_training(
    shape: Shape,
    layout: Layout,
    *,
    convention: str = "mixed-18",
    vocab_multiple: int = 1,
    gpu_bytes: Number | None = None,
    reserve: Number = 0,
) -> Estimate:
    """Return the memory of the most loaded GPU, item by item.

    Raises:
        EstimateError: a layout that the model cannot be cut into.
    """
    check_fit(shape, layout)
    kept = precision(convention)
    most = most_loaded(shape, layout, kept, vocab_multiple=vocab_multiple)
    shards = f"/ {layout.replicas}" if layout.replicas > 1 else ""
    named = f"{convention}: {kept.says}"

    def state(name: str, value: Number, size: int, sharded_from: int) -> Item:
        sharded = layout.zero >= sharded_from and layout.replicas > 1
        formula = f"{size} B × {most.params} parameters{f' {shards}' * sharded}"
        where = f"ZeRO stage {layout.zero}, {layout.replicas} ranks"
        return Item(name, value, "bytes", formula, kept.source, f"{named}; {where}")

    total = parameter_count(shape)
    items = [
        Item("parameters", total, "parameters", "all of the model", SOURCE),
        Item(
            "parameters on the GPU",
            most.params,
            "parameters",
            f"pipeline rank {most.rank} of {layout.pp}, cut over tp {layout.tp}"
            + (f", experts over ep {layout.ep}" if layout.ep > 1 else ""),
            SOURCE,
        ),
        Item(
            "bytes per parameter",
            kept.total,
            "bytes/parameter",
            f"{kept.weight} + {kept.gradient} + {kept.optimizer}, before sharding",
            kept.source,
            named,
        ),
        state("weights", most.weights, kept.weight, 3),
        state("gradients", most.gradients, kept.gradient, 2),
        state("optimizer", most.optimizer, kept.optimizer, 1),
    ]
    if most.gathered:
        items.append(
            Item(
                "gathered units",
                most.gathered,
                "bytes",
                f"a layer × (2 × {kept.weight} B weights + {kept.gradient} B gradient)",
                "Zhao et al. 2304.11277, sections 3.2.1 and 3.4.2",
                "a unit is a layer; two in flight",
            )
        )
    items += _activation_items(layout, most)
    items.append(
        Item("total", most.total, "bytes", "the sum at the peak of a step", SOURCE)
    )
    notes = []
    if gpu_bytes is not None:
        items += fit_items(most, gpu_bytes, reserve)
        notes.append(first_failure(most, kept, gpu_bytes, reserve))
    notes.append(
        "GB is 10^9 bytes, GiB 2^30. DeepSpeed's estimators divide by 2^30 and print "
        "GB, and count no activations."
    )
    return Estimate("memory of the most loaded GPU", tuple(items), tuple(notes))


def _activation_items(layout: Layout, most: RankMemory) -> list[Item]:
    chunks = in_flight(
        schedule=layout.schedule,
        pipeline_parallel=layout.pp,
        microbatches=layout.microbatches,
        virtual_stages=layout.virtual_stages,
        rank=most.rank,
    )
    cut = f"tp {layout.tp}{', sequence parallel' * layout.shards_sequence}"
    attention = "flash attention" if layout.flash else "attention scores in memory"
    items = [
        Item(
            "activations",
            most.activations,
            "bytes",
            f"{chunks} in flight ({layout.schedule}) × 1/{layout.virtual_stages} of "
            f"the rank's layers, {cut}, cp {layout.cp}",
            PAPER,
            f"{layout.recompute} recompute; {attention}; 2 B an element",
        )
    ]
    if most.recomputed:
        items.append(
            Item(
                "one layer recomputed",
                most.recomputed,
                "bytes",
                "what recompute dropped, of one layer",
                SOURCE,
                "the paper leaves it out",
            )
        )
    if most.logits:
        items.append(
            Item(
                "last norm and logits",
                most.logits,
                "bytes",
                "4 s b h (1 + V/h) / t",
                "Korthikanti et al. 2205.05198, section 4.3",
                "fp32 logits",
            )
        )
    return items


def fit_items(most: RankMemory, gpu_bytes: Number, reserve: Number) -> list[Item]:
    """Return what a GPU offers and what is left of it."""
    gpu = check_amount("GPU memory", gpu_bytes)
    usable = gpu * (1 - check_fraction("reserve", reserve))
    source = "an assumption: CUDA context, NCCL buffers, fragmentation"
    return [
        Item("GPU memory", gpu, "bytes", "as sold, in 10^9 bytes", "vendor"),
        Item("usable", usable, "bytes", f"less {reserve:.0%} kept free", source),
        Item("left", usable - most.total, "bytes", "usable - total", SOURCE),
    ]


# --- 4. in which order, and what fails first ------------------------------------------


@dataclass(frozen=True, slots=True)
class Moment:
    """One allocation of a run, in order of time."""

    name: str
    what: str
    held_bytes: Number
    """Everything that is held once this is allocated."""


def timeline(most: RankMemory) -> list[Moment]:
    """Return when what is allocated, from loading to the second forward.

    Adam makes its moments at the first step, not when it is built; so a model can load,
    run forward and backward once, and fail there. (Megatron allocates the gradients
    with the model instead.) Gradients stay, as buckets or buffers.
    """
    work = most.activations + most.logits + most.gathered
    moments = [
        ("model on the GPU", "weights", most.weights),
        ("optimizer built", "master copy", most.weights + most.master),
        ("first forward", "activations", most.weights + most.master + work),
    ]
    before_step = most.weights + most.master + most.gradients
    moments += [
        ("first backward", "gradients", before_step + work + most.recomputed),
        (
            "first step",
            "optimizer moments",
            most.weights + most.gradients + most.optimizer,
        ),
        (STEADY, "activations beside all of it", most.total),
    ]
    return [Moment(*moment) for moment in moments]


def first_failure(
    most: RankMemory, kept: Precision, gpu_bytes: Number, reserve: Number = 0
) -> str:
    """Return a sentence: which allocation fails first on this GPU, or that all fit."""
    usable = gpu_bytes * (1 - reserve)
    for moment in timeline(most):
        if moment.held_bytes > usable:
            return (
                f"does not fit: fails at '{moment.name}' ({moment.what}): "
                f"{moment.held_bytes / 1e9:.1f} GB held, {usable / 1e9:.1f} GB usable"
            )
    free = (usable - most.total) / 1e9
    return f"fits: {free:.1f} GB of {usable / 1e9:.1f} GB usable are left"


# --- 5. inference ---------------------------------------------------------------------


def estimate_inference(
    shape: Shape,
    *,
    tokens: int,
    batch: int = 1,
    tensor_parallel: int = 1,
    weight_bytes: Number = 2,
    cache_bytes: int = 2,
    gpu_bytes: Number | None = None,
    reserve: Number = 0,
) -> Estimate:
    """Return weights plus KV cache on one GPU; no gradients, no optimizer.

    Raises:
        EstimateError: sizes that do not fit.
    """
    layout = Layout.parse({"tp": tensor_parallel, "sequence_parallel": False})
    check_fit(shape, layout)
    params = sum(rank_weights(shape, layout, 0))
    weights = params * check_amount("weight_bytes", weight_bytes)
    cache = kv_cache_bytes(
        layers=shape.layers,
        kv_heads=shape.kv_heads,
        head_dim=shape.head_dim,
        tokens=tokens,
        batch=batch,
        element_bytes=cache_bytes,
        tensor_parallel=tensor_parallel,
    )
    per_token = kv_cache_bytes(
        layers=shape.layers,
        kv_heads=shape.kv_heads,
        head_dim=shape.head_dim,
        tokens=1,
        element_bytes=cache_bytes,
        tensor_parallel=tensor_parallel,
    )
    heads = f"{shape.kv_heads} key-value heads of {shape.heads}"
    items = [
        Item(
            "weights",
            weights,
            "bytes",
            f"{weight_bytes} B × {params} parameters on the GPU (tp {tensor_parallel})",
            SOURCE,
        ),
        Item(
            "KV cache per token",
            per_token,
            "bytes",
            f"2 × {shape.layers} layers × {heads} × {shape.head_dim} × {cache_bytes} B "
            f"/ tp {tensor_parallel}",
            SOURCE,
            "keys and values, of one sequence",
        ),
        Item(
            "KV cache",
            cache,
            "bytes",
            f"{per_token} B × {tokens} tokens × {batch} sequences",
            SOURCE,
            "every sequence at its full length",
        ),
        Item("total", weights + cache, "bytes", "weights + KV cache", SOURCE),
    ]
    notes = ["activations of one token are small and left out"]
    if gpu_bytes is not None:
        usable = gpu_bytes * (1 - reserve)
        left = usable - weights - cache
        fits = "fits" if left >= 0 else "does not fit"
        notes.insert(
            0, f"{fits}: {left / 1e9:.1f} GB left of {usable / 1e9:.1f} usable"
        )
        room = (usable - weights) / per_token
        items.append(
            Item(
                "tokens that fit beside the weights",
                max(0, int(room)),
                "tokens",
                "(usable - weights) / KV cache per token",
                SOURCE,
            )
        )
    return Estimate("memory of inference, one GPU", tuple(items), tuple(notes))


def estimate_states(
    *,
    params: Number,
    stage: int,
    world_size: int,
    convention: str,
) -> Estimate:
    """Return weights, gradients and optimizer of a parameter count alone."""
    from_stage = {"weights": 3, "gradients": 2, "optimizer": 1}
    kept = precision(convention)
    sizes = {
        "weights": kept.weight,
        "gradients": kept.gradient,
        "optimizer": kept.optimizer,
    }
    items = [
        Item(
            "bytes per parameter",
            kept.total,
            "bytes/parameter",
            " + ".join(map(str, sizes.values())) + ", before sharding",
            kept.source,
            f"{convention}: {kept.says}",
        )
    ]
    for name, size in sizes.items():
        sharded = stage >= from_stage[name] and world_size > 1
        items.append(
            Item(
                name,
                divide(params * size, world_size if sharded else 1),
                "bytes",
                f"{size} B × {params}{f' / {world_size}' * sharded}",
                kept.source,
                f"ZeRO stage {stage}",
            )
        )
    total = sum(item.value for item in items[1:])
    items.append(Item("total", total, "bytes", "the sum", SOURCE, "no activations"))
    return Estimate("model states on one GPU", tuple(items))
