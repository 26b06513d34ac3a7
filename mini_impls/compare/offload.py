"""The offload mini beside torch: rows beside FSDP2's, activations beside its hook.

On a CPU both of torch's go through all of their code and copy nothing, for what is on
the host is on the device; the mini copies all the same.
"""

from collections.abc import Callable, Iterable
from typing import Any

import torch
from torch import Tensor, nn
from torch.autograd.graph import save_on_cpu
from torch.distributed.device_mesh import DeviceMesh
from torch.distributed.fsdp import CPUOffloadPolicy, fully_shard

from mini_impls import ddp
from mini_impls.compare import fsdp
from mini_impls.compare.sides import (
    Comparison,
    DataParallelSide,
    Formula,
    Formulas,
    Held,
    Sides,
    Tolerance,
    all_bytes,
    optimizer_state,
    trained,
)
from mini_impls.launch import Rank
from mini_impls.model import GPT, build_model
from mini_impls.offload import HostLink
from mini_impls.offload_activations import ActivationOffload, offload_layers
from mini_impls.offload_states import OffloadedModel

# --- rows on the host, beside fully_shard's CPUOffloadPolicy ---


class MiniStates(fsdp.ShardedSide):
    """Ours."""

    offloaded: OffloadedModel

    def fsdp_params(self) -> Iterable[Any]:
        """Return nothing: a unit has all of its rows in one piece."""
        return ()

    def held(self) -> Held:
        """Return what is on the host, and what the device has kept of the weights."""
        units = self.offloaded.units
        grads = [p.grad for p in self.module.parameters() if p.grad is not None]
        return {
            "parameters": [t for u in units for t in (u.host, *u.gathered)],
            "gradients": grads,
            "optimizer state": optimizer_state(self.optimizer),
        }


def build_states(rank: Rank, comparison: Comparison) -> Sides:
    """Return the mini and fully_shard, both with their root freed after forward."""
    config, lr = comparison.config, comparison.learning_rate
    ours = build_model(config).to(rank.device)
    expected = state_formulas(ours, rank)
    names = fsdp.module_names(config)
    offloaded = OffloadedModel(ours, rank.group, HostLink(rank.device), modules=names)
    mini = MiniStates(rank, ours, ours, torch.optim.AdamW(ours.parameters(), lr))
    mini.offloaded = offloaded

    theirs = build_model(config).to(rank.device)
    mesh = DeviceMesh.from_group(rank.group, rank.device.type)
    # Pinned memory is an accelerator's: without one torch refuses to make it.
    policy = CPUOffloadPolicy(pin_memory=False)
    for module in (*theirs.layers, theirs):
        fully_shard(
            module, mesh=mesh, offload_policy=policy, reshard_after_forward=True
        )
    optimizer = torch.optim.AdamW(theirs.parameters(), lr)
    upstream = fsdp.TorchSide(rank, theirs, theirs, optimizer)
    return Sides(mini, upstream, {rank.group.group_name: "dp"}, expected)


def state_formulas(gpt: GPT, rank: Rank) -> Formulas:
    """Return fully_shard's, of a root that is gathered twice as well."""
    whole = sum(fsdp.padded_bytes(p, rank.world_size) for p in gpt.parameters())
    sent = {
        "all_gather": Formula(2 * whole, f"2 x {whole:,} B of parameters"),
        "reduce_scatter": Formula(whole, f"{whole:,} B of gradients, each once"),
    }
    return Formulas.alike(sent, fsdp.formulas(gpt, rank).held["mini"])


# --- activations on the host, beside save_on_cpu ---


class Forward(nn.Module):
    """A model whose forward has something around it."""

    def __init__(self, run: Callable[[Tensor], Tensor]) -> None:
        super().__init__()
        self.run = run

    def forward(self, tokens: Tensor) -> Tensor:
        """(B, T) -> (B, T, V)."""
        return self.run(tokens)


class AveragingSide(DataParallelSide):
    """Averages each gradient after backward."""

    def finish_gradients(self) -> None:
        """Make means of them, one call for each."""
        ddp.all_reduce_gradients(self.module, self.rank.group)


def build_activations(rank: Rank, comparison: Comparison) -> Sides:
    """Return layers that are parts, and a model all of whose forward is hooked."""
    lr, sides = comparison.learning_rate, []
    ours, theirs = (build_model(comparison.config).to(rank.device) for _ in range(2))
    offload = ActivationOffload(HostLink(rank.device), ours.parameters())
    offload_layers(ours.layers, offload)

    def run_ours(tokens: Tensor) -> Tensor:
        logits: Tensor = ours(tokens)
        offload.end_forward()
        return logits

    def run_theirs(tokens: Tensor) -> Tensor:
        with save_on_cpu():
            logits: Tensor = theirs(tokens)
            return logits

    for gpt, run in ((ours, run_ours), (theirs, run_theirs)):
        optimizer = torch.optim.AdamW(gpt.parameters(), lr)
        sides.append(AveragingSide(rank, Forward(run), gpt, optimizer))
    params = list(ours.parameters())
    sent = {"all_reduce": all_bytes(params, "gradients, each once")}
    expected = Formulas.alike(sent, trained(params))
    return Sides(sides[0], sides[1], {rank.group.group_name: "dp"}, expected)


COMPARISONS = (
    Comparison(
        mini="offload",
        upstream="fully_shard",
        build=build_states,
        tolerance=Tolerance(
            1e-5, "a mean of more than two ranks may be rounded elsewhere"
        ),
        of_two_ranks=Tolerance(0.0, "two ranks: a + b = b + a, in the same call"),
    ),
    Comparison(
        mini="offload",
        upstream="save_on_cpu",
        build=build_activations,
        tolerance=Tolerance(0.0, "a copy has the numbers of what it is a copy of"),
    ),
)
