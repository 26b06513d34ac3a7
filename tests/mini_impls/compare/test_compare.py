"""Whole comparisons, on ranks that stay alive; and faults that each must be seen."""

from dataclasses import replace

import pytest
import torch.distributed as dist

from mini_impls.compare import judge, run
from mini_impls.compare.known import COMPARISONS, find
from mini_impls.compare.places import Places, get_roots
from mini_impls.compare.watch import MIN_STEPS, _Watcher

TORCH_ONLY = [c for c in COMPARISONS if c.upstreams == ("pytorch",)]


def _watch(rank, mini, upstream, fault):
    comparison = find(mini, upstream)
    watcher = _Watcher(rank, comparison, Places(get_roots(None)))
    if fault is not None:
        fault(watcher.sides.mini)
    return watcher.run(MIN_STEPS)


def judged(pool, comparison, fault=None):
    results = pool.run(
        _watch, comparison.mini, comparison.upstream, fault, timeout_s=60
    )
    events = judge.rank_events(comparison, results)
    wires = judge.wires(results, "gloo")
    alone = run.one_process_losses(comparison, len(results), MIN_STEPS)
    return judge.verdicts(comparison, results, events, wires, alone), events


@pytest.mark.parametrize("comparison", TORCH_ONLY, ids=lambda c: c.name)
def test_a_mini_agrees_with_its_upstream(pool2, comparison):
    verdicts, events = judged(pool2, comparison)
    assert [v for v in verdicts if v.state == "differ"] == []
    assert all(rank.mini and rank.upstream for rank in events)


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
    verdicts, _ = judged(pool2, find("ddp", "torch"), fault)
    assert any(said in v.what for v in verdicts if v.state == "differ")


def test_a_known_mini_has_a_default_upstream():
    assert find("ddp").upstream == "torch"
    assert find("pp").mini == "pipeline"
    assert find("tp", "dtensor").mini == "tensor_parallel"


@pytest.mark.parametrize(
    ("mini", "upstream", "said"),
    [("nothing", None, "there are ddp"), ("ddp", "fsdp1", "torch, megatron")],
)
def test_an_unknown_comparison_lists_the_known(mini, upstream, said):
    with pytest.raises(ValueError, match=said):
        find(mini, upstream)


@pytest.mark.parametrize(
    ("mini", "world_size", "steps", "said"),
    [
        ("ddp", 2, 3, "3 steps are too few"),
        ("ddp", 1, 12, "at least 2 ranks"),
        ("tensor_parallel", 3, 12, "4 attention heads are not divisible by 3"),
        ("tensor_parallel", 4, 12, "2 query groups cannot be cut for 4 ranks"),
        ("pipeline", 3, 12, "4 layers cannot be cut into 3"),
    ],
)
def test_a_world_that_does_not_fit_is_refused_at_once(mini, world_size, steps, said):
    with pytest.raises(ValueError, match=said):
        run.check(find(mini), world_size, steps)


def test_names_are_what_mirrors_may_use():
    names = [c.name for c in COMPARISONS]
    assert len(set(names)) == len(names)
    assert all(name.isidentifier() and name == name.lower() for name in names)


def test_an_explanation_is_needed_where_waits_differ(pool2):
    bare = replace(find("fsdp"), explanations=())
    verdicts, _ = judged(pool2, bare)
    assert any("events of a step" in v.what for v in verdicts if v.state == "differ")
