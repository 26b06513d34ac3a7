"""What a rank holds at the peak of a step where a mini keeps more than a plain one.

States and activations are the estimates'. What is held beside them for a while is
counted here, each part from sizes; all of it is float32. Where the device is the CPU,
what waits on the host lives in the same memory, and is in it too.

Leaves out:
- what a backend of collectives copies for itself, what is added for equal parts
- what one operation needs while it runs, batches, and the Python around all of it
"""

import torch

from mini_impls.demos.expected import FLOAT32, layer_bytes, rank_bytes, shape_of
from mini_impls.expert_routing import ExpertsConfig
from mini_impls.model import GPTConfig
from readerkit.estimate.activations import kv_cache_bytes
from readerkit.estimate.layout import Layout
from readerkit.estimate.memory import RankMemory, rank_weights
from readerkit.estimate.parameters import parameter_count
from readerkit.estimate.states import model_state_bytes

BFLOAT16 = 2
UPDATED = 2 * FLOAT32
"""What AdamW keeps of a parameter; Muon keeps half of it."""


def is_on_host(device: torch.device) -> bool:
    """Return whether what waits on the host is in the memory that is measured."""
    return device.type == "cpu"


def kept_for_backward(held: RankMemory) -> float:
    """Return the bytes of all layers' activations and of what the loss keeps."""
    return float(held.activations + held.logits)


# --- 1. Muon ---


def muon_owners_bytes(
    config: GPTConfig, *, rows: int, ranks: int, state_bytes: int, longest: int
) -> float:
    """Return the peak where each rank owns whole tensors.

    `longest` are the elements of the parameters of the owner with most.
    """
    held = rank_bytes(config, rows=rows)
    grads = float(held.gradients)
    # What is highest: backward; each gradient, its part of the mean and those laid end
    # to end; what an owner sends and what comes of all, beside the gradients.
    above = max(
        grads + kept_for_backward(held),
        3 * grads,
        grads + FLOAT32 * longest * (1 + ranks),
    )
    return float(held.weights) + state_bytes + above


def muon_rows_bytes(
    config: GPTConfig, *, rows: int, ranks: int, matrices: list[torch.Size]
) -> float:
    """Return the peak where each rank has rows of all, and gathers each momentum.

    `matrices` are the shapes of the whole ones that Muon updates.
    """
    held = rank_bytes(config, rows=rows, dp=ranks, zero=3)
    half = FLOAT32 * sum(size.numel() for size in matrices) / ranks
    above = max(
        kept_for_backward(held) + float(held.gathered),
        *(newton_schulz_bytes(size, ranks) for size in matrices),
    )
    return float(held.weights + held.gradients + held.optimizer) - half + above


def newton_schulz_bytes(size: torch.Size, ranks: int) -> float:
    """Return what one update of an (M, N) matrix needs, rows of it on each rank.

    This rank's rows of the momentum, the same to be sent, and the whole; then the
    matrix before and after a step of the iteration, and two products of the small side.
    """
    few = min(size)
    whole = BFLOAT16 * size.numel()
    mine = (FLOAT32 + BFLOAT16) * size.numel() / ranks
    return mine + 3 * whole + 2 * BFLOAT16 * few * few


# --- 2. offload ---


def offloaded_optimizer_bytes(
    config: GPTConfig, *, rows: int, overlapped: bool, device: torch.device
) -> float:
    """Return the peak of a rank that keeps all of AdamW on the host, and weights twice.

    Overlapped, gradients that left have a copy there while the link is behind.
    """
    held = rank_bytes(config, rows=rows)
    peak = float(held.total - held.optimizer)
    if is_on_host(device):
        peak += float(held.weights + held.optimizer)
        peak += float(held.gradients) if overlapped else 0.0
    return peak


def offloaded_states_bytes(
    config: GPTConfig, *, rows: int, ranks: int, prefetch: bool, device: torch.device
) -> float:
    """Return the peak where rows of all states wait on the host, and layers come.

    With `prefetch` the rows of the next one are on the device as well.
    """
    held = rank_bytes(config, rows=rows, dp=ranks, zero=3, offload="states-cpu")
    peak = float(held.total)
    if prefetch:  # a layer's weights are gathered twice, and its gradients once
        peak += float(held.gathered) / 3 / ranks
    if is_on_host(device):
        peak += float(
            model_state_bytes(
                params=parameter_count(shape_of(config)),
                stage=3,
                world_size=ranks,
                convention="fp32-16",
            )
        )
    return peak


def offloaded_activations_bytes(
    config: GPTConfig, *, rows: int, ahead: bool, device: torch.device
) -> float:
    """Return the peak where activations wait on the host.

    Plain, all of them do, and with them the weights that each product keeps. Ahead of
    time the last layer's stay, and two layers' are there again beside their copies.
    """
    held = rank_bytes(config, rows=rows)
    states = float(held.weights + held.gradients + held.optimizer)
    layer, kept = layer_bytes(config, rows=rows), kept_for_backward(held)
    away = kept if not ahead else (config.num_layers - 1) * layer
    back = layer if not ahead else min(2, config.num_layers - 1) * layer
    if not is_on_host(device):
        return states + kept - away + back
    if not ahead:
        return states + kept + float(held.weights)
    return states + kept + back


# --- 3. checkpoints ---


def checkpoint_bytes(
    config: GPTConfig, *, rows: int, elements: int, device: torch.device
) -> float:
    """Return the peak of a rank that holds so many elements of all parameters.

    Beside their states: the model whose weights are only shapes, all parameters made
    whole for a step, their gradients, and the copy of weights and moments being saved.
    """
    held = rank_bytes(config, rows=rows)
    states = model_state_bytes(
        params=elements, stage=0, world_size=1, convention="fp32-16"
    )
    whole = 2 * held.weights + held.gradients
    saved = (FLOAT32 + UPDATED) * elements if is_on_host(device) else 0
    return float(states + whole) + saved + kept_for_backward(held)


# --- 4. experts ---


def experts_bytes(
    config: ExpertsConfig, *, rows: int, ep: int, etp: int, gathers: bool
) -> float:
    """Return the peak of a rank whose experts get an even share of all copies.

    Beside the estimate: an expert keeps what it made before and after each copy's
    weight, and a layer's copies are there as they lie, as they travel and as they come.
    Where all tokens are gathered, those are there instead of what travels.
    """
    k, inner = config.moe_router_topk, config.moe_ffn_hidden_size
    experts = {
        "experts": config.num_moe_experts,
        "experts_per_token": k,
        "expert_ffn": inner,
    }
    held = rank_bytes(config, rows=rows, experts=experts, dp=ep * etp, ep=ep, etp=etp)
    tokens = rows * config.max_sequence_length
    # Each of the ranks that share an expert has all its copies, a slice of each.
    weighed = config.num_layers * FLOAT32 * k * tokens * inner
    copies = FLOAT32 * k * tokens * etp * config.hidden_size
    again = config.num_layers * (etp - 1) * copies / etp
    everyone = FLOAT32 * ep * etp * tokens * config.hidden_size
    moving = 2 * everyone + copies if gathers else 3 * copies
    return float(held.total) + weighed + again + moving


# --- 5. generation ---


def generation_bytes(
    config: GPTConfig, *, batch: int, tokens: int, ranks: int
) -> float:
    """Return the peak of a step of so many tokens: slices, the cache, a layer's work.

    The embedding is whole on each rank. At most alive in a layer are its input, what
    the norm makes of it, and the feed-forward before and after its activation; behind
    the layers, the logits of a rank and of all.
    """
    layout = Layout(tp=ranks, sequence_parallel=False)
    dense, _ = rank_weights(shape_of(config), layout, 0)
    table = config.vocab_size * config.hidden_size
    weights = FLOAT32 * (float(dense) + table * (1 - 1 / ranks))
    cache = kv_cache_bytes(
        layers=config.num_layers,
        kv_heads=config.num_query_groups,
        head_dim=config.kv_channels,
        tokens=config.max_sequence_length,
        batch=batch,
        element_bytes=FLOAT32,
        tensor_parallel=ranks,
    )
    read = FLOAT32 * batch * tokens
    layer = read * 2 * (config.hidden_size + config.ffn_hidden_size / ranks)
    scores = 2 * FLOAT32 * batch * config.vocab_size + read * config.hidden_size
    return weights + float(cache) + max(layer, scores)
