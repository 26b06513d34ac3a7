"""What one step sends: each kind of parallelism, per rank, as collectives.

A volume is exact: (n - 1)/n of the size for each all-gather or reduce-scatter, twice
that for an all-reduce. The papers' 1x and 1.5x are its limit for many ranks.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from readerkit.estimate.closed_form import ClosedForm, checked
from readerkit.estimate.collectives import collective_bytes
from readerkit.estimate.quantity import Number
from readerkit.estimate.states import STAGES

ZERO = "Rajbhandari et al. 1910.02054, section 7"
MEGATRON = "Shoeybi et al. 1909.08053, section 3"
GATHERED_HEADS = (
    "Megatron-LM core_v0.16.1: megatron/core/transformer/attention.py, "
    "get_query_key_value_tensors"
)
LATENTS = (
    "Megatron-LM core_v0.16.1: megatron/core/transformer/multi_latent_attention.py"
)
SUMMED = (
    "Megatron-LM core_v0.16.1: megatron/core/models/common/embeddings/"
    "language_model_embedding.py"
)
KORTHIKANTI = "Korthikanti et al. 2205.05198, section 4.2.2"
NARAYANAN = "Narayanan et al. 2104.04473, sections 3.2 and 4.1"
FOLDED = "Liu et al. 2504.14960, section 3; Megatron-LM: token_dispatcher.py"
GSHARD = "Lepikhin et al. 2006.16668, section 3.2"
RING = "Liu et al. 2310.01889, section 3"
RING_HOME = "zhuzilin/ring-flash-attention 8996282: ring_flash_attn_backward"
GATHERED = "Dubey et al. 2407.21783, section 3.3.2"
ULYSSES = "Jacobs et al. 2309.14509, section 3.2"


class Traffic(NamedTuple):
    """Collectives of one kind on one group, in one step of one rank."""

    axis: str
    """``dp``, ``tp``, ``pp``, ``ep``, ``etp`` or ``cp``."""
    operation: str
    calls: Number
    size_bytes: Number
    """Of one call, as nccl-tests counts it."""
    ranks: int
    why: str
    """Which calls these are."""
    source: str
    of: str = ""
    """What part of the model they are for, where another has such calls too."""

    @property
    def name(self) -> str:
        """What an estimate calls them."""
        return f"{self.axis}: {self.operation}" + (f", {self.of}" if self.of else "")

    @property
    def sent_bytes(self) -> Number:
        """Bytes that the rank sends in all calls."""
        return collective_bytes(
            operation=self.operation,
            size_bytes=self.calls * self.size_bytes,
            ranks=self.ranks,
        )


# --- data parallel --------------------------------------------------------------------


@checked(stage=STAGES)
def dp_volume_bytes(
    *,
    params: Number,
    world_size: int,
    stage: int,
    weight_bytes: int = 2,
    gradient_bytes: int = 2,
    microbatches: int = 1,
    no_sync: bool = True,
) -> Number:
    """Return the bytes that a rank sends in a step under a ZeRO stage; 0 is DDP.

    DDP and stages 1 and 2 send the same where weights and gradients have the same
    width; stage 3 half as much again, since weights are gathered in the backward pass
    too. Accumulation saves DDP and stage 1 traffic only with ``no_sync``; stage 2 sums
    into shards after each microbatch, stage 3 gathers again for each.

    Source: Rajbhandari et al. 1910.02054, section 7; Li et al. 2006.15704, 3.2.4.
    """
    return sum(
        traffic.sent_bytes
        for traffic in dp_traffic(
            params=params,
            world_size=world_size,
            stage=stage,
            weight_bytes=weight_bytes,
            gradient_bytes=gradient_bytes,
            microbatches=microbatches,
            no_sync=no_sync,
        )
    )


def dp_traffic(
    *,
    params: Number,
    world_size: Any,
    stage: int,
    weight_bytes: int,
    gradient_bytes: int,
    microbatches: int = 1,
    no_sync: bool = True,
    of: str = "",
) -> list[Traffic]:
    """Return the collectives of data parallelism in one step."""
    n, m = world_size, microbatches
    weights, gradients = params * weight_bytes, params * gradient_bytes
    sums = m if stage >= 2 or not no_sync else 1
    each = f"gradients, {'each microbatch' if sums > 1 else 'once'}"
    if stage == 0:
        return [Traffic("dp", "all-reduce", sums, gradients, n, each, ZERO, of)]
    gathers = 1 if stage < 3 else 2 * m
    why = "weights, after the step"
    if stage == 3:
        why = "weights, forward and backward of each microbatch"
    return [
        Traffic("dp", "reduce-scatter", sums, gradients, n, each, ZERO, of),
        Traffic("dp", "all-gather", gathers, weights, n, why, ZERO, of),
    ]


# --- tensor parallel ------------------------------------------------------------------


@checked()
def tp_volume_bytes(
    *,
    layers: int,
    sequence: int,
    micro_batch: int,
    hidden: int,
    tensor_parallel: int,
    microbatches: int = 1,
    sequence_parallel: bool = False,
    recompute: str = "none",
    element_bytes: int = 2,
) -> Number:
    """Return the bytes a rank sends in one step for the layers' tensor parallelism.

    Two all-reduces forward and two backward a layer (and two more where the forward is
    run again). With sequence parallelism each becomes a reduce-scatter and an
    all-gather of the same bytes, and the backward gathers both inputs once more.
    """
    size = sequence * micro_batch * hidden * element_bytes
    blocks = 2 * layers * microbatches
    again = blocks if recompute == "full" else 0
    traffic = tp_traffic(size, blocks, again, tensor_parallel, sequence_parallel)
    return sum(each.sent_bytes for each in traffic)


def tp_traffic(
    size: Number,
    blocks: Number,
    again: Number,
    tp: int,
    sequence_parallel: bool,
    of: str = "an attention or feed-forward",
) -> list[Traffic]:
    """Return the collectives of so many attentions and feed-forwards.

    ``again`` is how many of their forwards are run once more.
    """
    more = ", 1 where it is recomputed" if again else ""
    if not sequence_parallel:
        why = f"1 forward, 1 backward{more}, of {of}"
        calls = 2 * blocks + again
        return [Traffic("tp", "all-reduce", calls, size, tp, why, MEGATRON)]
    return [
        Traffic("tp", op, each * blocks + again, size, tp, why, KORTHIKANTI)
        for op, each, why in (
            ("all-gather", 3, f"1 forward, 1 backward, 1 input again{more}, of {of}"),
            ("reduce-scatter", 2, f"1 forward, 1 backward{more}, of {of}"),
        )
    ]


# --- the others -----------------------------------------------------------------------

pp_volume_bytes = ClosedForm(
    "2 × microbatches × virtual_stages × sequence × micro_batch × hidden "
    "× element_bytes / shards",
    whole="microbatches virtual_stages sequence micro_batch hidden element_bytes "
    "shards",
    virtual_stages=1,
    shards=1,
    element_bytes=2,
)
"""The bytes that a rank in the middle of a pipeline sends in one step.

One activation on and one gradient back, for each microbatch and chunk; ``shards`` is
tensor parallel where each of its ranks sends its own part.
"""
ep_volume_bytes = ClosedForm(
    "(expert_parallel - 1) × 4 × moe_layers × microbatches × experts_per_token "
    "× sequence × micro_batch × hidden × element_bytes / shards / expert_parallel",
    whole="expert_parallel moe_layers microbatches experts_per_token sequence "
    "micro_batch hidden element_bytes shards",
    zero="moe_layers",
    microbatches=1,
    shards=1,
    element_bytes=2,
)
"""The bytes that a rank sends to other ranks' experts in one balanced step.

Dispatch and combine, forward and backward: four all-to-alls a layer, each of every
token's copies to its experts.
"""
