"""Whole comparisons, on ranks that stay alive; and faults that each must be seen."""

import sys
from contextlib import nullcontext
from functools import cache
from importlib import import_module
from itertools import product
from unittest.mock import patch

import pytest
import torch
import torch.distributed as dist
from ranks import RankPool

from mini_impls.compare import environment, record, run
from mini_impls.compare.comparisons import comparisons, find
from mini_impls.compare.places import Places, get_roots
from mini_impls.compare.rank_worker import MIN_STEPS, _Watcher, watch
from mini_impls.compare.tables import make_tables
from mini_impls.compare.upstream_files import write_megatron
from mini_impls.compare.verdicts import verdicts
from readerkit.app.library import open_library
from readerkit.errors import ReaderkitError
from tests.helpers import ROOT

pytestmark = pytest.mark.sampled

TORCH_ONLY = [c for c in comparisons() if c.upstreams == ("pytorch",)]
LINES_NOTED = ("collectives", "ddp")
"""Minis whose lines are noted on two ranks too; on more, those of all are."""
OF_MEGATRON = [c for c in comparisons() if "megatron" in c.upstreams]


@cache
def the_book():
    return open_library(ROOT).book


def _watch(rank, mini, upstream, fault):
    comparison = find(mini, upstream).at(rank.world_size)
    watcher = _Watcher(rank, comparison, Places(get_roots(None)))
    if fault is not None:
        fault(watcher.sides.mini)
    elif mini in LINES_NOTED or rank.world_size > 2:
        return watcher.run(MIN_STEPS, is_traced=False)
    # No verdict looks at lines, and to note each is half of the work.
    with patch.object(sys, "settrace", lambda trace: None):
        return watcher.run(MIN_STEPS, is_traced=False)


def judged(pool, comparison, fault=None, known=None):
    results = pool.run(_watch, comparison.mini, comparison.upstream, fault)
    return judge(results, comparison, known)


def judge(results, comparison, known=None):
    comparison = comparison.at(len(results))
    if known is None:
        known = the_book().differences(comparison.name)
    sizes = comparison.sizes(len(results))
    tables = make_tables(results, "gloo", known, sizes)
    cpu = torch.device("cpu")
    alone = record.losses_alone(comparison, results, MIN_STEPS, cpu)
    lines = verdicts(comparison, results, tables, alone, known, sizes, "gloo")
    return lines, tables.events


@pytest.fixture(scope="module")
def as_it_is(pool2):
    """What a comparison says without a fault."""
    return cache(lambda comparison: judged(pool2, comparison))


def beside_torch(*slow):
    """Each comparison with torch, some of them marked slow."""
    return pytest.mark.parametrize(
        "comparison",
        [
            pytest.param(c, id=c.name, marks=pytest.mark.slow if c.name in slow else ())
            for c in TORCH_ONLY
        ],
    )


@beside_torch("fsdp_state_fully_shard", "checkpoint_torch")  # half a minute of saving
def test_a_mini_agrees_with_its_upstream(as_it_is, comparison):
    lines, events = as_it_is(comparison)
    assert [v for v in lines if v.state == "differ"] == []
    assert all(rank.mini and rank.upstream for rank in events)
    on_wire = {v.what for v in lines if v.what.startswith("bytes on the wire")}
    is_unmeasured = comparison.writes_files or comparison.uneven
    assert len(on_wire) == (0 if is_unmeasured else 2)
    assert bool(environment.not_measured(comparison)) == is_unmeasured


@pytest.mark.further
def test_collectives_agree_where_chunks_are_uneven(pool3):
    lines, events = judged(pool3, find("collectives"))
    assert [v for v in lines if v.state == "differ"] == []
    called = {event.op for event in events[0].upstream}
    assert called == {
        "all_reduce",
        "reduce_scatter",
        "all_gather",
        "all_to_all",
        "broadcast",
    }


@pytest.mark.slow
@pytest.mark.parametrize("comparison", TORCH_ONLY, ids=lambda c: c.name)
def test_a_mini_agrees_with_its_upstream_on_four_ranks(pool4, comparison):
    lines, events = judged(pool4, comparison)
    assert [v for v in lines if v.state == "differ"] == []
    assert len(events) == 4


@pytest.mark.slow
@pytest.mark.parametrize("upstream", ["torch_1f1b", "torch_gpipe"])
def test_a_pipeline_agrees_on_an_odd_number_of_ranks(pool3, upstream):
    lines, events = judged(pool3, find("pipeline", upstream))
    assert [v for v in lines if v.state == "differ"] == []
    assert len(events) == 3


def _watch_megatron(rank, mini, upstream, directory):
    try:
        return watch(rank, mini, upstream, MIN_STEPS, directory)
    finally:
        # The next comparison cuts its ranks into other groups.
        import_module("megatron.core.parallel_state").destroy_model_parallel()


@pytest.fixture(scope="module")
def megatron(tmp_path_factory):
    """Four ranks of their own, and Megatron written where they can import it."""
    directory = tmp_path_factory.mktemp("megatron")
    pool = RankPool(4)
    yield pool, directory
    pool.close()


@pytest.mark.slow
@pytest.mark.parametrize("comparison", OF_MEGATRON, ids=lambda c: c.name)
def test_a_mini_agrees_with_megatron_on_four_ranks(megatron, real_cache, comparison):
    pool, directory = megatron
    if not any(directory.iterdir()):
        write_megatron(open_library(ROOT), directory)
    results = pool.run(_watch_megatron, comparison.mini, comparison.upstream, directory)
    lines, events = judge(results, comparison)
    assert [v for v in lines if v.state == "differ"] == []
    assert len(events) == 4
    is_alone = comparison.mini == "inference"  # one process sends nothing
    assert all(rank.mini and bool(rank.upstream) != is_alone for rank in events)


@pytest.mark.slow
def test_a_pipeline_agrees_with_megatron_on_an_odd_number_of_ranks(
    pool3, megatron, real_cache
):
    _, directory = megatron
    if not any(directory.iterdir()):
        write_megatron(open_library(ROOT), directory)
    comparison = find("pipeline", "megatron_1f1b")
    results = pool3.run(
        _watch_megatron, comparison.mini, comparison.upstream, directory
    )
    lines, _ = judge(results, comparison)
    assert [v for v in lines if v.state == "differ"] == []


def _sum_for_mean(side):
    for bucket in side.model.buckets:
        bucket.gradient_scaling_factor = 1.0


def _no_sync(side):
    side.model.is_last_microbatch = False


def _one_call_more(side):
    step = side.step

    def more(batch, set_phase):
        loss = step(batch, set_phase)
        dist.all_reduce(side.module.final_layernorm.bias.detach().clone())
        return loss

    side.step = more


@pytest.mark.parametrize(
    ("fault", "said"),
    [
        (_sum_for_mean, "gradients of the first step"),
        (_no_sync, "events of a step"),
        (_one_call_more, "payload bytes of all_reduce"),
    ],
)
def test_a_fault_is_seen(pool2, fault, said):
    lines, _ = judged(pool2, find("ddp", "torch"), fault)
    assert any(said in v.what for v in lines if v.state == "differ")


def _around_step(side, around):
    """Have a side take its steps inside a context."""
    step = side.step

    def inside(*args):
        with around():
            return step(*args)

    side.step = inside


def _waiting(call):
    """Return a call of torch.distributed that is waited for where it is issued."""

    def at_once(*args, **kwargs):
        work = call(*args, **kwargs)
        if work is not None:
            work.wait()
        return work

    return at_once


def _wait_at_once(side):
    names = ("all_reduce", "reduce")
    calls = {name: _waiting(getattr(dist, name)) for name in names}
    _around_step(side, lambda: patch.multiple(dist, **calls))


def _barrier(side):
    side.module.register_forward_pre_hook(lambda *args: dist.barrier())


def _keep_buckets(side):
    kept = []
    for bucket in side.model.buckets:

        def start(group, bucket=bucket, start=bucket.start_grad_sync):
            kept.append(bucket.grad_data.clone())
            start(group)

        bucket.start_grad_sync = start


def _keep_shards(side):
    kept, scatter = [], dist.reduce_scatter_single

    def keeping(output, *args, **kwargs):
        kept.append(output.clone())
        return scatter(output, *args, **kwargs)

    _around_step(side, lambda: patch.object(dist, "reduce_scatter_single", keeping))


def _draw(side):
    _around_step(side, lambda: nullcontext(torch.rand(1)))


ALIVE = ["most bytes alive in a step", "other bytes that steps leave behind"]


@pytest.mark.parametrize(
    ("mini", "upstream", "fault", "said"),
    [
        ("ddp", "torch", _wait_at_once, "waited for before the last of 29 gradients"),
        ("tp", "dtensor", _wait_at_once, "reasons for longer waits of the mini"),
        ("ddp", "torch", _barrier, "events of a step"),
        ("fsdp", "fully_shard", _barrier, "events of a step"),
        ("ddp", "torch", _keep_buckets, ALIVE),
        ("fsdp", "fully_shard", _keep_shards, ALIVE),
        ("ddp", "torch", _draw, "torch's random numbers"),
    ],
)
def test_what_leaves_every_value_right_is_seen(pool2, mini, upstream, fault, said):
    lines, _ = judged(pool2, find(mini, upstream), fault)
    assert {v.state for v in lines if "loss" in v.what} == {"agree"}
    differ = [v.what for v in lines if v.state == "differ"]
    for words in said if isinstance(said, list) else [said]:
        assert any(words in what for what in differ)


def test_stage_two_hides_reductions_behind_products(pool2, as_it_is):
    """Upstream hides none on a CPU, so only the count tells."""
    found = find("zero", "fully_shard_stage2")
    waiting = judged(pool2, found, _wait_at_once)
    for (lines, _), hides in ((as_it_is(found), True), (waiting, False)):
        what = "calls of backward that matrix products ran beside"
        counts = [v.mini for v in lines if v.what == what]
        assert len(counts) == 2
        assert all((count > 0) == hides for count in counts)


def test_a_mini_waits_for_no_bucket_before_the_last_gradient(as_it_is):
    lines, _ = as_it_is(find("ddp", "torch"))
    found = [v for v in lines if "waited for before the last" in v.what]
    assert [(v.rank, v.mini, v.state) for v in found] == [
        (0, 0, "agree"),
        (1, 0, "agree"),
    ]
    assert all("unseen" in v.what for v in found)


def test_a_known_mini_has_a_default_upstream():
    assert find("ddp").upstream == "torch"
    assert find("pp").mini == "pipeline"
    assert find("tp", "dtensor").mini == "tensor_parallel"


@pytest.mark.parametrize(
    ("mini", "upstream", "said"),
    [
        (
            "nothing",
            None,
            ": checkpoint, collectives, compression, context_parallel, ddp",
        ),
        ("ddp", "fsdp1", "torch, megatron"),
    ],
)
def test_an_unknown_comparison_lists_the_known(mini, upstream, said):
    with pytest.raises((ValueError, ReaderkitError), match=said):
        find(mini, upstream)


@pytest.mark.parametrize(
    ("mini", "world_size", "steps", "said"),
    [
        ("ddp", 2, 3, "3 steps are too few"),
        ("ddp", 1, 12, "at least 2 ranks"),
        ("tensor_parallel", 3, 12, "4 attention heads are not divisible by 3"),
        ("collectives", 0, 12, "at least 2 ranks"),
        ("context_parallel", 3, 12, "not divisible by 6; --world 2 or 4 fits it"),
    ],
)
def test_a_world_that_does_not_fit_is_refused_at_once(mini, world_size, steps, said):
    with pytest.raises(ValueError, match=said):
        run.check(find(mini), world_size, steps)


WORLDS = range(2, 18)
CHUNKED = [c for c in comparisons() if c.mini == "pipeline" and c.chunks > 1]


def test_chunks_are_compared_where_differences_were_counted():
    for comparison, world_size in product(CHUNKED, (3, 5, 6, 8)):
        said = f"run on 2 or 4 ranks, not {world_size}: "
        with pytest.raises(ValueError, match=said):
            run.check(comparison, world_size, MIN_STEPS)


def test_dividing_by_the_number_of_microbatches_rounds_nothing():
    """Torch divides gradients by it, the mini the loss before the backward."""
    for world_size in WORLDS:
        microbatches = find("pipeline").at(world_size).microbatches
        assert microbatches >= max(4, world_size)
        assert microbatches & (microbatches - 1) == 0


@pytest.mark.further
def test_a_world_is_refused_or_its_work_can_be_shared():
    taken = []
    for comparison, world_size in product(comparisons(), WORLDS):
        try:
            comparison.check(world_size)
        except ValueError:
            refused = {f"{what}_parallel" for what in ("tensor", "sequence", "context")}
            refused |= {"recompute", "mixed_precision", "layout", "inference"}
            refused |= {"checkpoint"} if comparison.upstream == "megatron" else set()
            assert comparison.mini in refused or comparison in CHUNKED
            continue
        sized = comparison.at(world_size)
        taken.append((sized.name, world_size))
        assert sized.rows_per_rank % sized.microbatches == 0, taken[-1]
        if sized.mini == "pipeline":
            assert sized.config.num_layers % (world_size * sized.chunks) == 0, taken[-1]
        sizes = {**sized.sizes(world_size), "rank": 0}  # of a model that it builds
        for _, known in the_book().differences(sized.name):
            bound = known.at_most.evaluate(sizes)
            assert bound >= 0, taken[-1]
    assert {name for name, _ in taken} == {c.name for c in comparisons()}


def test_the_book_names_the_comparisons_there_are():
    named = {c.name: (c.mini, c.upstream) for c in the_book().comparisons.values()}
    assert named == {c.name: (c.mini, c.upstream) for c in comparisons()}


def test_a_reason_is_needed_where_waits_differ(pool2):
    lines, _ = judged(pool2, find("fsdp"), known=[])
    assert any("events of a step" in v.what for v in lines if v.state == "differ")
