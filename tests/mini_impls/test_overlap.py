"""A call that is started early must be waited for late: both ends are looked at."""

from dataclasses import replace

import pytest
import torch
from test_pipeline import make_optimizer, make_pipeline
from torch import nn

from mini_impls import model, pipeline, sequence_parallel, tensor_parallel
from mini_impls.ddp import DistributedDataParallel
from mini_impls.faults.overlap import Overlap
from mini_impls.fsdp_flat import fully_shard_flat
from mini_impls.fsdp_options import fully_shard
from mini_impls.model import GPTConfig, build_model, compute_loss, make_batch
from mini_impls.zero import ZeroStage2

CONFIG = GPTConfig(hidden_size=32, ffn_hidden_size=64, num_layers=4)
LAYERS = [f"layers.{i}" for i in range(4)]
KB = 1 / 1024  # of a MiB


def one_step(rank, mini):
    """Return how many calls of each kind were hidden, how many there were, the most."""
    gpt = build_model(CONFIG)
    run = gpt
    if mini == "ddp":
        run = DistributedDataParallel(gpt, rank.group, bucket_cap_mb=16 * KB)
    elif mini == "zero stage 2":
        ZeroStage2(gpt.parameters(), torch.optim.SGD, rank.group)
    elif mini == "fsdp_flat":
        fully_shard_flat(gpt, rank.group, modules=LAYERS)
    else:
        prefetch = mini == "fsdp"
        fully_shard(gpt, rank.group, modules=["", *LAYERS], prefetch=prefetch)
    tokens, labels = make_batch(CONFIG, step=0, batch_size=2)
    with Overlap() as seen:
        compute_loss(run(tokens), labels).backward()
    return seen.summary()


BACKWARD = {
    # No product comes after the last bucket but one: norms and embeddings.
    "ddp": {"all_reduce": (6, 8, 8)},
    # One gradient travels while the next is made, and not each is made by a product.
    "zero stage 2": {"reduce": (16, 53, 2)},
    # Forward layers 1 to 3, backward all; the root's gather has nothing before it.
    "fsdp": {"all_gather_single": (7, 9, 1), "reduce_scatter_single": (3, 5, 1)},
    "fsdp, plain": {"all_gather_single": (0, 9, 1), "reduce_scatter_single": (3, 5, 1)},
    # Ahead in backward alone.
    "fsdp_flat": {"all_gather_single": (4, 9, 1), "reduce_scatter_single": (3, 5, 1)},
}


@pytest.mark.further
@pytest.mark.parametrize("mini", BACKWARD)
def test_backward_goes_on_while_calls_are_under_way(pool2, mini):
    assert pool2.run(one_step, mini) == [BACKWARD[mini]] * 2


def one_layer(rank, mini):
    master = nn.Linear(8, 16)
    if mini == "tensor_parallel":
        layer = tensor_parallel.ColumnParallelLinear(master, tp_group=rank.group)
    else:
        layer = sequence_parallel.ColumnParallelLinear(master, rank.group)
    out = layer(torch.randn(4, 2, 8, requires_grad=True))
    with Overlap() as seen:
        out.backward(torch.randn_like(out))
    return seen.summary()


COLUMN = {
    "tensor_parallel": {"all_reduce": (1, 1, 1)},
    "sequence_parallel": {
        "all_gather_single": (1, 1, 1),
        "reduce_scatter_single": (1, 1, 1),
    },
}


@pytest.mark.parametrize("mini", COLUMN)
def test_each_call_of_a_column_layer_hides_behind_a_product(pool2, mini):
    assert pool2.run(one_layer, mini) == [COLUMN[mini]] * 2


def interleaved(rank):
    config = replace(CONFIG, num_layers=8)
    executor, plan, _ = make_pipeline(rank, config, "interleaved", 2, 4, True)
    batch = model.make_batch(config, step=0, batch_size=4)
    with Overlap() as seen:
        optimizer = make_optimizer(executor.stages)
        pipeline.train(executor, plan, optimizer, [batch], 4)
    return seen.summary()


def test_sends_of_one_exchange_are_waited_for_at_the_next(pool2):
    assert pool2.run(interleaved) == [
        {"isend": (12, 12, 1), "irecv": (0, 12, 1)},
        {"isend": (11, 12, 1), "irecv": (8, 12, 3)},  # its messages come early
    ]
