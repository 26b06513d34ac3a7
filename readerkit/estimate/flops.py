"""FLOPs of a step and the time they take: model and hardware FLOPs, MFU and HFU.

A multiply and an add are two FLOPs. The backward pass is two forwards. Softmax, norms
and activations are left out, as in the papers.
"""

from __future__ import annotations

from typing import Any

from readerkit.errors import EstimateError
from readerkit.estimate.checks import (
    check_amount,
    check_choice,
    check_count,
    check_fraction,
)
from readerkit.estimate.closed_form import ClosedForm
from readerkit.estimate.item import Estimate, Worksheet
from readerkit.estimate.parameters import (
    SOURCE,
    active_parameter_count,
    attention_matrices,
)
from readerkit.estimate.quantity import Number, divide, named
from readerkit.estimate.shape import Shape

NARAYANAN = "Narayanan et al. 2104.04473"
KORTHIKANTI = "Korthikanti et al. 2205.05198, appendix A"
KAPLAN_DAY = "Kaplan et al. 2001.08361, section 1.3"
KAPLAN = "Kaplan et al. 2001.08361, section 2.1"
ATTENTION = ("full", "causal")
RECOMPUTE = ("none", "selective", "full")
TOKENS = "tokens in a step"
FORWARD = "forward FLOPs of a token"
PEAK = "peak as given: of a GPU that ships, dense 16-bit as sold"
RECOMPUTED = "recomputed FLOPs of a token"
SECONDS_PER_DAY = 86_400
PF_DAY = 10**15 * SECONDS_PER_DAY


def layer_flops_per_token(
    shape: Shape, *, sequence: int, attention: str = "full", moe: bool = False
) -> Number:
    """Return the FLOPs of one token through one layer, forward."""
    h = shape.hidden
    weights = attention_matrices(shape)
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
    return divide((4 if attention == "full" else 2) * sequence * shape.score_size)


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


def _gpt_flops(factor: int, scores: int, table: int) -> ClosedForm:
    """Return the FLOPs of a GPT's step, as its papers write them."""
    return ClosedForm(
        f"{factor} × batch × sequence × layers × hidden² × (1 + sequence / "
        f"({scores} × hidden) + vocab / ({table} × layers × hidden))",
        whole="batch sequence layers hidden vocab",
    )


narayanan_flops_per_iteration = _gpt_flops(96, 6, 16)
"""With full recompute. Source: Narayanan et al. 2104.04473, equation 3."""
korthikanti_model_flops = _gpt_flops(72, 6, 12)
"""Without recompute. Source: Korthikanti et al. 2205.05198, appendix A."""
korthikanti_hardware_flops = _gpt_flops(72, 3, 12)
"""With selective recompute.

The paper's overhead of 2.7% (GPT-3) and its HFU come from this s/(3h). One more
forward of the scores is s/(4.5h), which is what ``step_flops`` counts (0.9%).

Source: Korthikanti et al. 2205.05198, appendix A.
"""
six_nd_flops = ClosedForm("6 × params × tokens")
"""Two FLOPs a weight forward, four backward, no attention scores.

Source: Kaplan et al. 2001.08361, section 2.1.
"""
flops_utilization = ClosedForm(
    "flops / (seconds × gpus × peak_flops_per_s)", whole="gpus"
)
"""The share of peak: MFU of model FLOPs, HFU of executed ones."""
training_days = ClosedForm(
    f"passes × params × tokens / (gpus × flops_per_s_per_gpu) / {SECONDS_PER_DAY}",
    whole="gpus passes",
    passes=6,
)
"""Days for a token budget at an achieved rate.

``passes`` is 6 FLOPs a weight and token, 8 with full recompute (Narayanan et al.
2104.04473, equation 4).
"""
gpu_hours = ClosedForm("gpus × days × 24", whole="gpus")
mean_hours_between_failures = ClosedForm("days × 24 / failures", whole="failures")
"""Of a run: its days over their number.

Llama 3: 419 unexpected ones in 54 days on 16,384 GPUs (Dubey et al. 2407.21783,
section 3.3.4).
"""
cost_usd = ClosedForm("gpus × hours × usd_per_gpu_hour", whole="gpus")


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
    tokens_per_s: Number | None = None,
    flops_per_s_per_gpu: Number | None = None,
    before_s: Number | None = None,
) -> Estimate:
    """Return the FLOPs of a step and of a run; with a time its MFU, or the other way.

    A time may be measured as a rate: tokens of the whole job, or FLOP/s of one GPU.
    ``before_s`` is the step of another setting, which this one is compared with.

    Raises:
        EstimateError: a time in which no GPU of this peak can do it.
    """
    step_flops(shape, batch=batch, sequence=sequence, attention=attention)  # checks
    sheet = Worksheet("FLOPs of a step")
    _flops(sheet, shape.named(), batch, sequence, recompute, attention)
    if recompute == "selective":
        sheet.notes.append(
            "The paper of selective recompute counts its FLOPs three times as high "
            "(s/3h instead of s/4.5h): 2.7% for GPT-3 where one more forward is 0.9%."
        )
    if tokens is not None:
        _run(sheet, tokens, attention)
    at = {
        "seconds": seconds,
        "MFU": mfu,
        "tokens/s": tokens_per_s,
        "FLOP/s of a GPU": flops_per_s_per_gpu,
    }
    measured = {name: value for name, value in at.items() if value is not None}
    if not (gpus and peak_flops_per_s and measured):
        return sheet.estimate()
    sheet.given("GPUs", check_count("gpus", gpus), "that work on the step")
    sheet.given("peak", peak_flops_per_s, "FLOP/s of one GPU")
    _utilization(sheet, attention, *measured.popitem())
    if before_s is not None:
        _speed_up(sheet, before_s)
    if recompute == "selective":
        sheet.write(
            f"""
            HFU as its paper counts [fraction] = (model FLOPs
                + 3 × (hardware FLOPs - model FLOPs)) / (step time × GPUs × peak)
                | {KORTHIKANTI}
                | the scores of a forward counted three times more: s/3h
            """
        )
    if tokens is not None:
        sheet.write(
            f"""
            training [days] = D / tokens in a step × step time / {SECONDS_PER_DAY}
                | a count | step after step, no failure
            GPU-hours [GPU-hours] = GPUs × training × 24
                | a count | all GPUs, all the time
            """
        )
    if tokens is not None and usd_per_gpu_hour is not None:
        sheet.given("price", usd_per_gpu_hour, "USD of a GPU-hour")
        sheet.write(
            """
            cost [USD] = GPUs × (training × 24) × price
                | a count | the price given, for all GPU-hours
            """
        )
    return sheet.estimate()


def _run(sheet: Worksheet, tokens: Number, attention: str) -> None:
    """Write down what a whole run computes."""
    sheet.given("D", check_amount("tokens", tokens), "tokens in all")
    sheet.write(
        f"""
        model FLOPs of the run [FLOPs] = model FLOPs × D / {TOKENS}
            | {KORTHIKANTI} | nothing recomputed, attention {attention}
        6 N D of the run [FLOPs] = 6 × active parameters × D | {KAPLAN}
            | all active parameters, embeddings too; no scores
        PF-days of the run [PF-days] = model FLOPs of the run / {PF_DAY}
            | {KAPLAN_DAY} | of the model FLOPs of the run
        PF-days of 6 N D [PF-days] = 6 N D of the run / {PF_DAY}
            | {KAPLAN_DAY} | of 6 N D of the run, as GPT-3's paper counts them
        """
    )


def _speed_up(sheet: Worksheet, before_s: Number) -> None:
    """Write down what this step gains over that of another setting."""
    sheet.given("before", check_amount("before-s", before_s), "the other step's time")
    sheet.write(
        """
        speed-up [times] = before / step time | a count | one time over the other
        throughput gained [fraction] = before / step time - 1
            | a count | more tokens in the same time; papers' "x% faster"
        time saved [fraction] = 1 - step time / before
            | a count | less time for the same tokens
        """
    )


def _utilization(sheet: Worksheet, attention: str, kind: str, value: Number) -> None:
    """Write down a step's time, as it was measured or is expected, and the shares.

    ``kind`` is what ``value`` is: seconds, an MFU, or a rate.
    """
    at, custom = _time_of(sheet, kind, value)
    counted = f"of model FLOPs, nothing recomputed, attention {attention}"
    sheet.write(
        f"""
        step time [seconds] = {at} | a count | {custom}
        tokens a second [tokens/s] = {TOKENS} / step time | a count | of the whole job
        FLOP/s [FLOP/s] = model FLOPs / step time | a count | of the job; {counted}
        FLOP/s per GPU [FLOP/s] = model FLOPs / step time / GPUs | a count | {counted}
        MFU [fraction] = model FLOPs / (step time × GPUs × peak)
            | Chowdhery et al. 2204.02311, appendix B | {counted}; of the {PEAK}
        HFU [fraction] = hardware FLOPs / (step time × GPUs × peak) | {KORTHIKANTI}
            | recomputed FLOPs counted once; attention {attention}; of the {PEAK}
        """
    )


def _time_of(sheet: Worksheet, kind: str, value: Number) -> tuple[str, str]:
    """Return the expression of a step's time, and what kind of time it is."""
    if kind == "MFU":
        if not check_fraction("mfu", value):
            raise EstimateError("mfu: got 0, expected more than zero")
        sheet.given("MFU", value, "as it is expected")
        return "model FLOPs / (GPUs × peak × MFU)", "at the MFU given"
    check_amount(kind, value)
    if kind == "seconds":
        _check_possible(sheet, value)
        sheet.given("step time", value)
        return "step time", "as given"
    sheet.given("rate", value, f"{kind}, as measured")
    tokens = kind == "tokens/s"
    at = f"{TOKENS} / rate" if tokens else "model FLOPs / GPUs / rate"
    _check_possible(sheet, _seconds_at(sheet, value, tokens=tokens))
    return at, f"at the {kind} given"


def _seconds_at(sheet: Worksheet, rate: Number, *, tokens: bool) -> float:
    """Return the seconds of a step at a rate."""
    if tokens:
        return float(sheet[TOKENS]) / float(rate)
    return float(sheet["model FLOPs"]) / float(sheet["GPUs"]) / float(rate)


def _flops(
    sheet: Worksheet,
    shape: Shape,
    batch: int,
    sequence: int,
    recompute: str,
    attention: str,
) -> None:
    """Write down what a step computes: as the model needs it, and as it is run."""
    kind: Any = {
        "sequence": sheet.given("s", sequence, "tokens of a sequence"),
        "attention": attention,
    }
    sequences = sheet.given("batch", batch, "sequences of a step")
    counted = f"{KORTHIKANTI}; {NARAYANAN} | attention {attention}"
    sheet.write(
        f"""
        {TOKENS} [tokens] = batch × s | a count | of all data-parallel ranks
        {FORWARD} [FLOPs] = forward | {counted}
        model FLOPs [FLOPs] = model | {counted}
        """,
        forward=forward_flops_per_token(shape, **kind),
        model=step_flops(shape, batch=sequences, **kind),
    )
    again = recomputed_flops_per_token(shape, recompute=recompute, **kind)
    if again:
        papers = f"{KORTHIKANTI}; {NARAYANAN}"
        sheet.add(RECOMPUTED, again, "FLOPs", papers, f"{recompute} recompute")
    sheet.write(
        f"""
        hardware FLOPs [FLOPs] = run
            | {NARAYANAN}, equation 3, for full recompute
            | with {recompute} recompute; attention {attention}
        active parameters [parameters] = active | {SOURCE} | embeddings included
        6 N D [FLOPs] = 6 × active parameters × {TOKENS} | {KAPLAN}
            | all active parameters, embeddings too; no scores
        """,
        run=step_flops(shape, batch=sequences, recompute=recompute, **kind),
        active=active_parameter_count(shape),
    )


def _check_possible(sheet: Worksheet, seconds: Number) -> None:
    """Raise where a step took less than its model's FLOPs take at the peak."""
    check_amount("seconds", seconds)
    model, offered = float(sheet["model FLOPs"]), float(sheet["GPUs"] * sheet["peak"])
    if model / seconds > offered * (1 + 1e-9):  # not for what rounding adds
        raise EstimateError(
            f"step: got {seconds:g} s, expected at least {model / offered:.3g} s: "
            f"the MFU would be {model / seconds / offered:.0%} of the peak"
        )
