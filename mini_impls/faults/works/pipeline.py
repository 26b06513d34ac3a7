"""What `pipeline` is set to do."""

from __future__ import annotations

import torch
from torch import nn

from mini_impls import model, pipeline, schedules
from mini_impls.faults.works.measures import MICROBATCHES
from mini_impls.launch import Rank
from mini_impls.model import GPTConfig, build_model
from mini_impls.pipeline_stages import split_model
from mini_impls.timeline import add_send_recv, get_bubble, get_timeline


def train_pipeline(rank: Rank) -> dict[str, float]:
    """Train the stages of a model by 1F1B."""
    config = GPTConfig(num_layers=4, hidden_size=32, ffn_hidden_size=64)
    orders = schedules.get_orders("1f1b", rank.world_size, MICROBATCHES)
    plan = add_send_recv(orders)[rank.rank]
    gpt, alone = build_model(config), build_model(config)
    stages = split_model(gpt, rank.rank, rank.world_size)
    shape = (1, config.max_sequence_length, config.hidden_size)
    executor = pipeline.PipelineExecutor(stages, shape, rank.group)
    params = nn.ModuleList(stages.values())
    optimizer = torch.optim.AdamW(params.parameters(), 3e-3)
    batches = [
        model.make_batch(config, step=i, batch_size=MICROBATCHES) for i in range(3)
    ]
    pipeline.train(executor, plan, optimizer, batches, MICROBATCHES)
    model.train_one_process(
        alone,
        torch.optim.AdamW(alone.parameters(), 3e-3),
        batches,
        chunks=MICROBATCHES,
    )
    full = dict(alone.named_parameters())
    apart = max(
        (param - full[name]).abs().max().item()
        for stage in stages.values()
        for name, param in stage.named_parameters()
    )
    ideal, _ = get_bubble(get_timeline(orders), rank.world_size)
    return {
        "microbatches in flight": float(executor.peak_in_flight),
        "apart from one process": apart,
        "bubble over ideal time": float(ideal),
    }


WORKS = {
    "pipeline": train_pipeline,
}
