"""The parameters of a model as an estimate, part by part."""

from __future__ import annotations

from readerkit.estimate.item import Estimate, Worksheet
from readerkit.estimate.parameters import (
    SOURCE,
    active_parameter_count,
    attention_parameters,
    mlp_parameters,
    moe_parameters,
    norm_parameters,
)
from readerkit.estimate.quantity import Number, Quantity
from readerkit.estimate.shape import Shape
from readerkit.estimate.sizes import LAYOUT


def estimate_parameters(shape: Shape, *, tensor_parallel: int = 1) -> Estimate:
    """Return the parameters of a model, part by part.

    A vocabulary is padded as its layout pads it: to its multiple times tensor parallel.
    """
    sheet = Worksheet("parameters")
    vocab = shape.padded_vocab(tensor_parallel)
    if vocab != shape.vocab:
        over = f" × tp {tensor_parallel}" if tensor_parallel > 1 else ""
        sheet.notes.append(
            f"vocabulary padded from {shape.vocab} to {vocab}, a multiple of "
            f"{shape.vocab_multiple}{over}"
        )
    if shape.tied_embeddings:
        sheet.notes.append(
            "tied: the token table is the output matrix too, counted once"
        )
    shape = shape.named()
    ways = tensor_parallel
    if ways > 1:
        ways = Quantity.given("tp", ways, LAYOUT["tp"].means)
    vocab = shape.padded_vocab(ways)
    for name, parameters in _parts(shape, vocab).items():
        if parameters:
            sheet.add(name, parameters, "parameters", SOURCE, "of the whole model")
    total = sheet.total([item.name for item in sheet.items])
    total = sheet.add("parameters", total, "parameters", SOURCE, "embeddings included")
    if shape.experts:
        active = active_parameter_count(shape, total)
        named = "embeddings included"
        active = sheet.add("active per token", active, "parameters", SOURCE, named)
    if shape.experts and not shape.tied_embeddings:
        sheet.add(
            "active without the token table",
            active - vocab * shape.hidden,
            "parameters",
            SOURCE,
            "the output matrix counts, the token table does not (gpt-oss's card)",
        )
    return sheet.estimate()


def _parts(shape: Shape, vocab: Number) -> dict[str, Number]:
    """Return the parameters of each part of a model; none where it has no such part."""
    h, norm = shape.hidden, norm_parameters(shape)
    dense, moe = shape.plain_layers, shape.moe_layers
    norms = shape.norms_per_layer * shape.layers
    norms += shape.final_norm + shape.embedding_norm
    parts: dict[str, Number] = {
        "token embedding": vocab * h,
        "position embedding": shape.positions * h,
        "attention": shape.layers * attention_parameters(shape).total,
        "feed-forward": dense * mlp_parameters(shape, shape.ffn).total,
    }
    if moe:
        experts = moe_parameters(shape)
        parts["routed experts"] = moe * experts.expert
        parts["shared experts and router"] = moe * (experts.split + experts.whole)
    parts["norms"] = norms * norm
    parts["output matrix"] = 0 if shape.tied_embeddings else vocab * h
    return parts
