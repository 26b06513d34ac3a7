"""Sizes as papers write them, and what they are: of formulas, and of options."""

from __future__ import annotations

from typing import NamedTuple

from readerkit.estimate.defaults import SEQUENCE


class Size(NamedTuple):
    """A size of a model or a layout: its symbol, and what it is."""

    symbol: str
    means: str
    more: str = ""
    """What an option says of it besides."""
    above: int = 0
    """Up to which it is in no formula: none of it, or not cut."""


MODEL = {
    "layers": Size("L", "layers"),
    "hidden": Size("h", "hidden size"),
    "heads": Size("a", "attention heads"),
    "kv_heads": Size("k", "key-value heads", " (default: as many as heads)"),
    "head_dim": Size("d", "size of a head", " (default: hidden / heads)"),
    "ffn": Size("f", "inner size of the feed-forward", " (default: 4 × hidden)"),
    "vocab": Size("V", "vocabulary"),
    "positions": Size("P", "rows of the position table"),
    "experts": Size("E", "routed experts of a layer"),
    "experts_per_token": Size("K", "experts that a token goes to"),
    "expert_ffn": Size("f_e", "inner size of an expert", " (default: ffn)"),
    "shared_ffn": Size("f_s", "inner size of the shared experts", " together"),
    "dense_layers": Size("L_d", "layers without experts", ", from the first"),
    "moe_every": Size("n_E", "layers of which one has experts", " (default 1)", 1),
    "kv_rank": Size("d_c", "latent of keys and values", " (low-rank attention)"),
    "query_rank": Size("d_q", "latent of queries", " (low-rank attention)"),
    "rope_dim": Size("d_r", "rotary part of a head", ", beside head-dim"),
    "value_dim": Size("d_v", "size of a value's head", " (default: head-dim)"),
    "window": Size("W", "tokens that a local layer attends to"),
    "global_every": Size("n_G", "layers of which one is global", " (default: none)"),
    "vocab_multiple": Size("M", "vocabulary padded to a multiple", above=1),
}
LAYOUT = {
    "dp": Size("dp", "data-parallel ranks", above=1),
    "tp": Size("tp", "tensor-parallel ranks", above=1),
    "pp": Size("pp", "pipeline ranks", above=1),
    "cp": Size(
        "cp", "context-parallel ranks", ": each holds a part of every sequence", 1
    ),
    "ep": Size("ep", "expert-parallel ranks", ", out of dp × cp", 1),
    "etp": Size("etp", "tensor-parallel ranks of an expert", " (default: tp)"),
    "micro_batch": Size("b", "sequences of a microbatch", above=1),
    "microbatches": Size("m", "microbatches of a rank", " in a step", 1),
    "virtual_stages": Size("v", "chunks of a rank", " (interleaved)", 1),
    "recompute_layers": Size("n_r", "layers recomputed in full", " (default: all)"),
    "first_layers": Size("L_1", "layers of the first pipeline rank", " (Megatron)"),
    "last_layers": Size("L_p", "layers of the last pipeline rank", " (Megatron)"),
    "sequence": Size("s", "tokens of a sequence", f" (default {SEQUENCE})", 1),
}
PIPELINE = {
    "stages": Size("p", "pipeline ranks"),
    "microbatches": Size("m", "microbatches"),
    "virtual_stages": Size("v", "chunks of a rank", above=1),
    "forward": Size("F", "time of a forward"),
    "backward": Size("B", "time of a backward"),
    "weight": Size("W", "time of the weights' gradients", above=-1),
}
PRECISION = {
    "weight": Size("w", "bytes of a weight"),
    "gradient": Size("g", "bytes of its gradient"),
    "optimizer": Size("o", "bytes of its optimizer state"),
}
