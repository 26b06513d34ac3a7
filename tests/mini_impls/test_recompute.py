"""Recomputation: what is run again is what ran, what is kept is what formulas say."""

import gc
from contextlib import nullcontext
from dataclasses import replace
from functools import partial
from itertools import product
from weakref import ref

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from ranks import RankFailure, RankPool
from torch import nn
from torch.nn import functional as F

from mini_impls.demos import recompute as demo
from mini_impls.demos.recompute import PLANS, PRODUCTS, keeping_products, watch
from mini_impls.model import GPTConfig, build_model, compute_loss, make_batch
from mini_impls.recompute import (
    CheckpointWithoutOutput,
    PlainCheckpoint,
    RandomStreams,
    checkpoint,
    split_into_1d_equal_chunks,
)
from mini_impls.recompute_hooks import (
    checkpoint_without_reentrant,
    keep,
    plain_checkpoint,
)
from mini_impls.recompute_model import (
    CoreAttention,
    Recompute,
    RecomputedGPT,
    dropout,
    train,
)
from mini_impls.tensor_parallel import tensor_parallel
from mini_impls.traffic import CollectiveCounter
from mini_impls.vocab_parallel_loss import vocab_parallel_cross_entropy

pytestmark = pytest.mark.sampled

CONFIG = demo.CONFIG
OF_THREE = GPTConfig(
    vocab_size=66,
    max_sequence_length=12,
    num_layers=3,
    hidden_size=48,
    num_attention_heads=6,
    num_query_groups=3,
    ffn_hidden_size=96,
    hidden_dropout=0.2,
)
CONFIGS = {
    "grouped queries": replace(
        demo.DROPPING, num_query_groups=2, max_sequence_length=20, num_layers=3
    ),
    "many heads": replace(demo.DROPPING, hidden_size=32, num_attention_heads=8),
}
WAYS = {
    "reentrant": checkpoint,
    "hooks": checkpoint_without_reentrant,
    "policy": keeping_products,
}
SIZES = [2, pytest.param(4, marks=pytest.mark.slow)]
on_two_or_four = pytest.mark.parametrize("pool", SIZES, indirect=True)


@pytest.fixture
def streams():
    made = RandomStreams(torch.device("cpu"))
    made.manual_seed(0, tp_rank=3)
    return made


def numbers(*shape, seed=0, dtype=torch.float32):
    random = torch.Generator().manual_seed(seed)
    return torch.randn(shape, generator=random, dtype=torch.float32).to(dtype)


# --- on ranks: gradients, bytes, FLOPs, what is sent ---


def see(rank, config, name):
    seen = watch(rank, config, PLANS[name])
    plan, world = PLANS[name], rank.world_size
    kept = demo.kept_bytes(config, plan, world)
    if plan.checkpoint is keeping_products:
        kept += demo.products_bytes(config, world)
    due = kept, demo.flops_again(config, plan, world)
    # Where the streams stand afterwards is part of the gradients that come.
    return seen, due, torch.rand(3)


def held_against_nothing(pool, config, name):
    plain = pool.run(see, config, "nothing again")
    for (alone, _, after), (seen, due, then) in zip(
        plain, pool.run(see, config, name), strict=True
    ):
        assert seen.gradients.keys() == alone.gradients.keys()
        for key, gradient in alone.gradients.items():
            assert torch.equal(seen.gradients[key], gradient), key
        assert torch.equal(then, after)
        assert (seen.kept_bytes, seen.flops - alone.flops) == due
        yield seen


@on_two_or_four
@pytest.mark.parametrize("name", PLANS)
def test_a_way_changes_no_bit_and_keeps_and_runs_what_formulas_say(pool, name):
    whole = PLANS[name].granularity == "full"
    for seen in held_against_nothing(pool, demo.DROPPING, name):
        layers = 1 if name == "full, block of 1" else 2 if whole else 0
        again = 2 * layers + 2 * PLANS[name].part("mlp")
        assert seen.sent["all_reduce"] == 4 + again
        assert seen.sent.get("all_gather", 0) == (2 if "sharded" in name else 0)


@pytest.mark.parametrize(
    ("config", "name"),
    [
        ("grouped queries", "core_attn, layernorm, mlp"),
        ("grouped queries", "full, uniform, chunks of 2"),
        ("many heads", "full, by hooks, products kept"),
        ("many heads", "full, inputs sharded"),
    ],
)
def test_other_sizes_keep_what_formulas_say(pool2, config, name):
    assert len(list(held_against_nothing(pool2, CONFIGS[config], name))) == 2


@pytest.mark.slow
def test_three_ranks_keep_what_formulas_say():
    pool = RankPool(3)
    try:
        for name in PLANS:
            assert len(list(held_against_nothing(pool, OF_THREE, name))) == 3
            for parted in pool.run(train_beside, OF_THREE, name):
                assert max(parted) < 1e-4
    finally:
        pool.close()


def test_ranks_drop_alike_what_is_whole_and_apart_what_is_cut(pool2):
    common, own = zip(*pool2.run(draw), strict=True)
    assert torch.equal(*common) and not torch.equal(*own)


def test_a_named_stream_goes_on_where_it_was_left(streams):
    drawn = []
    for _ in range(2):
        with streams.fork():
            drawn.append(torch.rand(5))
    assert not torch.equal(*drawn)


def test_dropout_of_attention_is_the_ranks_own(streams):
    gpt, outputs, common = build_model(CONFIG), [], []
    attention = CoreAttention(gpt.layers[0].self_attention, 0.5, streams)
    mixed_qkv = gpt.layers[0].self_attention.linear_qkv(numbers(2, 8, 64))
    for tp_rank in range(2):
        streams.manual_seed(7, tp_rank)
        outputs.append(attention(mixed_qkv))
        common.append(torch.rand(5))
    assert torch.equal(*common) and not torch.equal(*outputs)


def draw(rank):
    made = RandomStreams(rank.device)
    made.manual_seed(7, rank.rank)
    with made.fork():
        own = torch.rand(5)
    return torch.rand(5), own


def train_beside(rank, config, name, steps=3):
    """Return how far losses and parameters are from those of one process."""
    config = replace(config, hidden_dropout=0.0)
    batches = [make_batch(config, step=i, batch_size=4) for i in range(steps)]
    found = []
    for is_cut in (True, False):
        made = RandomStreams(rank.device)
        made.manual_seed(0, rank.rank)
        gpt = build_model(config)
        loss = compute_loss
        if is_cut:
            tensor_parallel(gpt, rank.group)

            def loss(logits, labels):
                each = vocab_parallel_cross_entropy(logits, labels, rank.group)
                return each.mean()

        plan = PLANS[name] if is_cut else Recompute()
        model = RecomputedGPT(gpt, plan, made, rank.group)
        optimizer = torch.optim.AdamW(gpt.parameters(), 1e-3)
        losses = train(model, optimizer, batches, loss)
        if not is_cut:
            tensor_parallel(gpt, rank.group)
        found.append((losses, list(gpt.parameters())))
    (ours, params), (alone, expected) = found
    apart = max(abs(a - b) for a, b in zip(ours, alone, strict=True))
    pairs = zip(params, expected, strict=True)
    return apart, max((a - b).abs().max().item() for a, b in pairs)


FEW = ("core_attn, layernorm, mlp", "full, inputs sharded", "full, by hooks")


@on_two_or_four
@pytest.mark.parametrize(
    "name",
    [
        name if name in FEW else pytest.param(name, marks=pytest.mark.slow)
        for name in PLANS
    ],
)
def test_three_steps_end_where_one_process_ends(pool, name):
    for parted in pool.run(train_beside, CONFIG, name):
        assert max(parted) < 1e-4


def test_one_process_without_recomputation_is_the_model_of_all_minis():
    gpt, (tokens, _) = build_model(CONFIG), make_batch(CONFIG, step=0, batch_size=2)
    made = RandomStreams(torch.device("cpu"))
    ours = RecomputedGPT(build_model(CONFIG), Recompute(), made)
    assert dict(ours.named_parameters()).keys() == dict(gpt.named_parameters()).keys()
    torch.testing.assert_close(ours(tokens), gpt(tokens), atol=1e-6, rtol=1e-5)


def test_an_evaluation_drops_nothing(streams):
    config = replace(CONFIG, hidden_dropout=0.5)
    gpt, (tokens, _) = (
        build_model(config).eval(),
        make_batch(config, step=0, batch_size=2),
    )
    ours = RecomputedGPT(
        build_model(config), Recompute("full"), streams, attention_dropout=0.5
    ).eval()
    torch.testing.assert_close(ours(tokens), gpt(tokens), atol=1e-6, rtol=1e-5)


# --- sharded inputs ---


def shard_one(rank, numel, retain):
    made = RandomStreams(rank.device)
    made.manual_seed(0, rank.rank)
    leaf = numbers(numel).requires_grad_()
    found = []
    for x in (leaf.clone(), leaf):  # what another part made, and what came by itself
        out = checkpoint(
            partial(dropout, p=0.5, training=True), made, x, distribute_over=rank.group
        )
        during = x.untyped_storage().nbytes()
        with CollectiveCounter() as sent:
            out.sum().backward(retain_graph=retain)
            if retain:
                out.sum().backward()
        found.append((during, sent.counts().get("all_gather", 0), leaf.grad, out))
        leaf.grad = None
    return found


@on_two_or_four
@pytest.mark.parametrize("retain", [False, True])
def test_an_input_is_a_slice_until_backward_makes_it_whole(pool, retain):
    for found in pool.run(shard_one, 24, retain):
        for during, gathers, gradient, out in found:
            assert (during, gathers) == (4 * 24 // pool.world_size, 1)
            mask = torch.where(out.detach() == 0, 0.0, 2.0)
            assert torch.equal(gradient, mask * (2 if retain else 1))


def test_an_input_that_does_not_divide_is_refused(pool2):
    with pytest.raises(RankFailure, match="25 elements are not divisible by 2 ranks"):
        pool2.run(shard_one, 25, False)


def chunk_and_gather(rank):
    chunk = split_into_1d_equal_chunks(numbers(3, 4), rank.group)
    return chunk, chunk.untyped_storage().nbytes()


def test_a_slice_has_memory_of_its_own(pool2):
    chunks = pool2.run(chunk_and_gather)
    assert torch.equal(torch.cat([c for c, _ in chunks]), numbers(3, 4).flatten())
    assert [n for _, n in chunks] == [24, 24]


# --- one part, every way ---


class Part(nn.Module):
    """Layers that share a weight or not, drop by two streams, are frozen in part."""

    def __init__(self, streams, *, tied, frozen, p, dtype):
        super().__init__()
        self.streams, self.p = streams, p
        torch.manual_seed(5)
        self.first = nn.Linear(6, 6, dtype=dtype)
        self.second = self.first if tied else nn.Linear(6, 6, dtype=dtype)
        for name in frozen:
            self.get_parameter(name).requires_grad_(False)
        self.runs = 0

    def forward(self, x):
        self.runs += 1
        x = F.gelu(self.first(x))
        with self.streams.fork():
            x = dropout(x, self.p, True)
        return x + dropout(self.second(x).tanh(), self.p, True)


def outcome(streams, part, way, *, backwards=1):
    """Return output, all gradients, and what both streams draw next."""
    streams.manual_seed(11, tp_rank=1)
    part.zero_grad()
    leaf = numbers(5, 6, dtype=part.first.weight.dtype).requires_grad_()
    out = part(leaf * 2) if way is None else way(part, streams, leaf * 2)
    for i in range(backwards):
        out.square().sum().backward(retain_graph=i + 1 < backwards)
    with streams.fork():
        own = torch.rand(2)
    grads = [leaf.grad, *[p.grad for p in part.parameters() if p.requires_grad]]
    return [out.detach(), *grads, torch.rand(2), own]


PARTS = st.fixed_dictionaries(
    {
        "tied": st.booleans(),
        "frozen": st.sets(st.sampled_from(["first.weight", "second.bias"])),
        "p": st.sampled_from([0.0, 0.1, 0.6]),
        "dtype": st.sampled_from([torch.float32, torch.float64, torch.bfloat16]),
    }
)


@given(options=PARTS, nested=st.sampled_from([None, *WAYS]))
@settings(max_examples=25, deadline=None)
def test_every_way_is_the_plain_run_bit_for_bit(options, nested):
    streams = RandomStreams(torch.device("cpu"))
    part = Part(streams, **options)
    expected = outcome(streams, part, None)
    for name, way in WAYS.items():
        inner = WAYS[nested] if nested else None
        outer = way
        if inner is not None:
            outer = lambda part, streams, x, way=way, inner=inner: way(  # noqa: E731
                partial(inner, part, streams), streams, x
            )
        if "policy" in (name, nested) and nested:
            continue  # a policy sees no operation of another's
        got = outcome(streams, part, outer)
        assert len(got) == len(expected)
        assert all(map(torch.equal, got, expected)), name


@pytest.mark.parametrize("way", ["reentrant", "hooks"])
def test_a_graph_that_is_kept_goes_back_twice_through_the_same_masks(streams, way):
    part = Part(streams, tied=False, frozen=(), p=0.5, dtype=torch.float32)
    expected = outcome(streams, part, None, backwards=2)
    part.runs = 0
    got = outcome(streams, part, WAYS[way], backwards=2)
    assert all(map(torch.equal, got, expected))
    assert part.runs == 3


def test_the_plain_ways_are_right_without_dropout_and_wrong_with_it(streams):
    ways = {
        "function": lambda part, streams, x: PlainCheckpoint.apply(part, x),
        "hooks": lambda part, streams, x: plain_checkpoint(part, x),
    }
    for p, (name, way) in product((0.0, 0.5), ways.items()):
        part = Part(streams, tied=True, frozen=(), p=p, dtype=torch.float32)
        expected, got = outcome(streams, part, None), outcome(streams, part, way)
        same = [torch.equal(a, b) for a, b in zip(got[:-2], expected[:-2], strict=True)]
        assert all(same) == (p == 0.0), name
    part = Part(streams, tied=False, frozen=(), p=0.0, dtype=torch.float32)
    outcome(streams, part, ways["hooks"], backwards=2)
    assert part.runs == 3, "what came back is kept"


def test_without_gradients_a_part_runs_once_and_keeps_nothing(streams):
    part = Part(streams, tied=False, frozen=(), p=0.0, dtype=torch.float32)
    for way in WAYS.values():
        part.runs = 0
        with torch.no_grad():
            assert not way(part, streams, numbers(5, 6)).requires_grad
        assert part.runs == 1


def test_what_needs_no_gradient_is_refused_where_autograd_would_not_come_back(streams):
    part = Part(streams, tied=False, frozen=(), p=0.0, dtype=torch.float32)
    with pytest.raises(ValueError, match="no input needs a gradient"):
        checkpoint(part, streams, numbers(5, 6))
    checkpoint_without_reentrant(part, streams, numbers(5, 6)).sum().backward()
    assert part.first.weight.grad is not None


def test_a_frozen_embedding_leaves_gradients_to_the_layers():
    made = RandomStreams(torch.device("cpu"))
    gpt = build_model(CONFIG)
    gpt.embedding.requires_grad_(False)
    model = RecomputedGPT(gpt, Recompute("full"), made)
    tokens, labels = make_batch(CONFIG, step=0, batch_size=2)
    compute_loss(model(tokens), labels).backward()
    assert all(p.grad is not None for p in model.layers.parameters())


def test_a_reentrant_part_says_that_single_gradients_are_not_its_own(streams):
    part = Part(streams, tied=False, frozen=(), p=0.0, dtype=torch.float32)
    x = numbers(5, 6).requires_grad_()
    with pytest.raises(RuntimeError, match=r"not by \.grad\(\)"):
        torch.autograd.grad(checkpoint(part, streams, x).sum(), x)
    outer = CheckpointWithoutOutput(streams)
    out = outer.checkpoint(part, x).square()
    outer.discard_output_and_register_recompute(out)
    with pytest.raises(RuntimeError, match=r"not by \.grad\(\)"):
        torch.autograd.grad(out.sum(), x)
    (expected,) = torch.autograd.grad(part(x).sum(), x)
    out = checkpoint_without_reentrant(part, streams, x).sum()
    (got,) = torch.autograd.grad(out, x)
    assert torch.equal(got, expected) and part.first.weight.grad is None


# --- an output that is thrown away ---


def test_an_output_is_gone_until_its_gradient_is_on_the_way(streams):
    part = Part(streams, tied=False, frozen=(), p=0.3, dtype=torch.float32)
    sizes, behind = [], nn.Linear(6, 6)

    def way(part, streams, x):
        outer = CheckpointWithoutOutput(streams)
        made = outer.checkpoint(part, x)
        out = behind(made)
        outer.discard_output_and_register_recompute(out)
        sizes.append(made.untyped_storage().nbytes())
        made.register_hook(lambda _: sizes.append(made.untyped_storage().nbytes()))
        return out

    def plain(part, streams, x):
        return behind(part(x))

    expected = outcome(streams, part, plain)
    weight = behind.weight.grad.clone()
    behind.zero_grad()
    part.runs = 0
    assert all(map(torch.equal, outcome(streams, part, way), expected))
    assert torch.equal(behind.weight.grad, weight)
    assert sizes == [0, 5 * 6 * 4] and part.runs == 2


def test_an_output_that_no_backward_will_fill_stays(streams):
    outer = CheckpointWithoutOutput(streams)
    made = outer.checkpoint(torch.tanh, numbers(4))
    outer.discard_output_and_register_recompute(made * 2)
    assert torch.equal(made, numbers(4).tanh())


# --- hooks ---


def test_running_again_stops_behind_the_last_tensor_that_is_wanted(streams):
    called = []

    def part(x):
        y = (x * x).tanh()
        called.append("wanted")
        y = y + 1  # keeps nothing
        called.append("not wanted")
        return y

    x = numbers(4).requires_grad_()
    checkpoint_without_reentrant(part, streams, x).sum().backward()
    assert called == ["wanted", "not wanted"]  # `tanh` keeps its output, and it stops
    called.clear()
    checkpoint(part, streams, x).sum().backward()
    assert called == ["wanted", "not wanted"] * 2


@pytest.mark.parametrize("is_plain", [False, True])
def test_what_comes_back_goes_as_soon_as_it_was_used(streams, is_plain):
    alive, seen = [], []

    class Watched(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            made = x.clone()
            alive.append(ref(made.untyped_storage()))
            ctx.save_for_backward(made)
            return made * 2

        @staticmethod
        def backward(ctx, grad):
            (_,) = ctx.saved_tensors
            seen.append(len([r for r in alive if r() is not None]))
            return grad * 2

    def part(x):
        for _ in range(3):
            x = Watched.apply(x)
        return x

    x = numbers(4).requires_grad_()
    if is_plain:
        plain_checkpoint(part, x).sum().backward()
    else:
        checkpoint_without_reentrant(part, streams, x).sum().backward()
    gc.collect()
    assert len(alive) == 6 and seen == [3, 2, 1]
    assert all(r() is None for r in alive)


def thrown_away(part, streams, *args):
    outer = CheckpointWithoutOutput(streams)
    out = outer.checkpoint(part, *args).square()
    outer.discard_output_and_register_recompute(out)
    return out


@pytest.mark.parametrize("way", [*WAYS.values(), thrown_away])
def test_nothing_stays_behind_when_backward_is_over(streams, way):
    """What keeps its own output holds on to itself, if that comes with its graph."""
    alive = []

    def part(x):
        x = (x @ x.T).tanh()
        alive.append(ref(x.untyped_storage()))
        out = x.sigmoid() @ x
        alive.append(ref(out.untyped_storage()))
        return out

    x = numbers(4, 4).requires_grad_()
    loss = way(part, streams, x * 1).sum()  # its graph is there, as in training
    loss.backward()
    gc.collect()
    assert len(alive) > 2 and all(r() is None for r in alive)  # of both runs


def test_what_a_part_within_a_part_is_given_is_dropped_by_the_outer_one(streams):
    given = []

    def part(x, way):
        x = x.exp()
        given.append(ref(x.untyped_storage()))
        return way(lambda y: y.sin().cos(), streams, x)

    def twice(x):
        return part(x, checkpoint_without_reentrant)

    x = numbers(4).requires_grad_()
    out = checkpoint_without_reentrant(twice, streams, x)
    gc.collect()
    assert [r() for r in given] == [None]
    (got,) = torch.autograd.grad(out.sum(), x)
    plain = part(x, lambda inner, _, y: inner(y))
    (expected,) = torch.autograd.grad(plain.sum(), x)
    assert torch.equal(got, expected)


@pytest.mark.parametrize(
    ("second", "said"),
    [
        (lambda x: x.exp(), "1 tensors came back of 3"),
        (lambda x: x[:2].exp().sin().cos(), "came back as .*2.*, not .*4"),
        (lambda x: x.exp().sin().half().cos(), "came back as .*float16.*, not .*32"),
    ],
)
def test_a_part_that_keeps_something_else_the_second_time_is_told(
    streams, second, said
):
    runs = []

    def part(x):
        runs.append(1)
        return x.exp().sin().cos() if len(runs) == 1 else second(x)

    out = checkpoint_without_reentrant(part, streams, numbers(4).requires_grad_())
    with pytest.raises(RuntimeError, match=said):
        out.sum().backward()


# --- policies ---


def test_what_a_policy_keeps_is_not_made_again(streams):
    counted, aten = [], torch.ops.aten

    def policy(op, *args):
        counted.append(op)
        return keep(aten.addmm.default)(op, *args)

    part = Part(streams, tied=False, frozen=(), p=0.2, dtype=torch.float32)
    expected = outcome(streams, part, None)
    made = demo.FlopCounterMode(display=False)
    with made:
        way = partial(checkpoint_without_reentrant, policy=policy)
        got = outcome(streams, part, way)
    assert all(map(torch.equal, got, expected))
    product_flops = 2 * 5 * 6 * 6
    # Two forward, and backward two for each: one for the input, one for the weight.
    assert made.get_total_flops() == 6 * product_flops
    assert counted.count(aten.addmm.default) == 2  # nobody asks the second time


def test_what_a_policy_kept_is_there_once(streams):
    weight = numbers(6, 6).requires_grad_()
    out = keeping_products(lambda x: (x @ weight).tanh(), streams, numbers(5, 6))
    out.sum().backward(retain_graph=True)
    with pytest.raises(RuntimeError, match="there for one backward"):
        out.sum().backward()


def test_an_operation_that_was_not_called_before_is_told(streams):
    weight, runs = numbers(6, 6).requires_grad_(), []

    def part(x):
        runs.append(1)
        x = x @ weight
        return (x + 1 if len(runs) > 1 else x).tanh()

    out = keeping_products(part, streams, numbers(5, 6))
    with pytest.raises(RuntimeError, match=r"add\.Tensor was not called 1 times"):
        out.sum().backward()


def test_the_products_that_are_kept_are_those_with_weights():
    assert [op.name() for op in PRODUCTS] == ["aten::addmm", "aten::mm"]


# --- plans ---


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"modules": frozenset({"moe"})}, "no part of a layer here: moe"),
        ({"num_layers": 0}, "0 layers are less than 1"),
        ({"distribute_saved_activations": True}, "where whole layers rerun"),
    ],
)
def test_a_plan_without_meaning_is_refused(options, said):
    with pytest.raises(ValueError, match=said):
        Recompute(**options)


def test_a_slice_of_inputs_needs_a_group(streams):
    plan = Recompute("full", distribute_saved_activations=True)
    with pytest.raises(ValueError, match="need their group"):
        RecomputedGPT(build_model(CONFIG), plan, streams)


@pytest.mark.parametrize("training", [False, True])
def test_dropout_is_torchs_and_keeps_a_byte_an_element(training):
    x = torch.ones(1000, requires_grad=True)
    kept = []
    hooks = torch.autograd.graph.saved_tensors_hooks(
        lambda t: kept.append(t) or t, lambda t: t
    )
    with hooks if training else nullcontext():
        out = dropout(x, 0.25, training)
    assert [t.nbytes for t in kept] == ([1000] if training else [])
    values = set(out.unique().tolist())
    assert values == ({0.0, float(torch.tensor(4 / 3))} if training else {1.0})
