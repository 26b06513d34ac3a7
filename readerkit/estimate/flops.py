"""FLOPs of a token, a layer and a step: the model's own, and those that are run.

A multiply and an add are two FLOPs. The backward pass is two forwards. Softmax, norms
and activations are left out, as in the papers.
"""

from __future__ import annotations

from typing import Any

from readerkit.estimate.activations import RECOMPUTE
from readerkit.estimate.checks import check_choice, check_count
from readerkit.estimate.closed_form import ClosedForm
from readerkit.estimate.parameters import attention_matrices
from readerkit.estimate.quantity import Number, divide, minimum, named
from readerkit.estimate.shape import Shape
from readerkit.wording.numbers import SECONDS_PER_DAY

KORTHIKANTI = "Korthikanti et al. 2205.05198, appendix A"
ATTENTION = ("full", "causal")
TOKENS = "tokens in a step"
FORWARD = "forward FLOPs of a token"
RECOMPUTED = "recomputed FLOPs of a token"


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

    ``full`` counts the whole square of scores, as the papers do; ``causal`` half. Of a
    layer with a window that is a band, and of it what comes before.
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
    """Return the FLOPs of scores and of their sum over values, in a mean layer.

    A token of a local layer meets the last ``window`` tokens, or what there are.
    """
    each = 4 if attention == "full" else 2
    if not shape.window:
        return divide(each * sequence * shape.score_size)
    met: Number = minimum(sequence, shape.window)
    if attention == "causal":  # of the first tokens fewer: half a square
        met = 2 * met - divide(met * met, sequence)
    all_layers: Number = (shape.layers - shape.local_layers) * sequence
    all_layers += shape.local_layers * met
    return divide(each * all_layers * shape.score_size, shape.layers)


def attention_words(shape: Shape, attention: str) -> str:
    """Return what a convention says of how scores are counted."""
    local = f", of local layers a window of {shape.window} tokens" * bool(shape.window)
    return f"attention {attention}{local}"


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
