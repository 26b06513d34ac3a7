"""Experts: many MLPs in the place of one, of which a token sees a few; on many ranks.

Plain first, all experts in one process. Then expert parallelism: each rank holds some
experts (ep), or a slice of each (etp), and tokens travel. Everything else is data
parallel: each rank has rows of its own, so gradients of dense weights are those of all
ranks together, and gradients of an expert those of the ranks that hold it too.

    8 ranks, ep = 2, etp = 2      ranks 0 1 | 2 3 | 4 5 | 6 7
    share each expert (etp)       01, 23, 45, 67
    have every expert once (ep)   02, 13, 46, 57
    hold the same weights (edp)   04, 15, 26, 37

Follows:
- NVIDIA/Megatron-LM: megatron/core/transformer/moe/moe_layer.py
- NVIDIA/Megatron-LM: megatron/core/transformer/moe/experts.py (SequentialMLP)
- NVIDIA/Megatron-LM: megatron/core/parallel_state.py (the expert ranks)

Leaves out:
- how tokens find experts: `expert_routing.py`; how they travel: `expert_dispatch.py`
- shared experts, gated activations, one grouped product for all experts of a rank
- tensor parallelism of the dense layers, buckets that leave during backward
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

import torch
import torch.distributed as dist
from torch import Tensor, nn
from torch.nn import functional as F

from mini_impls.expert_dispatch import (
    AllGatherDispatcher,
    AllToAllDispatcher,
    Dispatcher,
)
from mini_impls.expert_routing import (
    ExpertsConfig,
    TopKRouter,
    update_expert_biases,
)
from mini_impls.model import GPT, build_model
from mini_impls.tensor_parallel import shard

# Dimension letters: B sequences, T tokens, D hidden, N = BT tokens of a rank,
# E experts, L of a rank, R copies of tokens that came to a rank, F width of an expert.


# --- 1. plain: every expert in one place ---


class Expert(nn.Module):
    """Two linear layers without biases; a token's weight is applied between them."""

    def __init__(self, config: ExpertsConfig) -> None:
        super().__init__()
        hidden, inner = config.hidden_size, config.moe_ffn_hidden_size
        self.linear_fc1 = nn.Linear(hidden, inner, bias=False)  # (F, D)
        self.linear_fc2 = nn.Linear(inner, hidden, bias=False)  # (D, F)
        for layer in (self.linear_fc1, self.linear_fc2):
            nn.init.normal_(layer.weight, std=0.02)

    def forward(self, tokens: Tensor, weights: Tensor) -> Tensor:
        """(R, D) and (R) -> (R, D), each row times its weight."""
        inner = F.gelu(self.linear_fc1(tokens)) * weights.unsqueeze(-1)  # (R, F)
        out: Tensor = self.linear_fc2(inner)
        return out


class MoELayer(nn.Module):
    """A router, and experts that each work on the tokens routed to them."""

    def __init__(self, config: ExpertsConfig) -> None:
        super().__init__()
        self.router = TopKRouter(config)
        experts = (Expert(config) for _ in range(config.num_moe_experts))
        self.experts = nn.ModuleDict({str(i): each for i, each in enumerate(experts)})

    def forward(self, hidden: Tensor) -> Tensor:
        """(B, T, D) -> (B, T, D)."""
        tokens = hidden.flatten(0, -2)  # (N, D)
        weights, chosen = self.router(tokens)  # (N, E) each
        return self.routed_experts(tokens, weights, chosen).view_as(hidden)  # (B, T, D)

    def routed_experts(self, tokens: Tensor, weights: Tensor, chosen: Tensor) -> Tensor:
        """Return the sum (N, D) of what its experts make of each token."""
        output = torch.zeros_like(tokens)
        for i, expert in enumerate(self.experts.values()):
            mine = chosen[:, i].nonzero().squeeze(1)  # (R), which tokens
            made = expert(tokens[mine], weights[mine, i])  # (R, D)
            output = output.index_add(0, mine, made)  # (N, D)
        return output


def build_moe_model(config: ExpertsConfig, *, microbatches: int = 1) -> GPT:
    """Return the small GPT with experts for MLPs, the same on every rank.

    The losses of `microbatches` are averaged by whoever trains it; so are those that
    ride along.
    """
    gpt = build_model(config)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(1)
        for layer in gpt.layers:
            layer.add_module("mlp", MoELayer(config))
    for router in routers(gpt):
        router.aux_loss_scale = 1 / microbatches
    return gpt


def routers(model: nn.Module) -> list[TopKRouter]:
    """Return the routers of a model, first layer first."""
    return [module for module in model.modules() if isinstance(module, TopKRouter)]


# --- 2. which rank is what to which ---


@dataclass(frozen=True, slots=True)
class ExpertGroups:
    """The groups of one rank, each of them for one purpose."""

    all: dist.ProcessGroup
    ep: dist.ProcessGroup
    """Every expert once: who tokens are exchanged with."""
    etp: dist.ProcessGroup
    """Those that hold slices of the same experts."""
    etp_ep: dist.ProcessGroup
    """Both: one whole set of experts."""
    edp: dist.ProcessGroup
    """Those that hold the same weights."""


def make_groups(group: dist.ProcessGroup, *, ep: int, etp: int) -> ExpertGroups:
    """Return this rank's groups; all ranks of `group` must call it.

    Neighbours share experts, for they send the most: etp counts fastest, edp slowest.
    """
    world_size = group.size()
    if world_size % (ep * etp):
        raise ValueError(f"{world_size} ranks are not divisible by ep {ep} x etp {etp}")
    names = torch.tensor(dist.get_process_group_ranks(group))  # (world_size)
    ranks = names.view(-1, ep, etp)  # (edp, ep, etp)
    rows = {
        "ep": ranks.transpose(1, 2).reshape(-1, ep),  # (edp etp, ep)
        "etp": ranks.reshape(-1, etp),  # (edp ep, etp)
        "etp_ep": ranks.reshape(-1, ep * etp),  # (edp, ep etp)
        "edp": ranks.flatten(1).T,  # (ep etp, edp)
    }
    made = {}
    for name, of_it in rows.items():
        mine, _ = dist.new_subgroups_by_enumeration(of_it.tolist())
        assert mine is not None
        made[name] = mine
    return ExpertGroups(group, **made)


# --- 3. experts on many ranks ---


class ParallelMoELayer(MoELayer):
    """Holds some of the experts, or a slice of them, and sends tokens to the others."""

    def __init__(self, whole: MoELayer, dispatcher: Dispatcher) -> None:
        nn.Module.__init__(self)
        self.router, self.dispatcher = whole.router, dispatcher
        self.experts = whole.experts

    def routed_experts(self, tokens: Tensor, weights: Tensor, chosen: Tensor) -> Tensor:
        """Send tokens away, work on those that came, take back what was made."""
        sent = self.dispatcher.dispatch(tokens, weights, chosen)
        arrived, their_weights, counts = sent  # (R, D), (R), L numbers
        parts = zip(arrived.split(counts), their_weights.split(counts), strict=True)
        experts = zip(self.experts.values(), parts, strict=True)
        # One without tokens is called too: its gradient is zeros, and not missing.
        made = torch.cat([expert(*part) for expert, part in experts])  # (R, D)
        return self.dispatcher.combine(made)  # (N, D)


def expert_parallel(
    gpt: GPT, groups: ExpertGroups, dispatcher: Literal["alltoall", "allgather"]
) -> None:
    """Keep this rank's part of a whole model's experts, by etp ranks cut in slices."""
    for layer in gpt.layers:
        whole = layer.get_submodule("mlp")
        assert isinstance(whole, MoELayer)
        num_local, rest = divmod(len(whole.experts), groups.ep.size())
        if rest:
            of = f"{len(whole.experts)} experts"
            raise ValueError(f"{of} are not divisible by {groups.ep.size()} ranks")
        first = groups.ep.rank() * num_local
        local = range(first, first + num_local)
        kept = {str(i): whole.experts[str(i)] for i in local}
        for expert in kept.values():
            assert isinstance(expert, Expert)
            cut(expert, groups.etp)
        whole.experts = nn.ModuleDict(kept)
        by_all_to_all = groups.ep, groups.etp, groups.etp_ep
        way: Dispatcher = (
            AllToAllDispatcher(local, *by_all_to_all)
            if dispatcher == "alltoall"
            else AllGatherDispatcher(local, groups.etp_ep)
        )
        layer.add_module("mlp", ParallelMoELayer(whole, way))


def cut(expert: Expert, etp_group: dist.ProcessGroup) -> None:
    """Keep one rank's slice: rows of the first layer, columns of the second.

    The sum over slices, which a row-parallel layer takes at once, is left to combine.
    """
    for linear, dim in ((expert.linear_fc1, 0), (expert.linear_fc2, 1)):
        linear.weight = shard(linear.weight, dim, etp_group)  # (F/etp, D), (D, F/etp)


# --- 4. behind backward ---


def split_params(gpt: GPT) -> Iterator[list[nn.Parameter]]:
    """Yield the dense parameters, the routers' among them, then those of experts."""
    of_experts = {
        param
        for module in gpt.modules()
        if isinstance(module, Expert)
        for param in module.parameters()
    }
    yield [param for param in gpt.parameters() if param not in of_experts]
    yield [param for param in gpt.parameters() if param in of_experts]


@torch.no_grad()
def finish_gradients(gpt: GPT, groups: ExpertGroups) -> None:
    """Make each gradient that of the mean loss of all ranks.

    An expert's gradient has the tokens of a whole set of ranks in it already: it is
    summed over fewer ranks than a dense one, and divided by as many.
    """
    dense, experts = split_params(gpt)
    for params, group in ((dense, groups.all), (experts, groups.edp)):
        grads = [param.grad for param in params if param.grad is not None]
        if not grads:
            continue  # all of them are frozen
        flat = torch.cat([grad.flatten() for grad in grads])  # every gradient, once
        flat /= groups.all.size()
        if group.size() > 1:
            dist.all_reduce(flat, group=group)  # (all elements)
        pieces = flat.split([grad.numel() for grad in grads])  # (numel) each
        for grad, piece in zip(grads, pieces, strict=True):
            grad.copy_(piece.view_as(grad))  # in its own shape
    update_expert_biases(routers(gpt), groups.all)


if __name__ == "__main__":
    from mini_impls.demos.experts import main

    raise SystemExit(main())
