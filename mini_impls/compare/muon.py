"""The Muon mini beside its upstreams: owners beside Megatron's layer-wise optimizer.

And rows beside torch's Muon on the parameters of fully_shard, which are DTensors: what
each product needs is sent there.
"""

from collections.abc import Callable
from functools import partial
from importlib import import_module
from typing import Any

import torch
from torch import Tensor
from torch.distributed.device_mesh import DeviceMesh
from torch.distributed.fsdp import fully_shard

from mini_impls import fsdp_options, muon
from mini_impls.compare import ddp, fsdp, megatron
from mini_impls.compare.sides import (
    Alone,
    Comparison,
    DataParallelSide,
    Formula,
    Formulas,
    Held,
    Sides,
    Tolerance,
    all_bytes,
    optimizer_state,
)
from mini_impls.demos.formulas import get_layer_wise_traffic, get_rows_traffic
from mini_impls.demos.muon import hidden_matrices, others
from mini_impls.launch import Rank
from mini_impls.model import GPT, GPTConfig, build_model
from readerkit.content.vocabulary import Category

MUON_LR = 5e-3
CLIP = 0.5


class Both(torch.optim.Optimizer):
    """Muon and AdamW, one after the other."""

    def __init__(self, gpt: GPT, muon: torch.optim.Optimizer, lr: float) -> None:
        self.both = (muon, torch.optim.AdamW(others(gpt), lr))
        super().__init__(gpt.parameters(), {})

    def step(self) -> None:  # type: ignore[override]  # takes no closure
        """Let each update its own."""
        for optimizer in self.both:
            optimizer.step()


def alone(
    clip: float | None, config: GPTConfig, microbatches: int, device: torch.device
) -> Alone:
    """Return what one process trains: Muon before AdamW, which finds no gradient."""
    gpt = build_model(config).to(device)
    matrices = hidden_matrices(gpt)
    optimizer = torch.optim.Muon(matrices, MUON_LR)

    def update_matrices() -> None:
        if clip is not None:
            torch.nn.utils.clip_grad_norm_(gpt.parameters(), clip)
        optimizer.step()
        for param in matrices:
            param.grad = None

    return Alone(gpt, update_matrices)


def states(optimizers: Any) -> list[Tensor]:
    """Return what several optimizers keep."""
    return [tensor for each in optimizers for tensor in optimizer_state(each)]


# --- owners of whole tensors ---


class MiniOwners(DataParallelSide):
    """Ours."""

    optimizer: Any

    def zero_grad(self) -> None:
        """Drop all gradients, of what others own too."""
        for param in self.module.parameters():
            param.grad = None

    def finish_gradients(self) -> None:
        """Make means of them."""
        muon.all_reduce_gradients([*self.module.parameters()], self.rank.group)

    def held(self) -> Held:
        """Return all parameters and gradients, and the state of what is owned."""
        params = list(self.module.parameters())
        return {
            "parameters": [param.detach() for param in params],
            "gradients": [p.grad for p in params if p.grad is not None],
            "optimizer state": states(self.optimizer.optimizers),
        }


class MegatronOwners(ddp.MegatronSide):
    """Megatron's layer-wise optimizer behind its DDP."""

    optimizer: Any

    def held(self) -> Held:
        """Return the buffers as gradients, and the state of what is owned."""
        chained = self.optimizer.chained_optimizers
        return {
            "parameters": [param.detach() for param in self.module.parameters()],
            "gradients": [buffer.grad_data for buffer in self.ddp.buffers],
            "optimizer state": states(each.optimizer for each in chained),
        }

    def zero_grad(self) -> None:
        """Zero the buffers, and drop what is left of the step before."""
        self.ddp.zero_grad_buffer()
        for param in self.module.parameters():
            param.grad = None


def build_megatron(rank: Rank, comparison: Comparison) -> Sides:
    """Return the mini, and Megatron's layer-wise optimizer around torch's Muon."""
    groups = megatron.start(rank)
    distributed: Any = import_module("megatron.core.distributed")
    transformer: Any = import_module("megatron.core.transformer")
    optimizers: Any = import_module("megatron.core.optimizer.optimizer")
    layer_wise: Any = import_module("megatron.core.optimizer.layer_wise_optimizer")
    settings: Any = import_module("megatron.core.optimizer.optimizer_config")
    collection: Any = import_module("megatron.core.process_groups_config")

    config, lr = comparison.config, comparison.learning_rate
    ours = build_model(config).to(rank.device)
    both = Both(ours, muon.Muon(hidden_matrices(ours), MUON_LR), lr).both
    mini = MiniOwners(
        rank,
        ours,
        ours,
        muon.LayerWiseDistributedOptimizer(both, rank.group, clip_grad=CLIP),  # type: ignore[arg-type]
    )

    theirs = build_model(config).to(rank.device)
    model = distributed.DistributedDataParallel(
        transformer.TransformerConfig(
            num_layers=config.num_layers,
            hidden_size=config.hidden_size,
            num_attention_heads=config.num_attention_heads,
        ),
        distributed.DistributedDataParallelConfig(),
        theirs,
    )
    options = settings.OptimizerConfig(clip_grad=CLIP)
    torchs = torch.optim.Muon(hidden_matrices(theirs), MUON_LR)
    optimizer = layer_wise.LayerWiseDistributedOptimizer(
        [
            optimizers.FP32Optimizer(each, options, lambda *args: None)
            for each in Both(theirs, torchs, lr).both
        ],
        options,
        collection.ProcessGroupCollection.use_mpu_process_groups(),
    )
    upstream = MegatronOwners(model, rank, model, theirs, optimizer)
    named = {rank.group.group_name: "dp", **groups}
    return Sides(mini, upstream, named, owner_formulas(ours, mini.optimizer, rank))


def owner_formulas(gpt: GPT, optimizer: Any, rank: Rank) -> Formulas:
    """Return every gradient once, the longest share of each rank, and owned state."""
    params, matrices = list(gpt.parameters()), set(hidden_matrices(gpt))
    traffic = get_layer_wise_traffic(optimizer.params_list)
    longest = traffic["all_gather"] // 4 // rank.world_size
    mine = optimizer.params_list[rank.rank]
    momenta = sum(p.numel() for p in mine if p in matrices)
    rest = [p.numel() for p in mine if p not in matrices]
    sent = {
        "all_reduce": Formula(
            traffic["all_reduce"],
            f"4 B x {sum(p.numel() for p in params):,} gradients + 4 B of the norm",
        ),
        "all_gather": Formula(
            traffic["all_gather"],
            f"4 B x {rank.world_size} ranks x {longest:,}, the longest share",
        ),
    }
    kept: dict[Category, Formula] = {
        "parameters": all_bytes(params, "parameters"),
        "gradients": all_bytes(params, "gradients"),
        "optimizer state": owned_state(momenta, rest),
    }
    return Formulas.alike(sent, kept)


def owned_state(momenta: int, rest: list[int]) -> Formula:
    """Return what Muon keeps of matrices, and AdamW of the rest."""
    return Formula(
        4 * momenta + 8 * sum(rest) + 4 * len(rest),
        f"a momentum x 4 B x {momenta:,} + 2 moments x 4 B x {sum(rest):,} + a 4 B "
        f"step count x {len(rest)}",
    )


# --- rows of each ---


class RowsState:
    """Shows what both optimizers of a sharded side keep."""

    optimizer: Any

    def kept(self, held: Held) -> Held:
        """Return what is held, with the state of both optimizers."""
        both = self.optimizer.both
        return {**held, "optimizer state": [fsdp.local(t) for t in states(both)]}


class MiniRows(RowsState, fsdp.MiniSide):
    """Ours."""

    def held(self) -> Held:
        """Return what is held."""
        return self.kept(super().held())


class TorchRows(RowsState, fsdp.TorchSide):
    """Torch's."""

    def held(self) -> Held:
        """Return what is held."""
        return self.kept(super().held())


def build_torch(rank: Rank, comparison: Comparison) -> Sides:
    """Return the mini's rows, and torch's Muon on the DTensors of fully_shard."""
    config, lr = comparison.config, comparison.learning_rate
    ours = build_model(config).to(rank.device)
    expected = row_formulas(ours, rank)
    rows = {name: len(param) for name, param in ours.named_parameters()}
    state = fsdp_options.fully_shard(
        ours,
        rank.group,
        modules=fsdp.module_names(config),
        # Gathers ahead of time are of `fsdp`'s comparison.
        prefetch=False,
    )
    num_rows = {param: rows[name] for name, param in ours.named_parameters()}
    sharded = muon.RowsMuon(hidden_matrices(ours), rank.group, num_rows, lr=MUON_LR)
    mini = MiniRows(state, rank, ours, ours, Both(ours, sharded, lr))

    theirs = build_model(config).to(rank.device)
    mesh = DeviceMesh.from_group(rank.group, rank.device.type)
    for module in (*theirs.layers, theirs):
        fully_shard(module, mesh=mesh)
    torchs = torch.optim.Muon(hidden_matrices(theirs), MUON_LR)
    upstream = TorchRows(rank, theirs, theirs, Both(theirs, torchs, lr))
    return Sides(mini, upstream, {rank.group.group_name: "dp"}, expected)


def row_formulas(gpt: GPT, rank: Rank) -> Formulas:
    """Return what fully_shard sends, and each momentum once, in two bytes."""
    w = rank.world_size
    plain = fsdp.formulas(gpt, rank)
    sent = dict(plain.payload["mini"])
    traffic = get_rows_traffic(gpt, w)
    gathers = sent["all_gather"]
    momenta = traffic["all_gather"] - gathers.bytes
    sent["all_gather"] = Formula(
        traffic["all_gather"], f"{gathers.text} + {momenta:,} B of momenta in bfloat16"
    )
    matrices = set(hidden_matrices(gpt))

    def here(p: Tensor) -> int:
        return fsdp.rows_of(p, w, rank.rank) * (p.numel() // p.size(0))  # type: ignore[arg-type]

    kept = dict(plain.held["mini"])
    kept["optimizer state"] = owned_state(
        sum(here(p) for p in matrices),
        [here(p) for p in gpt.parameters() if p not in matrices],
    )
    return Formulas(
        {"mini": sent, "upstream": {"reduce_scatter": sent["reduce_scatter"]}},
        {"mini": kept, "upstream": kept},
        {
            "all_gather": "each product gathers what it needs, as DTensor decides",
            "all_reduce": "norms, and products of columns, as DTensor decides",
        },
    )


def comparison(
    upstream: str, build: Callable[..., Sides], clip: float | None, **rest: Any
) -> Comparison:
    """Return one of the two."""
    return Comparison(
        mini="muon",
        upstream=upstream,
        build=build,
        alone=partial(alone, clip),
        **rest,
    )


COMPARISONS = (
    comparison(
        "megatron",
        build_megatron,
        CLIP,
        tolerance=Tolerance(
            2e-2,
            "more than two ranks add in an order of gloo's; where a momentum has next "
            "to nothing Newton-Schulz makes a direction of its last bits",
        ),
        of_two_ranks=Tolerance(0.0, "two ranks: a + b = b + a, in the same call"),
        upstreams=("megatron",),
        shims=("current_device", "cuda_is_cpu", "cuda_types", "padded_gather"),
    ),
    comparison(
        "torch",
        build_torch,
        None,
        tolerance=Tolerance(
            3e-3,
            "products of parts are rounded to bfloat16 before they are added, and "
            "Newton-Schulz makes a direction of last bits",
        ),
    ),
)
