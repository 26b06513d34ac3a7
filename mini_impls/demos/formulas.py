"""What a step of each mini should send: counted by demos, comparisons and tests."""

import math

from mini_impls.launch import Rank
from mini_impls.model import GPTConfig


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
