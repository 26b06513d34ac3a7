"""Prompts read on some ranks and continued on others: the tokens of one process."""

import itertools
from functools import cache, partial
from types import SimpleNamespace

import pytest
import torch
import torch.distributed as dist
from hypothesis import given, settings
from hypothesis import strategies as st
from ranks import RankFailure

from mini_impls import inference, inference_apart, model
from mini_impls.demos.inference import generate_alone, get_handover_bytes
from mini_impls.inference import StaticInferenceContext
from mini_impls.inference_apart import (
    get_handovers,
    receive_cache,
    send_cache,
    serve,
    split_ranks,
)
from mini_impls.model import GPTConfig
from mini_impls.traffic import CollectiveCounter

pytestmark = pytest.mark.sampled

CONFIG = GPTConfig(num_query_groups=4, num_layers=3, max_sequence_length=24)
SHAPES = ((3, 7), (1, 12), (2, 1))
"""Sequences and tokens of the prompts, one after another."""
NEW = 9


def prompts():
    made = [
        model.make_batch(CONFIG, step=40 + i, batch_size=b)[0][:, :s]
        for i, (b, s) in enumerate(SHAPES)
    ]
    return [prompt.contiguous() for prompt in made]


@cache
def expected():
    alone = model.build_model(CONFIG, seed=3).double()
    each = [generate_alone(alone, prompt, NEW) for prompt in prompts()]
    return [all_[:, -NEW:] for all_ in each]


def served(rank, readers, num_tokens=NEW):
    """Serve on this rank; return its tokens, and bytes sent and due."""
    sides = split_ranks(rank.group, readers)
    gpt = model.build_model(CONFIG, seed=3).double()
    context = StaticInferenceContext(3, CONFIG.max_sequence_length)
    inference.tensor_parallel(gpt, context, sides.tp_group)
    # Who writes must not look at what is in a prompt.
    given = prompts() if sides.reads else [torch.full_like(p, -1) for p in prompts()]
    with CollectiveCounter() as counter:
        done = serve(gpt, context, given, num_tokens, sides)
    sent = counter.payload_bytes()
    due = {"send": 0, "recv": 0}
    for shape in SHAPES:
        for way, payload_bytes in get_handover_bytes(CONFIG, shape, sides).items():
            partners = len(sides.handovers(CONFIG.num_query_groups))
            # In fp64 here, where the formula is in fp32; a token has 8 bytes anyway.
            token_bytes = 8 * shape[0] * partners
            due[way] += 2 * (payload_bytes - token_bytes) + token_bytes
    measured = {way: sent.get(way, 0) for way in due}
    return sides.reads, done.tokens, measured, due


def check_tokens(pool, readers):
    """Hold what was written against one process, and bytes against the formula."""
    for reads, tokens, sent, due in pool.run(served, readers):
        assert sent == due
        assert len(tokens) == (0 if reads else len(SHAPES))
        for ours, alone in zip(tokens, expected(), strict=False):
            assert torch.equal(ours, alone)


@pytest.mark.parametrize(("world_size", "readers"), [(2, 1), (4, 2), (3, 1), (3, 2)])
def test_tokens_are_those_of_one_process(request, world_size, readers):
    check_tokens(request.getfixturevalue(f"pool{world_size}"), readers)


def test_one_new_token_is_the_readers(pool2):
    _, (_, tokens, *_) = pool2.run(served, 1, 1)
    for ours, alone in zip(tokens, expected(), strict=True):
        assert torch.equal(ours, alone[:, :1])


def seconds(rank):
    """Serve by a clock that each look, each send and each receive moves on by 1."""
    sides = split_ranks(rank.group, 1)
    gpt = model.build_model(CONFIG)
    context = StaticInferenceContext(3, CONFIG.max_sequence_length)
    inference.tensor_parallel(gpt, context, sides.tp_group)
    ticks, waits = itertools.count(), []

    def slowly(move):
        def run(*args):
            next(ticks)
            return move(*args)

        return run

    def waited(work):
        waits.append(work)
        work.wait()

    def counted(*args):
        for work, message in send_cache(*args):
            yield SimpleNamespace(wait=partial(waited, work)), message

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(inference_apart, "now", lambda: next(ticks))
        patch.setattr(inference_apart, "send_cache", slowly(counted))
        patch.setattr(inference_apart, "receive_cache", slowly(receive_cache))
        done = serve(gpt, context, prompts(), 1, sides)
    return done.busy_s, done.waited_s, len(waits)


def test_who_waits_for_a_cache_is_not_busy(pool2):
    """Of each prompt the model has one look's time; to send or receive is to wait."""
    rounds, messages = len(SHAPES), 1 + CONFIG.num_layers
    (*read, waits), (*written, _) = pool2.run(seconds)
    assert read == written == [rounds, 2 * rounds + 1]
    assert waits == rounds * messages


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 3), st.integers(0, 3), st.integers(1, 3))
def test_every_query_group_goes_once_to_each_rank_that_needs_it(p, w, factor):
    readers, writers = 2**p, 2**w
    groups = max(readers, writers) * factor
    needed = {
        (receiver, g)
        for receiver in range(writers)
        for g in range(groups)
        if g // (groups // writers) == receiver
    }
    found = [
        (each.receiver, g)
        for each in get_handovers(groups, readers, writers)
        for g in range(each.first, each.last)
    ]
    assert len(found) == len(set(found)) and set(found) == needed
    for each in get_handovers(groups, readers, writers):
        has = groups // readers
        assert each.sender == each.first // has == (each.last - 1) // has


@pytest.mark.parametrize(
    ("readers", "said"),
    [
        (0, "0 of 2 ranks read"),
        (2, "2 of 2 ranks read"),
    ],
)
def test_a_side_without_ranks_is_refused(pool2, readers, said):
    with pytest.raises(RankFailure, match=said):
        pool2.run(served, readers)


def test_groups_that_ranks_cannot_share_are_refused():
    with pytest.raises(ValueError, match="4 query groups are not divisible by 3 ranks"):
        get_handovers(4, 1, 3)


def test_what_does_not_fit_a_cache_is_refused_before_anything_is_sent(pool2):
    with pytest.raises(RankFailure, match="32 tokens do not fit a cache for 24"):
        pool2.run(served, 1, 25)


def split_half(rank):
    """Split the half that this rank is of; both halves do so at once."""
    halves = [dist.new_group([0, 1]), dist.new_group([2, 3])]
    apart = split_ranks(halves[rank.rank // 2], 1)
    return dist.get_process_group_ranks(apart.tp_group)


def test_a_part_of_the_world_is_split_into_its_own_ranks(pool4):
    assert pool4.run(split_half) == [[0], [1], [2], [3]]
