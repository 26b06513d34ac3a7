"""What `zero_bubble` and its halves of a backward are set to do."""

from __future__ import annotations

import torch
from torch import nn

from mini_impls import model, zero_bubble, zero_bubble_plan
from mini_impls.demos.zero_bubble import EVEN, get_num_stages, get_stages
from mini_impls.faults.works.measures import MICROBATCHES
from mini_impls.launch import Rank
from mini_impls.model import GPTConfig, build_model
from mini_impls.timeline import get_bubble, get_peak_in_flight
from mini_impls.zero_bubble_backward import stage_backward_input, stage_backward_weight


def train_by(rank: Rank, schedule: str) -> dict[str, float]:
    """Train the stages of a model by one of the schedules."""
    p = rank.world_size
    num_stages = get_num_stages(schedule, p)
    config = GPTConfig(num_layers=num_stages, hidden_size=32, ffn_hidden_size=64)
    gpt, alone = build_model(config), build_model(config)
    blocks = zero_bubble_plan.get_blocks(schedule, p, MICROBATCHES)
    plan = zero_bubble_plan.add_send_recv(blocks)[rank.rank]
    stages = get_stages(gpt, schedule, rank)
    shape = (1, config.max_sequence_length, config.hidden_size)
    executor = zero_bubble.ZeroBubbleExecutor(stages, num_stages, shape, rank.group)
    params = nn.ModuleList(stages.values())
    optimizer = torch.optim.AdamW(params.parameters(), 3e-3)
    batches = [
        model.make_batch(config, step=i, batch_size=MICROBATCHES) for i in range(3)
    ]
    zero_bubble.train(executor, plan, optimizer, batches, MICROBATCHES)
    one_process = torch.optim.AdamW(alone.parameters(), 3e-3)
    model.train_one_process(alone, one_process, batches, chunks=MICROBATCHES)
    full = dict(alone.named_parameters())
    apart = max(
        (param - full[name]).abs().max().item()
        for stage in stages.values()
        for name, param in stage.named_parameters()
    )
    ideal, _ = get_bubble(zero_bubble_plan.get_block_timeline(blocks, EVEN), p)
    order = zero_bubble_plan.get_orders(blocks)[rank.rank]
    return {
        "microbatches in flight": float(get_peak_in_flight(order)),
        "apart from one process": apart,
        "bubble over ideal time": float(ideal),
    }


def split_where_a_weight_is_used_twice(rank: Rank) -> dict[str, float]:
    """Make both halves of one backward, and a whole one beside it."""
    torch.manual_seed(0)
    layer = nn.Linear(6, 6)
    weights, found = list(layer.parameters()), []
    for whole in (True, False):
        layer.zero_grad()
        x = torch.ones(4, 6, requires_grad=True)
        output = layer(torch.tanh(layer(x)))
        grad = torch.ones_like(output)
        if whole:
            output.backward(grad)
        else:
            stage_backward_weight(stage_backward_input(output, grad, x, weights)[1])
        found.append([w.grad for w in weights if w.grad is not None])
    apart = max((a - b).abs().max().item() for a, b in zip(*found, strict=True))
    return {"apart from one process": apart}


WORKS = {
    "zero_bubble": lambda rank: train_by(rank, "zb-v"),
    "zero_bubble, ZB-H2": lambda rank: train_by(rank, "zb-h2"),
    "zero_bubble, a weight used twice": split_where_a_weight_is_used_twice,
}
