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
    layer_bytes,
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
from readerkit.estimate.states import (
    PRECISIONS,
    Precision,
    model_state_bytes,
    precision,
)

STEADY = "second forward"


# --- 1. which weights a rank holds ----------------------------------------------------


def layers_of_rank(shape: Shape, layout: Layout, rank: int) -> tuple[int, int]:
    """Return how many dense and how many expert layers a pipeline rank holds."""
    dense = shape.dense_layers if shape.experts else shape.layers
    return _count_layers(shape.layers, dense, layout.pp, layout.virtual_stages, rank)


@lru_cache(maxsize=4096)
def _count_layers(
    layers: int, dense_layers: int, pp: int, v: int, rank: int
) -> tuple[int, int]:
    counts = stage_layers(layers, pp, v)
    if dense_layers in (0, layers):
        return (counts[rank], 0) if dense_layers else (0, counts[rank])
    if v == 1:
        held = range(sum(counts[:rank]), sum(counts[: rank + 1]))
        dense = sum(1 for layer in held if layer < dense_layers)
        return dense, len(held) - dense
    size = counts[rank] // v
    starts = ((chunk * pp + rank) * size for chunk in range(v))
    dense = sum(
        1
        for start in starts
        for layer in range(start, start + size)
        if layer < dense_layers
    )
    return dense, counts[rank] - dense


def rank_weights(
    shape: Shape, layout: Layout, rank: int, *, vocab_multiple: int = 1
) -> tuple[Number, Number]:
    """Return the parameters on one rank of a pipeline stage: dense, and of experts."""
    layers = layers_of_rank(shape, layout, rank)
    ends = rank == 0, rank == layout.pp - 1
    held = _stage_weights(shape, layers, ends, layout.tp, vocab_multiple)
    return (
        divide(held.split, layout.tp) + held.whole,
        divide(held.expert, layout.tp * layout.ep),
    )


@lru_cache(maxsize=4096)
def _stage_weights(
    shape: Shape,
    layers: tuple[int, int],
    ends: tuple[bool, bool],
    tp: int,
    vocab_multiple: int,
) -> Weights:
    (dense, moe), (first, last) = layers, ends
    vocab = padded_vocab(vocab=shape.vocab, multiple=vocab_multiple, tensor_parallel=tp)
    held = Weights()
    if dense:
        held += layer_parameters(shape, moe=False, tensor_parallel=tp).times(dense)
    if moe:
        held += layer_parameters(shape, moe=True, tensor_parallel=tp).times(moe)
    if first:
        held += embedding_parameters(shape, vocab)
    if last:
        # A tied table stands on the first and the last stage, as two copies.
        tied = shape.tied_embeddings and first
        held += head_parameters(shape, vocab, tied=tied)
    return held


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
    states = state_bytes(shape, layout, kept, rank, vocab_multiple=vocab_multiple)
    pieces = activation_pieces(shape, layout, rank, vocab_multiple=vocab_multiple)
    params = rank_weights(shape, layout, rank, vocab_multiple=vocab_multiple)
    return RankMemory(
        rank=rank,
        params=sum(params),
        weights=states[0],
        gradients=states[1],
        optimizer=states[2],
        master=states[3],
        gathered=gathered_bytes(shape, layout, kept, rank),
        activations=pieces.held(
            layout.schedule, layout.pp, layout.microbatches, layout.virtual_stages
        ),
        recomputed=pieces.recomputed,
        logits=pieces.logits,
    )


def state_bytes(
    shape: Shape, layout: Layout, kept: Precision, rank: int, *, vocab_multiple: int = 1
) -> tuple[Number, Number, Number, Number]:
    """Return weights, gradients, optimizer, and the master copy that is part of it."""
    dense, expert = rank_weights(shape, layout, rank, vocab_multiple=vocab_multiple)
    replicas = layout.replicas

    def held(size: int, sharded_from: int) -> Number:
        if layout.zero < sharded_from:
            return (dense + expert) * size
        return divide(dense * size, replicas) + divide(
            expert * size, replicas // layout.ep
        )

    return (
        held(kept.weight, 3),
        held(kept.gradient, 2),
        held(kept.optimizer, 1),
        held(kept.master, 1),
    )


def gathered_bytes(shape: Shape, layout: Layout, kept: Precision, rank: int) -> Number:
    """Two layers' weights in flight, and one layer's gradients before their sum."""
    if layout.zero < 3 or layout.replicas == 1:
        return 0
    _, moe = layers_of_rank(shape, layout, rank)
    unit = layer_parameters(shape, moe=bool(moe), tensor_parallel=layout.tp)
    params = divide(unit.split, layout.tp) + unit.whole
    params += divide(unit.expert, layout.tp * layout.ep)
    return params * (2 * kept.weight + kept.gradient)


def rank_layer_bytes(
    shape: Shape, layout: Layout, recompute: str, *, moe: bool
) -> Number:
    """Return what one layer keeps of one microbatch on one rank."""
    return layer_bytes(
        shape,
        layout.sequence // layout.cp,
        layout.micro_batch,
        layout.tp,
        layout.shards_sequence,
        recompute,
        layout.flash,
        moe,
    )


@dataclass(frozen=True, slots=True)
class ActivationPieces:
    """The activations of one pipeline rank, before the schedule multiplies them."""

    rank: int
    one_pass: Number
    """Of one microbatch through all of the rank's layers."""
    embedding_mask: Number
    """Of one microbatch: the dropout mask after the embedding, on the first rank."""
    recomputed: Number
    logits: Number

    def held(self, schedule: str, pp: int, microbatches: int, v: int) -> Number:
        """Return what the rank holds for the backward passes to come, at its peak."""
        chunks = in_flight(
            schedule=schedule,
            pipeline_parallel=pp,
            microbatches=microbatches,
            virtual_stages=v,
            rank=self.rank,
        )
        layers = divide(self.one_pass * chunks, v)
        if not self.embedding_mask:
            return layers
        # Only the first chunk of the first rank has the embedding and its mask.
        return layers + self.embedding_mask * min(microbatches, -(-chunks // v))


def activation_pieces(
    shape: Shape, layout: Layout, rank: int, *, vocab_multiple: int = 1
) -> ActivationPieces:
    """Return what one microbatch leaves on a rank, piece by piece."""
    one_pass: Number = 0
    again: Number = 0
    for count, moe in zip(
        layers_of_rank(shape, layout, rank), (False, True), strict=True
    ):
        if count:
            kept = rank_layer_bytes(shape, layout, layout.recompute, moe=moe)
            one_pass += count * kept
            if layout.recompute != "none":
                whole = rank_layer_bytes(shape, layout, "none", moe=moe)
                again = max(again, whole - kept)
    tokens = layout.sequence // layout.cp * layout.micro_batch
    shard = layout.tp if layout.shards_sequence else 1
    masked = rank == 0 and shape.dropout
    return ActivationPieces(
        rank=rank,
        one_pass=one_pass,
        embedding_mask=divide(tokens * shape.hidden, shard) if masked else 0,
        recomputed=again,
        logits=_logits(shape, layout, vocab_multiple) if rank == layout.pp - 1 else 0,
    )


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


def telling_ranks(shape: Shape, pp: int) -> list[int]:
    """Return the pipeline ranks of which one is the most loaded.

    Between the first and the last rank, weights are the same and fewer microbatches
    are in flight: the first of them and the two ends are enough, unless layers differ.
    """
    if shape.dense_layers:
        return list(range(pp))
    return sorted({0, min(1, pp - 1), pp - 1})


def most_loaded(
    shape: Shape, layout: Layout, kept: Precision, *, vocab_multiple: int = 1
) -> RankMemory:
    """Return the pipeline rank whose GPU holds most."""
    each = (
        rank_memory(shape, layout, kept, rank, vocab_multiple=vocab_multiple)
        for rank in telling_ranks(shape, layout.pp)
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
    notes = [_other_conventions(shape, layout, convention, vocab_multiple)]
    if gpu_bytes is not None:
        items += fit_items(most, gpu_bytes, reserve)
        notes.insert(0, first_failure(most, kept, gpu_bytes, reserve))
    notes.append(
        "GB is 10^9 bytes, GiB 2^30. DeepSpeed's estimators divide by 2^30, print GB, "
        "and count no activations. Megatron-LM's theoretical memory divides by 2^20 "
        "and prints MB, leaves out biases and position tables, and counts a gated "
        "feed-forward's activations as a plain one's."
    )
    return Estimate("memory of the most loaded GPU", tuple(items), tuple(notes))


def _other_conventions(
    shape: Shape, layout: Layout, convention: str, vocab_multiple: int
) -> str:
    """Return the total by every other custom of counting bytes per parameter."""
    totals = (
        (
            name,
            most_loaded(shape, layout, kept, vocab_multiple=vocab_multiple).total,
        )
        for name, kept in PRECISIONS.items()
        if name != convention
    )
    listed = ", ".join(f"{name} {total / 1e9:.1f} GB" for name, total in totals)
    return f"the total by other conventions: {listed}"


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
    model_parallel: int = 1,
) -> Estimate:
    """Return weights, gradients and optimizer of a parameter count alone.

    ``model_parallel`` is tp × pp, over which the parameters are taken to divide evenly.
    """
    params = divide(check_amount("params", params), model_parallel)
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
    others = ", ".join(
        f"{name} {held / 1e9:.1f} GB"
        for name in PRECISIONS
        if name != convention
        for held in [
            model_state_bytes(
                params=params, stage=stage, world_size=world_size, convention=name
            )
        ]
    )
    notes = (f"the total by other conventions: {others}",)
    return Estimate("model states on one GPU", tuple(items), notes)
