"""What recompute runs again: whole layers of a rank, or Megatron's modules of each."""

from __future__ import annotations

from readerkit.estimate.activations import recomputed_modules
from readerkit.estimate.flops import attention_flops_per_token
from readerkit.estimate.layout import Layout
from readerkit.estimate.quantity import Number, minimum
from readerkit.estimate.shape import Shape


def layers_again(layout: Layout, dense: Number, moe: Number) -> tuple[Number, Number]:
    """Return how many of a rank's dense and expert layers are run again, whole.

    Of some layers these are the first, which are dense where a model has such.
    """
    if layout.recompute != "full":
        return 0, 0
    if not layout.recompute_layers:
        return dense, moe
    left = layout.recompute_layers * layout.virtual_stages
    first = minimum(left, dense)
    return first, minimum(left - first, moe)


def modules_again(layout: Layout) -> frozenset[str]:
    """Return the modules that are run again; flash attention has no scores to."""
    if layout.recompute in ("none", "full"):
        return frozenset()
    found = recomputed_modules(layout.recompute)
    return found - {"core_attn"} if layout.flash else found


def module_flops(
    shape: Shape, modules: frozenset[str], *, sequence: int, moe: bool
) -> Number:
    """Return the FLOPs of one token that modules of one layer take once more.

    Norms and the activation inside an expert have no matrices: nothing.
    """
    flops: Number = 0
    matrices = 3 if shape.gated_mlp else 2
    if "core_attn" in modules:
        flops += attention_flops_per_token(shape, sequence=sequence)
    if "mla_up_proj" in modules:
        queries = (shape.query_rank or shape.hidden) * shape.query_size
        both = shape.heads * shape.head_dim + shape.value_size
        flops += 2 * (queries + shape.kv_rank * both)
    if "mlp" in modules and not moe:
        flops += 2 * matrices * shape.hidden * shape.ffn
    if moe and {"moe", "shared_experts"} & modules:
        flops += 2 * matrices * shape.hidden * shape.shared_ffn
    if moe and "moe" in modules:
        inner = shape.experts_per_token * shape.expert_ffn
        flops += 2 * shape.hidden * (matrices * inner + shape.experts)
    return flops


def blocks_again(shape: Shape, layout: Layout, dense: Number, moe: Number) -> Number:
    """Return the attentions and feed-forwards under tensor parallelism run again."""
    modules = modules_again(layout)
    of = feed_forwards if shape.kv_rank else blocks
    again = of(shape, layout, *layers_again(layout, dense, moe))
    if not modules:
        return again
    if "mlp" in modules:
        again += dense
    if {"moe", "shared_experts"} & modules and _are_under(shape, layout):
        again += moe
    return again


def blocks(shape: Shape, layout: Layout, dense: Number, moe: Number) -> Number:
    """Return the attentions and feed-forwards of layers under tensor parallelism.

    Experts that gather their copies of tokens are not under it, shared ones are.
    """
    return 2 * dense + (2 * moe if _are_under(shape, layout) else moe)


def feed_forwards(shape: Shape, layout: Layout, dense: Number, moe: Number) -> Number:
    """Return the same without attentions: those of latents gather what is smaller."""
    return dense + moe if _are_under(shape, layout) else dense


def _are_under(shape: Shape, layout: Layout) -> bool:
    return not layout.gathers_copies or shape.shared_ffn > 0


def experts_again(layout: Layout, dense: Number, moe: Number) -> Number:
    """Return the expert layers whose tokens travel again."""
    if "moe" in modules_again(layout):
        return moe
    return layers_again(layout, dense, moe)[1]


def attentions_again(layout: Layout, dense: Number, moe: Number) -> Number:
    """Return the layers whose keys and values travel again."""
    if "core_attn" in modules_again(layout):
        return dense + moe
    return sum(layers_again(layout, dense, moe))
