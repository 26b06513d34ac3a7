"""What a step of each mini should send: counted by demos, comparisons and tests."""

import math
from collections.abc import Sequence

from torch import Tensor

from mini_impls.expert_routing import ExpertsConfig, get_capacity
from mini_impls.experts import ExpertGroups
from mini_impls.launch import Rank
from mini_impls.model import GPT, GPTConfig


def get_tensor_parallel_traffic(
    config: GPTConfig, num_tokens: int, world_size: int
) -> dict[str, int]:
    """Payload bytes of each operation in one step of one rank, in fp32."""
    hidden, layers = 4 * num_tokens * config.hidden_size, config.num_layers
    # Forward: g after embedding, attention, MLP. Backward: f before attention, MLP and
    # output layer. The loss: three numbers a token.
    all_reduces = 4 * layers + 2 if world_size > 1 else 0
    traffic = {"all_reduce": all_reduces * hidden + 3 * 4 * num_tokens}
    if config.num_query_groups % world_size:
        heads = config.num_attention_heads + 2 * config.num_query_groups
        mixed_qkv = 4 * num_tokens * heads * config.kv_channels
        traffic["all_gather"] = traffic["reduce_scatter"] = layers * mixed_qkv
    return traffic


def get_sequence_parallel_traffic(
    config: GPTConfig, num_tokens: int, world_size: int, *, regather: bool = True
) -> dict[str, int]:
    """Payload bytes of each operation in one step of one rank, in fp32."""
    if world_size == 1:
        return {}
    hidden, layers = 4 * num_tokens * config.hidden_size, config.num_layers
    # Gathers of a layer: two forward, two backward, two for the inputs not kept. And
    # one before the output layer, one behind the embedding in backward.
    gathers = (6 if regather else 4) * layers + 2
    partial = 6 * layers + 2  # vectors: two norms and two biases a layer, a last norm
    return {
        "all_gather": gathers * hidden,
        "reduce_scatter": 4 * layers * hidden,
        "all_reduce": 4 * partial * config.hidden_size,
    }


def get_pipeline_traffic(
    tensor_shape: tuple[int, int, int], num_microbatches: int, rank: Rank, chunks: int
) -> dict[str, int]:
    """Payload bytes of each operation in one step of one rank, in fp32."""
    if rank.world_size == 1:
        return {}
    # Each chunk sends a microbatch on and a gradient back; the ends have one neighbour.
    ends = (rank.rank == 0) + (rank.rank == rank.world_size - 1)
    messages = num_microbatches * (2 * chunks - ends)
    payload_bytes = messages * 4 * math.prod(tensor_shape)
    return {"send": payload_bytes, "recv": payload_bytes}


def get_context_parallel_traffic(
    config: GPTConfig, num_tokens: int, world_size: int, way: str
) -> dict[str, int]:
    """Payload bytes of each operation in one step of one rank, in fp32.

    `num_tokens` are those of all ranks; `way` is all-gather, ulysses or ring.
    """
    w, layers = world_size, config.num_layers
    mine = 4 * num_tokens // w
    query = mine * config.hidden_size
    key = mine * config.num_query_groups * config.kv_channels
    if w > 1 and way == "ulysses" and config.num_query_groups % w:
        key = query  # each query head takes a copy of its key along
    ways = {
        # Keys and values, forward; their gradients, backward.
        "all-gather": {"all_gather": 2 * w * key, "reduce_scatter": 2 * w * key},
        # Query, key, value, output; each of them again backward.
        "ulysses": {"all_to_all": 4 * (query + key)},
        # Keys and values W - 1 hops forward and backward, their gradients W hops.
        "ring": dict.fromkeys(("send", "recv"), (3 * w - 2) * 2 * key if w > 1 else 0),
    }
    return {op: layers * sent for op, sent in ways[way].items() if sent}


def get_v_pipeline_traffic(
    tensor_shape: tuple[int, int, int], num_microbatches: int, rank: Rank
) -> dict[str, int]:
    """Payload bytes of each operation in one step of one rank, in fp32."""
    if rank.world_size == 1:
        return {}
    # Each microbatch passes twice each way. The first rank has no neighbour before it,
    # and the last turns round by itself.
    ends = (rank.rank == 0) + (rank.rank == rank.world_size - 1)
    messages = num_microbatches * 2 * (2 - ends)
    payload_bytes = messages * 4 * math.prod(tensor_shape)
    return {"send": payload_bytes, "recv": payload_bytes}


def get_expert_traffic(
    config: ExpertsConfig,
    num_tokens: int,
    groups: ExpertGroups,
    dispatcher: str,
    routed: tuple[int, int] | None = None,
) -> dict[str, int]:
    """Payload bytes of the operations whose sizes do not depend on the routing.

    Of a rank in the layers of one step, in fp32: what finishes gradients is not in it.
    `routed`, which one may see behind a step, brings the others: how many copies
    all-to-alls carried, and to how many rows those that share experts filled up.
    """
    ranks, layers = groups.etp_ep.size(), config.num_layers
    if ranks == 1:
        return {}
    experts, hidden = config.num_moe_experts, config.hidden_size
    if dispatcher == "allgather":
        every = layers * ranks * num_tokens
        # Choices of a byte, weights, tokens; backward, gradients of what came out.
        gathered = every * (experts + 4 * experts + 2 * 4 * hidden)
        return {
            "all_gather": gathered,
            "reduce_scatter": every * (4 * experts + 2 * 4 * hidden),
        }
    counts = layers * ranks * 8 * experts
    found = {"all_gather": counts} if groups.etp.size() == 1 else {}
    copies, rows = routed or (0, 0)
    if config.experts_choose and not routed:
        factor = config.moe_expert_capacity_factor
        share = num_tokens * config.moe_router_topk
        capacity = get_capacity(share, experts, 1.0 if factor is None else factor)
        copies = layers * experts * min(capacity, num_tokens)
    if copies and groups.ep.size() > 1:
        # Tokens go and come back, forward and backward; weights go, gradients come.
        found["all_to_all"] = 4 * copies * (4 * hidden + 2)
    if rows and groups.etp.size() > 1:
        # What arrived is handed on with its weights; backward the other way round.
        handed_on = 4 * rows * (2 * hidden + 1)
        found |= {"all_gather": counts + handed_on, "reduce_scatter": handed_on}
    return found


def get_layer_wise_traffic(params_list: Sequence[Sequence[Tensor]]) -> dict[str, int]:
    """Payload bytes of a step whose owners, one a rank, have whole tensors, in fp32."""
    shares = [sum(p.numel() for p in params) for params in params_list]
    return {
        "all_reduce": 4 * sum(shares) + 4,  # gradients, and the norm's square
        "all_gather": 4 * len(shares) * max(shares),  # each as long as the longest
    }


def get_rows_traffic(gpt: GPT, world_size: int) -> dict[str, int]:
    """Payload bytes of a step of `fsdp.py` whose Muon gathers momenta in two bytes."""
    if world_size == 1:
        return {"all_gather": 2 * sum(_elements(p, 1) for p in _matrices(gpt))}
    in_layers = sum(_elements(p, world_size) for p in gpt.layers.parameters())
    whole = sum(_elements(p, world_size) for p in gpt.parameters())
    momenta = sum(_elements(p, world_size) for p in _matrices(gpt))
    return {
        # Layers are gathered before forward and before backward, the root once.
        "all_gather": 4 * (whole + in_layers) + 2 * momenta,
        "reduce_scatter": 4 * whole,
    }


def get_gathered_once_traffic(gpt: GPT, world_size: int) -> dict[str, int]:
    """Payload bytes of a step that gathers rows of all parameters once, in fp32."""
    whole = sum(_elements(p, world_size) for p in gpt.parameters())
    # The norm of all gradients is one number, the mean loss another.
    return {"all_gather": 4 * whole, "reduce_scatter": 4 * whole, "all_reduce": 2 * 4}


def _matrices(gpt: GPT) -> list[Tensor]:
    return [p for p in gpt.layers.parameters() if p.ndim == 2]


def _elements(param: Tensor, world_size: int) -> int:
    """Return how many there are with rows added until ranks have equally many."""
    rows = -(-param.size(0) // world_size) * world_size
    return rows * (param.numel() // param.size(0))


def get_split_traffic(
    shape: tuple[int, int], mode: str, *, dim: int = 1, steps: int = 5
) -> dict[str, int]:
    """Payload bytes of one update of a matrix that is cut along `dim`, in fp32."""
    gram = shape[1 - dim] ** 2
    return {
        "blockwise": {},
        "duplicated": {"all_gather": 4 * shape[0] * shape[1]},
        "distributed": {"all_reduce": 4 + 4 * steps * gram},
    }[mode]
