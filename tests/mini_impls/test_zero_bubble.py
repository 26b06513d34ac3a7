"""A backward in two halves, and pipelines that fill their gaps with the second."""

import contextlib
import io
import math
import re
from argparse import Namespace
from collections import Counter
from functools import cache
from itertools import pairwise, product

import pytest
import torch
import torch.distributed as dist
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import nn
from torch.distributed.pipelining import schedules as torch_schedules
from torch.multiprocessing.reductions import StorageWeakRef
from torch.utils._python_dispatch import TorchDispatchMode

from mini_impls import model, zero_bubble_orders
from mini_impls.compare.zero_bubble import with_torchs_turns
from mini_impls.demos import zero_bubble as demo
from mini_impls.demos.formulas import get_v_pipeline_traffic
from mini_impls.demos.zero_bubble import (
    EVEN,
    PacedExecutor,
    check,
    draw_by_rank,
    get_num_stages,
    get_stages,
    measure,
)
from mini_impls.launch import Rank
from mini_impls.model import GPTConfig
from mini_impls.schedules import Step
from mini_impls.timeline import Transfer, get_bubble, get_inputs, get_peak_in_flight
from mini_impls.traffic import CollectiveCounter
from mini_impls.zero_bubble import ZeroBubbleExecutor, train
from mini_impls.zero_bubble_backward import (
    backward_input,
    backward_weight,
    get_param_groups,
    stage_backward_input,
    stage_backward_weight,
)
from mini_impls.zero_bubble_plan import (
    SCHEDULES,
    V_SHAPED,
    add_send_recv,
    get_block_timeline,
    get_blocks,
    get_orders,
    get_split_bubble,
)
from readerkit.estimate.bubble import Pipeline

pytestmark = pytest.mark.sampled

SPLIT = SCHEDULES[1:]
SIZES = [(p, m) for p in (1, 2, 3, 4, 5) for m in (2 * p, 2 * p + 1, 4 * p)]
SMALL = dict(hidden_size=32, ffn_hidden_size=64, vocab_size=32, max_sequence_length=8)


# --- the two halves ---


class TiedTwice(nn.Module):
    """A weight used twice, its biases registered before or behind it."""

    def __init__(self, order, width=6):
        super().__init__()
        shapes = {"weight": (width, width), "first": (width,), "second": (width,)}
        for name in order:
            self.register_parameter(name, nn.Parameter(torch.randn(shapes[name])))

    def forward(self, x):
        hidden = torch.tanh(nn.functional.linear(x, self.weight, self.first))
        return nn.functional.linear(hidden, self.weight, self.second)


class TwoAdded(nn.Module):
    """Two weights whose gradients are one and the same tensor in autograd."""

    def __init__(self, width=6):
        super().__init__()
        self.position = nn.Parameter(torch.randn(width))
        self.kind = nn.Parameter(torch.randn(width))

    def forward(self, x):
        return torch.tanh(x + (self.position + self.kind))


class Frozen(nn.Module):
    """A frozen layer below a trained one, and a weight that nothing uses."""

    def __init__(self, width=6):
        super().__init__()
        self.below, self.above = (
            nn.Linear(width, 2 * width),
            nn.Linear(2 * width, width),
        )
        self.below.requires_grad_(False)
        self.unused = nn.Parameter(torch.randn(3))

    def forward(self, x):
        return self.above(torch.relu(self.below(x))) + x


class ProductAndSum(torch.autograd.Function):
    """One node that makes two tensors of a weight: it is handed two gradients."""

    @staticmethod
    def forward(ctx, x, weight):
        ctx.save_for_backward(x, weight)
        return x * weight, x + weight

    @staticmethod
    def backward(ctx, of_product, of_sum):
        x, weight = ctx.saved_tensors
        return of_product * weight + of_sum, (of_product * x + of_sum).sum(0)


class TwoMade(nn.Module):
    """A weight whose gradient follows from both outputs of a node."""

    def __init__(self, width=6):
        super().__init__()
        self.weight = nn.Parameter(torch.randn(width))

    def forward(self, x):
        product, added = ProductAndSum.apply(x, self.weight)
        return torch.tanh(product) * added


MODULES = {
    "linear": lambda: nn.Linear(6, 4),
    "mlp": lambda: nn.Sequential(nn.Linear(6, 9), nn.GELU(), nn.Linear(9, 6)),
    "norms": lambda: nn.Sequential(nn.LayerNorm(6), nn.Linear(6, 6), nn.LayerNorm(6)),
    "tied, weight first": lambda: TiedTwice(("weight", "first", "second")),
    "tied, weight last": lambda: TiedTwice(("first", "second", "weight")),
    "tied, weight between": lambda: TiedTwice(("first", "weight", "second")),
    "two added": TwoAdded,
    "two made": TwoMade,
    "frozen": Frozen,
    "a view": lambda: nn.Sequential(nn.Linear(6, 6), nn.Unflatten(1, (2, 3))),
    "layer": lambda: model.TransformerLayer(GPTConfig(num_layers=1, **SMALL)),
}


def make(name, seed=0):
    torch.manual_seed(seed)
    return MODULES[name]()


def inputs_of(name, count=3, seed=1):
    random = torch.Generator().manual_seed(seed)
    shape = (2, 8, 32) if name == "layer" else (5, 6)
    return [torch.randn(shape, generator=random) for _ in range(count)]


def trained(module):
    return [p for p in module.parameters() if p.requires_grad]


def whole_backwards(module, xs):
    seen = []
    for x in xs:
        x = x.clone().requires_grad_()
        output = module(x)
        output.backward(torch.cos(output.detach()))
        seen.append(x.grad)
    return seen


def split_backwards(module, xs, lag):
    """Put off each weights' half by `lag` microbatches."""
    seen, put_off = [], []
    for x in xs:
        x = x.clone().requires_grad_()
        output = module(x)
        grad_output = torch.cos(output.detach())
        grad, groups = stage_backward_input(output, grad_output, x, trained(module))
        assert output.requires_grad == output._is_view()  # else its graph may go
        seen.append(grad)
        put_off.append(groups)
        if len(put_off) > lag:
            stage_backward_weight(put_off.pop(0))
    for groups in put_off:
        stage_backward_weight(groups)
    return seen


def grads_of(module):
    return {name: p.grad for name, p in module.named_parameters()}


def same(ours, theirs):
    assert ours.keys() == theirs.keys()
    for name, grad in theirs.items():
        if grad is None:
            assert ours[name] is None, name
        else:
            assert torch.equal(ours[name], grad), name


@pytest.mark.parametrize("lag", [0, 1, 9])
@pytest.mark.parametrize("name", MODULES)
def test_both_halves_are_a_whole_backward_bit_for_bit(name, lag):
    whole, split = make(name), make(name)
    xs = inputs_of(name)
    expected, got = whole_backwards(whole, xs), split_backwards(split, xs, lag)
    assert all(torch.equal(a, b) for a, b in zip(got, expected, strict=True))
    same(grads_of(split), grads_of(whole))


@given(
    widths=st.lists(st.integers(1, 5), min_size=1, max_size=4),
    dtype=st.sampled_from([torch.float32, torch.float64, torch.bfloat16]),
    frozen=st.sets(st.integers(0, 9)),
    tied=st.booleans(),
    lag=st.integers(0, 3),
)
@settings(deadline=None, max_examples=60)
def test_any_small_stack_of_layers(widths, dtype, frozen, tied, lag):
    def build():
        torch.manual_seed(7)
        sizes = [3, *widths]
        layers = [nn.Linear(a, b) for a, b in pairwise(sizes)]
        layers = [each for layer in layers for each in (layer, nn.Tanh())]
        if tied:
            square = nn.Linear(sizes[-1], sizes[-1])
            layers += [square, nn.Tanh(), square]
        stack = nn.Sequential(*layers).to(dtype)
        for i, param in enumerate(stack.parameters()):
            param.requires_grad_(i not in frozen)
        return stack

    random = torch.Generator().manual_seed(len(widths))
    xs = [torch.randn(2, 3, generator=random).to(dtype) for _ in range(3)]
    whole, split = build(), build()
    expected, got = whole_backwards(whole, xs), split_backwards(split, xs, lag)
    assert all(torch.equal(a, b) for a, b in zip(got, expected, strict=True))
    same(grads_of(split), grads_of(whole))


class Products(TorchDispatchMode):
    """Counts matrix products."""

    def __init__(self):
        super().__init__()
        self.count = 0

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        self.count += func.__name__.split(".")[0] in ("mm", "addmm", "bmm")
        return func(*args, **(kwargs or {}))


def products(call):
    with Products() as seen:
        call()
    return seen.count


def test_each_half_makes_its_products_once_and_the_plain_way_some_twice():
    layers, kept = 4, {}
    deep = nn.Sequential(*[nn.Linear(6, 6) for _ in range(layers)])
    x, grad = torch.randn(5, 6, requires_grad=True), torch.randn(5, 6)

    def b():
        output = deep(x)
        before = seen.count
        kept["groups"] = stage_backward_input(output, grad, x, trained(deep))[1]
        return seen.count - before

    with Products() as seen:
        assert b() == layers
    assert products(lambda: stage_backward_weight(kept["groups"])) == layers
    output = deep(x)
    assert products(lambda: backward_input(output, grad, x)) == layers
    plain = products(lambda: backward_weight(output, grad, trained(deep)))
    assert plain == layers + layers - 1  # the lowest input is not asked for


def test_the_plain_way_is_right_all_the_same():
    whole, plain = make("mlp"), make("mlp")
    xs = inputs_of("mlp")
    expected = whole_backwards(whole, xs)
    for x, want in zip(xs, expected, strict=True):
        x = x.clone().requires_grad_()
        output = plain(x)
        grad_output = torch.cos(output.detach())
        assert torch.equal(backward_input(output, grad_output, x), want)
        backward_weight(output, grad_output, trained(plain))
    same(grads_of(plain), grads_of(whole))


def test_weights_that_leave_at_one_node_are_one_group():
    module = make("tied, weight last")
    x = torch.randn(5, 6, requires_grad=True)
    (group,) = get_param_groups(module(x), x, trained(module))
    assert {id(p) for p in group.params} == {id(p) for p in module.parameters()}
    assert len(group.intermediates) == 2
    stack = make("mlp")
    groups = get_param_groups(stack(x), x, trained(stack))
    assert [len(group.params) for group in groups] == [2, 2]
    assert all(len(group.intermediates) == 1 for group in groups)


def test_nothing_of_a_microbatch_is_left_once_its_weights_are_done():
    module, seen = make("layer"), []
    (x,) = inputs_of("layer", 1)
    for layer in (module.mlp.linear_fc1, module.self_attention.linear_qkv):
        layer.register_forward_hook(
            lambda _, args, out: seen.append(StorageWeakRef(args[0].untyped_storage()))
        )
    x = x.clone().requires_grad_()
    output = module(x)
    _, groups = stage_backward_input(output, output.detach(), x, trained(module))
    assert not any(ref.expired() for ref in seen)  # the graph holds them for W
    stage_backward_weight(groups)
    del groups, output
    assert all(ref.expired() for ref in seen)


# --- orders and plans, on paper ---


def torch_actions(schedule, p, m):
    """Torch's own actions of every rank, without a process group."""
    name = {
        "zb-h1": "ScheduleInterleavedZeroBubble",
        "zb-v": "ScheduleZBVZeroBubble",
        "dualpipe-v": "ScheduleDualPipeV",
    }[schedule]
    made = object.__new__(getattr(torch_schedules, name))
    made.pp_group_size, made._n_microbatches = p, m
    made.n_local_stages = made.microbatches_per_round = 1
    made.num_stages = made._num_stages = 2 * p
    if schedule == "zb-h1":
        made.microbatches_per_round = p
    return {rank: made._calculate_single_rank_operations(rank) for rank in range(p)}


KINDS = {"FORWARD": "F", "BACKWARD_INPUT": "B", "BACKWARD_WEIGHT": "W"}


OF_FSDP = ("UNSHARD", "RESHARD", "REDUCE_GRAD")


def block_of(action):
    if action.sub_actions:
        return tuple(step for sub in action.sub_actions for step in block_of(sub))
    at = (action.microbatch_index, action.stage_index)
    if action.computation_type.name == "FULL_BACKWARD":
        return Step("B", *at), Step("W", *at)
    return (Step(KINDS[action.computation_type.name], *at),)


@pytest.mark.parametrize("schedule", ["zb-h1", "zb-v", "dualpipe-v"])
def test_blocks_are_torchs(schedule):
    for p, m in SIZES:
        theirs = torch_actions(schedule, p, m)
        for rank, ours in enumerate(get_blocks(schedule, p, m)):
            assert ours == [block_of(a) for a in theirs[rank] if a is not None], (p, m)


@pytest.mark.parametrize("schedule", ["zb-h1", "zb-v", "dualpipe-v"])
def test_with_torchs_turns_plans_are_torchs(schedule):
    """Sends and receives stand where torch's lowering puts them."""
    for p, m in SIZES:
        blocks = get_blocks(schedule, p, m)
        rank_of = {
            s.stage: r for r, each in enumerate(get_orders(blocks)) for s in each
        }
        known = {
            rank: torch_schedules._add_reduce_grad(
                torch_schedules._add_unshard_reshard(actions), m
            )
            for rank, actions in torch_actions(schedule, p, m).items()
        }
        theirs = torch_schedules._add_send_recv(known, rank_of.get, len(rank_of))
        ours = add_send_recv([with_torchs_turns(of_rank, m) for of_rank in blocks])
        for rank, plan in enumerate(ours):
            other = [a for a in theirs[rank] if a.computation_type.name not in OF_FSDP]
            assert [told(item) for item in plan if item] == [told_of(a) for a in other]


def told(item):
    if isinstance(item, Transfer):
        return item.action, item.made_by.kind, item.made_by.microbatch_id
    return tuple((s.kind, s.microbatch_id) for s in item)


def told_of(action):
    name = action.computation_type.name
    if name.startswith(("SEND", "RECV")):
        return name[:4].lower(), name[-1], action.microbatch_index
    return tuple((s.kind, s.microbatch_id) for s in block_of(action))


@pytest.mark.parametrize("schedule", SCHEDULES)
def test_every_step_once_and_none_before_its_inputs(schedule):
    for p, m in SIZES:
        blocks = get_blocks(schedule, p, m)
        num_stages = get_num_stages(schedule, p)
        steps = Counter(step for order in get_orders(blocks) for step in order)
        expected = {
            Step(kind, i, stage)
            for kind, i, stage in product("FBW", range(m), range(num_stages))
        }
        assert steps == Counter(expected)
        timeline = get_block_timeline(blocks, {"F": 3, "B": 2, "W": 1})
        for step, (start, _) in timeline.items():
            for needed in get_inputs(step, num_stages):
                assert timeline[needed][1] <= start, (p, m, step)


@pytest.mark.parametrize("schedule", SCHEDULES)
def test_messages_of_two_ranks_have_one_order_and_come_before_their_use(schedule):
    for p, m in SIZES:
        plans = add_send_recv(get_blocks(schedule, p, m))
        num_stages = get_num_stages(schedule, p)
        for a, b in product(range(p), repeat=2):
            sent, received = (
                [
                    item.made_by
                    for item in plans[rank]
                    if isinstance(item, Transfer) and (item.action, item.peer) == at
                ]
                for rank, at in ((a, ("send", b)), (b, ("recv", a)))
            )
            assert sent == received
            assert bool(sent) == (abs(a - b) == 1)
        for plan in plans:
            there = set()
            for item in plan:
                if isinstance(item, Transfer):
                    assert (item.made_by in there) == (item.action == "send")
                    there.add(item.made_by)
                    continue
                for step in item:
                    assert {*get_inputs(step, num_stages)} <= there
                    there.add(step)


@pytest.mark.parametrize("schedule", SCHEDULES)
@pytest.mark.parametrize("costs", [(1, 1, 1), (2, 2, 1), (3, 3, 2)])
def test_the_bubble_is_the_formulas(schedule, costs):
    for p, m in SIZES:
        blocks = get_blocks(schedule, p, m)
        timeline = get_block_timeline(blocks, dict(zip("FBW", costs, strict=True)))
        ideal, _ = get_bubble(timeline, p)
        assert ideal == get_split_bubble(schedule, p, m, *costs)[0], (p, m)


@pytest.mark.parametrize("schedule", SPLIT)
@pytest.mark.parametrize("costs", [(1, 1, 1), (2, 2, 1)])
def test_what_is_lost_is_what_the_estimates_say(schedule, costs):
    """They let ranks begin and end by turns, which the bubble of all time counts."""
    f, b, w = costs
    for p in (2, 3, 4):
        name, stages, m = schedule, p, 4 * p
        sizes = {"forward": f, "backward": b, "weight": w}
        if schedule == "dualpipe-v":  # the estimates know it unfolded
            name, stages, m = "dualpipe", 2 * p, 8 * p
        one = Pipeline.parse(
            {"schedule": name, "stages": stages, "microbatches": m, **sizes}
        )
        blocks = get_blocks(schedule, p, 4 * p)
        timeline = get_block_timeline(blocks, dict(zip("FBW", costs, strict=True)))
        idle = 0
        for order in get_orders(blocks):
            span = timeline[order[-1]][1] - timeline[order[0]][0]
            idle = max(idle, span - sum(timeline[s][1] - timeline[s][0] for s in order))
        chunks = 2 if schedule == "zb-v" else 1
        if schedule == "zb-h1":
            assert idle <= one.idle
        else:
            assert idle == chunks * one.idle, p


@pytest.mark.parametrize("schedule", ["zb-h1", "zb-h2", "zb-v", "dualpipe-v"])
def test_what_is_held_at_most(schedule):
    for p, m in SIZES:
        held = [
            get_peak_in_flight(order)
            for order in get_orders(get_blocks(schedule, p, m))
        ]
        most = {"zb-h1": p, "zb-h2": 2 * p - 1, "zb-v": 2 * p, "dualpipe-v": 2 * p + 1}
        assert held == [most[schedule]] * p, (p, m)


def test_docstrings_draw_what_is_yielded():
    for name, m in (("zb-h2", 4), ("zb-v", 3), ("dualpipe-v", 4)):
        function = getattr(zero_bubble_orders, name.replace("-", "_"))
        blocks = get_blocks(name, 2, m)
        drawn = draw_by_rank(get_block_timeline(blocks, EVEN), get_orders(blocks))
        lines = [line.strip() for line in (function.__doc__ or "").splitlines()]
        found = [x for x in lines if x.startswith("rank")]
        for picture, line in zip(found, drawn, strict=True):
            head = picture.removesuffix("..")
            assert line.startswith(head) and (head != picture or line == picture)


@pytest.mark.parametrize(
    ("schedule", "p", "m", "message"),
    [
        ("zb-v", 2, 2, "zb-v of 2 ranks takes 3 microbatches, not 2"),
        ("dualpipe-v", 3, 5, "dualpipe-v of 3 ranks takes 6 microbatches, not 5"),
        ("zb-h2", 4, 6, "zb-h2 of 4 ranks takes 7 microbatches, not 6"),
        ("zb-x", 2, 4, "'zb-x' is none of 1f1b, zb-h1"),
    ],
)
def test_sizes_that_do_not_fit_are_named(schedule, p, m, message):
    with pytest.raises(ValueError, match=message):
        get_blocks(schedule, p, m)


@pytest.mark.parametrize(
    "lay_out", [add_send_recv, lambda b: get_block_timeline(b, EVEN)]
)
def test_an_order_that_cannot_go_on_is_refused(lay_out):
    blocks = get_blocks("zb-h1", 2, 2)
    blocks[1].reverse()
    with pytest.raises(ValueError, match="each waits for a step that cannot come"):
        lay_out(blocks)


# --- against one process ---


def config_of(schedule, p):
    return GPTConfig(num_layers=get_num_stages(schedule, p), **SMALL)


def make_batches(config, m, steps=3):
    return [model.make_batch(config, step=i, batch_size=m) for i in range(steps)]


def build_partly_frozen(config):
    gpt = model.build_model(config)
    for layer in gpt.layers:
        layer.mlp.requires_grad_(False)
    return gpt


def make_executor(
    rank, schedule, m, config=None, kind=ZeroBubbleExecutor, build=model.build_model
):
    p = rank.world_size
    config = config or config_of(schedule, p)
    stages = get_stages(build(config), schedule, rank)
    shape = (1, config.max_sequence_length, config.hidden_size)
    executor = kind(stages, get_num_stages(schedule, p), shape, rank.group)
    return executor, get_blocks(schedule, p, m), config


def make_optimizer(stages):
    return torch.optim.AdamW(nn.ModuleList(stages.values()).parameters(), lr=1e-3)


@cache
def train_reference(config, m, build=model.build_model):
    reference = build(config)
    optimizer = torch.optim.AdamW(reference.parameters(), lr=1e-3)
    batches = make_batches(config, m)
    losses = model.train_one_process(reference, optimizer, batches, chunks=m)
    full = dict(reference.named_parameters(remove_duplicate=False))
    return losses, {name: (p.detach(), p.grad) for name, p in full.items()}


def run_training(rank: Rank, schedule, m, config=None, build=model.build_model):
    executor, blocks, config = make_executor(rank, schedule, m, config, build=build)
    plan = add_send_recv(blocks)[rank.rank]
    optimizer = make_optimizer(executor.stages)
    losses = train(executor, plan, optimizer, make_batches(config, m), m)
    steps = [step for block in blocks[rank.rank] for step in block]
    assert list(executor.ran) == steps
    assert not (executor.send_ops or executor.recv_ops), "works are kept"
    return losses, {
        name: (param.detach(), param.grad)
        for stage in executor.stages.values()
        for name, param in stage.named_parameters()
    }


@pytest.fixture(params=[2, 3, 4])
def any_pool(request):
    return request.getfixturevalue(f"pool{request.param}")


@pytest.mark.parametrize("schedule", SCHEDULES)
def test_three_steps_are_one_process_bit_for_bit(any_pool, schedule):
    p = any_pool.world_size
    m = 2 * p + 1
    expected, full = train_reference(config_of(schedule, p), m)
    answers = any_pool.run(run_training, schedule, m)
    assert sorted(name for _, mine in answers for name in mine) == sorted(full)
    for _, mine in answers:
        for name, (param, grad) in mine.items():
            assert torch.equal(param, full[name][0]), name
            assert torch.equal(grad, full[name][1]), name
    with_loss = 0 if schedule in V_SHAPED else p - 1  # a V ends where it began
    for rank, (losses, _) in enumerate(answers):
        assert losses == (expected if rank == with_loss else [])
    assert expected[-1] != expected[0]


def test_times_are_of_the_last_run():
    executor = ZeroBubbleExecutor({0: nn.Linear(2, 2)}, 1, (1, 1, 2), None)
    executor.ran[Step("F", 0, 0)] = 0.0, 1.0
    executor.run([], [])
    assert not executor.ran


def build_in_fp64(config):
    return model.build_model(config).double()


def test_stages_exchange_their_own_type(pool2):
    config = config_of("1f1b", 2)
    losses, _ = train_reference(config, 2, build_in_fp64)
    *_, (ours, mine) = pool2.run(run_training, "1f1b", 2, config, build_in_fp64)
    assert ours == losses
    assert {grad.dtype for _, grad in mine.values()} == {torch.float64}


@pytest.mark.parametrize("schedule", V_SHAPED)
def test_a_v_shares_tied_weights_without_a_message(pool2, schedule):
    config = GPTConfig(num_layers=4, share_embeddings_and_output_weights=True, **SMALL)
    expected, full = train_reference(config, 5)
    answers = pool2.run(run_training, schedule, 5, config)
    for _, mine in answers:
        # One process adds both uses of a microbatch, the stages each its own.
        for name, (param, grad) in mine.items():
            assert (param - full[name][0]).abs().max() < 1e-4, name
            assert (grad - full[name][1]).abs().max() < 1e-6, name
    assert answers[0][0] == pytest.approx(expected, abs=1e-5)


@pytest.mark.parametrize("schedule", SPLIT)
def test_what_is_frozen_is_in_neither_half(pool2, schedule):
    config = config_of(schedule, 2)
    _, full = train_reference(config, 5, build_partly_frozen)
    for _, mine in pool2.run(run_training, schedule, 5, config, build_partly_frozen):
        for name, (param, grad) in mine.items():
            assert torch.equal(param, full[name][0]), name
            assert (grad is None) == (".mlp." in name)


def run_traffic(rank: Rank, schedule, m):
    executor, blocks, config = make_executor(rank, schedule, m)
    plan = add_send_recv(blocks)[rank.rank]
    with CollectiveCounter() as sent:
        train(
            executor,
            plan,
            make_optimizer(executor.stages),
            make_batches(config, m, 1),
            m,
        )
    formula = get_v_pipeline_traffic(executor.tensor_shape, m, rank)
    return sent.payload_bytes(), formula


@pytest.mark.parametrize("schedule", V_SHAPED)
def test_bytes_equal_the_formula(any_pool, schedule):
    p = any_pool.world_size
    m, answers = 2 * p, any_pool.run(run_traffic, schedule, 2 * p)
    for payload, formula in answers:
        assert payload == formula
    message = 4 * SMALL["max_sequence_length"] * SMALL["hidden_size"]
    sends = sum(payload["send"] for payload, _ in answers)
    assert sends == 2 * m * 2 * (p - 1) * message  # 2 p - 1 boundaries, one on a rank


def run_peak(rank: Rank, schedule, m):
    """Most microbatches whose graph an executor holds."""
    executor, blocks, config = make_executor(rank, schedule, m)
    held, run_step = [], executor.run_step

    def counted(*args):
        run_step(*args)
        held.append(len(executor.fwd_cache) + len(executor.backward_state))

    executor.run_step = counted
    plan = add_send_recv(blocks)[rank.rank]
    train(
        executor, plan, make_optimizer(executor.stages), make_batches(config, m, 1), m
    )
    return max(held)


@pytest.mark.parametrize("schedule", SPLIT)
def test_graphs_held_are_those_of_the_order(pool2, schedule):
    orders = get_orders(get_blocks(schedule, 2, 6))
    assert pool2.run(run_peak, schedule, 6) == list(map(get_peak_in_flight, orders))


def run_leak(rank: Rank):
    executor, blocks, config = make_executor(rank, "zb-h1", 4)
    plan = add_send_recv(blocks)[rank.rank]
    plan.remove((Step("W", 3, rank.rank),))
    try:
        train(
            executor,
            plan,
            make_optimizer(executor.stages),
            make_batches(config, 4, 1),
            4,
        )
    except AssertionError:
        return "leak"
    return "clean"


def test_a_plan_that_forgets_weights_is_noticed(pool2):
    assert pool2.run(run_leak) == ["leak", "leak"]


# --- times that were measured ---

STEP_S = 0.03


def run_paced(rank: Rank, schedule, m):
    """How much of its busy time this rank idled, all steps of one length."""
    executor, blocks, config = make_executor(rank, schedule, m, kind=PacedExecutor)
    executor.step_s = STEP_S
    plan = add_send_recv(blocks)[rank.rank]
    batches = [
        model.shard_batch(make_batches(config, m, 1)[0], rank=i, world_size=m)
        for i in range(m)
    ]
    best = []
    for _ in range(2):
        dist.barrier(rank.group)
        executor.run(plan, batches)
        found = measure(rank, blocks, executor.runs[-1])
        best.append(found.idle / found.busy)
    return min(best)


@pytest.mark.further
def test_measured_bubbles_have_the_order_of_the_formulas(pool2):
    """Sleeping ranks take no processor: what they wait for is the schedule's doing.

    A loaded machine wakes them late, which only adds to an idle time: what a schedule
    costs is the least of some tries, none of them below its formula.
    """
    schedules = ("1f1b", "zb-h1", "zb-v")
    least = dict.fromkeys(schedules, math.inf)
    for _ in range(8):
        for schedule in schedules:
            idle = max(pool2.run(run_paced, schedule, 4))
            assert idle > 0.9 * float(get_split_bubble(schedule, 2, 4)[0]), schedule
            least[schedule] = min(least[schedule], idle)
        if max(least["zb-h1"], least["zb-v"]) < least["1f1b"]:
            return
    raise AssertionError(least)


def run_demo(rank: Rank, schedule):
    args = Namespace(schedule=schedule, microbatches=4, layers=4, steps=2, step_ms=5.0)
    with contextlib.redirect_stdout(io.StringIO()) as out:
        demo.demo(rank, args)
    return out.getvalue()


@pytest.mark.parametrize("schedule", ["zb-h1", "zb-v"])
def test_the_demo_holds_bytes_and_values_against_formula_and_one_process(
    pool2, schedule
):
    first, last = pool2.run(run_demo, schedule)
    drawn = draw_by_rank(
        get_block_timeline(get_blocks(schedule, 2, 4), EVEN),
        get_orders(get_blocks(schedule, 2, 4)),
    )
    assert first.splitlines()[:2] == drawn
    assert f"= {float(get_split_bubble(schedule, 2, 4)[0]):.2%}" in first
    for text in (first, last):
        sent = re.findall(r"([\d,]+) bytes \(formula ([\d,]+)\)", text)
        assert len(sent) == 2 and all(bytes_ == due for bytes_, due in sent)
        assert "largest difference from one process: parameter 0.0e+00" in text
        idle, times = re.search(
            r"measured: busy for [\d.]+ s, idle for ([\d.]+)% of that "
            r"\(([\d.]+) times the formula\)",
            text,
        ).groups()
        of = re.search(r"of it (\S+)% by the order.*; (\S+)% by ranks that", text)
        assert sum(map(float, of.groups())) == pytest.approx(float(idle), abs=0.02)
        due = 100 * float(get_split_bubble(schedule, 2, 4)[0])
        assert float(times) == pytest.approx(float(idle) / due, abs=0.02)


@pytest.mark.parametrize("schedule", ["1f1b", "zb-h1", "zb-v", "dualpipe-v"])
def test_steps_that_are_all_as_long_take_what_is_drawn(schedule):
    blocks = get_blocks(schedule, 3, 6)
    timeline = get_block_timeline(blocks, EVEN)
    assert demo.get_seconds(blocks, dict.fromkeys(timeline, 1.0)) == max(
        end for _, end in timeline.values()
    )


@pytest.mark.parametrize("schedule", SCHEDULES)
@pytest.mark.parametrize("world", [2, 3, 4, 5, 8])
def test_sizes_that_nobody_typed_follow_the_world(schedule, world):
    sizes = {"microbatches": 0, "layers": 0, "step_ms": 20.0}
    check(Namespace(schedule=schedule, world=world, **sizes))


@pytest.mark.parametrize(
    ("typed", "said"),
    [
        (
            {"layers": 2},
            "--layers: 2 layers cannot be cut into 4 equal stages, 4 can",
        ),
        ({"microbatches": 2}, "--microbatches: zb-v of 2 ranks takes 3 microbatches"),
        ({"schedule": "best"}, "--schedule: schedule 'best' is none of"),
        ({"step_ms": -1.0}, "--step-ms -1 is no time"),
    ],
)
def test_what_was_typed_and_does_not_fit_is_named(typed, said):
    sizes = {"schedule": "zb-v", "world": 2, "microbatches": 4, "layers": 4}
    sizes["step_ms"] = 20.0
    with pytest.raises(ValueError, match=re.escape(said)):
        check(Namespace(**(sizes | typed)))
