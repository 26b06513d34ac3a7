"""What tells that a run is not well: a spike, a replica that is odd, a slow rank."""

from __future__ import annotations

import math
import time
from dataclasses import replace

import pytest
import torch
import torch.distributed as dist
from hypothesis import given
from hypothesis import strategies as st
from ranks import RankFailure
from torch import nn

from mini_impls.model import GPTConfig, build_model
from mini_impls.recover_checks import SpikeDetector, count_slow, split_by_majority

CONFIG = GPTConfig(hidden_size=16, ffn_hidden_size=32, num_layers=1)


# --- a result that is unexpectedly large ---


def test_a_spike_is_far_above_the_first_values():
    spikes = SpikeDetector(threshold=10.0, num_samples=3)
    asked = [0.0, -2.0, 0.5, 19.9, -20.0, 20.0, math.nan, math.inf, 3.0]
    told = [spikes.is_unexpectedly_large(torch.tensor(value)) for value in asked]
    assert told == [False] * 4 + [True, True, False, False, False]


def test_what_is_no_number_is_no_sample():
    spikes = SpikeDetector(threshold=2.0, num_samples=1)
    assert not spikes.is_unexpectedly_large(torch.tensor(math.inf))
    assert not spikes.is_unexpectedly_large(torch.tensor(1.0))
    assert spikes.is_unexpectedly_large(torch.tensor(2.0))


def test_a_hundred_values_are_looked_at_first_by_default():
    spikes = SpikeDetector(threshold=2.0)
    told = [spikes.is_unexpectedly_large(torch.tensor(1.0 + n)) for n in range(100)]
    assert not any(told)
    assert spikes.is_unexpectedly_large(torch.tensor(200.0))
    assert not spikes.is_unexpectedly_large(torch.tensor(199.0))


# --- who is odd ---


@given(st.lists(st.sampled_from([b"a", b"b", b"c"]), min_size=2, max_size=9))
def test_the_odd_ones_are_those_without_the_majority(digests):
    odd = split_by_majority("w", digests)
    assert sorted((*odd.majority, *odd.others)) == list(range(len(digests)))
    counts = {digest: digests.count(digest) for digest in digests}
    most = max(counts, key=counts.__getitem__)
    if 2 * counts[most] > len(digests):
        assert {digests[rank] for rank in odd.majority} == {most}
        assert most not in {digests[rank] for rank in odd.others}
    else:
        assert odd.majority == ()


def turn(model, name, bit):
    """Turn a bit of one element."""
    flat = dict(model.named_parameters())[name].detach().view(-1)
    flat.view(torch.int32)[-1] ^= 1 << bit


def check(rank, struck):
    """Return what is found, what is left after a repair, and what was sent."""
    from mini_impls.recover_checks import (
        check_param_hashes_across_dp_replicas,
        largest_difference_across_dp_replicas,
        repair,
    )
    from mini_impls.traffic import CollectiveCounter

    model = build_model(CONFIG)
    right = [param.detach().clone() for param in model.parameters()]
    for at, name, bit in struck:
        if at == rank.rank:
            turn(model, name, bit)
    apart = largest_difference_across_dp_replicas(model, rank.group)
    with CollectiveCounter() as sent:
        odd = check_param_hashes_across_dp_replicas(model, rank.group)
    with CollectiveCounter() as mending:
        repair(model, odd, rank.group)
    left = check_param_hashes_across_dp_replicas(model, rank.group)
    pairs = zip(model.parameters(), right, strict=True)
    is_right = all(torch.equal(a, b) for a, b in pairs)
    found = [(each.name, each.majority, each.others) for each in odd]
    return found, apart, left, is_right, sent.payload_bytes(), mending.counts()


NAMES = ["embedding.word_embeddings.weight", "output_layer.weight"]


def test_names_of_the_model():
    assert set(NAMES) <= dict(build_model(CONFIG).named_parameters()).keys()


@pytest.mark.parametrize(
    ("struck", "found"),
    [
        ((), []),
        (((2, NAMES[1], 0),), [(NAMES[1], (0, 1, 3), (2,))]),
        (
            ((0, NAMES[0], 31), (3, NAMES[1], 5)),
            [(NAMES[0], (1, 2, 3), (0,)), (NAMES[1], (0, 1, 2), (3,))],
        ),
    ],
)
def test_one_bit_on_one_of_four_ranks_is_found_and_mended(pool4, struck, found):
    for told, apart, left, is_right, sent, mending in pool4.run(check, struck):
        assert told == found
        assert (apart > 0) is bool(struck)
        assert left == []
        assert is_right
        assert sent == {
            "all_gather": 4 * 20 * len(list(build_model(CONFIG).parameters()))
        }
        assert mending == ({"broadcast": len(found)} if found else {})


def mend_three_of_four(rank):
    group = dist.new_group([0, 1, 3])
    if rank.rank == 2:
        return None
    part = replace(rank, rank=dist.get_group_rank(group, rank.rank), group=group)
    return check(part, ((2, NAMES[0], 3),))


def test_some_of_the_ranks_mend_by_themselves(pool4):
    answers = [told for told in pool4.run(mend_three_of_four) if told is not None]
    assert len(answers) == 3
    for told, _, left, is_right, *_ in answers:
        assert told == [(NAMES[0], (0, 1), (2,))] and left == [] and is_right


def measure_beside_a_nan(rank):
    from mini_impls.recover_checks import largest_difference_across_dp_replicas

    model = nn.Linear(2, 2, bias=False)
    if rank.rank == 3:
        nn.init.constant_(model.weight, math.nan)
    return largest_difference_across_dp_replicas(model, rank.group)


def test_a_replica_that_is_no_number_is_not_like_the_others(pool4):
    assert all(map(math.isnan, pool4.run(measure_beside_a_nan)))


def mend_what_lies_across(rank):
    """Return a transposed parameter after its repair."""
    from mini_impls.recover_checks import check_param_hashes_across_dp_replicas, repair

    model = nn.Module()
    model.turned = nn.Parameter(torch.arange(6.0).view(2, 3).t())
    if rank.rank == 2:
        with torch.no_grad():
            model.turned[0, 1] = 7.0
    repair(model, check_param_hashes_across_dp_replicas(model, rank.group), rank.group)
    return model.turned.tolist()


def test_a_parameter_is_mended_whatever_its_strides(pool4):
    whole = [[0.0, 3.0], [1.0, 4.0], [2.0, 5.0]]
    assert pool4.run(mend_what_lies_across) == [whole] * 4


def refuse_to_repair(rank):
    """Return what a repair of a parameter with a majority and one without sends."""
    from mini_impls.recover_checks import check_param_hashes_across_dp_replicas, repair
    from mini_impls.traffic import CollectiveCounter

    model = build_model(CONFIG)
    if rank.rank == 0:
        turn(model, NAMES[0], 3)
    if rank.rank < 2:
        turn(model, NAMES[1], 3)
    odd = check_param_hashes_across_dp_replicas(model, rank.group)
    with (
        CollectiveCounter() as sent,
        pytest.raises(
            ValueError, match=f"{NAMES[1]}: no value has more than half of 4"
        ),
    ):
        repair(model, odd, rank.group)
    left = check_param_hashes_across_dp_replicas(model, rank.group)
    return [each.name for each in odd], sent.counts(), left == odd


def test_where_one_parameter_has_no_majority_none_is_mended(pool4):
    assert pool4.run(refuse_to_repair) == [(NAMES, {}, True)] * 4


def test_two_ranks_cannot_say_who_is_right(pool2):
    with pytest.raises(RankFailure, match="no value has more than half of 2 ranks"):
        pool2.run(check, ((1, NAMES[0], 3),))


def find_bits(rank, places):
    """Return whether each turned bit of rank 1 is found, and by its name."""
    from mini_impls.recover_checks import check_param_hashes_across_dp_replicas

    told = []
    for name, at, bit in places:
        model = build_model(CONFIG)
        flat = dict(model.named_parameters())[name].detach().view(-1)
        if rank.rank == 1:
            flat.view(torch.int32)[at] ^= 1 << bit
        odd = check_param_hashes_across_dp_replicas(model, rank.group)
        told.append([each.name for each in odd] == [name])
    return told


def test_a_bit_is_found_wherever_it_turned(pool2):
    places = [(name, at, bit) for name in NAMES for at in (0, 7, -1) for bit in (0, 31)]
    assert pool2.run(find_bits, places) == [[True] * len(places)] * 2


def check_many_kinds(rank):
    """Return what is found of scalars, halves, transposed and empty parameters."""
    from mini_impls.recover_checks import (
        check_param_hashes_across_dp_replicas,
        hash_params,
    )

    model = nn.Module()
    model.scalar = nn.Parameter(torch.tensor(1.0))
    model.short = nn.Parameter(torch.ones(3, dtype=torch.bfloat16))
    model.turned = nn.Parameter(torch.arange(6.0).view(2, 3).t())
    model.empty = nn.Parameter(torch.empty(0))
    model.zero = nn.Parameter(torch.zeros(2))
    digests = hash_params(model)
    if rank.rank:
        with torch.no_grad():
            model.short[1] = 1.0078125  # the next one of its type
            model.zero[0] = -0.0
    odd = check_param_hashes_across_dp_replicas(model, rank.group)
    return tuple(digests.shape), [each.name for each in odd]


def test_a_digest_is_of_the_bits_whatever_the_type_and_the_strides(pool2):
    assert pool2.run(check_many_kinds) == [((5, 20), ["short", "zero"])] * 2


# --- a straggler ---


def report_once(rank, seconds):
    from mini_impls.recover_checks import StragglerDetector

    detector = StragglerDetector(rank.group)
    detector.elapsed_s = seconds + rank.rank
    return detector.report(rank.device).elapsed_s


def time_steps(rank):
    """Return the reports of four intervals: rank 0 is slow in all but the first."""
    from mini_impls.recover_checks import StragglerDetector

    detector, reports, walls = StragglerDetector(rank.group), [], []
    for interval in range(4):
        start = time.perf_counter()
        for _ in range(2):
            with detector.timed(rank.device):
                time.sleep(0.2 if rank.rank == 0 and interval else 0.02)
            torch.distributed.barrier(rank.group)
        walls.append(time.perf_counter() - start)
        reports.append(detector.report(rank.device))
    nothing = detector.report(rank.device).elapsed_s
    assert nothing == (0.0,) * rank.world_size, "an interval begins at zero"
    return [(r.elapsed_s, r.stragglers) for r in reports], walls


def test_own_work_tells_who_is_slow_and_a_whole_step_does_not(pool4):
    everyone = pool4.run(time_steps)
    reports = everyone[0][0]
    assert all(told == reports for told, _ in everyone), "all know the same"
    for elapsed, _ in reports[1:]:
        assert elapsed[0] > 0.4 > max(elapsed[1:])
    assert reports[0][0][0] < 0.4, "an interval begins at zero"
    assert [stragglers for _, stragglers in reports[2:]] == [(0,), (0,)]
    assert 0 not in reports[1][1], "once is not yet lasting"
    for _, walls in everyone:  # whoever waits is as late as whom it waits for
        assert min(walls[1:]) > 0.35


@pytest.mark.parametrize(
    ("times", "before", "slow"),
    [
        ([1.0, 1.0], {}, {}),
        ([1.0, 2.0], {}, {1: 1}),
        ([1.0, 1.5], {1: 4}, {}),
        ([1.0, 1.0, 1.6, 1.1], {2: 1, 3: 1}, {2: 2}),
        ([2.0, 1.0, 2.0, 1.0], {}, {0: 1, 2: 1}),
        ([2.0, 1.0, 2.0, 2.0], {0: 1}, {}),
        ([3.0, 1.0, 1.0, 1.0, 2.0], {0: 2}, {0: 3, 4: 1}),
        ([1.0], {}, {}),
    ],
)
def test_slow_is_above_the_median_of_the_others_and_in_a_row(times, before, slow):
    assert count_slow(times, before, factor=1.5) == slow


@given(st.lists(st.floats(0.01, 10.0), min_size=2, max_size=8), st.floats(1.0, 3.0))
def test_the_fastest_rank_is_no_straggler(times, factor):
    slow = count_slow(times, {}, factor=factor)
    assert times.index(min(times)) not in slow
    assert all(times[rank] > min(times) for rank in slow)
