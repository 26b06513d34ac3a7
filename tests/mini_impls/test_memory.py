"""What is alive after a step was alive after the step before: no mini hoards."""

import gc
from contextlib import contextmanager

import pytest
import torch
from test_fsdp import Odd
from test_pipeline import make_optimizer, make_pipeline

from mini_impls import pipeline, sequence_parallel_model, tensor_parallel
from mini_impls.ddp import DistributedDataParallel
from mini_impls.fsdp_flat import fully_shard_flat
from mini_impls.fsdp_options import fully_shard
from mini_impls.model import (
    GPTConfig,
    build_model,
    compute_loss,
    make_batch,
)
from mini_impls.zero import ZeroStage1, ZeroStage2
from mini_impls.zero_stage3 import ZeroStage3

pytestmark = pytest.mark.sampled

CONFIG = GPTConfig(hidden_size=32, ffn_hidden_size=64, num_query_groups=4)
LAYERS = ["layers.0", "layers.1"]
KB = 1 / 1024  # of a MiB
MINIS = (
    "ddp",
    "zero 1",
    "zero 2",
    "zero 3",
    "fsdp",
    "fsdp_flat",
    "tensor_parallel",
    "sequence_parallel",
    "pipeline",
    "pipeline, overlapped",
)


@contextmanager
def as_new():
    """Leave out of `live_bytes` what is there already: it is not this test's."""
    gc.collect()
    gc.freeze()
    try:
        yield
    finally:
        gc.unfreeze()


def live_bytes():
    """Return the bytes of the memory of all tensors made since `as_new`."""
    gc.collect()
    tensors = [
        each for each in gc.get_objects() if issubclass(type(each), torch.Tensor)
    ]
    memory = (tensor.untyped_storage() for tensor in tensors)
    return sum({each._cdata: each.nbytes() for each in memory}.values())


def make_step(rank, mini):
    """Return what trains one step on a batch."""
    gpt = run = build_model(CONFIG)
    optimizer = None
    if mini == "ddp":
        run = DistributedDataParallel(gpt, rank.group, bucket_cap_mb=16 * KB)
    elif mini.startswith("zero"):
        params, adam = list(gpt.parameters()), torch.optim.AdamW
        if mini == "zero 3":
            optimizer = ZeroStage3(gpt, params, adam, rank.group)
        else:
            stage = ZeroStage1 if mini == "zero 1" else ZeroStage2
            optimizer = stage(params, adam, rank.group)
    elif mini == "fsdp":
        fully_shard(gpt, rank.group, modules=["", *LAYERS])
    elif mini == "fsdp_flat":
        fully_shard_flat(gpt, rank.group, modules=LAYERS)
    elif mini == "tensor_parallel":
        tensor_parallel.tensor_parallel(gpt, rank.group)
        optimizer = torch.optim.AdamW(gpt.parameters())
        return lambda batch: tensor_parallel.train(gpt, optimizer, [batch], rank.group)
    elif mini == "sequence_parallel":
        streams = sequence_parallel_model.model_parallel_manual_seed(
            1, rank.rank, torch.default_generator
        )
        partial = sequence_parallel_model.sequence_parallel(gpt, rank.group, streams)
        optimizer = torch.optim.AdamW(gpt.parameters())
        return lambda batch: sequence_parallel_model.train(
            gpt, optimizer, [batch], partial, rank.group
        )
    else:
        overlap = mini.endswith("overlapped")
        config = GPTConfig(num_layers=4, hidden_size=32, ffn_hidden_size=64)
        del gpt, run
        executor, plan, _ = make_pipeline(rank, config, "interleaved", 2, 4, overlap)
        optimizer = make_optimizer(executor.stages)
        return lambda batch: pipeline.train(executor, plan, optimizer, [batch], 4)
    if optimizer is None:
        optimizer = torch.optim.AdamW(gpt.parameters())

    def step(batch):
        optimizer.zero_grad()
        compute_loss(run(batch[0]), batch[1]).backward()
        optimizer.step()

    return step


def watch(rank, mini):
    """Return what is alive after each of five steps."""
    with as_new():
        step, alive = make_step(rank, mini), []
        for i in range(5):
            step(make_batch(CONFIG, step=i, batch_size=4))
            alive.append(live_bytes())
    return alive


@pytest.mark.parametrize("mini", MINIS)
def test_a_step_leaves_as_much_alive_as_the_step_before(pool2, mini):
    for first, *later in pool2.run(watch, mini):
        # A thread of gloo may let go of its last tensor a moment after the wait for it.
        assert 0 < min(later) <= first


def branches(rank):
    """Return what is alive after a step that uses a branch, and after some without."""
    with as_new():
        model, alive = Odd(), []
        fully_shard(model, rank.group, modules=["", "first", "branch", "last"])
        for take in (True, False, False, False):
            model(torch.ones(2, 3), take).sum().backward()
            model.zero_grad()
            alive.append(live_bytes())
    return alive


def test_what_was_gathered_ahead_in_vain_is_gone_after_the_step(pool2):
    for with_branch, without, *again in pool2.run(branches):
        assert 0 < min(without, *again) <= with_branch
