"""Dispatch: how tokens come to the ranks of their experts, and back.

Plain: every rank gets all tokens, works on those of its own experts, and the parts are
added up on the way back. The other way sends a token only to the ranks of its experts:
less to send where experts are many, but ranks must first tell each other how much will
come. Where several ranks share each expert, those hand on to each other what arrived.

    all-gather   tokens -> all tokens, mine picked -> experts -> reduce-scatter
    all-to-all   tokens by expert -> all-to-all -> by expert -> experts -> and back

Follows:
- NVIDIA/Megatron-LM: megatron/core/transformer/moe/token_dispatcher.py
- NVIDIA/Megatron-LM: megatron/core/tensor_parallel/mappings.py

Leaves out:
- copies of sizes to the host behind other work: on a GPU `.tolist()` waits for all
- gathers of unlike rows as NCCL has them; here they are filled up to one number
- buffers of a fixed size, fused kernels, DeepEP; shared experts that run meanwhile
"""

from typing import Any, Protocol

import torch
import torch.distributed as dist
from torch import Tensor
from torch.autograd import Function

# Dimension letters: N tokens of this rank, E experts, L experts of this rank, D hidden,
# S copies that this rank sends (one for each expert of a token), R copies it receives;
# P ranks of an expert-parallel group (ep), Q that share each expert (etp), W of any.


# --- 1. collectives that autograd goes back through ---


class _UnevenAllToAll(Function):
    @staticmethod
    def forward(
        ctx: Any, input_: Tensor, output_splits: Any, input_splits: Any, group: Any
    ) -> Tensor:
        ctx.splits, ctx.group = (output_splits, input_splits), group
        if group.size() == 1:
            return input_
        output = input_.new_empty(sum(output_splits), *input_.shape[1:])  # (R, ..)
        sizes = {"output_split_sizes": output_splits, "input_split_sizes": input_splits}
        dist.all_to_all_single(output, input_.contiguous(), **sizes, group=group)
        return output

    @staticmethod
    def backward(ctx: Any, grad_output: Tensor) -> tuple[Tensor | None, ...]:
        received, sent = ctx.splits
        grad_input = _apply(_UnevenAllToAll, grad_output, sent, received, ctx.group)
        return grad_input, None, None, None


# Gloo gathers and scatters rows of one number alone. Where ranks have unlike numbers,
# all are filled up to the most, and what came of filling is cut off again.


def _gather(rows: Tensor, sizes: list[int], group: Any) -> Tensor:
    if group.size() == 1:
        return rows
    most = max(sizes)
    missing = most - len(rows)
    rows = torch.cat([rows, rows.new_zeros(missing, *rows.shape[1:])])  # (most, ..)
    output = rows.new_empty(len(sizes) * most, *rows.shape[1:])  # (W most, ..)
    dist.all_gather_single(output, rows, group=group)  # (most, ..) to (W most, ..)
    if most == min(sizes):
        return output
    chunks = zip(output.chunk(len(sizes)), sizes, strict=True)  # W of (most, ..)
    return torch.cat([chunk[:size] for chunk, size in chunks])  # (sum of sizes, ..)


def _reduce_scatter(rows: Tensor, sizes: list[int], group: Any) -> Tensor:
    if group.size() == 1:
        return rows
    most = max(sizes)
    if most > min(sizes):
        parts = zip(rows.split(sizes), sizes, strict=True)  # W of (n, ..)
        filled = [
            (part, rows.new_zeros(most - n, *rows.shape[1:])) for part, n in parts
        ]  # (n, ..) and (most - n, ..) each
        rows = torch.cat([rows for pair in filled for rows in pair])  # (W most, ..)
    output = rows.new_empty(most, *rows.shape[1:])
    dist.reduce_scatter_single(output, rows.contiguous(), group=group)  # to (most, ..)
    return output[: sizes[group.rank()]]  # (n, ..) of this rank


class _Gather(Function):
    @staticmethod
    def forward(ctx: Any, input_: Tensor, sizes: Any, group: Any) -> Tensor:
        ctx.sizes, ctx.group = sizes, group
        return _gather(input_, sizes, group)

    @staticmethod
    def backward(ctx: Any, grad_output: Tensor) -> tuple[Tensor, None, None]:
        return _reduce_scatter(grad_output, ctx.sizes, ctx.group), None, None


class _ReduceScatter(Function):
    @staticmethod
    def forward(ctx: Any, input_: Tensor, sizes: Any, group: Any) -> Tensor:
        ctx.sizes, ctx.group = sizes, group
        return _reduce_scatter(input_, sizes, group)

    @staticmethod
    def backward(ctx: Any, grad_output: Tensor) -> tuple[Tensor, None, None]:
        return _gather(grad_output, ctx.sizes, ctx.group), None, None


def _apply(function: type[Function], *args: Any) -> Tensor:
    out: Tensor = function.apply(*args)
    return out


# --- 2. tokens by expert, and back ---


def permute(chosen: Tensor) -> Tensor:
    """Return which token each copy is of, (S): those of expert 0, then of expert 1."""
    tokens = torch.arange(len(chosen), device=chosen.device)
    return tokens.expand(chosen.size(1), -1)[chosen.T]  # (S) of (E, N)


def unpermute(copies: Tensor, token_of: Tensor, num_tokens: int) -> Tensor:
    """Add the copies (S, D) of each token up, (N, D); one that has none gets zeros."""
    index = token_of.unsqueeze(1).expand_as(copies)  # (S, D)
    return copies.new_zeros(num_tokens, copies.size(1)).scatter_add(0, index, copies)


class Dispatcher(Protocol):
    """Brings tokens to experts and back; keeps in between what the way back needs."""

    def dispatch(
        self, tokens: Tensor, weights: Tensor, chosen: Tensor
    ) -> tuple[Tensor, Tensor, list[int]]:
        """Return copies (R, D) by local expert, their weights (R), how many of each."""

    def combine(self, outputs: Tensor) -> Tensor:
        """Return the sum (N, D) of what the experts made of each token."""


# --- 3. plain: everybody gets everything ---


class AllGatherDispatcher:
    """Tokens, weights and choices of all ranks go to all ranks."""

    def __init__(self, local_experts: range, etp_ep_group: dist.ProcessGroup) -> None:
        self.local_experts, self.group = local_experts, etp_ep_group

    def dispatch(
        self, tokens: Tensor, weights: Tensor, chosen: Tensor
    ) -> tuple[Tensor, Tensor, list[int]]:
        """Gather, and pick what is for the experts here."""
        self.sizes = [len(tokens)] * self.group.size()  # all ranks have as many
        chosen = _gather(chosen, self.sizes, self.group)  # (PQN, E)
        weights = _apply(_Gather, weights, self.sizes, self.group)  # (PQN, E)
        tokens = _apply(_Gather, tokens, self.sizes, self.group)  # (PQN, D)
        mine = slice(self.local_experts.start, self.local_experts.stop)
        chosen, weights = chosen[:, mine], weights[:, mine]  # (PQN, L)
        self.token_of, self.num_tokens = permute(chosen), len(tokens)
        return tokens[self.token_of], weights.T[chosen.T], chosen.sum(0).tolist()

    def combine(self, outputs: Tensor) -> Tensor:
        """Add up all ranks' parts of each token, on the rank that it is of."""
        partial = unpermute(outputs, self.token_of, self.num_tokens)  # (PQN, D)
        return _apply(_ReduceScatter, partial, self.sizes, self.group)  # (N, D)


# --- 4. a token goes where its experts are ---


class AllToAllDispatcher:
    """Copies go to the ranks of their experts; nothing is dropped or padded here."""

    def __init__(
        self,
        local_experts: range,
        ep_group: dist.ProcessGroup,
        etp_group: dist.ProcessGroup,
        etp_ep_group: dist.ProcessGroup,
    ) -> None:
        self.local_experts, self.ep_group = local_experts, ep_group
        self.etp_group, self.etp_ep_group = etp_group, etp_ep_group

    def preprocess(self, chosen: Tensor) -> list[int]:
        """Find out how much goes where, both ways; return the copies of each expert.

        A rank sends its copies to the ranks of its ep group, which has every expert
        once. Then those that share an expert hand on to each other what arrived.
        """
        p, num_local = self.ep_group.size(), len(self.local_experts)
        counts = chosen.sum(0)  # (E)
        self.input_splits = counts.view(p, num_local).sum(1).tolist()  # (P)
        ranks = self.etp_ep_group.size()
        everyone = _gather(counts, [len(counts)] * ranks, self.etp_ep_group)  # (PQE)
        mine = slice(self.local_experts.start, self.local_experts.stop)
        # Ranks count expert-tensor first; below, what came over one's own link first.
        here = everyone.view(p, -1, len(counts)).transpose(0, 1)[:, :, mine]
        # (Q, P, L): the copies of each rank for each expert here. What came as (PQE) is
        # seen as (P, Q, E), turned to (Q, P, E), and of each E only L are kept.
        self.output_splits = here[self.etp_group.rank()].sum(1).tolist()  # (P)
        self.etp_splits = here.sum((1, 2)).tolist()  # (Q)
        self.chunks = here.reshape(-1, num_local)  # (QP, L)
        return here.sum((0, 1)).tolist()  # (L)

    def dispatch(
        self, tokens: Tensor, weights: Tensor, chosen: Tensor
    ) -> tuple[Tensor, Tensor, list[int]]:
        """Send each copy and its weight; sort what arrives by expert."""
        per_expert = self.preprocess(chosen)
        self.token_of, self.num_tokens = permute(chosen), len(tokens)
        both = [tokens[self.token_of], weights.T[chosen.T]]  # (S, D), (S)
        splits = self.output_splits, self.input_splits
        both = [
            _apply(_UnevenAllToAll, x, *splits, self.ep_group) for x in both
        ]  # (a share of R, ..)
        both = [_apply(_Gather, x, self.etp_splits, self.etp_group) for x in both]
        # They lie by sender, of each sender by expert: (QP, L) chunks become (L, QP).
        by_expert = [sort_chunks(x, self.chunks, to_experts=True) for x in both]
        return by_expert[0], by_expert[1], per_expert

    def combine(self, outputs: Tensor) -> Tensor:
        """Send what the experts made back, and add it up."""
        copies = sort_chunks(outputs, self.chunks, to_experts=False)  # (R, D)
        # Each of those that share an expert has a part of every sum.
        copies = _apply(_ReduceScatter, copies, self.etp_splits, self.etp_group)
        splits = self.input_splits, self.output_splits
        copies = _apply(_UnevenAllToAll, copies, *splits, self.ep_group)  # (S, D)
        return unpermute(copies, self.token_of, self.num_tokens)  # (N, D)


def sort_chunks(rows: Tensor, sizes: Tensor, *, to_experts: bool) -> Tensor:
    """Put chunks in order of experts, or back in order of senders.

    `sizes` (senders, L) has the rows of each chunk; both orders are stable.
    """
    order = torch.arange(sizes.numel()).view_as(sizes)  # chunks as senders lay them
    if to_experts:
        pieces, order = rows.split(sizes.flatten().tolist()), order.T  # (L, senders)
    else:
        pieces = rows.split(sizes.T.flatten().tolist())  # (rows of one, ..) each
        order = order.view(sizes.T.shape).T  # (senders, L)
    return torch.cat([pieces[i] for i in order.flatten().tolist()])  # (R, ..)
