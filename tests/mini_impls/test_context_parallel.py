"""Context parallelism: equal to one place, as much work on every rank, bytes as due."""

from dataclasses import replace
from types import SimpleNamespace

import pytest
import torch
import torch.distributed as dist
from hypothesis import given, settings
from hypothesis import strategies as st
from ranks import RankFailure

from mini_impls import context_parallel as cp
from mini_impls import context_parallel_model as cpm
from mini_impls import ring_attention as ra
from mini_impls.demos import context_parallel as demo
from mini_impls.model import GPTConfig, build_model, make_batch, reference_run
from mini_impls.traffic import CollectiveCounter
from readerkit.estimate.layout import Layout
from readerkit.estimate.shape import Shape
from readerkit.estimate.traffic_estimate import estimate_step_traffic

pytestmark = pytest.mark.sampled

WAYS = {
    "all-gather": cp.all_gather_attention,
    "regathering": cp.regathering_attention,
    "ulysses": cp.ulysses_attention,
    "ring": ra.ring_attention,
}
WIDTH = 5


def tensors(tokens, groups, heads, batch=2, dtype=torch.float64):
    """Return query, key, value and the gradient of the output, of all tokens."""
    random = torch.Generator().manual_seed(tokens + 10 * groups + heads)
    shapes = [(batch, groups, r, tokens, WIDTH) for r in (heads, 1, 1, heads)]
    return [torch.randn(s, generator=random, dtype=dtype) for s in shapes]


def in_one_place(made):
    """Return output and gradients of query, key, value."""
    *inputs, grad = made
    inputs = [each.clone().requires_grad_() for each in inputs]
    output = cp.attention(*inputs)
    output.backward(grad)
    return [output.detach(), *(each.grad for each in inputs)]


def on_ranks(rank, way, world_size, sizes):
    """Return this rank's part of the same, and what it sent forward and backward."""
    group = dist.new_group(range(world_size))
    if rank.rank >= world_size:
        return None
    *inputs, grad = (cp.shard(t, rank.rank, world_size) for t in tensors(*sizes))
    inputs = [each.clone().requires_grad_() for each in inputs]
    sent = [CollectiveCounter(), CollectiveCounter()]
    with sent[0]:
        output = WAYS[way](*inputs, group)
    with sent[1]:
        output.backward(grad)
    traffic = [each.payload_bytes() for each in sent]
    return [output.detach(), *(each.grad for each in inputs)], traffic


def parts(results, world_size):
    return [
        cp.unshard(each)
        for each in zip(*(r[0] for r in results[:world_size]), strict=True)
    ]


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize(
    ("world_size", "groups", "heads"),
    [(1, 2, 2), (2, 2, 3), (2, 1, 2), (3, 3, 1), (3, 1, 3), (4, 4, 1), (4, 2, 2)],
)
def test_equal_to_one_place_forward_and_backward(pool4, way, world_size, groups, heads):
    sizes = (2 * world_size * 3, groups, heads)
    results = pool4.run(on_ranks, way, world_size, sizes)
    expected = in_one_place(tensors(*sizes))
    for got, want in zip(parts(results, world_size), expected, strict=True):
        # fp64: the sums of blocks have another order than those of whole rows
        torch.testing.assert_close(got, want, rtol=0, atol=1e-12)


@settings(max_examples=12, deadline=None)
@given(
    way=st.sampled_from(sorted(WAYS)),
    world_size=st.integers(1, 4),
    chunk=st.integers(1, 4),
    batch=st.integers(1, 3),
    groups=st.integers(1, 3),
    heads=st.integers(1, 4),
)
def test_any_small_sizes_are_equal_to_one_place(
    pool4, way, world_size, chunk, batch, groups, heads
):
    if way == "ulysses" and (groups * heads) % world_size:
        heads *= world_size
    sizes = (2 * world_size * chunk, groups, heads, batch)
    results = pool4.run(on_ranks, way, world_size, sizes)
    expected = in_one_place(tensors(*sizes))
    for got, want in zip(parts(results, world_size), expected, strict=True):
        torch.testing.assert_close(got, want, rtol=0, atol=1e-12)


@pytest.mark.parametrize("world_size", [2, 3, 4])
def test_bytes_are_those_of_the_formula(pool4, world_size):
    """Keys and values of a rank, K bytes; queries of it, Q bytes."""
    w, groups, heads = world_size, world_size, 2
    sizes = (2 * w * 3, groups, heads)
    k = 2 * groups * 2 * 3 * WIDTH * 8
    q = heads * k
    due = {
        "all-gather": [{"all_gather": 2 * w * k}, {"reduce_scatter": 2 * w * k}],
        "regathering": [
            {"all_gather": 2 * w * k},
            {"all_gather": 2 * w * k, "reduce_scatter": 2 * w * k},
        ],
        "ulysses": [{"all_to_all": 2 * q + 2 * k}] * 2,
        "ring": [
            {"send": (w - 1) * 2 * k, "recv": (w - 1) * 2 * k},
            {"send": (2 * w - 1) * 2 * k, "recv": (2 * w - 1) * 2 * k},
        ],
    }
    for way, expected in due.items():
        for result in pool4.run(on_ranks, way, w, sizes)[:w]:
            assert [dict(each) for each in result[1]] == expected, way


@pytest.mark.parametrize("world_size", [2, 4])
def test_bytes_that_travel_are_those_of_the_estimate(pool4, world_size):
    """The estimate reckons in 2 bytes an element, these tensors have 8."""
    w, groups, heads = world_size, 4, 2
    sizes = (4 * w, groups, heads, 1)
    shape = Shape.parse(
        {"layers": 1, "hidden": groups * heads * WIDTH, "heads": groups * heads}
        | {"kv_heads": groups, "vocab": 64}
    )
    share = {op: w - 1 for op in ("all_gather", "reduce_scatter", "all_to_all")}
    kinds = {"all-gather": "regathering", "ulysses": "ulysses", "ring": "ring"}
    for kind, way in kinds.items():
        layout = Layout.parse(
            {"cp": w, "sequence": 4 * w, "cp_kind": kind, "zero": 0, "flash": True}
        )
        due = estimate_step_traffic(shape, layout)["cp in all"]
        for _, traffic in pool4.run(on_ranks, way, w, sizes)[:w]:
            sent = sum(
                payload * share.get(op, w) // w
                for phase in traffic
                for op, payload in phase.items()
                if op != "recv"
            )
            assert sent == 4 * due, kind


def test_few_key_heads_make_ulysses_send_copies_of_them(pool4):
    sizes = (8, 2, 2)  # 2 key heads on 4 ranks: each of 4 query heads takes its own
    q = 2 * 4 * 2 * WIDTH * 8
    result = pool4.run(on_ranks, "ulysses", 4, sizes)[0]
    assert [dict(each) for each in result[1]] == [{"all_to_all": 4 * q}] * 2


def kept(rank, way):
    """Return how many elements are saved for backward beyond queries, keys, values."""
    inputs = [cp.shard(t, rank.rank, 2).requires_grad_() for t in tensors(16, 2, 1)[:3]]
    own = {each.untyped_storage().data_ptr() for each in inputs}
    saved = {}

    def pack(tensor):
        saved[tensor.untyped_storage().data_ptr()] = tensor.numel()
        return tensor

    with torch.autograd.graph.saved_tensors_hooks(pack, lambda tensor: tensor):
        WAYS[way](*inputs, rank.group)
    return sum(n for place, n in saved.items() if place not in own)


def test_regathering_keeps_nothing_of_others(pool2):
    assert pool2.run(kept, "regathering") == [0, 0]
    assert min(pool2.run(kept, "all-gather")) >= 2 * 2 * 2 * 16 * WIDTH


def test_one_query_sees_no_later_token(pool2):
    """What a token finds does not change with what comes after it."""
    for way in WAYS:
        first, second = pool2.run(with_another_end, way)
        whole = cp.unshard([first[0], second[0]])
        other = cp.unshard([first[1], second[1]])
        assert torch.equal(whole[..., :5, :], other[..., :5, :])
        assert not torch.equal(whole[..., 5, :], other[..., 5, :])


def with_another_end(rank, way):
    outputs = []
    for end in (0.0, 1.0):
        query, key, value, _ = tensors(8, 2, 1)
        key[..., 5:, :] += end
        value[..., 5:, :] += end
        mine = (cp.shard(each, rank.rank, 2) for each in (query, key, value))
        outputs.append(WAYS[way](*mine, rank.group))
    return outputs


def with_large_scores(rank, way):
    query, key, value, _ = tensors(8, 2, 1)
    mine = (cp.shard(each, rank.rank, 2) for each in (1e4 * query, key, value))
    return WAYS[way](*mine, rank.group)


@pytest.mark.parametrize("way", WAYS)
def test_scores_may_be_past_the_end_of_the_exponential(pool2, way):
    query, key, value, _ = tensors(8, 2, 1)
    got = cp.unshard(pool2.run(with_large_scores, way))
    want = cp.attention(1e4 * query, key, value)
    torch.testing.assert_close(got, want, rtol=0, atol=1e-9)


# --- who has what ---


@pytest.mark.parametrize("world_size", [1, 2, 3, 4, 8])
def test_every_rank_has_as_many_blocks_and_each_meets_each_once(world_size):
    counts, met = set(), []
    for rank in range(world_size):
        mine = cp.chunks_of(rank, world_size)
        blocks = [
            (mine[i], cp.chunks_of(source, world_size)[j])
            for source in range(world_size)
            for i, j, _ in ra.pairs(rank, source, world_size)
        ]
        counts.add(len(blocks))
        met += blocks
    assert counts == {2 * world_size + 1}
    chunks = range(2 * world_size)
    assert sorted(met) == [(q, k) for q in chunks for k in range(q + 1)]


@pytest.mark.parametrize("world_size", [1, 2, 3, 4])
def test_shards_are_an_early_and_a_late_chunk_and_come_back(world_size):
    whole = torch.arange(4 * world_size).expand(2, -1)
    shards = [cp.shard(whole, r, world_size, dim=1) for r in range(world_size)]
    last = 4 * world_size - 1
    for rank, mine in enumerate(shards):
        low = 2 * rank
        assert mine[1].tolist() == [low, low + 1, last - low - 1, last - low]
        assert mine[0].equal(cp.positions_of(rank, world_size, 4 * world_size))
    assert torch.equal(cp.unshard(shards, dim=1), whole)


def test_tokens_that_do_not_fit_are_refused():
    with pytest.raises(ValueError, match="10 tokens are not divisible into 4 chunks"):
        cp.shard(torch.zeros(1, 1, 1, 10, 1), 0, 2)


def test_heads_that_do_not_fit_are_refused(pool2):
    with pytest.raises(RankFailure, match="3 heads are not divisible by 2 ranks"):
        pool2.run(on_ranks, "ulysses", 2, (8, 3, 1))


# --- the ring ---


def test_merging_is_attention_over_both_sets_of_keys():
    query, key, value, _ = tensors(6, 1, 1)
    scores = query @ key.mT
    halves = []
    for part, values in zip(scores.split(2, -1), value.split(2, -2), strict=True):
        logsumexp = part.logsumexp(-1, keepdim=True)
        halves.append(((part - logsumexp).exp() @ values, logsumexp))
    (output, logsumexp), *rest = halves
    for other in rest:
        output, logsumexp = ra.merge(output, logsumexp, *other)
    torch.testing.assert_close(output, scores.softmax(-1) @ value)
    torch.testing.assert_close(logsumexp, scores.logsumexp(-1, keepdim=True))


def test_merging_with_nothing_changes_nothing():
    output, logsumexp = torch.randn(1, 1, 1, 2, 3), torch.randn(1, 1, 1, 2, 1)
    nothing = torch.zeros_like(output), torch.full_like(logsumexp, -torch.inf)
    for merged in (
        ra.merge(output, logsumexp, *nothing),
        ra.merge(*nothing, output, logsumexp),
    ):
        torch.testing.assert_close(merged, (output, logsumexp))


def under_way(rank):
    """Return what happens in a ring, in order: sent, computed, waited for."""
    seen = []
    real = ra._pass_on, ra._wait, ra._scores
    ra._pass_on = lambda *args: seen.append("send") or real[0](*args)
    ra._wait = lambda works: (seen.append("wait") if works else None, real[1](works))
    ra._scores = lambda *args: seen.append("scores") or real[2](*args)
    try:
        *inputs, grad = (cp.shard(t, rank.rank, 4) for t in tensors(8, 1, 1))
        output = ra.ring_attention(*(t.requires_grad_() for t in inputs), rank.group)
        forward = [s for i, s in enumerate(seen) if seen[i - 1 : i] != [s]]
        seen.clear()
        output.backward(grad)
        return forward, [s for i, s in enumerate(seen) if seen[i - 1 : i] != [s]]
    finally:
        ra._pass_on, ra._wait, ra._scores = real


def test_keys_travel_while_blocks_are_computed(pool4):
    for forward, backward in pool4.run(under_way):
        assert forward == ["send", "scores", "wait"] * 3 + ["scores"]
        first, hop = ["send", "scores", "send", "wait"], ["send", "scores", "wait"]
        assert backward == first + 2 * [*hop, "send", "wait"] + [
            "scores",
            "wait",
            "send",
            "wait",
        ]


# --- a model ---

CONFIG = GPTConfig(
    vocab_size=32,
    max_sequence_length=24,
    num_layers=2,
    hidden_size=24,
    num_attention_heads=12,
    num_query_groups=6,
    ffn_hidden_size=48,
)
STEPS = 3


def train_on_ranks(rank, way, world_size, tied):
    group = dist.new_group(range(world_size))
    if rank.rank >= world_size:
        return None
    gpt = build_model(config_of(tied))
    cpm.context_parallel(gpt, WAYS[way], group)
    optimizer = torch.optim.AdamW(gpt.parameters(), 3e-3)
    batches = [make_batch(CONFIG, step=i, batch_size=4) for i in range(STEPS)]
    losses = cpm.train(gpt, optimizer, batches, group)
    grads = {name: p.grad for name, p in gpt.named_parameters()}
    return losses, dict(gpt.named_parameters()), grads


def config_of(tied):
    return GPTConfig(
        **{f: getattr(CONFIG, f) for f in CONFIG.__slots__ if f[:5] != "share"},
        share_embeddings_and_output_weights=tied,
    )


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize(("world_size", "tied"), [(2, False), (3, True), (4, True)])
def test_a_model_trains_as_in_one_process(pool4, way, world_size, tied):
    results = pool4.run(train_on_ranks, way, world_size, tied)[:world_size]
    alone = reference_run(config_of(tied), steps=STEPS, batch_size=4, chunks=1)
    names = dict(alone.model.named_parameters())
    for losses, params, grads in results:
        assert losses == pytest.approx(alone.losses, abs=1e-5)
        assert {type(loss) for loss in losses} == {float}
        assert set(params) == set(names)
        for name, param in names.items():
            torch.testing.assert_close(grads[name], param.grad, rtol=1e-3, atol=2e-6)
            torch.testing.assert_close(params[name], param, rtol=0, atol=2e-4)


def of_short_sequences(rank):
    gpt = build_model(CONFIG)
    cpm.context_parallel(gpt, cp.all_gather_attention, rank.group)
    tokens, labels = make_batch(CONFIG, step=0, batch_size=2)
    mine, _ = cpm.shard_batch((tokens[:, :8], labels[:, :8]), rank.group)
    return gpt(mine).detach()


def test_positions_are_those_in_a_sequence_that_is_shorter_than_the_longest(pool2):
    parts = pool2.run(of_short_sequences)
    tokens, _ = make_batch(CONFIG, step=0, batch_size=2)
    expected = build_model(CONFIG)(tokens[:, :8]).detach()
    torch.testing.assert_close(cp.unshard(parts, dim=1), expected)


def test_the_embedding_drops_what_that_of_the_model_drops():
    embedding = build_model(replace(CONFIG, hidden_dropout=0.5)).embedding
    alone = SimpleNamespace(rank=lambda: 0, size=lambda: 1)
    tokens, _ = make_batch(CONFIG, step=0, batch_size=2)
    made = []
    for each in (embedding, cpm.ContextParallelEmbedding(embedding, alone)):
        torch.manual_seed(1)
        made.append(each(tokens))
    assert torch.equal(*made) and (made[0] == 0).any()


def average_some(rank):
    kept, frozen = (
        torch.nn.Parameter(torch.zeros(2, 3)),
        torch.nn.Parameter(torch.zeros(2)),
    )
    kept.grad = torch.full((2, 3), float(rank.rank))
    with CollectiveCounter() as sent:
        cpm.average_gradients([frozen, kept], rank.group)
    return kept.grad, frozen.grad, dict(sent.payload_bytes())


def test_gradients_are_averaged_in_one_call(pool4):
    for kept, frozen, sent in pool4.run(average_some):
        assert kept.unique().tolist() == [1.5] and frozen is None
        assert sent == {"all_reduce": 24}


@pytest.mark.parametrize("world_size", [1, 2, 3, 4, 5, 6, 8])
def test_a_demonstration_has_a_model_that_any_ranks_can_share(world_size):
    config = demo.fitted(world_size)
    cpm.check_sizes(config, world_size)
    build_model(config)
    assert (config == GPTConfig()) == (world_size in (1, 2, 4))


@pytest.mark.parametrize(
    ("world_size", "said"),
    [
        (3, "max_sequence_length 32 is not divisible by 6"),
        (8, "num_attention_heads 4 is not divisible by 8"),
    ],
)
def test_sizes_that_do_not_fit_are_refused(world_size, said):
    with pytest.raises(ValueError, match=said):
        cpm.check_sizes(GPTConfig(), world_size)
    cpm.check_sizes(GPTConfig(), 4)
