"""What the estimates say of a demonstration's step, to hold beside what was measured.

Weights, gradients and Adam's moments are float32, as the minis keep them.
"""

from collections.abc import Iterable, Mapping, Sequence
from statistics import fmean
from typing import Any

from mini_impls.demos.formulas import get_pipeline_traffic
from mini_impls.launch import Rank
from mini_impls.model import GPTConfig
from mini_impls.recorder import MOST_STEPS, Expected
from readerkit.estimate.collectives import collective_bytes
from readerkit.estimate.flops import step_flops
from readerkit.estimate.parameters import parameter_count
from readerkit.estimate.pipeline import bubble_fraction
from readerkit.estimate.shape import Shape
from readerkit.estimate.states import model_state_bytes
from readerkit.estimate.volumes import dp_volume_bytes

FLOAT32 = 4


def shape_of(config: GPTConfig, **experts: int) -> Shape:
    """Return a mini's model as the estimates describe one, with experts or without."""
    return Shape.parse(
        experts
        | {
            "layers": config.num_layers,
            "hidden": config.hidden_size,
            "heads": config.num_attention_heads,
            "kv_heads": config.num_query_groups,
            "ffn": config.ffn_hidden_size,
            "vocab": config.vocab_size,
            "positions": config.max_sequence_length,
            "tied_embeddings": config.share_embeddings_and_output_weights,
        }
    )


def data_parallel(
    config: GPTConfig,
    rank: Rank,
    *,
    stage: int,
    rows: int = 8,
    convention: str = "fp32-16",
) -> Expected:
    """Return what a rank with `rows` sequences of its own is due; stage 0 is DDP."""
    shape, ranks = shape_of(config), rank.world_size
    params = parameter_count(shape)
    sent = dp_volume_bytes(
        params=params,
        world_size=ranks,
        stage=stage,
        weight_bytes=FLOAT32,
        gradient_bytes=FLOAT32,
    )
    held = model_state_bytes(
        params=params, stage=stage, world_size=ranks, convention=convention
    )
    flops = step_flops(shape, batch=rows, sequence=config.max_sequence_length)
    return Expected(float(sent), float(held), float(flops))


def sliced(
    config: GPTConfig, rank: Rank, *, rows: int, payload: Mapping[str, int]
) -> Expected:
    """Return what a rank is due that shares each layer of `rows` sequences."""
    flops = step_flops(
        shape_of(config), batch=rows, sequence=config.max_sequence_length
    )
    sent = ring_bytes(payload, rank.world_size)
    return Expected(sent_bytes=sent, flops=float(flops) / rank.world_size)


def replicated(
    config: GPTConfig,
    *,
    rows: int,
    payloads: Iterable[tuple[Mapping[str, int], int]],
    shared_by: int = 1,
    **experts: int,
) -> Expected:
    """Return what a rank is due that shares `rows` sequences with so many ranks.

    `payloads` are the bytes of each operation, and among how many ranks.
    """
    shape, sequence = shape_of(config, **experts), config.max_sequence_length
    flops = step_flops(shape, batch=rows, sequence=sequence)
    sent = sum(ring_bytes(payload, ranks) for payload, ranks in payloads)
    return Expected(sent, flops=float(flops) / shared_by)


def ring_bytes(payload: Mapping[str, int], ranks: int) -> float:
    """Return what a rank sends for these bytes of each operation; sends count once."""
    return sum(
        float(size)
        if operation in ("send", "recv")
        else float(
            collective_bytes(
                operation=operation.replace("_", "-"), size_bytes=size, ranks=ranks
            )
        )
        for operation, size in payload.items()
        if operation != "recv" and size
    )


def over_steps(payloads: Sequence[Mapping[str, int]]) -> dict[str, int]:
    """Return the mean of a step's payloads, of the steps that a trace shows.

    The first one warms up, and behind the last of a trace nothing is recorded.
    """
    shown = payloads[1:MOST_STEPS] or payloads
    operations = {operation: None for payload in shown for operation in payload}
    return {op: round(fmean(each.get(op, 0) for each in shown)) for op in operations}


def staged(
    config: GPTConfig, rank: Rank, *, schedule: str, microbatches: int, chunks: int
) -> Expected:
    """Return what a rank of a pipeline is due, of two sequences a microbatch.

    A backward takes twice a forward.
    """
    shape, ranks = shape_of(config), rank.world_size
    sizes: dict[str, Any] = {
        "schedule": schedule,
        "stages": ranks,
        "microbatches": microbatches,
        "virtual_stages": chunks,
        "forward": 1,
        "backward": 2,
    }
    tokens = (2, config.max_sequence_length, config.hidden_size)
    payload = get_pipeline_traffic(tokens, microbatches, rank, chunks)
    sent = ring_bytes(payload, ranks)
    rows = 2 * microbatches
    flops = step_flops(shape, batch=rows, sequence=config.max_sequence_length)
    idle = float(bubble_fraction(**sizes)) if ranks > 1 else 0.0
    return Expected(sent, flops=float(flops) / ranks, idle=idle)
