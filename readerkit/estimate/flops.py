"""FLOPs of a step and the time they take: model and hardware FLOPs, MFU and HFU.

A multiply and an add are two FLOPs. The backward pass is two forwards. Softmax, norms
and activations are left out, as in the papers.
"""

from __future__ import annotations

from fractions import Fraction

from readerkit.errors import EstimateError
from readerkit.estimate.quantity import (
    Estimate,
    Item,
    Number,
    check_amount,
    check_choice,
    check_count,
    check_fraction,
    divide,
)
from readerkit.estimate.shape import Shape, active_parameter_count

NARAYANAN = "Narayanan et al. 2104.04473"
KORTHIKANTI = "Korthikanti et al. 2205.05198, appendix A"
KAPLAN = "Kaplan et al. 2001.08361, section 2.1"
ATTENTION = ("full", "causal")
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
    flops: Number = 2 * shape.hidden * shape.vocab if logits else 0
    kinds = ((shape.layers - shape.moe_layers, False), (shape.moe_layers, True))
    for layers, moe in kinds:
        flops += layers * layer_flops_per_token(
            shape, sequence=sequence, attention=attention, moe=moe
        )
    return flops


def attention_flops_per_token(
    shape: Shape, *, sequence: int, attention: str = "full"
) -> Number:
    """Return the FLOPs of scores and of their sum over values, in one layer."""
    return divide(4 * sequence * shape.query_size, 2 if attention == "causal" else 1)


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
    check_choice("recompute", recompute, ("none", "selective", "full"))
    tokens = check_count("batch", batch) * check_count("sequence", sequence)
    flops = 3 * forward_flops_per_token(shape, sequence=sequence, attention=attention)
    if recompute == "full":
        flops += forward_flops_per_token(
            shape, sequence=sequence, attention=attention, logits=False
        )
    elif recompute == "selective":
        flops += shape.layers * attention_flops_per_token(
            shape, sequence=sequence, attention=attention
        )
    return tokens * flops


def narayanan_flops_per_iteration(
    *, batch: int, sequence: int, layers: int, hidden: int, vocab: int
) -> Number:
    """Return F = 96 B s l h² (1 + s/(6h) + V/(16 l h)): a GPT with full recompute.

    Source: Narayanan et al. 2104.04473, equation 3.
    """
    b, s, n, h, v = batch, sequence, layers, hidden, vocab
    return divide(
        96 * b * s * n * h * h * (1 + Fraction(s, 6 * h) + Fraction(v, 16 * n * h))
    )


def korthikanti_model_flops(
    *, batch: int, sequence: int, layers: int, hidden: int, vocab: int
) -> Number:
    """Return 72 B L s h² (1 + s/(6h) + v/(12 h L)): a GPT without recompute.

    Source: Korthikanti et al. 2205.05198, appendix A.
    """
    b, s, n, h, v = batch, sequence, layers, hidden, vocab
    return divide(
        72 * b * n * s * h * h * (1 + Fraction(s, 6 * h) + Fraction(v, 12 * h * n))
    )


def korthikanti_hardware_flops(
    *, batch: int, sequence: int, layers: int, hidden: int, vocab: int
) -> Number:
    """Return 72 B L s h² (1 + s/(3h) + v/(12 h L)): with selective recompute.

    The paper's overhead of 2.7% (GPT-3) and its HFU come from this s/(3h). One more
    forward of the scores is s/(4.5h), which is what ``step_flops`` counts (0.9%).

    Source: Korthikanti et al. 2205.05198, appendix A.
    """
    b, s, n, h, v = batch, sequence, layers, hidden, vocab
    return divide(
        72 * b * n * s * h * h * (1 + Fraction(s, 3 * h) + Fraction(v, 12 * h * n))
    )


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
    return check_amount("flops", flops) / offered


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
    return flops / rate / SECONDS_PER_DAY


def gpu_hours(*, gpus: int, days: Number) -> Number:
    """Return GPU-hours."""
    return check_count("gpus", gpus) * check_amount("days", days) * 24


def mean_hours_between_failures(*, failures: int, days: Number) -> Number:
    """Return the hours between failures of a run: its days over their number.

    Llama 3: 419 unexpected ones in 54 days on 16,384 GPUs (Dubey et al. 2407.21783,
    section 3.3.4).
    """
    return check_amount("days", days) * 24 / check_count("failures", failures)


def cost_usd(*, gpus: int, hours: Number, usd_per_gpu_hour: Number) -> Number:
    """Return what GPUs cost for some hours, in dollars."""
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
    """Return the FLOPs of a step; with a time its MFU, with an MFU its time."""
    model = step_flops(shape, batch=batch, sequence=sequence, attention=attention)
    run = step_flops(
        shape, batch=batch, sequence=sequence, recompute=recompute, attention=attention
    )
    active = active_parameter_count(shape)
    step_tokens = batch * sequence
    simple = six_nd_flops(params=active, tokens=step_tokens)
    counted = f"attention {attention}"
    items = [
        Item("tokens in a step", step_tokens, "tokens", f"{batch} × {sequence}", ""),
        Item(
            "model FLOPs",
            model,
            "FLOPs",
            "3 × forward: matrices 2 × weights × tokens, scores 4 s² a d a layer",
            f"{KORTHIKANTI}; {NARAYANAN}",
            counted,
        ),
        Item(
            "hardware FLOPs",
            run,
            "FLOPs",
            f"with {recompute} recompute",
            f"{NARAYANAN}, equation 3, for full recompute",
            counted,
        ),
        Item(
            "6 N D",
            simple,
            "FLOPs",
            f"6 × {active} × {step_tokens}",
            KAPLAN,
            "all active parameters, embeddings too; no scores",
        ),
    ]
    notes = []
    if recompute == "selective":
        notes.append(
            "The paper of selective recompute counts its FLOPs three times as high "
            "(s/3h instead of s/4.5h): 2.7% for GPT-3 where one more forward is 0.9%."
        )
    if gpus and peak_flops_per_s and (seconds or mfu):
        peak = gpus * peak_flops_per_s
        if seconds is None:
            assert mfu is not None
            seconds = model / (peak * check_fraction("mfu", mfu))
        elif model / seconds > peak * (1 + 1e-9):  # not for what rounding adds
            raise EstimateError(
                f"step: got {seconds:g} s, expected at least {model / peak:.3g} s: "
                f"the MFU would be {model / seconds / peak:.0%} of the peak"
            )
        items += _utilization(model, run, seconds, gpus, peak_flops_per_s)
        if recompute == "selective":
            scores = attention_flops_per_token(
                shape, sequence=sequence, attention=attention
            )
            again = 3 * shape.layers * scores * step_tokens
            items.append(
                Item(
                    "HFU as its paper counts",
                    (model + again) / seconds / peak,
                    "fraction",
                    "the scores of a forward counted three times more: s/3h",
                    KORTHIKANTI,
                )
            )
        if tokens:
            steps = check_amount("tokens", tokens) / step_tokens
            days = steps * seconds / SECONDS_PER_DAY
            items += _training(tokens, days, gpus, usd_per_gpu_hour)
    return Estimate("FLOPs of a step", tuple(items), tuple(notes))


def _training(
    tokens: Number, days: Number, gpus: int, usd_per_gpu_hour: Number | None
) -> list[Item]:
    items = [
        Item("training", days, "days", f"{tokens:g} tokens, step by step", "a count"),
        Item(
            "GPU-hours",
            gpu_hours(gpus=gpus, days=days),
            "GPU-hours",
            f"{gpus} GPUs × days × 24",
            "a count",
        ),
    ]
    if usd_per_gpu_hour:
        items.append(
            Item(
                "cost",
                cost_usd(gpus=gpus, hours=days * 24, usd_per_gpu_hour=usd_per_gpu_hour),
                "USD",
                f"{gpus} GPUs × hours × {usd_per_gpu_hour}",
                "a count",
            )
        )
    return items


def _utilization(
    model: Number, run: Number, seconds: Number, gpus: int, peak: Number
) -> list[Item]:
    share = f"{gpus} GPUs × {peak:g} FLOP/s"
    return [
        Item("step time", seconds, "seconds", f"model FLOPs / (MFU × {share})", ""),
        Item(
            "FLOP/s per GPU",
            model / seconds / gpus,
            "FLOP/s",
            "model FLOPs / time / GPUs",
            "",
        ),
        Item(
            "MFU",
            flops_utilization(
                flops=model, seconds=seconds, gpus=gpus, peak_flops_per_s=peak
            ),
            "fraction",
            f"model FLOPs / (time × {share})",
            "Chowdhery et al. 2204.02311, appendix B",
        ),
        Item(
            "HFU",
            flops_utilization(
                flops=run, seconds=seconds, gpus=gpus, peak_flops_per_s=peak
            ),
            "fraction",
            f"hardware FLOPs / (time × {share})",
            KORTHIKANTI,
            "recomputed FLOPs counted once",
        ),
    ]
