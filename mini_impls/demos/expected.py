"""What the estimates say of a demonstration's step, to hold beside what was measured.

Weights, gradients and Adam's moments are float32, as the minis keep them.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean
from typing import Any

from mini_impls.demos.formulas import get_pipeline_traffic
from mini_impls.launch import Rank
from mini_impls.model import GPTConfig
from mini_impls.recorder import MOST_STEPS, Expected, Predicted, Rates
from readerkit.estimate.bubble import bubble_fraction
from readerkit.estimate.collectives import collective_bytes
from readerkit.estimate.flops import step_flops
from readerkit.estimate.layout import Layout
from readerkit.estimate.measured_step import MeasuredRates, measured_step
from readerkit.estimate.memory import RankMemory, rank_layer_bytes, rank_memory
from readerkit.estimate.parameters import parameter_count
from readerkit.estimate.shape import Shape
from readerkit.estimate.states import model_state_bytes, precision
from readerkit.estimate.step_time import Assumptions
from readerkit.estimate.volumes import dp_volume_bytes
from readerkit.wording.numbers import format_flop_rate, format_rate, format_seconds

FLOAT32 = 4


@dataclass(frozen=True, slots=True)
class Estimated(Expected):
    """What the estimates say of a step, and what they make of measured rates."""

    def at(self, rates: Rates, calls: float) -> Predicted | None:
        """Return what a step of so many calls comes to on a machine of these rates."""
        known = measured_rates(rates)
        compute_s = self.compute_s
        if compute_s is None and self.flops:
            compute_s = self.flops / known.flops_per_s
        time = measured_step(
            known,
            compute_s=compute_s or rates.train_s,
            calls=calls,
            sent_bytes=self.sent_bytes or 0.0,
            axis=self.axis,
            overlap=Assumptions().overlap,
            idle=self.idle or 0.0,
        )
        told = (
            f"{format_flop_rate(known.flops_per_s)} in a training step alone, "
            f"{format_seconds(known.call_s)} a call"
        )
        if rates.ranks > 1:  # one alone calls, and sends nothing
            told += f", {format_rate(known.bytes_per_s)} sent"
        exposed_s = sum(time.exposed.values()) + time.bubble
        return Predicted(exposed_s, time.total if compute_s else None, told)


def measured_rates(rates: Rates) -> MeasuredRates:
    """Return what was measured, as the estimates count FLOPs and bytes."""
    config = GPTConfig()
    flops = step_flops(
        shape_of(config), batch=rates.rows, sequence=config.max_sequence_length
    )
    sent = ring_bytes({"all_reduce": rates.large_bytes}, max(rates.ranks, 2))
    # A large one takes longer than a small one, but for a clock that says otherwise.
    sending_s = max(rates.large_s - rates.call_s, rates.large_s / 10)
    return MeasuredRates(float(flops) / rates.train_s, rates.call_s, sent / sending_s)


def peak_bytes(
    config: GPTConfig,
    *,
    rows: int,
    rank: int = 0,
    convention: str = "fp32-16",
    **sizes: Any,
) -> float:
    """Return states, activations and what is gathered for a while, of a rank.

    `rows` are those of a microbatch; `sizes` are the layout's, by the estimates' names.
    """
    held = rank_bytes(config, rows=rows, rank=rank, convention=convention, **sizes)
    return float(held.total)


def rank_bytes(
    config: GPTConfig,
    *,
    rows: int,
    rank: int = 0,
    convention: str = "fp32-16",
    experts: Mapping[str, int] | None = None,
    **sizes: Any,
) -> RankMemory:
    """Return the same part by part; `experts` has their sizes, where there are any."""
    shape = shape_of(config, **experts or {})
    return rank_memory(shape, _layout(config, rows, sizes), precision(convention), rank)


def layer_bytes(config: GPTConfig, *, rows: int, **sizes: Any) -> float:
    """Return what one layer keeps for backward, in bytes, of so many sequences."""
    layout = _layout(config, rows, sizes)
    kept = rank_layer_bytes(
        shape_of(config), layout, "none", moe=False, element_bytes=FLOAT32
    )
    return float(kept)


def _layout(config: GPTConfig, rows: int, sizes: dict[str, Any]) -> Layout:
    usual: dict[str, Any] = {
        "zero": 0,
        "sequence_parallel": False,
        "recompute": "none",
    }
    return Layout(
        **usual | sizes,
        micro_batch=rows,
        sequence=config.max_sequence_length,
        flash=True,
    )


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
    return Estimated(
        float(sent),
        float(held),
        float(flops),
        peak_bytes=peak_bytes(
            config, rows=rows, convention=convention, dp=ranks, zero=stage
        ),
        axis="dp",
    )


def compared(config: GPTConfig, rank: Rank, *, rows: int, sent: float) -> Expected:
    """Return what a side of a comparison is due that has `rows` of its own, and sends.

    What it computes beyond the model's FLOPs, as with recomputation, is not in it.
    """
    flops = step_flops(
        shape_of(config), batch=rows, sequence=config.max_sequence_length
    )
    return Estimated(sent, flops=float(flops), axis="dp")


def sliced(
    config: GPTConfig,
    rank: Rank,
    *,
    rows: int,
    payload: Mapping[str, int],
    layout: Mapping[str, Any],
) -> Expected:
    """Return what a rank is due that shares each layer of `rows` sequences."""
    flops = step_flops(
        shape_of(config), batch=rows, sequence=config.max_sequence_length
    )
    sent = ring_bytes(payload, rank.world_size)
    return Estimated(
        sent,
        flops=float(flops) / rank.world_size,
        peak_bytes=peak_bytes(config, rows=rows, **layout),
    )


def replicated(
    config: GPTConfig,
    *,
    rows: int,
    payloads: Iterable[tuple[Mapping[str, int], int]],
    shared_by: int = 1,
    peak: float | None = None,
    **experts: int,
) -> Expected:
    """Return what a rank is due that shares `rows` sequences with so many ranks.

    `payloads` are the bytes of each operation, and among how many ranks.
    """
    shape, sequence = shape_of(config, **experts), config.max_sequence_length
    flops = step_flops(shape, batch=rows, sequence=sequence)
    sent = sum(ring_bytes(payload, ranks) for payload, ranks in payloads)
    return Estimated(sent, flops=float(flops) / shared_by, peak_bytes=peak)


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
    peak = peak_bytes(
        config,
        rows=2,
        rank=rank.rank,
        pp=ranks,
        microbatches=microbatches,
        schedule=schedule,
        virtual_stages=chunks,
    )
    return Estimated(
        sent,
        flops=float(flops) / ranks,
        idle=idle,
        peak_bytes=peak,
        axis="pp",
    )
