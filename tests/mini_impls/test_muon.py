"""Muon: torch's bit by bit, one process's on several ranks, and what each way sends."""

import contextlib
import io
import re
from argparse import Namespace

import pytest
import torch
import torch.distributed as dist
from hypothesis import example, given, settings
from hypothesis import strategies as some
from ranks import RankFailure
from torch import nn

from mini_impls import fsdp_options
from mini_impls.demos import muon as demo
from mini_impls.demos.formulas import get_layer_wise_traffic, get_rows_traffic
from mini_impls.demos.muon import Chained, hidden_matrices, others
from mini_impls.launch import Rank
from mini_impls.model import (
    GPTConfig,
    build_model,
    compute_loss,
    make_batch,
    shard_batch,
    train_one_process,
)
from mini_impls.muon import (
    LayerWiseDistributedOptimizer,
    Muon,
    RowsMuon,
    adjust_lr,
    all_reduce_gradients,
    zeropower_via_newtonschulz,
)
from mini_impls.traffic import CollectiveCounter

CONFIG = GPTConfig(hidden_size=32, ffn_hidden_size=64, num_layers=1)
TIED = GPTConfig(
    hidden_size=32,
    ffn_hidden_size=64,
    num_layers=1,
    share_embeddings_and_output_weights=True,
)
UNEVEN = GPTConfig(hidden_size=20, ffn_hidden_size=50, num_layers=1, vocab_size=37)
STEPS, LR, ADAMW_LR = 3, 5e-3, 3e-3


SLOW = [pytest.param(n, marks=pytest.mark.slow) for n in (3, 4)]


@pytest.fixture(params=[2, *SLOW])
def ranks(request):
    """Two ranks, and, where there is time, three and four."""
    return request.getfixturevalue(f"pool{request.param}")


# --- one process ---


@pytest.mark.parametrize("shape", [(8, 8), (12, 5), (5, 12), (1, 7), (7, 1)])
@pytest.mark.parametrize("nesterov", [True, False])
def test_is_torchs_bit_by_bit(shape, nesterov):
    torch.manual_seed(1)
    ours = nn.Parameter(torch.randn(shape))
    theirs = nn.Parameter(ours.detach().clone())
    settings = {"lr": 0.03, "weight_decay": 0.2, "momentum": 0.7, "nesterov": nesterov}
    pair = Muon([ours], **settings), torch.optim.Muon([theirs], **settings)
    for _ in range(4):
        ours.grad = torch.randn(shape)
        theirs.grad = ours.grad.clone()
        for optimizer in pair:
            optimizer.step()
        assert torch.equal(ours, theirs)
    buffers = [each.state[p] for each, p in zip(pair, (ours, theirs), strict=True)]
    assert torch.equal(*(buffer["momentum_buffer"] for buffer in buffers))


def test_defaults_are_torchs():
    param = nn.Parameter(torch.zeros(2, 2))
    ours, theirs = Muon([param]).defaults, torch.optim.Muon([param]).defaults
    assert ours == {name: theirs[name] for name in ours}


@pytest.mark.parametrize("shape", [(40, 40), (60, 20), (20, 60)])
def test_singular_values_come_near_one(shape):
    torch.manual_seed(2)
    grad = torch.randn(shape)
    s = torch.linalg.svdvals(grad / grad.norm())
    update = zeropower_via_newtonschulz(grad).float()
    got = torch.linalg.svdvals(update)
    known = got[s > 0.01]
    assert known.min() > 0.66 and known.max() < 1.22  # bfloat16 beyond 0.68 and 1.21
    u, _, v = torch.linalg.svd(grad, full_matrices=False)
    # The directions stay: their product with U V^T is the sum of the new values.
    assert (update * (u @ v)).sum() == pytest.approx(got.sum().item(), rel=0.02)


def test_of_zeros_nothing_is_made():
    assert not zeropower_via_newtonschulz(torch.zeros(3, 2)).any()


def test_the_numbers_that_the_steps_are_said_to_reach():
    a, b, c = 3.4445, -4.7750, 2.0315
    s = torch.linspace(0.005, 1, 200_001, dtype=torch.float64)
    for _ in range(5):
        s = a * s + b * s**3 + c * s**5
    assert s.min() > 0.68 and s.max() < 1.21


def test_the_rate_evens_out_shapes():
    for shape in ((64, 16), (16, 64), (16, 16)):
        u, _, v = torch.linalg.svd(torch.randn(shape), full_matrices=False)
        moved = adjust_lr(1.0, torch.Size(shape)) * (u @ v)
        assert moved.square().mean().sqrt() == pytest.approx(shape[1] ** -0.5)


def test_a_vector_is_refused():
    with pytest.raises(ValueError, match=r"Muon is for matrices, got \(3,\)"):
        Muon([nn.Parameter(torch.zeros(3))])


def test_what_has_no_gradient_stays():
    param = nn.Parameter(torch.ones(2, 2))
    optimizer = Muon([param], weight_decay=0.5)
    optimizer.step()
    assert torch.equal(param, torch.ones(2, 2)) and not optimizer.state


# --- who owns what ---


class FakeGroup:
    """What a group is asked for before anything is sent."""

    def __init__(self, rank, size):
        self._rank, self._size = rank, size

    def rank(self):
        return self._rank

    def size(self):
        return self._size


def deal(sizes, world_size, rank=0):
    params = [nn.Parameter(torch.zeros(n)) for n in sizes]
    optimizer = torch.optim.SGD(params, 0.1)
    whole = LayerWiseDistributedOptimizer([optimizer], FakeGroup(rank, world_size))
    place = {p: i for i, p in enumerate(params)}
    dealt = [[place[p] for p in owned] for owned in whole.params_list]
    return dealt, [place[p] for p in optimizer.param_groups[0]["params"]]


def test_parameters_are_dealt_to_and_fro():
    dealt, mine = deal(range(1, 11), 4, rank=1)
    # as Megatron's comment draws it
    assert dealt == [[0, 7, 8], [1, 6, 9], [2, 5], [3, 4]]
    assert mine == [1, 6, 9]


def test_equal_sizes_are_dealt_in_their_order():
    assert deal([5, 3, 5, 3, 5], 2)[0] == [[1, 2, 4], [3, 0]]


def test_more_ranks_than_parameters_leaves_some_with_nothing():
    assert deal([2, 1], 4)[0] == [[1], [0], [], []]


@given(some.lists(some.integers(1, 50), min_size=1, max_size=20), some.integers(1, 6))
@settings(max_examples=50, deadline=None)
def test_every_parameter_has_one_owner_and_shares_are_near(sizes, w):
    dealt = deal(sizes, w)[0]
    assert sorted(i for owned in dealt for i in owned) == list(range(len(sizes)))
    shares = [sum(sizes[i] for i in owned) for owned in dealt]
    # Within a round trip differences cancel but for the growth from deal to deal.
    assert max(shares) - min(shares) <= 2 * max(sizes)


# --- ranks ---


def batches(config, world_size):
    return [make_batch(config, step=i, batch_size=4 * world_size) for i in range(STEPS)]


def build_optimizers(model, momentum=0.95):
    return [
        Muon(hidden_matrices(model), LR, momentum=momentum),
        torch.optim.AdamW(others(model), ADAMW_LR),
    ]


def freeze(model, frozen):
    for name, param in model.named_parameters():
        if name in frozen:
            param.requires_grad_(False)
    return model


def train_whole(rank, config, frozen=(), clip_grad=0.0):
    model = freeze(build_model(config), frozen)
    params = list(model.parameters())
    both = build_optimizers(model)
    optimizer = LayerWiseDistributedOptimizer(both, rank.group, clip_grad=clip_grad)
    losses, norms = [], []
    for batch in batches(config, rank.world_size):
        tokens, labels = shard_batch(batch, rank=rank.rank, world_size=rank.world_size)
        model.zero_grad()
        loss = compute_loss(model(tokens), labels)
        loss.backward()
        with CollectiveCounter() as sent:
            all_reduce_gradients(params, rank.group)
            grads = {
                n: p.grad.clone()
                for n, p in model.named_parameters()
                if n not in frozen
            }
            norms.append(optimizer.step())
        dist.all_reduce(loss := loss.detach(), group=rank.group)
        losses.append(loss.item() / rank.world_size)
    state = sum(t.nbytes for each in both for t in demo.tensors_of(each))
    want = get_layer_wise_traffic(optimizer.params_list)
    if frozen:
        want["all_reduce"] -= 4 * sum(p.numel() for p in params if not p.requires_grad)
    full = {n: p.detach().clone() for n, p in model.named_parameters()}
    return losses, full, grads, norms, state, sent.payload_bytes(), sent.counts(), want


def train_rows(rank, config, frozen=()):
    model = freeze(build_model(config), frozen)
    shapes = {name: param.shape for name, param in model.named_parameters()}
    want = get_rows_traffic(model, rank.world_size)
    state = fsdp_options.fully_shard(model, rank.group, modules=["", "layers.0"])
    num_rows = {param: shapes[name][0] for name, param in model.named_parameters()}
    matrices = hidden_matrices(model)
    both = [
        RowsMuon(matrices, rank.group, num_rows, lr=LR),
        torch.optim.AdamW(others(model), ADAMW_LR),
    ]
    losses = []
    for batch in batches(config, rank.world_size):
        tokens, labels = shard_batch(batch, rank=rank.rank, world_size=rank.world_size)
        for param in model.parameters():
            param.grad = None
        with CollectiveCounter() as sent:
            loss = compute_loss(model(tokens), labels)
            loss.backward()
            for optimizer in both:
                optimizer.step()
        dist.all_reduce(loss := loss.detach(), group=rank.group)
        losses.append(loss.item() / rank.world_size)
    full = {
        param.owners[0].fqn: param.full(rank.group)
        for group in state.param_groups.values()
        for param in group.fsdp_params
    }
    kept = [
        both[0].state[p]["momentum_buffer"].nbytes
        for p in matrices
        if p.grad is not None
    ]
    return losses, full, sent.payload_bytes(), want, sum(kept)


def alone(config, world_size, frozen=(), clip_grad=None):
    model = freeze(build_model(config), frozen)
    optimizer = Chained(model, torch.optim.Muon(hidden_matrices(model), LR))
    norms = []
    if clip_grad is not None:
        optimizer.register_step_pre_hook(
            lambda *_: norms.append(
                nn.utils.clip_grad_norm_(model.parameters(), clip_grad).item()
            )
        )
    losses = train_one_process(
        model, optimizer, batches(config, world_size), chunks=world_size
    )
    return losses, model, norms


CASES = {
    "untied": (CONFIG, ()),
    "tied": (TIED, ()),
    "uneven": (UNEVEN, ()),
    "frozen": (CONFIG, ("layers.0.mlp.linear_fc1.weight", "final_layernorm.bias")),
}
ALL_CASES = pytest.mark.parametrize("case", CASES)


@ALL_CASES
def test_owners_of_whole_tensors_equal_one_process(ranks, case):
    config, frozen = CASES[case]
    w = ranks.world_size
    want_losses, model, _ = alone(config, w, frozen)
    psi, total = sum(p.numel() for p in model.parameters()), 0
    for losses, full, grads, _, state, sent, counts, want in ranks.run(
        train_whole, config, frozen
    ):
        assert losses == pytest.approx(want_losses, rel=1e-6 if w == 2 else 1e-4)
        for name, p in model.named_parameters():
            same(w, full[name], p)
            if name not in frozen:
                same(w, grads[name], p.grad)
        assert sent == want
        assert counts == {"all_reduce": 2, "all_gather": 1}
        total += state
    trained = [p for p in hidden_matrices(model) if p.requires_grad]
    rest = [p for p in others(model) if p.requires_grad]
    assert total == 4 * sum(p.numel() for p in trained) + sum(
        8 * p.numel() + 4 for p in rest
    )
    assert total < 8 * psi, "one copy of the state, and Muon's is half of AdamW's"


def same(w, got, want):
    if w == 2:  # one addition commutes
        assert torch.equal(got, want)
    else:
        # gloo adds in an order of its own; where a momentum has next to nothing,
        # Newton-Schulz makes a direction of it whatever the last bits were
        torch.testing.assert_close(got, want, rtol=1e-2, atol=2e-3)


@ALL_CASES
def test_rows_gathered_equal_one_process(ranks, case):
    config, frozen = CASES[case]
    w = ranks.world_size
    want_losses, model, _ = alone(config, w, frozen)
    momenta = 0
    for losses, full, sent, want, kept in ranks.run(train_rows, config, frozen):
        assert losses == pytest.approx(want_losses, rel=1e-6 if w == 2 else 1e-4)
        for name, p in model.named_parameters():
            same(w, full[name], p)
        if case in ("untied", "uneven"):
            assert sent == want
        momenta += kept
    trained = [p for p in hidden_matrices(model) if p.requires_grad]
    assert momenta == sum(p.nbytes for p in trained), "one copy of every momentum"


def test_gradients_are_shortened_by_the_norm_of_all(ranks):
    w, clip = ranks.world_size, 0.3
    want_losses, model, want = alone(CONFIG, w, clip_grad=clip)
    assert min(want) > clip
    for losses, full, _, norms, *_ in ranks.run(train_whole, CONFIG, (), clip):
        assert norms == pytest.approx(want, rel=1e-4)
        assert losses == pytest.approx(want_losses, rel=1e-4)
        for name, p in model.named_parameters():
            torch.testing.assert_close(full[name], p.detach(), rtol=1e-2, atol=2e-3)


def test_a_norm_below_the_limit_shortens_nothing(pool2):
    *_, want = alone(CONFIG, 2, clip_grad=1e9)
    free, bounded = (
        pool2.run(train_whole, CONFIG),
        pool2.run(train_whole, CONFIG, (), 1e9),
    )
    for (losses, *_), (same_losses, _, _, norms, *_) in zip(free, bounded, strict=True):
        assert losses == same_losses
        assert norms == pytest.approx(want, rel=1e-5)


# --- odd models ---


def drawn(rank, shapes, dtypes, frozen, unused, momentum):
    """Train a list of tensors on sums, each rank with other numbers."""
    torch.manual_seed(3)
    params = [
        nn.Parameter(torch.randn(shape).to(dtype), requires_grad=i not in frozen)
        for i, (shape, dtype) in enumerate(zip(shapes, dtypes, strict=True))
    ]
    mean = [nn.Parameter(p.detach().clone(), p.requires_grad) for p in params]
    sides = []
    for side in (params, mean):
        matrices = [p for p in side if p.ndim == 2]
        rest = [p for p in side if p.ndim != 2]
        both = [
            Muon(matrices or [nn.Parameter(torch.zeros(1, 1))], LR, momentum=momentum)
        ]
        sides.append(
            both + ([torch.optim.SGD(rest, 0.1, momentum=0.5)] if rest else [])
        )
    ours = LayerWiseDistributedOptimizer(sides[0], rank.group)
    w = rank.world_size
    for step in range(2):
        for i, (p, q) in enumerate(zip(params, mean, strict=True)):
            p.grad = q.grad = None
            if i in frozen:
                continue
            torch.manual_seed(100 * step + i)
            grads = [torch.randn_like(p) for _ in range(w)]
            # The last rank does not use some of them.
            held = grads[: w - 1] if i in unused else grads
            p.grad = held[rank.rank].clone() if rank.rank < len(held) else None
            total = held[0] / w
            for grad in held[1:]:
                total = total + grad / w
            q.grad = total
        all_reduce_gradients(params, rank.group)
        ours.step()
        for optimizer in sides[1]:
            optimizer.step()
    apart = [(p - q).abs().max().item() for p, q in zip(params, mean, strict=True)]
    return apart, [p.dtype for p in params]


FLOATS = (torch.float32, torch.float64, torch.bfloat16)
SHAPES = some.one_of(
    some.tuples(some.integers(1, 9)),
    some.tuples(some.integers(1, 9), some.integers(1, 9)),
)


@given(
    some.lists(some.tuples(SHAPES, some.sampled_from(FLOATS)), min_size=1, max_size=7),
    some.sets(some.integers(1, 6)),
    some.sets(some.integers(0, 6)),
    some.sampled_from([0.0, 0.95]),
)
@example([((n, 3), dtype) for n in (2, 5) for dtype in FLOATS[::-1]], (), (), 0.95)
@settings(max_examples=15, deadline=None)
def test_whatever_the_tensors_are(pool2, tensors, frozen, unused, momentum):
    shapes, dtypes = zip(*tensors, strict=True)
    if all(i in frozen for i in range(len(shapes))):
        frozen = set()
    for apart, kept in pool2.run(drawn, shapes, dtypes, frozen, unused, momentum):
        # of two ranks one sum, in whatever dtype it was made, and nobody rounds it
        assert not any(apart) and kept == list(dtypes)


def cut_rows(rank, m, n):
    """Update one matrix by its rows, and whole; return how far they are apart."""
    torch.manual_seed(m * 100 + n)
    whole = nn.Parameter(torch.randn(m, n))
    rows = -(-m // rank.world_size)
    mine = nn.Parameter(whole.detach()[rank.rank * rows :][:rows].clone())
    pair = Muon([whole], LR), RowsMuon([mine], rank.group, {mine: m}, lr=LR)
    for _ in range(2):
        whole.grad = torch.randn(m, n)
        mine.grad = whole.grad[rank.rank * rows :][: len(mine)].clone()
        for optimizer in pair:
            optimizer.step()
    got = torch.zeros_like(whole)
    got[rank.rank * rows :][: len(mine)] = mine.detach()
    dist.all_reduce(got, group=rank.group)
    return torch.equal(got, whole.detach())


@given(some.integers(1, 11), some.integers(1, 11))
@settings(max_examples=15, deadline=None)
def test_rows_are_the_matrix_bit_by_bit(pool2, m, n):
    assert pool2.run(cut_rows, m, n) == [True, True]


def mixed_up(rank):
    RowsMuon([nn.Parameter(torch.zeros(2))], rank.group, {})


def test_rows_of_a_vector_are_refused(pool2):
    with pytest.raises(RankFailure, match="Muon is for matrices"):
        pool2.run(mixed_up)


# --- what the demonstration says ---


def show(rank: Rank) -> str:
    out = io.StringIO()
    with contextlib.redirect_stdout(out):
        demo.demo(rank, Namespace(steps=2, world=rank.world_size))
    return out.getvalue()


def test_the_demonstration_says_what_it_is_to_say(pool2):
    text = pool2.run(show)[0]
    sizes = re.findall(r"([\d,]+) bytes \(formula ([\d,]+)\)", text)
    assert len(sizes) == 4 + 3 and all(got == formula for got, formula in sizes)
    assert text.count("parameters apart by 0.0e+00") == 2
    off = {
        m[0]: float(m[1]) for m in re.findall(r"(\w+): .*, (\S+) of the update", text)
    }
    assert off["blockwise"] > 0.1
    assert off["duplicated"] < 1e-5 and off["distributed"] < 1e-4


def norm_of_16_bits(rank):
    param = nn.Parameter(torch.zeros(3, 1, dtype=torch.bfloat16))
    param.grad = torch.ones_like(param)
    return LayerWiseDistributedOptimizer([Muon([param])], rank.group).get_grad_norm()


def test_the_norm_of_gradients_in_16_bits_has_32(pool2):
    assert pool2.run(norm_of_16_bits) == [pytest.approx(3**0.5, rel=1e-6)] * 2
