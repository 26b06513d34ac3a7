"""Every mini in a part of the world does what it does in a world of that size.

The other part runs the same work on another model at the same time: what strayed into
the default group, or took a rank of the group for a rank of the world, would meet it.
"""

import importlib
import math
from dataclasses import replace
from pathlib import Path

import pytest
import test_collectives
import test_compression
import test_ddp
import test_experts
import test_fsdp
import test_fsdp_flat
import test_fsdp_state
import test_inference
import test_mixed_precision
import test_mixed_precision_fp8
import test_muon
import test_muon_split
import test_offload
import test_pipeline
import test_recompute
import test_recover
import test_recover_checks
import test_sequence_parallel
import test_tensor_parallel
import test_zero
import test_zero_bubble
import torch
import torch.distributed as dist
from ranks import RankPool
from torch.utils._pytree import tree_leaves

from mini_impls import model
from mini_impls.fsdp_state import clip_grad_norm_
from mini_impls.launch import Rank
from mini_impls.vocab_parallel_loss import (
    gathered_cross_entropy,
    vocab_parallel_cross_entropy,
)

pytestmark = pytest.mark.sampled

PARTITIONS = [
    pytest.param([[0, 2], [1, 3]], id="two and two"),
    pytest.param([[1, 2], [0]], id="two and one", marks=pytest.mark.slow),
]


@pytest.fixture(scope="module")
def pools(pool2, pool4):
    """Pools of one to four ranks, by size."""
    made = {1: RankPool(1), 2: pool2, 3: RankPool(3), 4: pool4}
    yield made
    made[1].close()
    made[3].close()


def in_part(rank, partition, module, work, args_of_part):
    """Run a work in the part of the world that this rank belongs to."""
    groups = [dist.new_group(ranks) for ranks in partition]
    part = next(i for i, ranks in enumerate(partition) if rank.rank in ranks)
    ranks = partition[part]
    mine = Rank(ranks.index(rank.rank), len(ranks), rank.device, groups[part])
    function = getattr(importlib.import_module(module), work)
    return part, mine.rank, function(mine, *args_of_part[part])


def assert_same(got, want, where=""):
    """Hold what two works returned against each other, to the bit."""
    if isinstance(want, torch.Tensor):
        assert torch.equal(got, want), where
    elif isinstance(want, dict):
        assert got.keys() == want.keys(), where
        for key in want:
            assert_same(got[key], want[key], f"{where}[{key!r}]")
    elif isinstance(want, list | tuple):
        assert len(got) == len(want), where
        for i, (a, b) in enumerate(zip(got, want, strict=True)):
            assert_same(a, b, f"{where}[{i}]")
    else:
        assert got == want, where


# --- works that no other test has ---


def save_load_and_clip(rank, directory, seed):
    """Train, save, load into another model, and clip the gradients of the last step."""
    model, shards, optimizer = test_fsdp_state.sharded(rank, seed)
    test_fsdp_state.run_steps(rank, model, shards, optimizer, range(2))
    path = Path(directory) / f"seed {seed} on {rank.world_size}"
    test_fsdp_state.save_checkpoint(path, shards, optimizer, rank.group, step=2)
    params = [shard.param for shard in shards.values()]
    norm = [
        clip_grad_norm_(params, 0.01, rank.group, norm_type=p) for p in (math.inf, 2.0)
    ]
    grads = [p.grad for p in params]
    _, shards, optimizer = test_fsdp_state.sharded(rank, seed + 1)
    step = test_fsdp_state.load_checkpoint(path, shards, optimizer)
    return norm, grads, step, test_fsdp_state.state_of(shards, optimizer)


def every_collective(rank, numel):
    """Run all of them; what they return is of the order of the ranks in the group."""
    rows = [[numel + i + j for j in range(rank.world_size)] for i in range(4)]
    return (
        test_collectives.compare_all_reduces(rank, numel),
        test_collectives.every_op(rank),
        test_collectives.uneven(rank, [numel + i for i in range(rank.world_size)]),
        test_collectives.broadcast_from(rank, rank.world_size - 1),
        test_collectives.swap(rank, rows),
        rank.world_size > 1 and test_collectives.pipelined(rank, numel, 2),
    )


def wider(config):
    """Return a model whose tensors have other sizes."""
    return replace(config, ffn_hidden_size=config.ffn_hidden_size + 64)


def of_both(module, work, config, *args):
    return module, work, ((config, *args), (wider(config), *args))


WORKS = {
    "ddp": of_both(test_ddp, "train", test_ddp.CONFIG, "overlapped"),
    "ddp, plain": of_both(test_ddp, "train", test_ddp.CONFIG, "plain"),
    **{
        f"zero {stage}": of_both(
            test_zero, "train", test_zero.CONFIG, stage, *test_zero.SGD
        )
        for stage in test_zero.STAGES
    },
    "fsdp": of_both(test_fsdp, "train", test_fsdp.CONFIG, test_fsdp.LAYERS, {}),
    "fsdp, root too": of_both(test_fsdp, "train", test_fsdp.CONFIG, test_fsdp.ALL, {}),
    "fsdp_flat": of_both(
        test_fsdp_flat,
        "train",
        test_fsdp_flat.CONFIG,
        test_fsdp_flat.LAYERS,
        *test_fsdp_flat.SGD,
    ),
    "tensor_parallel": of_both(
        test_tensor_parallel,
        "run_training",
        test_tensor_parallel.CONFIGS["default"],
        "sgd",
        4,
    ),
    "tensor_parallel, one query group": of_both(
        test_tensor_parallel,
        "run_training",
        test_tensor_parallel.SHARED_GROUPS,
        "sgd",
        4,
    ),
    "sequence_parallel": of_both(
        test_sequence_parallel, "run_training", test_sequence_parallel.DROPOUT, True
    ),
    **{
        f"pipeline, {schedule}": of_both(
            test_pipeline,
            "run_training",
            test_pipeline.CONFIG,
            schedule,
            chunks,
            4,
            schedule == "interleaved",
        )
        for schedule, chunks in test_pipeline.SCHEDULES
    },
    "inference": of_both(test_inference, "run_generate", test_inference.CONFIG, 2),
    **{
        f"compression, {way}": (
            test_compression,
            "compress_steps",
            ((way, 3), (way, 3, True)),
        )
        for way in test_compression.WAYS
    },
    "compression, wrapped": (
        test_compression,
        "wrapped",
        ((False, 0.0), (False, 5.0)),
    ),
    "experts, biases": (test_experts, "shift_biases", ((6.0,), (12.0,))),
    "mixed_precision": of_both(
        test_mixed_precision, "train", test_mixed_precision.CONFIG, torch.float16
    ),
    "mixed_precision, parts": (
        test_mixed_precision,
        "step_apart",
        ((-1, True, True), (-1, True, False)),
    ),
    "mixed_precision, fp8": (test_mixed_precision_fp8, "agree", ((True,), (True, 2.0))),
    "muon": of_both(test_muon, "train_whole", test_muon.CONFIG),
    "muon, rows": of_both(test_muon, "train_rows", test_muon.CONFIG),
    **{
        f"muon, {mode}": (
            test_muon_split,
            "train_part",
            (((24, 12), 1, mode), ((12, 12), 1, mode)),
        )
        for mode in ("duplicated", "distributed")
    },
    "offload": (test_offload, "train_states", ((True, 1, False), (True, 1, True))),
    "recompute": (test_recompute, "shard_one", ((24, False), (48, False))),
    "recover": (
        test_recover,
        "train",
        ((test_recover.CONFIG, {2}), (test_recover.CONFIG, {4})),
    ),
    "recover, checks": (test_recover_checks, "check", (((),), ((),))),
    "recover, times": (test_recover_checks, "report_once", ((1.0,), (5.0,))),
    **{
        f"tensor_parallel, {loss.__name__}": (
            test_tensor_parallel,
            "run_cross_entropy",
            tuple(
                (loss, torch.randn(2, 3, v), torch.ones(2, 3).long()) for v in (4, 8)
            ),
        )
        for loss in (gathered_cross_entropy, vocab_parallel_cross_entropy)
    },
    "zero_bubble": (test_zero_bubble, "run_training", (("zb-h1", 5), ("zb-h1", 7))),
}


def check(pools, partition, module, work, args_of_part):
    answers = pools[sum(map(len, partition))].run(
        in_part, partition, module.__name__, work, args_of_part
    )
    function = getattr(module, work)
    want = [
        pools[len(ranks)].run(function, *args)
        for ranks, args in zip(partition, args_of_part, strict=True)
    ]
    for part, rank, got in answers:
        assert_same(got, want[part][rank])


@pytest.mark.parametrize("partition", PARTITIONS)
@pytest.mark.parametrize("name", WORKS)
def test_a_part_of_the_world_is_a_world_of_its_own(pools, name, partition):
    check(pools, partition, *WORKS[name])


@pytest.mark.parametrize("partition", PARTITIONS)
def test_collectives_of_a_part_of_the_world(pools, partition):
    this = importlib.import_module(__name__)
    check(pools, partition, this, "every_collective", ((8,), (11,)))


@pytest.mark.parametrize("partition", PARTITIONS)
def test_checkpoints_of_a_part_of_the_world(pools, partition, tmp_path):
    this, alone = importlib.import_module(__name__), tmp_path / "alone"
    together = ((tmp_path, 3), (tmp_path, 5))
    answers = pools[sum(map(len, partition))].run(
        in_part, partition, __name__, "save_load_and_clip", together
    )
    want = [
        pools[len(ranks)].run(this.save_load_and_clip, alone, seed)
        for ranks, seed in zip(partition, (3, 5), strict=True)
    ]
    for part, rank, got in answers:
        assert_same(got, want[part][rank])
    # Of the other mini the work itself holds what it loads against what was saved.
    over = ((tmp_path / "rows", 0), (tmp_path / "columns", 1))
    world = pools[sum(map(len, partition))]
    world.run(in_part, partition, "test_checkpoint", "over_ranks", over)


# --- in another dtype ---


def build_in_64_bits(config, build=model.build_model, **options):
    return build(config, **options).double()


def in_64_bits(rank, module, work, args):
    """Run a work on a model of 64 bits; return what types its results are of.

    Numbers that 32 bits have are of those, though they came into 64 again.
    """
    test = importlib.import_module(module)
    with pytest.MonkeyPatch.context() as patch:
        for where in (model, test):
            patch.setattr(where, "build_model", build_in_64_bits, raising=False)
        result = getattr(test, work)(rank, *args)
    tensors = [t for t in tree_leaves(result) if isinstance(t, torch.Tensor)]
    return {
        torch.float32 if torch.equal(t, t.float().double()) else t.dtype
        for t in tensors
        if t.is_floating_point() and t.numel()
    }


@pytest.mark.parametrize(
    "name",
    [
        *("ddp", "zero 2", "zero 3", "fsdp, root too", "fsdp_flat", "muon, rows"),
        *("tensor_parallel, one query group", "sequence_parallel", "pipeline, 1f1b"),
        *("muon", "offload"),
    ],
)
def test_a_model_of_64_bits_stays_one(pool2, name):
    module, work, (args, _) = WORKS[name]
    types = pool2.run(in_64_bits, module.__name__, work, args)
    assert types == [{torch.float64} if name != "offload" else set()] * 2
