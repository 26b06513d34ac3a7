"""Whatever a model is, each mini trains it as one process does, or says why it cannot.

The models are drawn: tied or not, partly frozen, of sizes that ranks do not divide, of
one dtype or two. Minis with tests of their own for this: muon, checkpoint, experts,
layout, context_parallel, mixed_precision, recompute, zero_bubble.
"""

import math
import re
import tempfile
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest
import torch
import torch.distributed as dist
from hypothesis import given, settings
from hypothesis import strategies as st
from ranks import RankPool
from small_models import (
    STEPS,
    Answer,
    Parts,
    SmallModel,
    assert_trained_alike,
    part_of,
    sgd,
    small_models,
)
from torch import Tensor, nn
from torch.func import functional_call

from mini_impls import pipeline, sequence_parallel_model, tensor_parallel
from mini_impls.compression import CompressedDataParallel, TopK, all_reduce
from mini_impls.ddp import (
    DistributedDataParallel,
    all_reduce_gradients,
    broadcast_params,
)
from mini_impls.fsdp_flat import fully_shard_flat
from mini_impls.fsdp_options import fully_shard
from mini_impls.fsdp_state import (
    Shard,
    clip_grad_norm_,
    load_checkpoint,
    save_checkpoint,
    shard_rows,
)
from mini_impls.launch import Rank
from mini_impls.model import GPT, compute_loss, shard_batch
from mini_impls.offload import HostLink, HostOptimizer
from mini_impls.offload_states import OffloadedModel
from mini_impls.pipeline import PipelineExecutor
from mini_impls.pipeline_stages import split_model
from mini_impls.schedules import get_orders
from mini_impls.sequence_parallel_model import model_parallel_manual_seed
from mini_impls.timeline import add_send_recv
from mini_impls.zero import ZeroStage1, ZeroStage2
from mini_impls.zero_stage3 import ZeroStage3

Options = dict[str, Any]


@dataclass
class Training:
    """What a mini makes of a model: how to run it, to update it and to look at it."""

    module: nn.Module
    step: Callable[[], None]
    params: Callable[[], Parts]
    grads: Callable[[], Parts]


def grads_of(gpt: GPT) -> Parts:
    named = gpt.named_parameters()
    return {name: p.grad for name, p in named if p.grad is not None}


def params_of(gpt: GPT) -> Parts:
    return {name: p.detach() for name, p in gpt.named_parameters()}


def shown(gpt: GPT, module: nn.Module, step: Callable[[], None]) -> Training:
    """Return a training whose model shows what a rank has."""
    return Training(module, step, lambda: params_of(gpt), lambda: grads_of(gpt))


def stepping(gpt: GPT, *before: Callable[[], None]) -> Callable[[], None]:
    """Return an update of what the model shows."""
    optimizer = sgd(gpt.parameters())

    def step() -> None:
        for each in before:
            each()
        optimizer.step()

    return step


# --- 1. each rank its rows of the batch ---


def train_ddp(rank: Rank, small: SmallModel, *, bucket_kb: float | None) -> Training:
    gpt = small.build(seed=rank.rank)
    if bucket_kb is None:
        broadcast_params(gpt, rank.group)
        plain = stepping(gpt, lambda: all_reduce_gradients(gpt, rank.group))
        return shown(gpt, gpt, plain)
    ddp = DistributedDataParallel(gpt, rank.group, bucket_cap_mb=bucket_kb / 1024)
    return shown(gpt, ddp, stepping(gpt))


def train_compressed(rank: Rank, small: SmallModel, *, whole: str) -> Training:
    """All of it is sent: as it is, or as the share of elements that all are."""
    gpt = small.build(seed=rank.rank)
    compress = TopK(1.0) if whole == "top-k" else all_reduce
    return shown(gpt, CompressedDataParallel(gpt, rank.group, compress), stepping(gpt))


def train_zero(rank: Rank, small: SmallModel, *, stage: str) -> Training:
    gpt = small.build()
    names = {param: name for name, param in gpt.named_parameters()}
    args = (list(gpt.parameters()), torch.optim.SGD, rank.group)
    momentum = {"lr": 0.1, "momentum": 0.9}
    if stage == "2":
        optimizer = ZeroStage2(*args, **momentum)
    elif stage == "3":
        optimizer = ZeroStage3(gpt, *args, **momentum)
    else:
        optimizer = ZeroStage1(*args, gradients=stage, **momentum)

    def owned() -> Parts:
        owners = optimizer.param_to_rank.items()
        mine = [param for param, owner in owners if owner == rank.rank]
        return {names[p]: p.grad for p in mine if p.grad is not None}

    def whole() -> Parts:
        return {names[p]: t for p, t in optimizer.full_parameters().items()}

    return Training(gpt, optimizer.step, whole, owned)


def train_fsdp(rank: Rank, small: SmallModel, **options: Any) -> Training:
    gpt = small.build()
    fully_shard(gpt, rank.group, **options)
    return shown(gpt, gpt, stepping(gpt))


def train_flat(rank: Rank, small: SmallModel, *, modules: list[str]) -> Training:
    gpt = small.build()
    state = fully_shard_flat(gpt, rank.group, modules=modules)

    def grads() -> Parts:
        found = {}
        for handle in state.handles.values():
            if (mine := handle.flat_param.grad) is not None:
                flat = mine.new_empty(len(mine) * rank.world_size)
                dist.all_gather_single(flat, mine, group=rank.group)
                views = handle.get_unflat_views(flat[: handle.unpadded_size])
                found |= {i.fqn: views[i.place] for i in handle.param_infos}
        return found

    return Training(gpt, stepping(gpt), state.full_parameters, grads)


def train_offloaded(
    rank: Rank, small: SmallModel, *, modules: list[str] | None, prefetch: bool = True
) -> Training:
    """Without names of units the optimizer alone is on the host."""
    gpt, link = small.build(), HostLink(torch.device("cpu"))
    if modules is not None:
        OffloadedModel(gpt, rank.group, link, modules=modules, prefetch=prefetch)
        return shown(gpt, gpt, stepping(gpt))
    momentum = {"lr": 0.1, "momentum": 0.9}
    optimizer = HostOptimizer(gpt.parameters(), torch.optim.SGD, link, **momentum)
    kept: Parts = {}

    def step() -> None:
        all_reduce_gradients(gpt, rank.group)
        kept.update(grads_of(gpt))  # they leave
        optimizer.step()

    return Training(gpt, step, lambda: params_of(gpt), lambda: kept)


def in_groups(gpt: GPT, modules: Iterable[str]) -> dict[str | None, list[nn.Parameter]]:
    """Return parameters by the innermost named module, a tied one perhaps twice."""
    found: dict[str | None, list[nn.Parameter]] = {}
    for name, param in gpt.named_parameters(remove_duplicate=False):
        around = [m for m in modules if not m or name.startswith(f"{m}.")]
        found.setdefault(max(around, key=len, default=None), []).append(param)
    return found


def refused_groups(
    small: SmallModel, modules: Iterable[str], *, one_kind: bool = False
) -> list[str]:
    """Return what may be said against a model whose named modules are groups.

    One kind: all of a group are trained, or none.
    """
    groups = in_groups(small.build(), modules)
    homes: dict[nn.Parameter, set[str | None]] = {}
    for home, params in groups.items():
        for param in params:
            homes.setdefault(param, set()).add(home)
    said = []
    if any(len(found) > 1 for found in homes.values()):
        said.append("tied .* lie in 2|tied to one of|tied over two")
    named = [params for home, params in groups.items() if home is not None]
    if any(len({p.dtype for p in params}) > 1 for params in named):
        said.append("a group must have 1 dtype|one flat parameter cannot be 2")
    if one_kind and any(len({p.requires_grad for p in params}) > 1 for params in named):
        said.append("one flat parameter cannot be 2")
    return said


def some_modules(small: SmallModel) -> st.SearchStrategy[list[str]]:
    """Draw names in the order of forward; mostly the root is one."""
    layers = [f"layers.{i}" for i in range(small.config.num_layers)]
    inner = [name for layer in layers for name in (layer, f"{layer}.mlp")]
    return st.sampled_from(
        [
            ["", *layers],
            ["", "embedding", *layers, "final_layernorm", "output_layer"],
            ["", *inner],
            [""],
            layers,
            ["embedding", *inner, "output_layer"],
        ]
    )


@st.composite
def ddp_cases(
    draw: st.DrawFn, world_size: int
) -> tuple[SmallModel, Options, list[str]]:
    return (
        draw(small_models()),
        {"bucket_kb": draw(st.sampled_from([None, 0, 1, 99]))},
        [],
    )


@st.composite
def compression_cases(draw: st.DrawFn, world_size: int) -> Any:
    small = draw(small_models(may_scale=draw(st.sampled_from([False, False, True]))))
    two = small.scale_dtype not in (None, small.dtype)
    said = [TWO_DTYPES] if two else []
    return small, {"whole": draw(st.sampled_from(["as it is", "top-k"]))}, said


@st.composite
def zero_cases(draw: st.DrawFn, world_size: int) -> Any:
    stages = ["all_reduce", "reduce", "2", "3"]
    return draw(small_models()), {"stage": draw(st.sampled_from(stages))}, []


@st.composite
def fsdp_cases(draw: st.DrawFn, world_size: int) -> Any:
    small = draw(small_models())
    modules = draw(some_modules(small))
    if draw(st.sampled_from([True, True, False])):  # most are to be trained
        said = " ".join(refused_groups(small, modules))
        if "tied" in said:
            config = replace(small.config, share_embeddings_and_output_weights=False)
            small = replace(small, config=config)
        if "dtype" in said:
            small = replace(small, scale_dtype=None)
    options = {
        "modules": modules,
        "prefetch": draw(st.booleans()),
        "reshard_after_forward": draw(st.booleans()),
    }
    return small, options, refused_groups(small, modules)


@st.composite
def flat_cases(draw: st.DrawFn, world_size: int) -> Any:
    small = draw(small_models())
    modules = draw(some_modules(small))
    if draw(st.sampled_from([True, True, False])):  # groups of one kind, most times
        whole = [f"{name}." for name in modules if name]
        frozen = draw(st.sampled_from([(), *((name,) for name in whole[:-1])]))
        small = replace(small, scale_dtype=None, frozen=frozen)
    said = refused_groups(small, ["", *modules], one_kind=True)
    return small, {"modules": modules}, said


@st.composite
def offload_cases(draw: st.DrawFn, world_size: int) -> Any:
    small = draw(small_models())
    modules = draw(st.none() | some_modules(small))
    if modules is None:
        return small, {"modules": None}, []
    groups = in_groups(small.build(), modules)
    if any(len({p.dtype for p in params}) > 1 for params in groups.values()):
        small = replace(small, scale_dtype=None)  # the mini leaves that out
    said = refused_groups(small, modules)
    if None in in_groups(small.build(), modules):
        said.append("is in none of the modules named")
    return small, {"modules": modules, "prefetch": draw(st.booleans())}, said


# --- 2. each rank a part of the model ---


def train_tensor_parallel(rank: Rank, small: SmallModel, *, overlap: bool) -> Answer:
    gpt = small.build()
    tensor_parallel.tensor_parallel(gpt, rank.group, overlap=overlap)
    batches = small.batches(1)
    losses = tensor_parallel.train(gpt, sgd(gpt.parameters()), batches, rank.group)
    return losses, params_of(gpt), grads_of(gpt)


def train_sequence_parallel(rank: Rank, small: SmallModel, *, regather: bool) -> Answer:
    gpt, group = small.build(), rank.group
    tracker = model_parallel_manual_seed(0, rank.rank, torch.default_generator)
    partial = sequence_parallel_model.sequence_parallel(
        gpt, group, tracker, regather=regather
    )
    losses = sequence_parallel_model.train(
        gpt, sgd(gpt.parameters()), small.batches(1), partial, group
    )
    return losses, params_of(gpt), grads_of(gpt)


def train_pipeline(
    rank: Rank,
    small: SmallModel,
    *,
    schedule: str,
    chunks: int,
    microbatches: int,
    overlap: bool,
) -> Answer:
    orders = get_orders(schedule, rank.world_size, microbatches, chunks)
    stages = split_model(small.build(), rank.rank, rank.world_size, chunks)
    shape = (small.rows, small.config.max_sequence_length, small.config.hidden_size)
    executor = PipelineExecutor(stages, shape, rank.group, overlap=overlap)
    tied = small.config.share_embeddings_and_output_weights
    losses = pipeline.train(
        executor,
        add_send_recv(orders)[rank.rank],
        sgd(nn.ModuleList(stages.values()).parameters()),
        small.batches(microbatches),
        microbatches,
        dist.new_group([0, rank.world_size - 1]) if tied else None,
    )
    named = [pair for stage in stages.values() for pair in stage.named_parameters()]
    grads = {name: p.grad for name, p in named if p.grad is not None}
    return losses, {name: p.detach() for name, p in named}, grads


def spoiled(draw: st.DrawFn, small: SmallModel, fields: list[str]) -> tuple[Any, str]:
    """Return the model, now and then with a size of one too many, and that size."""
    field = draw(st.sampled_from(["", "", "", *fields]))
    if not field:
        return small, ""
    size = getattr(small.config, field) + 1
    return replace(small, config=replace(small.config, **{field: size})), f"^{size} "


@st.composite
def tensor_parallel_cases(draw: st.DrawFn, world_size: int) -> Any:
    small = draw(small_models(cut=world_size, may_scale=False))
    small, said = spoiled(draw, small, ["vocab_size", "ffn_hidden_size"])
    return small, {"overlap": draw(st.booleans())}, [said] if said else []


@st.composite
def sequence_parallel_cases(draw: st.DrawFn, world_size: int) -> Any:
    small = draw(small_models(cut=world_size, may_scale=False))
    small, said = spoiled(draw, small, ["max_sequence_length", "ffn_hidden_size"])
    return small, {"regather": draw(st.booleans())}, [said] if said else []


@st.composite
def pipeline_cases(draw: st.DrawFn, world_size: int) -> Any:
    schedule, chunks = draw(
        st.sampled_from([("gpipe", 1), ("1f1b", 1), ("interleaved", 2)])
    )
    stages = world_size * chunks
    small = draw(small_models(layers=(stages, 2 * stages), may_scale=False))
    if draw(st.booleans()):  # the embedding, and layers up to one
        lowest = draw(st.integers(0, small.config.num_layers - 1))
        frozen = ("embedding", *(f"layers.{i}." for i in range(lowest)))
        small = replace(small, frozen=frozen)
    small, said = spoiled(draw, small, ["num_layers"])
    step = world_size if schedule == "interleaved" else 1
    options = {
        "schedule": schedule,
        "chunks": chunks,
        "microbatches": step * draw(st.integers(1, 3)),
        "overlap": draw(st.booleans()),
    }
    return small, options, [said] if said else []


# --- 3. one test for all ---


def trained(rank: Rank, small: SmallModel, mini: str, options: Options) -> Any:
    """Return what this rank saw of a training, or what was said against it."""
    try:
        if mini in MODEL_PARALLEL:
            return MODEL_PARALLEL[mini](rank, small, **options)
        training, losses = DATA_PARALLEL[mini](rank, small, **options), []
        for batch in small.batches(rank.world_size):
            tokens, labels = shard_batch(
                batch, rank=rank.rank, world_size=rank.world_size
            )
            training.module.zero_grad()
            loss = compute_loss(training.module(tokens), labels)
            loss.backward()
            training.step()
            mean = loss.detach().double()
            dist.all_reduce(mean, group=rank.group)
            losses.append(mean.item() / rank.world_size)
        return losses, training.params(), training.grads()
    except ValueError as error:
        return str(error)
    except RuntimeError as error:
        if TWO_DTYPES in str(error):  # else neighbours may be stuck in a collective
            return TWO_DTYPES
        raise


DATA_PARALLEL: dict[str, Callable[..., Training]] = {
    "ddp": train_ddp,
    "compression": train_compressed,
    "zero": train_zero,
    "fsdp": train_fsdp,
    "fsdp_flat": train_flat,
    "offload": train_offloaded,
}
MODEL_PARALLEL: dict[str, Callable[..., Answer]] = {
    "tensor_parallel": train_tensor_parallel,
    "sequence_parallel": train_sequence_parallel,
    "pipeline": train_pipeline,
}
TWO_DTYPES = "grad_dtype"
"""What torch says where a gradient is put into a bucket of another dtype."""
WHOLE = ("ddp", "compression", "zero")
"""Where each weight has memory of its own: some products and updates go by address."""
CASES = {
    "ddp": ddp_cases,
    "compression": compression_cases,
    "zero": zero_cases,
    "fsdp": fsdp_cases,
    "fsdp_flat": flat_cases,
    "offload": offload_cases,
    "tensor_parallel": tensor_parallel_cases,
    "sequence_parallel": sequence_parallel_cases,
    "pipeline": pipeline_cases,
}


def check(pool: RankPool, mini: str, data: st.DataObject) -> None:
    """Draw a model, and hold a mini that trains it against one process."""
    world_size = pool.world_size
    small, options, said = data.draw(CASES[mini](world_size))
    answers = pool.run(trained, small, mini, options)
    if said:
        for answer in answers:
            assert isinstance(answer, str), f"not refused: {said}"
            assert re.search("|".join(said), answer), answer
        return
    assert not any(isinstance(answer, str) for answer in answers), answers
    parts = options.get("microbatches", world_size if mini in DATA_PARALLEL else 1)
    assert_trained_alike(
        small,
        answers,
        parts,
        exact=world_size == 2 and mini in WHOLE,
    )


@pytest.mark.sampled
@pytest.mark.parametrize("mini", CASES)
@settings(max_examples=10, report_multiple_bugs=False)
@given(data=st.data())
def test_random_models_train_as_one_process(few_ranks, mini, data):
    check(few_ranks, mini, data)


@pytest.mark.slow
@pytest.mark.parametrize("mini", CASES)
@settings(max_examples=60, report_multiple_bugs=False)
@given(data=st.data())
def test_many_random_models_train_as_one_process(few_ranks, mini, data):
    check(few_ranks, mini, data)


# --- 4. shards that are saved by some ranks and loaded by others ---


def train_shards(
    rank: Rank, small: SmallModel, folder: Path, max_norm: float, steps: range
) -> Answer:
    """Train rows of each parameter; save them, or load those of other ranks first."""
    gpt, group, loads = small.build(seed=steps.start), rank.group, steps.start > 0
    shards = {n: shard_rows(p, group) for n, p in gpt.named_parameters()}
    trained = {n for n, p in gpt.named_parameters() if p.requires_grad}
    optimizer = sgd(shard.param for shard in shards.values())
    if loads:
        assert load_checkpoint(folder, shards, optimizer) == steps.start
    losses = []
    for batch in small.batches(PARTS, steps.stop)[steps.start :]:
        whole = {name: gathered(shard, group) for name, shard in shards.items()}
        for name in trained:
            whole[name].requires_grad_()
        tokens, labels = shard_batch(batch, rank=rank.rank, world_size=group.size())
        loss = compute_loss(functional_call(gpt, whole, (tokens,)), labels)
        loss.backward()
        for name in sorted(trained):
            grad = whole[name].grad / group.size()
            dist.all_reduce(grad, group=group)
            mine = shards[name].param
            mine.grad = part_of(grad, mine.shape, rank.rank, group.size())
        if max_norm < math.inf:
            params = [shards[name].param for name in trained]
            clip_grad_norm_(params, max_norm, group)
        optimizer.step()
        mean = loss.detach() / group.size()
        dist.all_reduce(mean, group=group)
        losses.append(mean.item())
    if not loads:
        save_checkpoint(folder, shards, optimizer, group, step=steps.stop)
    params = {name: shard.param.detach() for name, shard in shards.items()}
    return losses, params, {name: shards[name].param.grad for name in trained}


def gathered(shard: Shard, group: dist.ProcessGroup) -> Tensor:
    """Return the whole tensor, its memory its own."""
    rows = -(-shard.rows // group.size())
    padded = shard.param.detach().new_zeros(rows, *shard.param.shape[1:])
    padded[: len(shard.param)] = shard.param.detach()
    everyone = [torch.empty_like(padded) for _ in range(group.size())]
    dist.all_gather(everyone, padded, group=group)
    return torch.cat(everyone)[: shard.rows].clone()


PARTS = 6
"""Of a batch: two ranks take three of them each, three take two."""


def check_resumed(pools: list[RankPool], data: st.DataObject) -> None:
    """Draw a model; train on the first pool, then on the second, as in one process."""
    small = data.draw(small_models())
    max_norm = data.draw(st.sampled_from([math.inf, 0.3]))
    with tempfile.TemporaryDirectory(prefix="random-model-") as folder:
        saver, loader = pools
        args = small, Path(folder) / "saved", max_norm
        before = saver.run(train_shards, *args, range(STEPS))
        after = loader.run(train_shards, *args, range(STEPS, 2 * STEPS))
    answers = [(before[0][0] + losses, *parts) for losses, *parts in after]
    how = {"steps": 2 * STEPS, "max_norm": max_norm}
    assert_trained_alike(small, answers, PARTS, **how)


@settings(max_examples=5, report_multiple_bugs=False)
@given(data=st.data())
@pytest.mark.further
def test_random_shards_are_trained_on_by_other_ranks(pool2, pool3, data):
    pools = [pool2, pool3]
    check_resumed(data.draw(st.sampled_from([pools, pools[::-1]])), data)


@pytest.mark.slow
@settings(max_examples=60, report_multiple_bugs=False)
@given(data=st.data())
def test_many_random_shards_are_trained_on_by_other_ranks(pool2, pool3, data):
    pools = [pool2, pool3]
    check_resumed(data.draw(st.sampled_from([pools, pools[::-1]])), data)
