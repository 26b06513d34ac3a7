"""FLOPs of a step and the time they take: model and hardware FLOPs, MFU and HFU.

A multiply and an add are two FLOPs. The backward pass is two forwards. Softmax, norms
and activations are left out, as in the papers.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from readerkit.errors import EstimateError
from readerkit.estimate.checks import (
    check_amount,
    check_choice,
    check_count,
    check_fraction,
)
from readerkit.estimate.item import Estimate, Worksheet
from readerkit.estimate.parameters import SOURCE, active_parameter_count
from readerkit.estimate.quantity import Number, Quantity, divide, named
from readerkit.estimate.shape import Shape

NARAYANAN = "Narayanan et al. 2104.04473"
KORTHIKANTI = "Korthikanti et al. 2205.05198, appendix A"
KAPLAN = "Kaplan et al. 2001.08361, section 2.1"
COUNTED = "a count"
ATTENTION = ("full", "causal")
RECOMPUTE = ("none", "selective", "full")
TOKENS = "tokens in a step"
FORWARD = "forward FLOPs of a token"
RECOMPUTED = "recomputed FLOPs of a token"
SECONDS_PER_DAY = 86_400


def layer_flops_per_token(
    shape: Shape, *, sequence: int, attention: str = "full", moe: bool = False
) -> Number:
    """Return the FLOPs of one token through one layer, forward."""
    h = shape.hidden
    weights = h * (2 * shape.query_size + 2 * shape.key_size)
    matrices = 3 if shape.gated_mlp else 2
    if moe:
        inner = shape.experts_per_token * shape.expert_ffn + shape.shared_ffn
        weights += matrices * h * inner + h * shape.experts
    else:
        weights += matrices * h * shape.ffn
    return 2 * weights + attention_flops_per_token(
        shape, sequence=sequence, attention=attention
    )


def forward_flops_per_token(
    shape: Shape, *, sequence: int, attention: str = "full", logits: bool = True
) -> Number:
    """Return the FLOPs of one token through all layers (and to the logits).

    ``full`` counts the whole square of scores, as the papers do; ``causal`` half.
    """
    check_choice("attention", attention, ATTENTION)
    check_count("sequence", sequence)
    flops: Number = 0
    for layers, moe in ((shape.plain_layers, False), (shape.moe_layers, True)):
        flops += layers * layer_flops_per_token(
            shape, sequence=sequence, attention=attention, moe=moe
        )
    return flops + (2 * shape.hidden * shape.vocab if logits else 0)


def attention_flops_per_token(
    shape: Shape, *, sequence: int, attention: str = "full"
) -> Number:
    """Return the FLOPs of scores and of their sum over values, in one layer."""
    return divide((4 if attention == "full" else 2) * sequence * shape.query_size)


def step_flops(
    shape: Shape,
    *,
    batch: int,
    sequence: int,
    recompute: str = "none",
    attention: str = "full",
) -> Number:
    """Return the FLOPs of a step that are executed: forward, backward, recompute.

    With ``recompute="none"`` these are the model FLOPs. ``full`` runs each layer's
    forward once more, ``selective`` the attention scores alone.
    """
    tokens = check_count("batch", batch) * check_count("sequence", sequence)
    forward = forward_flops_per_token(shape, sequence=sequence, attention=attention)
    again = recomputed_flops_per_token(
        shape, sequence=sequence, recompute=recompute, attention=attention
    )
    flops = 3 * named(forward, FORWARD) + named(again, RECOMPUTED)
    return named(tokens, TOKENS) * flops


def recomputed_flops_per_token(
    shape: Shape, *, sequence: int, recompute: str, attention: str = "full"
) -> Number:
    """Return the FLOPs of one token that recompute adds."""
    check_choice("recompute", recompute, RECOMPUTE)
    kind: dict[str, Any] = {"sequence": sequence, "attention": attention}
    if recompute == "full":
        return forward_flops_per_token(shape, **kind, logits=False)
    scores = attention_flops_per_token(shape, **kind)
    return shape.layers * scores if recompute == "selective" else 0


def _gpt_flops(
    factor: int,
    scores: int,
    table: int,
    *,
    batch: int,
    sequence: int,
    layers: int,
    hidden: int,
    vocab: int,
) -> Number:
    """Return ``factor`` B s l h² (1 + s/(``scores`` h) + V/(``table`` l h))."""
    more = Fraction(sequence, scores * hidden) + Fraction(
        vocab, table * layers * hidden
    )
    return divide(factor * batch * sequence * layers * hidden * hidden * (1 + more))


def narayanan_flops_per_iteration(**sizes: int) -> Number:
    """Return F = 96 B s l h² (1 + s/(6h) + V/(16 l h)): a GPT with full recompute.

    Source: Narayanan et al. 2104.04473, equation 3.
    """
    return _gpt_flops(96, 6, 16, **sizes)


def korthikanti_model_flops(**sizes: int) -> Number:
    """Return 72 B L s h² (1 + s/(6h) + v/(12 h L)): a GPT without recompute.

    Source: Korthikanti et al. 2205.05198, appendix A.
    """
    return _gpt_flops(72, 6, 12, **sizes)


def korthikanti_hardware_flops(**sizes: int) -> Number:
    """Return 72 B L s h² (1 + s/(3h) + v/(12 h L)): with selective recompute.

    The paper's overhead of 2.7% (GPT-3) and its HFU come from this s/(3h). One more
    forward of the scores is s/(4.5h), which is what ``step_flops`` counts (0.9%).

    Source: Korthikanti et al. 2205.05198, appendix A.
    """
    return _gpt_flops(72, 3, 12, **sizes)


def six_nd_flops(*, params: Number, tokens: Number) -> Number:
    """Return 6 N D: two FLOPs a weight forward, four backward, no attention scores.

    Source: Kaplan et al. 2001.08361, section 2.1.
    """
    return 6 * check_amount("params", params) * check_amount("tokens", tokens)


def flops_utilization(
    *, flops: Number, seconds: Number, gpus: int, peak_flops_per_s: Number
) -> Number:
    """Return the share of peak: MFU of model FLOPs, HFU of executed ones."""
    offered = (
        check_amount("seconds", seconds)
        * check_count("gpus", gpus)
        * check_amount("peak_flops_per_s", peak_flops_per_s)
    )
    return divide(check_amount("flops", flops), offered)


def training_days(
    *,
    params: Number,
    tokens: Number,
    gpus: int,
    flops_per_s_per_gpu: Number,
    passes: int = 6,
) -> Number:
    """Return days for a token budget at an achieved rate.

    ``passes`` is 6 FLOPs a weight and token, 8 with full recompute (Narayanan et al.
    2104.04473, equation 4).
    """
    flops = (
        check_count("passes", passes)
        * check_amount("params", params)
        * check_amount("tokens", tokens)
    )
    rate = check_count("gpus", gpus) * check_amount(
        "flops_per_s_per_gpu", flops_per_s_per_gpu
    )
    return divide(divide(flops, rate), SECONDS_PER_DAY)


def gpu_hours(*, gpus: int, days: Number) -> Number:
    """Return GPU-hours."""
    return check_count("gpus", gpus) * check_amount("days", days) * 24


def mean_hours_between_failures(*, failures: int, days: Number) -> Number:
    """Return the hours between failures of a run: its days over their number.

    Llama 3: 419 unexpected ones in 54 days on 16,384 GPUs (Dubey et al. 2407.21783,
    section 3.3.4).
    """
    return divide(check_amount("days", days) * 24, check_count("failures", failures))


def cost_usd(*, gpus: int, hours: Number, usd_per_gpu_hour: Number) -> Number:
    """Return the price of GPU hours, in dollars."""
    return (
        check_count("gpus", gpus)
        * check_amount("hours", hours)
        * check_amount("usd_per_gpu_hour", usd_per_gpu_hour)
    )


def estimate_flops(
    shape: Shape,
    *,
    batch: int,
    sequence: int,
    recompute: str = "none",
    attention: str = "full",
    gpus: int | None = None,
    peak_flops_per_s: Number | None = None,
    seconds: Number | None = None,
    mfu: Number | None = None,
    tokens: Number | None = None,
    usd_per_gpu_hour: Number | None = None,
) -> Estimate:
    """Return the FLOPs of a step; with a time its MFU, with an MFU its time.

    Raises:
        EstimateError: a time in which no GPU of this peak can do it.
    """
    step_flops(shape, batch=batch, sequence=sequence, attention=attention)  # checks
    sheet, one = Worksheet("FLOPs of a step"), shape.named()
    kind = {
        "sequence": Quantity.given("s", sequence, "tokens of a sequence"),
        "attention": attention,
    }
    work = _flops(sheet, one, batch, recompute, kind)
    if recompute == "selective":
        sheet.notes.append(
            "The paper of selective recompute counts its FLOPs three times as high "
            "(s/3h instead of s/4.5h): 2.7% for GPT-3 where one more forward is 0.9%."
        )
    if not (gpus and peak_flops_per_s and (seconds or mfu)):
        return sheet.estimate()
    ranks = Quantity.given("GPUs", check_count("gpus", gpus), "that work on the step")
    peak = Quantity.given("peak", peak_flops_per_s, "FLOP/s of one GPU")
    step = _step(sheet, work, ranks, peak, seconds=seconds, mfu=mfu)
    offered = {"seconds": step, "gpus": ranks, "peak_flops_per_s": peak}
    _utilization(sheet, work, attention, offered)
    if recompute == "selective":
        again = flops_utilization(
            flops=work.model + 3 * (work.hardware - work.model), **offered
        )
        custom = "the scores of a forward counted three times more: s/3h"
        sheet.add("HFU as its paper counts", again, "fraction", KORTHIKANTI, custom)
    if tokens:
        count = Quantity.given("D", check_amount("tokens", tokens), "tokens in all")
        days = divide(count, work.tokens) * step
        days = divide(days, SECONDS_PER_DAY)
        _training(sheet, ranks, days, usd_per_gpu_hour)
    return sheet.estimate()


@dataclass(frozen=True, slots=True)
class _Work:
    """Items of a step that others are made of."""

    tokens: Number
    model: Number
    hardware: Number


def _flops(
    sheet: Worksheet, shape: Shape, batch: int, recompute: str, kind: dict[str, Any]
) -> _Work:
    """Write down what a step computes: as the model needs it, and as it is run."""
    counted = f"attention {kind['attention']}"
    papers = f"{KORTHIKANTI}; {NARAYANAN}"
    sequences = Quantity.given("batch", batch, "sequences of a step")
    every = "of all data-parallel ranks"
    tokens = sequences * kind["sequence"]
    tokens = sheet.add(TOKENS, tokens, "tokens", COUNTED, every)
    forward = forward_flops_per_token(shape, **kind)
    sheet.add(FORWARD, forward, "FLOPs", papers, counted)
    model = step_flops(shape, batch=sequences, **kind)
    model = sheet.add("model FLOPs", model, "FLOPs", papers, counted)
    again = recomputed_flops_per_token(shape, recompute=recompute, **kind)
    if again:
        sheet.add(RECOMPUTED, again, "FLOPs", papers, f"{recompute} recompute")
    run = step_flops(shape, batch=sequences, recompute=recompute, **kind)
    source = f"{NARAYANAN}, equation 3, for full recompute"
    custom = f"with {recompute} recompute; {counted}"
    run = sheet.add("hardware FLOPs", run, "FLOPs", source, custom)
    active, custom = active_parameter_count(shape), "embeddings included"
    active = sheet.add("active parameters", active, "parameters", SOURCE, custom)
    simple = six_nd_flops(params=active, tokens=tokens)
    custom = "all active parameters, embeddings too; no scores"
    sheet.add("6 N D", simple, "FLOPs", KAPLAN, custom)
    return _Work(tokens, model, run)


def _step(
    sheet: Worksheet,
    work: _Work,
    gpus: Number,
    peak: Number,
    *,
    seconds: Number | None,
    mfu: Number | None,
) -> Number:
    """Write down the time of a step: as it was measured, or at an MFU."""
    model, offered = float(work.model), float(gpus * peak)
    if seconds is None:
        assert mfu is not None
        share = Quantity.given("MFU", check_fraction("mfu", mfu), "as it is expected")
        at = divide(work.model, gpus * peak * share)
        return sheet.add("step time", at, "seconds", COUNTED, "at the MFU given")
    if model / seconds > offered * (1 + 1e-9):  # not for what rounding adds
        raise EstimateError(
            f"step: got {seconds:g} s, expected at least {model / offered:.3g} s: "
            f"the MFU would be {model / seconds / offered:.0%} of the peak"
        )
    measured = Quantity.given("step time", seconds)
    return sheet.add("step time", measured, "seconds", COUNTED, "as given")


def _utilization(
    sheet: Worksheet, work: _Work, attention: str, offered: dict[str, Any]
) -> None:
    """Write down MFU and HFU."""
    rate = divide(divide(work.model, offered["seconds"]), offered["gpus"])
    counted = f"of model FLOPs, attention {attention}"
    sheet.add("FLOP/s per GPU", rate, "FLOP/s", COUNTED, counted)
    share = flops_utilization(flops=work.model, **offered)
    source = "Chowdhery et al. 2204.02311, appendix B"
    sheet.add("MFU", share, "fraction", source, counted)
    share = flops_utilization(flops=work.hardware, **offered)
    once = f"recomputed FLOPs counted once; attention {attention}"
    sheet.add("HFU", share, "fraction", KORTHIKANTI, once)


def _training(
    sheet: Worksheet, gpus: int, days: Number, usd_per_gpu_hour: Number | None
) -> None:
    """Write down what a whole training takes."""
    days = sheet.add("training", days, "days", COUNTED, "step after step, no failure")
    hours = gpu_hours(gpus=gpus, days=days)
    sheet.add("GPU-hours", hours, "GPU-hours", COUNTED, "all GPUs, all the time")
    if usd_per_gpu_hour:
        price = Quantity.given("price", usd_per_gpu_hour, "USD of a GPU-hour")
        cost = cost_usd(gpus=gpus, hours=days * 24, usd_per_gpu_hour=price)
        sheet.add("cost", cost, "USD", COUNTED, "the price given, for all GPU-hours")
