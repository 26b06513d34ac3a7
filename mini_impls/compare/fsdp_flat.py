"""The flat-parameter mini beside torch's FullyShardedDataParallel (FSDP1)."""

from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor
from torch.distributed.fsdp import FullyShardedDataParallel
from torch.distributed.fsdp.wrap import ModuleWrapPolicy

from mini_impls import fsdp_flat
from mini_impls.compare.sides import (
    Comparison,
    DataParallelSide,
    Formula,
    Formulas,
    Held,
    Sides,
    Tolerance,
    optimizer_state,
)
from mini_impls.launch import Rank
from mini_impls.model import GPT, TransformerLayer, build_model
from readerkit.content.vocabulary import Category


class FlatSide(DataParallelSide):
    """A side whose parameters are this rank's pieces of flat ones."""

    def __init__(self, handles: Mapping[str, Any], *args: Any) -> None:
        super().__init__(*args)
        self.handles = handles
        """By the name of the module that was flattened."""

    def parameters(self) -> dict[str, Tensor]:
        """Return the pieces."""
        return {n: h.flat_param.detach() for n, h in self.handles.items()}

    def gradients(self) -> dict[str, Tensor]:
        """Return the pieces of the gradients."""
        return {name: h.flat_param.grad for name, h in self.handles.items()}

    def held(self) -> Held:
        """Return the pieces, and the memory of the whole, which should be empty."""
        flat_params = [handle.flat_param for handle in self.handles.values()]
        whole = [
            getattr(h, "_full_param_padded", None) for h in self.handles.values()
        ] + [getattr(p, "_full_param_padded", None) for p in flat_params]
        return {
            "parameters": [p.detach() for p in flat_params]
            + [tensor for tensor in whole if tensor is not None],
            "gradients": [p.grad for p in flat_params if p.grad is not None],
            "optimizer state": optimizer_state(self.optimizer),
        }

    def watched(self) -> list[Tensor]:
        """Return nothing: one flat gradient stands for all of a module."""
        return []


def build(rank: Rank, comparison: Comparison) -> Sides:
    """Return the mini and FSDP1, flattened at the same modules."""
    config, lr = comparison.config, comparison.learning_rate
    names = [f"layers.{i}" for i in range(config.num_layers)]
    ours = build_model(config).to(rank.device)
    expected = formulas(ours, rank)
    state = fsdp_flat.fully_shard_flat(ours, rank.group, modules=names)
    optimizer = torch.optim.AdamW(ours.parameters(), lr)
    mini = FlatSide(state.handles, rank, ours, ours, optimizer)

    theirs = FullyShardedDataParallel(
        build_model(config).to(rank.device),
        process_group=rank.group,
        auto_wrap_policy=ModuleWrapPolicy({TransformerLayer}),
        device_id=rank.device,
        use_orig_params=False,
    )
    handles = {
        name.replace("_fsdp_wrapped_module", "").strip(".").replace("..", "."): handle
        for name, module in theirs.named_modules()
        if isinstance(module, FullyShardedDataParallel)
        and (handle := module._handle) is not None
    }
    optimizer = torch.optim.AdamW(theirs.parameters(), lr)
    upstream = FlatSide(handles, rank, theirs, theirs, optimizer)
    return Sides(mini, upstream, {rank.group.group_name: "dp"}, expected)


def formulas(gpt: GPT, rank: Rank) -> Formulas:
    """Return the bytes of flat parameters, padded to equal pieces."""
    w = rank.world_size

    def padded(numel: int) -> int:
        return -(-numel // w) * w

    layers = [sum(p.numel() for p in layer.parameters()) for layer in gpt.layers]
    rest = sum(p.numel() for p in gpt.parameters()) - sum(layers)
    in_layers, root = 4 * sum(map(padded, layers)), 4 * padded(rest)
    whole = in_layers + root
    sent = {
        "all_gather": Formula(
            root + 2 * in_layers,
            f"2 x {in_layers:,} B of layers + {root:,} B of the root, once",
        ),
        "reduce_scatter": Formula(whole, f"{whole:,} B of gradients, each once"),
    }
    flat = len(layers) + 1
    kept: dict[Category, Formula] = {
        "parameters": Formula(whole // w, f"{whole:,} B / {w} ranks"),
        "gradients": Formula(whole // w, f"{whole:,} B / {w} ranks"),
        "optimizer state": Formula(
            2 * whole // w + 4 * flat,
            f"2 moments x {whole:,} B / {w} ranks + a 4 B step count x {flat}",
        ),
    }
    return Formulas.alike(sent, kept)


COMPARISONS = (
    Comparison(
        mini="fsdp_flat",
        upstream="fsdp1",
        build=build,
        tolerance=Tolerance(0.0, "the same flat tensors in the same calls"),
    ),
)
