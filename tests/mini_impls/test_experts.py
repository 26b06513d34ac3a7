"""Experts: routing by hand and by ranks, load, dispatch both ways, gradients."""

import contextlib
import io
import re
from argparse import Namespace
from dataclasses import replace
from types import SimpleNamespace

import pytest
import torch
import torch.distributed as dist
from hypothesis import given, settings
from hypothesis import strategies as st
from ranks import RankFailure
from torch import nn

from mini_impls import expert_routing
from mini_impls.demos import experts as demo
from mini_impls.demos.formulas import get_expert_traffic
from mini_impls.expert_dispatch import permute, sort_chunks, unpermute
from mini_impls.expert_routing import (
    AuxLossAutoScaler,
    ExpertsConfig,
    TopKRouter,
    drop_tokens,
    expert_choice_routing,
    get_capacity,
    load_balancing_loss,
    topk_routing,
    update_expert_biases,
)
from mini_impls.experts import (
    Expert,
    build_moe_model,
    cut,
    expert_parallel,
    finish_gradients,
    make_groups,
    routers,
    split_params,
)
from mini_impls.model import compute_loss, make_batch, shard_batch, train_one_process
from mini_impls.traffic import CollectiveCounter
from readerkit.estimate.volumes import ep_volume_bytes
from tests.quick import quick_first

pytestmark = pytest.mark.sampled

SMALL = ExpertsConfig(
    vocab_size=16,
    max_sequence_length=8,
    hidden_size=16,
    num_attention_heads=2,
    num_query_groups=1,
    num_moe_experts=12,
    moe_ffn_hidden_size=24,
)
ROUTINGS = {
    "left alone": {},
    "one expert a token": {
        "moe_router_topk": 1,
        "moe_router_score_function": "sigmoid",
    },
    "three experts": {"moe_router_topk": 3},
    "aux loss": {"moe_aux_loss_coeff": 0.1},
    "aux loss of a sigmoid": {
        "moe_aux_loss_coeff": 0.1,
        "moe_router_score_function": "sigmoid",
    },
    "bias": {
        "moe_router_score_function": "sigmoid",
        "moe_router_bias_update_rate": 0.05,
    },
    "dropped": {"moe_expert_capacity_factor": 0.5, "moe_aux_loss_coeff": 0.1},
    "experts choose": {"experts_choose": True},
}
STEPS, ROWS = 3, 2


def logits_of(num_tokens, num_experts, seed=0):
    random = torch.Generator().manual_seed(seed)
    return torch.randn(num_tokens, num_experts, generator=random)


# --- routing ---


def by_hand(logits, k, function, bias=None):
    """Return weights and choices token by token."""
    weights = torch.zeros_like(logits)
    for token, row in enumerate(logits.tolist()):
        scores = row if function == "softmax" else torch.tensor(row).sigmoid().tolist()
        ranked = [
            s + (bias[e] if bias is not None else 0.0) for e, s in enumerate(scores)
        ]
        best = sorted(range(len(row)), key=lambda e: -ranked[e])[:k]
        chosen = torch.tensor([scores[e] for e in best])
        if function == "softmax":
            chosen = chosen.softmax(0)
        elif k > 1:
            chosen = chosen / chosen.sum()
        weights[token, best] = chosen
    return weights, weights > 0


shapes = st.tuples(st.integers(1, 12), st.integers(1, 6), st.integers(0, 10**6))


@settings(deadline=None, max_examples=60)
@given(shapes, st.data(), st.sampled_from(["softmax", "sigmoid"]), st.booleans())
def test_each_token_has_its_best_experts(shape, data, function, has_bias):
    num_tokens, num_experts, seed = shape
    k = data.draw(st.integers(1, num_experts))
    logits = logits_of(num_tokens, num_experts, seed)
    bias = logits_of(1, num_experts, seed + 1)[0] if has_bias else None
    if function == "softmax":
        bias = None
    weights, chosen = topk_routing(logits, k, function, bias)
    by_hand_weights, by_hand_chosen = by_hand(logits, k, function, bias)
    torch.testing.assert_close(weights, by_hand_weights, atol=1e-6, rtol=1e-5)
    assert torch.equal(chosen, by_hand_chosen)


def test_a_bias_chooses_and_weighs_nothing():
    logits = torch.tensor([[2.0, 1.0, 0.0]])
    bias = torch.tensor([-1.0, 0.0, 0.3])
    weights, chosen = topk_routing(logits, 2, "sigmoid", bias)
    scores = logits.sigmoid()
    assert chosen.tolist() == [[False, True, True]]
    expected = scores[0, 1] / (scores[0, 1] + scores[0, 2])
    torch.testing.assert_close(weights[0, 1], expected)


def test_scores_that_are_all_zero_make_weights_of_zero():
    weights, chosen = topk_routing(torch.full((1, 3), -200.0), 2, "sigmoid")
    assert weights.tolist() == [[0.0] * 3] and chosen.sum() == 2


def test_the_loss_of_16_bits_is_made_in_32(monkeypatch):
    seen = []

    def noted(scores, *args):
        seen.append(scores.dtype)
        return load_balancing_loss(scores, *args)

    monkeypatch.setattr(expert_routing, "load_balancing_loss", noted)
    router = TopKRouter(replace(SMALL, moe_aux_loss_coeff=1.0)).bfloat16()
    router(logits_of(4, SMALL.hidden_size).bfloat16())
    assert seen == [torch.float32]


def test_one_expert_of_a_sigmoid_keeps_its_score():
    logits = logits_of(5, 4).requires_grad_()
    weights, chosen = topk_routing(logits, 1, "sigmoid")
    torch.testing.assert_close(weights[chosen], logits.sigmoid().max(1).values)
    weights.sum().backward()
    assert (logits.grad[chosen] > 0).all()


@settings(deadline=None, max_examples=60)
@given(shapes, st.data(), st.floats(0.1, 2.0))
def test_an_expert_keeps_what_weighs_most(shape, data, factor):
    num_tokens, num_experts, seed = shape
    k = data.draw(st.integers(1, num_experts))
    routing = topk_routing(logits_of(num_tokens, num_experts, seed), k, "sigmoid")
    weights, chosen = drop_tokens(routing, k, factor)
    capacity = get_capacity(num_tokens * k, num_experts, factor)
    for expert in range(num_experts):
        wanted = routing[1][:, expert].nonzero().flatten().tolist()
        wanted.sort(key=lambda token: -routing[0][token, expert].item())
        kept = chosen[:, expert].nonzero().flatten().tolist()
        assert set(kept) == set(wanted[:capacity])
    assert torch.equal(weights, routing[0] * chosen)


@pytest.mark.parametrize(
    ("copies", "experts", "factor", "expected"),
    [
        (64, 4, 1.0, 16),
        (64, 4, 1.25, 20),
        (10, 4, 1.0, 3),
        (9, 4, 2.0, 5),  # 4.5, and not twice the 3 that a share alone would be
        (3, 8, 1.0, 1),
    ],
)
def test_capacity_is_rounded_up_once(copies, experts, factor, expected):
    assert get_capacity(copies, experts, factor) == expected


@settings(deadline=None, max_examples=40)
@given(shapes, st.data())
def test_experts_that_choose_take_as_many_each(shape, data):
    num_tokens, num_experts, seed = shape
    k = data.draw(st.integers(1, num_experts))
    logits = logits_of(num_tokens, num_experts, seed)
    weights, chosen = expert_choice_routing(logits, k, 1.0)
    capacity = min(get_capacity(num_tokens * k, num_experts, 1.0), num_tokens)
    assert chosen.sum(0).tolist() == [capacity] * num_experts
    scores = logits.softmax(-1)
    for expert in range(num_experts):
        best = scores[:, expert].argsort(descending=True)[:capacity]
        assert chosen[best, expert].all()
    torch.testing.assert_close(weights, scores * chosen)
    assert expert_choice_routing(logits, k, 99.0)[1].all()  # no more than there are


# --- load ---


def test_an_even_load_costs_the_coefficient():
    scores = torch.full((12, 4), 0.25)
    even = torch.full((4,), 12 * 2 / 4)
    assert load_balancing_loss(scores, even, 2, 0.5).item() == pytest.approx(0.5)
    uneven = torch.tensor([12.0, 12.0, 0.0, 0.0])
    skewed = torch.tensor([0.5, 0.5, 0.0, 0.0]).expand(12, 4)
    assert load_balancing_loss(skewed, uneven, 2, 0.5).item() == pytest.approx(1.0)


def test_a_loss_that_rides_is_a_loss_that_is_added():
    x = torch.randn(5, 3, generator=torch.Generator().manual_seed(0))
    grads = []
    for rides in (True, False):
        weight = torch.ones(3, requires_grad=True)
        output, aux = x * weight, (weight**3).sum()
        if rides:
            AuxLossAutoScaler.apply(output, aux, 0.25).square().mean().backward()
        else:
            (output.square().mean() + 0.25 * aux).backward()
        grads.append(weight.grad)
    torch.testing.assert_close(grads[0], grads[1])


def route(config, training=True, seed=0):
    router = TopKRouter(config)
    router.train(training)
    with torch.no_grad():
        router.weight.copy_(logits_of(*router.weight.shape, seed))
    tokens = logits_of(40, config.hidden_size, seed + 1).requires_grad_()
    return router, tokens, router(tokens)


def test_the_loss_reaches_the_router_and_pulls_the_load_down():
    config = replace(SMALL, moe_aux_loss_coeff=1.0)
    router, tokens, (weights, chosen) = route(config)
    (weights.sum() * 0).backward()
    with torch.no_grad():
        before = chosen.sum(0).float().std()
        logits = tokens @ (router.weight - 3 * router.weight.grad).T
        after = topk_routing(logits, 2, "softmax")[1].sum(0).float().std()
    assert router.weight.grad.abs().sum() > 0 and after < before


@pytest.mark.parametrize("function", ["softmax", "sigmoid"])
def test_the_loss_is_of_scores_that_add_up_to_one(function):
    """Of each token, over all experts and not over the chosen ones."""
    config = replace(SMALL, moe_aux_loss_coeff=1.0, moe_router_score_function=function)
    router, tokens, (weights, chosen) = route(config)
    (weights.sum() * 0).backward()
    weight = router.weight.detach().requires_grad_()
    logits = tokens.detach() @ weight.T
    scores = logits.exp() if function == "softmax" else logits.sigmoid()
    scores = scores / scores.sum(-1, keepdim=True)
    load_balancing_loss(scores, chosen.sum(0), 2, 1.0).backward()
    torch.testing.assert_close(router.weight.grad, weight.grad)


def test_dropped_tokens_count_in_the_loss():
    """Or an expert that drops most of what it is sent would seem to be even."""
    grads = []
    for factor in (None, 0.25):
        config = replace(
            SMALL, moe_aux_loss_coeff=1.0, moe_expert_capacity_factor=factor
        )
        router, _, (weights, _) = route(config)
        (weights.sum() * 0).backward()
        grads.append(router.weight.grad)
    torch.testing.assert_close(grads[0], grads[1])


@pytest.mark.parametrize("quiet", ["evaluation", "no_grad"])
def test_an_evaluation_counts_nothing(quiet):
    config = replace(SMALL, **ROUTINGS["bias"])
    with torch.no_grad() if quiet == "no_grad" else contextlib.nullcontext():
        router, _, _ = route(config, training=quiet == "no_grad")
    assert router.local_tokens_per_expert.sum() == 0
    router, _, (_, chosen) = route(config)
    assert router.local_tokens_per_expert.tolist() == chosen.sum(0).tolist()


def shift_biases(rank, first=6.0):
    config = replace(SMALL, num_moe_experts=3, **ROUTINGS["bias"])
    both = [TopKRouter(config) for _ in range(2)]
    # Of each rank other counts: only their sums say who has too many.
    both[0].local_tokens_per_expert += torch.tensor([first * rank.rank, 3.0, 3.0])
    both[1].local_tokens_per_expert += torch.tensor([2.0, 2.0, 2.0])
    update_expert_biases([*both, TopKRouter(SMALL)], rank.group)
    assert all(router.local_tokens_per_expert.sum() == 0 for router in both)
    return [router.expert_bias.tolist() for router in both]


def test_a_bias_follows_the_load_of_all_ranks(pool2):
    for biases in pool2.run(shift_biases):
        assert biases == [[0.0, 0.0, 0.0], [0.0, 0.0, 0.0]]


def test_a_bias_rises_where_tokens_are_few():
    router = TopKRouter(replace(SMALL, num_moe_experts=3, **ROUTINGS["bias"]))
    router.local_tokens_per_expert += torch.tensor([1.0, 9.0, 5.0])
    update_expert_biases([router], None)
    assert router.expert_bias.tolist() == pytest.approx([0.05, -0.05, 0.0])


def test_biases_even_the_load_out():
    config = replace(
        SMALL, **{**ROUTINGS["bias"], "moe_router_bias_update_rate": 0.003}
    )
    router = TopKRouter(config)
    with torch.no_grad():
        router.weight.copy_(logits_of(*router.weight.shape) / 4)
    tokens = logits_of(400, config.hidden_size, 1) + 0.3  # some experts are favoured
    _, chosen = router(tokens)
    before = chosen.sum(0).float().std()
    for _ in range(150):
        update_expert_biases([router], None)
        _, chosen = router(tokens)
    assert chosen.sum(0).float().std() < before / 3


# --- dispatch ---


@settings(deadline=None, max_examples=40)
@given(shapes)
def test_copies_lie_by_expert_and_add_up_by_token(shape):
    num_tokens, num_experts, seed = shape
    chosen = logits_of(num_tokens, num_experts, seed) > 0
    token_of = permute(chosen)
    expected = [
        t for e in range(num_experts) for t in range(num_tokens) if chosen[t, e]
    ]
    assert token_of.tolist() == expected
    copies = logits_of(len(expected), 3, seed + 1)
    got = unpermute(copies, token_of, num_tokens)
    by_token = torch.zeros(num_tokens, 3)
    for copy, token in zip(copies, expected, strict=True):
        by_token[token] += copy
    torch.testing.assert_close(got, by_token)
    assert unpermute(copies.double(), token_of, num_tokens).dtype is torch.float64


@settings(deadline=None, max_examples=40)
@given(
    st.lists(
        st.lists(st.integers(0, 3), min_size=2, max_size=2), min_size=1, max_size=5
    )
)
def test_chunks_are_sorted_by_expert_and_back(sizes):
    named = [
        (sender, expert, row)
        for sender, row_counts in enumerate(sizes)
        for expert, count in enumerate(row_counts)
        for row in range(count)
    ]
    rows = torch.tensor(named).view(-1, 3)
    by_expert = sort_chunks(rows, torch.tensor(sizes), to_experts=True)
    assert by_expert.tolist() == [
        list(name) for name in sorted(named, key=lambda n: (n[1], n[0], n[2]))
    ]
    back = sort_chunks(by_expert, torch.tensor(sizes), to_experts=False)
    assert torch.equal(back, rows)


# --- one process and many ranks ---


def train_ranks(rank, config, ep, etp, dispatcher):
    """Return how far weights, gradients and losses are from one process's."""
    w = rank.world_size
    groups = make_groups(rank.group, ep=ep, etp=etp)
    gpt = build_moe_model(config)
    expert_parallel(gpt, groups, dispatcher)
    held = sum(p.numel() for p in list(split_params(gpt))[1])
    alone = build_moe_model(config, microbatches=w)
    optimizer = torch.optim.SGD(gpt.parameters(), 0.5)
    alone_optimizer = torch.optim.SGD(alone.parameters(), 0.5)
    alone_optimizer.register_step_pre_hook(
        lambda *_: update_expert_biases(routers(alone), None)
    )
    batches = [make_batch(config, step=i, batch_size=ROWS * w) for i in range(STEPS)]
    losses = []
    for batch in batches:
        tokens, labels = shard_batch(batch, rank=rank.rank, world_size=w)
        optimizer.zero_grad()
        loss = compute_loss(gpt(tokens), labels)
        loss.backward()
        finish_gradients(gpt, groups)
        optimizer.step()
        mean = loss.detach()
        dist.all_reduce(mean, group=rank.group)
        losses.append(mean.item() / w)
    expected = train_one_process(alone, alone_optimizer, batches, chunks=w)
    whole = {**dict(alone.named_parameters()), **dict(alone.named_buffers())}
    apart = {"loss": max(abs(a - b) for a, b in zip(losses, expected, strict=True))}
    for name, ours in (*gpt.named_parameters(), *gpt.named_buffers()):
        theirs = whole[name]
        for got, want, what in (
            (ours, theirs, "value"),
            (ours.grad, theirs.grad, "grad"),
        ):
            if want is None:
                assert got is None
                continue
            if got.shape != want.shape:
                dim = 0 if "fc1" in name else 1
                want = want.chunk(etp, dim)[groups.etp.rank()]
            key = f"{what} of {name.split('.')[-2]}"
            apart[key] = max(apart.get(key, 0.0), (got - want).abs().max().item())
    return apart, held


LAYOUTS = [(2, 2, 1), (2, 1, 2), (3, 3, 1), (3, 1, 3), (4, 2, 2), (4, 4, 1), (4, 2, 1)]
WAYS = [
    *((layout, "left alone") for layout in LAYOUTS),
    *(((2, 2, 1), name) for name in list(ROUTINGS)[1:]),
    *quick_first(((4, 2, 2), name) for name in list(ROUTINGS)[1:]),
]


@pytest.mark.parametrize("dispatcher", ["alltoall", "allgather"])
@pytest.mark.parametrize(("layout", "routing"), WAYS)
def test_ranks_train_what_one_process_trains(request, layout, routing, dispatcher):
    world_size, ep, etp = layout
    pool = request.getfixturevalue(f"pool{world_size}")
    config = replace(SMALL, **ROUTINGS[routing])
    whole = build_moe_model(config)
    full = sum(p.numel() for p in list(split_params(whole))[1])
    for apart, held in pool.run(train_ranks, config, ep, etp, dispatcher):
        assert max(apart.values()) < 2e-6, apart
        assert held * ep * etp == full


def test_two_ranks_train_what_one_process_trains(pool2):
    for apart, _ in pool2.run(train_ranks, SMALL, 2, 1, "alltoall"):
        assert max(apart.values()) < 2e-6, apart


@settings(deadline=None, max_examples=8)
@given(data=st.data())
def test_random_experts_train_as_one_process(pool2, data):
    score = data.draw(st.sampled_from(["softmax", "sigmoid"]))
    k = data.draw(st.integers(1 if score == "sigmoid" else 2, 2))
    config = replace(
        SMALL,
        num_moe_experts=data.draw(st.sampled_from([2, 4, 6])),
        moe_router_topk=k,
        moe_ffn_hidden_size=data.draw(st.sampled_from([2, 10])),
        moe_router_score_function=score,
        moe_expert_capacity_factor=data.draw(st.sampled_from([None, 0.3, 1.0])),
        moe_aux_loss_coeff=data.draw(st.sampled_from([0.0, 0.2])),
        share_embeddings_and_output_weights=data.draw(st.booleans()),
    )
    ep = data.draw(st.sampled_from([1, 2]))
    etp = data.draw(st.sampled_from([1, 2])) if ep == 1 else 1
    dispatcher = data.draw(st.sampled_from(["alltoall", "allgather"]))
    for apart, _ in pool2.run(train_ranks, config, ep, etp, dispatcher):
        assert max(apart.values()) < 5e-6, apart


def one_expert_gets_all(rank, dispatcher):
    """Route every token to expert 0; return which experts have which gradients."""
    one = {**ROUTINGS["bias"], "moe_router_topk": 1, "num_layers": 1}
    config = replace(SMALL, num_moe_experts=4, **one)
    groups = make_groups(rank.group, ep=2, etp=1)
    gpt = build_moe_model(config)
    for router in routers(gpt):
        router.expert_bias[0] = 10.0
    expert_parallel(gpt, groups, dispatcher)
    tokens, labels = make_batch(config, step=rank.rank, batch_size=2)
    compute_loss(gpt(tokens), labels).backward()
    finish_gradients(gpt, groups)
    experts = [m for m in gpt.modules() if isinstance(m, Expert)]
    return [float(e.linear_fc1.weight.grad.abs().sum()) for e in experts]


@pytest.mark.parametrize("dispatcher", ["alltoall", "allgather"])
def test_experts_without_tokens_have_gradients_of_zeros(pool2, dispatcher):
    first, second = pool2.run(one_expert_gets_all, dispatcher)
    assert first[0] > 0 and [*first[1:], *second] == [0.0, 0.0, 0.0]


# --- bytes ---


def sent_in_layers(rank, config, ep, etp, dispatcher):
    groups = make_groups(rank.group, ep=ep, etp=etp)
    gpt = build_moe_model(config)
    expert_parallel(gpt, groups, dispatcher)
    tokens, labels = make_batch(config, step=rank.rank, batch_size=ROWS)
    with CollectiveCounter() as sent:
        compute_loss(gpt(tokens), labels).backward()
    with CollectiveCounter() as finished:
        finish_gradients(gpt, groups)
    due = get_expert_traffic(config, tokens.numel(), groups, dispatcher)
    numel = [sum(p.numel() for p in params) for params in split_params(gpt)]
    return sent.payload_bytes(), sent.counts(), due, finished.payload_bytes(), numel


def test_an_even_all_to_all_sends_the_bytes_of_the_estimate(pool2):
    """Where experts choose all loads are alike, as the estimate takes them to be."""
    config = replace(SMALL, experts_choose=True, num_moe_experts=4)
    for sent, counts, due, _, _ in pool2.run(sent_in_layers, config, 2, 1, "alltoall"):
        tokens = ROWS * config.max_sequence_length
        estimate = ep_volume_bytes(
            expert_parallel=2,
            moe_layers=config.num_layers,
            experts_per_token=config.moe_router_topk,
            sequence=config.max_sequence_length,
            micro_batch=ROWS,
            hidden=config.hidden_size,
            element_bytes=4,
        )
        copies = config.num_layers * config.moe_router_topk * tokens
        weights = 2 * 4 * copies
        # Of what is exchanged a rank keeps its own half, and the weights go besides.
        assert (sent["all_to_all"] - weights) / 2 == estimate
        assert counts["all_to_all"] == 6 * config.num_layers
        assert sent == due


@pytest.mark.parametrize("layout", [(2, 2, 1), (4, 2, 2)])
def test_an_all_gather_sends_the_bytes_of_the_formula(request, layout):
    world_size, ep, etp = layout
    pool = request.getfixturevalue(f"pool{world_size}")
    results = pool.run(sent_in_layers, SMALL, ep, etp, "allgather")
    every = SMALL.num_layers * world_size * ROWS * SMALL.max_sequence_length
    hidden, experts = SMALL.hidden_size, SMALL.num_moe_experts
    for sent, counts, due, _, _ in results:
        assert (
            sent
            == due
            == {
                "all_gather": every * (2 * 4 * hidden + 4 * experts + experts),
                "reduce_scatter": every * (2 * 4 * hidden + 4 * experts),
            }
        )
        assert counts == {"all_gather": 8, "reduce_scatter": 6}


def test_gradients_of_experts_travel_among_those_that_share_them(pool4):
    for ep, shares in ((4, False), (2, True)):
        for *_, finished, (dense, experts) in pool4.run(
            sent_in_layers, SMALL, ep, 1, "alltoall"
        ):
            assert finished == {"all_reduce": 4 * (dense + (experts if shares else 0))}


def finish_with_loads(rank, trained):
    """Return the biases behind loads that are even over all ranks alone.

    Then the counts that are left, and the gradients of the experts here, added up.
    """
    config = replace(SMALL, num_layers=1, num_moe_experts=4, **ROUTINGS["bias"])
    groups = make_groups(rank.group, ep=2, etp=1)
    gpt = build_moe_model(config)
    expert_parallel(gpt, groups, "alltoall")
    for name, param in gpt.named_parameters():
        param.requires_grad_(trained in name)
    tokens, labels = make_batch(config, step=rank.rank, batch_size=ROWS)
    compute_loss(gpt(tokens), labels).backward()
    (router,) = routers(gpt)
    router.local_tokens_per_expert.copy_(torch.tensor([4.0 * rank.rank, 6, 6, 6]))
    finish_gradients(gpt, groups)
    grads = [p.grad.sum().item() for n, p in gpt.named_parameters() if ".experts." in n]
    counts = router.local_tokens_per_expert.tolist()
    return router.expert_bias.tolist(), counts, grads


@pytest.mark.parametrize("trained", ["", ".experts."], ids=["all", "experts alone"])
def test_biases_and_sums_are_those_of_every_set_of_experts(pool4, trained):
    *biases_and_counts, grads = zip(*pool4.run(finish_with_loads, trained), strict=True)
    assert biases_and_counts == [([0.0] * 4,) * 4] * 2
    assert grads[:2] == grads[2:]  # of ranks 0 and 2, 1 and 3, which hold the same


# --- groups, refusals, the demonstration ---


def ranks_of_groups(rank, ep, etp):
    groups = make_groups(rank.group, ep=ep, etp=etp)
    names = ("ep", "etp", "etp_ep", "edp")
    return [dist.get_process_group_ranks(getattr(groups, name)) for name in names]


@pytest.mark.parametrize(
    ("ep", "etp", "expected"),
    [
        (2, 2, [[1, 3], [0, 1], [0, 1, 2, 3], [1]]),
        (2, 1, [[0, 1], [1], [0, 1], [1, 3]]),
        (1, 2, [[1], [0, 1], [0, 1], [1, 3]]),
        (4, 1, [[0, 1, 2, 3], [1], [0, 1, 2, 3], [1]]),
    ],
)
def test_neighbours_share_experts(pool4, ep, etp, expected):
    assert pool4.run(ranks_of_groups, ep, etp)[1] == expected


def test_what_does_not_fit_is_refused(pool2):
    with pytest.raises(RankFailure, match="2 ranks are not divisible by ep 2 x etp 2"):
        pool2.run(ranks_of_groups, 2, 2)
    odd = replace(SMALL, num_moe_experts=3)
    with pytest.raises(RankFailure, match="3 experts are not divisible by 2 ranks"):
        pool2.run(sent_in_layers, odd, 2, 1, "alltoall")
    odd = replace(SMALL, moe_ffn_hidden_size=5)
    with pytest.raises(RankFailure, match="5 rows or columns are not divisible by 2"):
        pool2.run(sent_in_layers, odd, 1, 2, "alltoall")


@pytest.mark.parametrize("k", [0, 13])
def test_a_token_goes_to_some_of_the_experts(k):
    with pytest.raises(ValueError, match=f"1 to 12 experts, not {k}"):
        replace(SMALL, moe_router_topk=k)


def test_a_bias_is_for_scores_of_a_sigmoid():
    with pytest.raises(ValueError, match="not of a softmax"):
        replace(SMALL, moe_router_bias_update_rate=0.1)


def test_a_softmax_over_one_expert_is_refused():
    with pytest.raises(ValueError, match="a softmax over 1 expert is 1"):
        replace(SMALL, moe_router_topk=1)
    replace(SMALL, moe_router_topk=1, moe_router_score_function="sigmoid")
    replace(SMALL, moe_router_topk=1, experts_choose=True)


def run_demo(rank, steps, etp):
    with contextlib.redirect_stdout(io.StringIO()) as out:
        demo.demo(rank, Namespace(steps=steps, etp=etp))
    return out.getvalue()


@pytest.mark.further
def test_the_demo_shows_load_and_bytes_of_each_routing(pool2):
    shown = pool2.run(run_demo, 3, 1)[0]
    for way in demo.WAYS:
        assert f"--- {way}; all-to-all\n" in shown
    assert shown.count("largest difference from one process: loss") == 6
    assert (
        "fullest expert has 1.00 of an even share" in shown.split("experts choose")[1]
    )
    sent = re.findall(r"sent in its layers: \w+ (\S+) \(formula (\S+)\)", shown)
    assert len(sent) == shown.count("sent in its layers") == 12
    assert all(payload == due for payload, due in sent)
    for part in shown.split("--- ")[1:]:
        apart = float(re.search(r"process: loss (\S+)", part)[1])
        is_elsewhere = "tokens go to other experts than in one process" in part
        assert is_elsewhere or (
            apart < 1e-5 and "each token went to the experts" in part
        )


def test_slices_of_experts_send_what_the_routing_says(pool2):
    shown = pool2.run(run_demo, 1, 2)[0]
    sent = re.findall(r"sent in its layers: (\w+) (\S+) \(formula (\S+)\)", shown)
    assert {op for op, *_ in sent} == {"all_gather", "reduce_scatter"}
    assert len(sent) == 12 and all(payload == due for _, payload, due in sent)


def run_beside_other_routers(rank):
    """Train beside one process whose routers begin a little elsewhere."""
    build, groups = demo.build_moe_model, make_groups(rank.group, ep=2, etp=1)

    def nudged(config, *, microbatches=1):
        gpt = build(config, microbatches=microbatches)
        for router in routers(gpt) if microbatches > 1 else ():
            with torch.no_grad():
                router.weight[0] *= 1.2
        return gpt

    demo.build_moe_model = nudged
    try:
        trained = demo.train(rank, 2, groups, "nudged", "alltoall", ExpertsConfig())
        with contextlib.redirect_stdout(io.StringIO()) as out:
            demo.say(rank, trained)
    finally:
        demo.build_moe_model = build
    return out.getvalue()


def test_the_demo_says_where_another_expert_is_why_losses_part(pool2):
    shown = pool2.run(run_beside_other_routers)[0]
    found = re.search(
        r"step (\d) is the first in which tokens go to other experts than in one "
        r"process, (\d+) of its choices: there the nearest is (\S+) above",
        shown,
    )
    assert found and int(found[1]) == 0 and int(found[2]) > 0
    assert 0 <= float(found[3]) < 0.1, "the nearest of them are near"
    assert "each token went to the experts" not in shown


def say_load_of_three(rank):
    config = ExpertsConfig(num_moe_experts=3, experts_choose=True)
    _, chosen = expert_choice_routing(logits_of(4, 3, seed=rank.rank), 2, 1.0)
    with contextlib.redirect_stdout(io.StringIO()) as out:
        demo.say_load(rank, config, chosen.unsqueeze(0))
    return out.getvalue(), int((~chosen.any(1)).sum())


def test_experts_whose_share_is_rounded_up_take_more_and_drop_nothing(pool2):
    told = pool2.run(say_load_of_three)
    shown, unseen = told[0][0], sum(count for _, count in told)
    assert "experts took 18 copies in a layer, 2 a token are 16" in shown
    assert f"at most {unseen} of 8 tokens had none" in shown
    assert "dropped" not in shown and "-" not in shown


@pytest.mark.parametrize("frozen", ["layers.0.", ".experts."])
def test_what_is_frozen_has_no_gradient_to_finish(frozen):
    gpt = build_moe_model(SMALL)
    for name, param in gpt.named_parameters():
        param.requires_grad_(frozen not in name)
    tokens, labels = make_batch(SMALL, step=0, batch_size=2)
    compute_loss(gpt(tokens), labels).backward()
    before = [None if p.grad is None else p.grad.clone() for p in gpt.parameters()]
    alone = SimpleNamespace(size=lambda: 1)
    finish_gradients(gpt, SimpleNamespace(all=alone, edp=alone))
    for param, grad in zip(gpt.parameters(), before, strict=True):
        assert (param.grad is None) == (grad is None) != param.requires_grad
        assert grad is None or torch.equal(param.grad, grad)


def test_parameters_of_experts_are_told_from_the_rest():
    gpt = build_moe_model(SMALL)
    dense, experts = split_params(gpt)
    assert len(experts) == SMALL.num_layers * 12 * 2
    assert not {*map(id, dense)} & {*map(id, experts)}
    assert isinstance(gpt, nn.Module) and len(dense) + len(experts) == len(
        list(gpt.parameters())
    )


def test_a_slice_of_what_is_frozen_is_frozen():
    expert = Expert(SMALL)
    expert.linear_fc2.requires_grad_(False)
    whole = expert.linear_fc2.weight
    cut(expert, SimpleNamespace(rank=lambda: 1, size=lambda: 2))
    assert torch.equal(expert.linear_fc2.weight, whole.chunk(2, 1)[1])
    assert [param.requires_grad for param in expert.parameters()] == [True, False]
