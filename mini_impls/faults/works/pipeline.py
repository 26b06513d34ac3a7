"""What `pipeline` is set to do."""

from __future__ import annotations

import math

import torch
import torch.distributed as dist
from torch import nn

from mini_impls import model, pipeline, schedules
from mini_impls.faults.works.measures import (
    MICROBATCHES,
    STEPS,
    apart_between_ranks,
    mean_over_ranks,
    norm,
)
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


def train_tied(rank: Rank) -> dict[str, float]:
    """Train stages of which the first and the last share a weight, beside one process.

    A tied weight has two names, as it has two copies in a pipeline; both count.
    """
    config = GPTConfig(
        num_layers=4,
        hidden_size=32,
        ffn_hidden_size=64,
        share_embeddings_and_output_weights=True,
    )
    w, last = rank.world_size, rank.world_size - 1
    orders = schedules.get_orders("1f1b", w, MICROBATCHES)
    plan = add_send_recv(orders)[rank.rank]
    gpt, alone = build_model(config), build_model(config)
    stages = split_model(gpt, rank.rank, w)
    shape = (1, config.max_sequence_length, config.hidden_size)
    executor = pipeline.PipelineExecutor(stages, shape, rank.group)
    (stage,) = stages.values()
    optimizer = torch.optim.AdamW(stage.parameters(), 3e-3)
    embd_group = dist.new_group([0, last])
    batches = [
        model.make_batch(config, step=i, batch_size=MICROBATCHES) for i in range(STEPS)
    ]

    def train(some: list[model.Batch]) -> list[float]:
        return pipeline.train(executor, plan, optimizer, some, MICROBATCHES, embd_group)

    losses = train(batches[:1])
    mine = norm(p.grad for p in stage.parameters() if p.grad is not None)
    mine = math.sqrt(mean_over_ranks(mine**2, rank.group) * w)
    sgd = torch.optim.SGD(alone.parameters(), 0.0)
    model.train_one_process(alone, sgd, batches[:1], chunks=MICROBATCHES)
    both = alone.named_parameters(remove_duplicate=False)
    want = norm(p.grad for _, p in both if p.grad is not None)
    losses += train(batches[1:])
    apart = 0.0
    if rank.rank in (0, last):
        copy = stage.embedding.word_embeddings if rank.rank == 0 else stage.output_layer
        apart = apart_between_ranks([copy.weight], embd_group)
    ends = [mean_over_ranks(loss, rank.group) * w for loss in ends_of(losses)]
    return {
        "first loss": ends[0],
        "last loss": ends[1],
        "gradient over one process's": mine / want,
        "apart between ranks": apart,
    }


def ends_of(losses: list[float]) -> tuple[float, float]:
    """Return the first and the last; 0 where the last stage is not."""
    return (losses[0], losses[-1]) if losses else (0.0, 0.0)


WORKS = {
    "pipeline": train_pipeline,
    "pipeline, tied": train_tied,
}
