"""Routing: which experts see a token, with what weights, and what keeps them even.

A router scores every expert for every token and keeps the best few. Left alone it soon
favours some, so there are four ways to hold the load: drop what is too much for an
expert, add a loss that rides on backward, shift the scores by a bias that no gradient
trains, or let the experts choose the tokens.

Follows:
- NVIDIA/Megatron-LM: megatron/core/transformer/moe/router.py
- NVIDIA/Megatron-LM: megatron/core/transformer/moe/moe_utils.py
- Expert Choice Routing (arXiv 2202.09368), section 3

Leaves out:
- z-loss, jitter, Sinkhorn, groups of experts, losses of a sequence or of all ranks
- dropping by position in the batch, padding up to the capacity
- a router that computes in another dtype than the model
"""

import math
from dataclasses import dataclass
from typing import Any, Literal

import torch
import torch.distributed as dist
from torch import Tensor, nn
from torch.autograd import Function
from torch.nn import functional as F

from mini_impls.model import GPTConfig

# Dimension letters: N tokens of this rank (B sequences of T), E experts, K experts of
# a token, C the most tokens an expert takes from this rank, D hidden.

Routing = tuple[Tensor, Tensor]
"""Weights (N, E), 0 where a token does not go; and where each goes, booleans (N, E)."""


@dataclass(frozen=True, slots=True)
class ExpertsConfig(GPTConfig):
    """A model whose MLPs are experts, under the names of Megatron's configuration."""

    num_moe_experts: int = 4
    moe_router_topk: int = 2
    moe_ffn_hidden_size: int = 64
    moe_router_score_function: Literal["softmax", "sigmoid"] = "softmax"
    moe_expert_capacity_factor: float | None = None
    moe_aux_loss_coeff: float = 0.0
    moe_router_bias_update_rate: float = 0.0
    experts_choose: bool = False
    """Whether experts take tokens; Megatron has no such routing, and no name for it."""

    def __post_init__(self) -> None:
        """Refuse settings that contradict each other."""
        GPTConfig.__post_init__(self)
        k, experts = self.moe_router_topk, self.num_moe_experts
        if not 1 <= k <= experts:
            raise ValueError(f"a token goes to 1 to {experts} experts, not {k}")
        is_sigmoid = self.moe_router_score_function == "sigmoid"
        if k == 1 and not (is_sigmoid or self.experts_choose):
            raise ValueError("a softmax over 1 expert is 1: its router learns nothing")
        if self.moe_router_bias_update_rate and not is_sigmoid:
            raise ValueError("a bias is added to scores of a sigmoid, not of a softmax")


# --- 1. plain: the k best experts of each token ---


def topk_routing(
    logits: Tensor, k: int, score_function: str, expert_bias: Tensor | None = None
) -> Routing:
    """Return each token's k best experts, with weights that add up to 1.

    A softmax is taken of the chosen logits alone. A bias has a say in who is chosen,
    and none in the weight.
    """
    if score_function == "softmax":
        best, indices = logits.topk(k, dim=1)  # (N, K), (N, K)
        weights = best.softmax(-1, dtype=torch.float32).type_as(logits)
    else:
        scores = logits.float().sigmoid().type_as(logits)  # (N, E)
        ranked = scores if expert_bias is None else scores + expert_bias
        indices = ranked.topk(k, dim=1).indices  # (N, K)
        weights = scores.gather(1, indices)  # (N, K)
        # One expert alone keeps its score, or the router would get no gradient.
        weights = (
            weights / (weights.sum(-1, keepdim=True) + 1e-20) if k > 1 else weights
        )
    zeros = torch.zeros_like(logits)
    chosen = zeros.scatter(1, indices, 1.0).bool()  # (N, E), K of a row
    return zeros.scatter(1, indices, weights), chosen  # (N, E)


# --- 2. capacity: what is too much for an expert is dropped ---


def get_capacity(num_copies: int, num_experts: int, factor: float) -> int:
    """Return how many tokens an expert takes: its even share of copies, `factor` times.

    Of one rank's tokens: what another rank has no use for is not lent to this one.
    """
    return math.ceil(num_copies / num_experts * factor)


def drop_tokens(routing: Routing, k: int, factor: float) -> Routing:
    """Return the routing in which each expert keeps the tokens of the largest weights.

    A dropped token keeps its other experts, at the weights it had: they no longer add
    up to 1. One that all its experts drop goes on through the residual alone.
    """
    weights, chosen = routing
    num_tokens, num_experts = weights.shape
    capacity = get_capacity(num_tokens * k, num_experts, factor)
    if capacity < num_tokens:
        kept = weights.topk(capacity, dim=0, sorted=False).indices  # (C, E)
        within = torch.zeros_like(chosen).scatter(0, kept, True)  # (N, E)
        chosen = chosen & within
    return weights * chosen, chosen


# --- 3. a loss that nobody adds to the loss ---


def load_balancing_loss(
    scores: Tensor, tokens_per_expert: Tensor, k: int, coeff: float
) -> Tensor:
    """Return coeff * E * the sum over experts of share of choices * mean score.

    `coeff` where the load is even. Counts have no gradient: it reaches the scores, and
    pulls down those of experts with many tokens.
    """
    num_tokens, num_experts = scores.shape
    both = torch.sum(scores.sum(0) * tokens_per_expert)  # (E) each
    return both * (num_experts * coeff / (k * num_tokens * num_tokens))


class AuxLossAutoScaler(Function):
    """Hands a tensor on, and starts the backward of a loss as its gradient comes by.

    So a layer deep inside adds its loss, and no caller has to carry it to the end.
    """

    @staticmethod
    def forward(ctx: Any, output: Tensor, aux_loss: Tensor, scale: float) -> Tensor:
        """Return `output`, whose history has the loss in it now."""
        ctx.save_for_backward(aux_loss)
        ctx.scale = scale
        return output

    @staticmethod
    def backward(ctx: Any, grad_output: Tensor) -> tuple[Tensor, Tensor, None]:
        """Leave the gradient as it is; the loss gets its own: the scale."""
        (aux_loss,) = ctx.saved_tensors
        return grad_output, torch.full_like(aux_loss, ctx.scale), None


# --- 4. experts choose ---


def expert_choice_routing(logits: Tensor, k: int, factor: float) -> Routing:
    """Return the routing in which each expert takes the tokens of the best scores.

    Even by construction, whatever the scores. But a token may be taken by all experts
    or by none, and whether it is depends on later tokens, which a model that generates
    has not seen yet.
    """
    num_tokens, num_experts = logits.shape
    capacity = min(get_capacity(num_tokens * k, num_experts, factor), num_tokens)
    scores = logits.softmax(-1, dtype=torch.float32).type_as(logits)  # (N, E)
    taken = scores.topk(capacity, dim=0).indices  # (C, E)
    chosen = torch.zeros_like(scores).scatter(0, taken, 1.0).bool()  # (N, E)
    return scores * chosen, chosen


# --- 5. the router ---


class TopKRouter(nn.Module):
    """Scores each token's experts by one matrix product, and routes by them."""

    expert_bias: Tensor
    local_tokens_per_expert: Tensor

    def __init__(self, config: ExpertsConfig) -> None:
        super().__init__()
        self.config = config
        self.weight = nn.Parameter(
            torch.empty(config.num_moe_experts, config.hidden_size)
        )
        nn.init.normal_(self.weight, std=0.02)
        self.aux_loss_scale = 1.0
        """What the main loss is multiplied by before backward: 1 / microbatches."""
        zeros = torch.zeros(config.num_moe_experts)
        self.register_buffer("expert_bias", zeros.clone())
        self.register_buffer("local_tokens_per_expert", zeros, persistent=False)

    def forward(self, hidden: Tensor) -> Routing:
        """Route tokens (N, D)."""
        config, k = self.config, self.config.moe_router_topk
        logits = F.linear(hidden, self.weight)  # (N, E)
        factor = config.moe_expert_capacity_factor
        if config.experts_choose:
            return expert_choice_routing(logits, k, 1.0 if factor is None else factor)
        has_bias = config.moe_router_bias_update_rate > 0
        bias = self.expert_bias if has_bias else None
        function = config.moe_router_score_function
        weights, chosen = topk_routing(logits, k, function, bias)
        if factor is not None:
            weights, chosen = drop_tokens((weights, chosen), k, factor)
        if self.training and torch.is_grad_enabled():  # an evaluation does not count
            if config.moe_aux_loss_coeff:
                weights = self.attach_aux_loss(weights, logits)
            if has_bias:
                self.local_tokens_per_expert += chosen.sum(0)
        return weights, chosen

    def attach_aux_loss(self, weights: Tensor, logits: Tensor) -> Tensor:
        """Return the weights, on which the loss of this batch's load rides.

        The load is what the scores ask for: tokens that were dropped count too.
        """
        k, function = self.config.moe_router_topk, self.config.moe_router_score_function
        if function == "softmax":
            scores = logits.softmax(-1, dtype=torch.float32)  # (N, E)
        else:
            scores = logits.sigmoid()
            scores = scores / (scores.sum(-1, keepdim=True) + 1e-20)
        wanted = torch.zeros_like(scores).scatter(1, scores.topk(k, dim=1).indices, 1.0)
        coeff = self.config.moe_aux_loss_coeff
        aux_loss = load_balancing_loss(scores, wanted.sum(0), k, coeff)
        apply: Any = AuxLossAutoScaler.apply
        out: Tensor = apply(weights, aux_loss, self.aux_loss_scale)
        return out


# --- 6. a bias that follows the load, step by step ---


@torch.no_grad()
def update_expert_biases(
    routers: list[TopKRouter], group: dist.ProcessGroup | None
) -> None:
    """Raise the bias of experts with fewer tokens than the mean, lower the others'.

    The load is that of all ranks since the last update. Every step is as long as the
    others, however far off the load is, and no loss pulls the model elsewhere.
    """
    routers = [each for each in routers if each.config.moe_router_bias_update_rate]
    if not routers:
        return
    counts = torch.stack([router.local_tokens_per_expert for router in routers])
    if group is not None:
        dist.all_reduce(counts, group=group)  # (layers, E)
    offsets = counts.mean(-1, keepdim=True) - counts  # (layers, E)
    for router, offset in zip(routers, offsets, strict=True):
        rate = router.config.moe_router_bias_update_rate
        router.expert_bias += offset.sign() * rate
        router.local_tokens_per_expert.zero_()
