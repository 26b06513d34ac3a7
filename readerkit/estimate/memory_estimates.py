"""Memory as estimates: training, inference, and model states alone, item by item."""

from __future__ import annotations

from readerkit.estimate.activations import (
    PAPER,
    in_flight,
    kv_cache_bytes,
)
from readerkit.estimate.layout import Layout, check_fit
from readerkit.estimate.memory import RankMemory, most_loaded, rank_weights
from readerkit.estimate.quantity import (
    Estimate,
    Item,
    Number,
    check_amount,
    check_reserve,
    divide,
)
from readerkit.estimate.shape import (
    SOURCE,
    Shape,
    parameter_count,
)
from readerkit.estimate.states import (
    PRECISIONS,
    Precision,
    model_state_bytes,
    precision,
)
from readerkit.estimate.timeline import first_failure
from readerkit.numbers import format_bytes


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
    dense, expert = rank_weights(
        shape, layout, most.rank, vocab_multiple=vocab_multiple
    )

    def state(name: str, value: Number, size: int, sharded_from: int) -> Item:
        sharded = layout.zero >= sharded_from and layout.replicas > 1
        formula = f"{size} B × {most.params} parameters{f' {shards}' * sharded}"
        if sharded and layout.ep > 1:
            # Experts have fewer replicas, so they are cut less.
            formula = (
                f"{size} B × ({dense} {shards} + {expert} of experts / "
                f"{layout.replicas // layout.ep})"
            )
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
    items += _activation_items(layout, most, kept)
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
    listed = ", ".join(f"{name} {format_bytes(total, 2)}" for name, total in totals)
    return f"the total by other conventions: {listed}"


def _activation_items(layout: Layout, most: RankMemory, kept: Precision) -> list[Item]:
    chunks = in_flight(
        schedule=layout.schedule,
        pipeline_parallel=layout.pp,
        microbatches=layout.microbatches,
        virtual_stages=layout.virtual_stages,
        rank=most.rank,
    )
    cut = f"tp {layout.tp}{', sequence parallel' * layout.shards_sequence}"
    kind = "flash attention: no" if layout.flash else "no flash attention: all"
    items = [
        Item(
            "activations",
            most.activations,
            "bytes",
            f"{chunks} in flight ({layout.schedule}) × 1/{layout.virtual_stages} of "
            f"the rank's layers, {cut}, cp {layout.cp}",
            PAPER,
            f"{layout.recompute} recompute; {kind} scores in memory; "
            f"{kept.activation} B an element",
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
                f"s b ({2 * kept.activation} h + 4 V) / t",
                "Korthikanti et al. 2205.05198, section 4.3",
                "fp32 logits",
            )
        )
    return items


def fit_items(most: RankMemory, gpu_bytes: Number, reserve: Number) -> list[Item]:
    """Return what a GPU offers and what is left of it."""
    return _room(most.total, gpu_bytes, reserve)


def _room(total: Number, gpu_bytes: Number, reserve: Number) -> list[Item]:
    gpu = check_amount("GPU memory", gpu_bytes)
    usable = gpu * (1 - check_reserve(reserve))
    sold = "as sold, in 10^9 bytes; nvidia-smi shows more (80 GB: 81,559 MiB)"
    source = "an assumption: CUDA context, NCCL buffers, fragmentation"
    return [
        Item(
            "GPU memory",
            gpu,
            "bytes",
            sold,
            "vendor",
        ),
        Item("usable", usable, "bytes", f"less {reserve:.0%} kept free", source),
        Item("left", usable - total, "bytes", "usable - total", SOURCE),
    ]


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
        gpu = check_amount("GPU memory", gpu_bytes)
        usable = gpu * (1 - check_reserve(reserve))
        left = usable - weights - cache
        fits = "fits" if left >= 0 else "does not fit"
        notes.insert(
            0,
            f"{fits}: {format_bytes(left, 2)} left of {format_bytes(usable, 2)} usable",
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
        items.append(Item("left", left, "bytes", "usable - total", SOURCE))
    return Estimate("memory of inference, one GPU", tuple(items), tuple(notes))


def estimate_states(
    *,
    params: Number,
    stage: int,
    world_size: int,
    convention: str,
    model_parallel: int = 1,
    gpu_bytes: Number | None = None,
    reserve: Number = 0,
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
        f"{name} {format_bytes(held, 2)}"
        for name in PRECISIONS
        if name != convention
        for held in [
            model_state_bytes(
                params=params, stage=stage, world_size=world_size, convention=name
            )
        ]
    )
    notes = [f"the total by other conventions: {others}"]
    if gpu_bytes is not None:
        items += _room(total, gpu_bytes, reserve)
        verdict = "fit" if items[-1].value >= 0 else "do not fit"
        notes.insert(0, f"the states {verdict}, before any activations")
    return Estimate("model states on one GPU", tuple(items), tuple(notes))
