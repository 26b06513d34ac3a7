"""FP8, emulated: the numbers it holds, and the three ways to a scale."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as some
from torch import nn

from mini_impls.mixed_precision_fp8 import (
    E4M3,
    E5M2,
    BlockScaling,
    CurrentScaling,
    DelayedScaling,
    EmulatedFp8Linear,
    compute_scale,
    emulate,
    emulate_fp8,
    reduce_and_update,
    round_to_power_of_2,
)
from mini_impls.model import (
    GPTConfig,
    build_model,
    compute_loss,
    make_batch,
    shard_batch,
)
from mini_impls.traffic import CollectiveCounter

ONE = torch.ones(())
CONFIG = GPTConfig(hidden_size=32, ffn_hidden_size=64, num_layers=1)


def all_numbers(dtype):
    """Return every finite number of a dtype of eight bits, in order."""
    numbers = torch.arange(256).to(torch.uint8).view(dtype).float()
    return numbers[torch.isfinite(numbers)].unique()


@pytest.mark.parametrize("dtype", [E4M3, E5M2])
def test_a_number_that_fp8_has_stays_and_others_go_to_the_nearest(dtype):
    numbers = all_numbers(dtype)
    assert torch.equal(emulate(numbers, ONE, dtype), numbers)
    generator = torch.Generator().manual_seed(0)
    x = torch.randn(500, generator=generator) * 50
    nearest = (x[:, None] - numbers).abs().amin(dim=1)
    assert torch.equal((emulate(x, ONE, dtype) - x).abs(), nearest)


@pytest.mark.parametrize(("dtype", "end"), [(E4M3, 448.0), (E5M2, 57344.0)])
def test_what_is_past_the_end_becomes_the_end(dtype, end):
    x = torch.tensor([end, end * 1.2, 1e9, float("inf"), -end * 3])
    assert emulate(x, ONE, dtype).tolist() == [end] * 4 + [-end]
    assert all_numbers(dtype).max() == end
    assert emulate(torch.tensor([float("nan")]), ONE, dtype).isnan().all()


def test_a_number_of_16_bits_is_scaled_in_32():
    x = torch.linspace(-1, 1, 99).bfloat16()
    scale = torch.tensor(3.3)
    assert torch.equal(emulate(x, scale, E4M3), emulate(x.float(), scale, E4M3))


def test_a_layer_may_have_no_bias():
    x, linear = torch.eye(3), nn.Linear(3, 2, bias=False)
    layer = EmulatedFp8Linear(linear, tuple(CurrentScaling() for _ in range(3)))
    torch.testing.assert_close(layer(x), linear(x), rtol=2**-4, atol=0)


def test_a_scale_brings_small_numbers_back():
    x = torch.tensor([1e-6, 2e-6])
    assert emulate(x, ONE, E4M3).tolist() == [0.0, 0.0]
    scale = CurrentScaling().scale(x, E4M3)
    torch.testing.assert_close(emulate(x, scale, E4M3), x, rtol=2**-4, atol=0)
    tiny = CurrentScaling().scale(torch.tensor([1e-40]), E4M3)
    assert tiny == torch.finfo(torch.float32).max


@pytest.mark.parametrize(
    ("amax", "expected"),
    [
        (2.0, 224.0),
        (448.0, 1.0),
        (0.0, 7.0),
        (float("inf"), 7.0),
        (float("nan"), 7.0),
        (1e-40, torch.finfo(torch.float32).max),
    ],
)
def test_a_scale_takes_the_largest_to_the_end(amax, expected):
    scale = compute_scale(torch.tensor(amax), 448.0, torch.tensor(7.0))
    assert float(scale) == pytest.approx(expected, rel=1e-6)


@pytest.mark.parametrize("dtype", [E4M3, E5M2])
def test_a_scale_of_the_tensor_at_hand_is_rounded_once(dtype):
    x = torch.arange(1.0, 200.0).view(-1, 1)
    got = torch.stack([CurrentScaling().scale(row, dtype) for row in x])
    quotient = torch.finfo(dtype).max / x[:, 0].double()
    assert torch.equal(got, quotient.float())


@given(exponent=some.integers(-100, 100), mantissa=some.floats(1.0, 1.99))
def test_a_power_of_two_is_the_next_below(exponent, mantissa):
    scale = torch.tensor(mantissa * 2.0**exponent)
    assert float(round_to_power_of_2(scale)) == 2.0**exponent


@pytest.mark.parametrize(
    ("rows", "columns", "shape"),
    [
        (1, 4, (3, 8)),
        (1, 4, (2, 7)),
        (2, 3, (4, 6)),
        (2, 3, (5, 7)),
        (128, 128, (3, 3)),
    ],
)
def test_each_block_has_its_own_power_of_two(rows, columns, shape):
    x = torch.randn(shape, generator=torch.Generator().manual_seed(1)).exp()
    scale = BlockScaling(rows, columns).scale(x, E4M3)
    assert scale.shape == x.shape
    for i in range(0, shape[0], rows):
        for j in range(0, shape[1], columns):
            block = scale[i : i + rows, j : j + columns]
            amax = float(x[i : i + rows, j : j + columns].max())
            assert (block == block[0, 0]).all()
            assert torch.frexp(block).mantissa.eq(0.5).all()
            assert 224 < amax * float(block[0, 0]) <= 448


def test_an_outlier_costs_its_own_block_alone():
    x = torch.full((2, 64), 1e-3)
    x[0, 0] = 1e4
    off = {}
    for name, scaling in (("tensor", CurrentScaling()), ("block", BlockScaling(1, 32))):
        got = emulate(x, scaling.scale(x, E4M3), E4M3)
        off[name] = int((got == 0).sum())
    assert off == {"tensor": 127, "block": 31}


@settings(max_examples=50, deadline=None)
@given(
    amaxes=some.lists(some.floats(0.0, 1e4, width=32), max_size=12),
    length=some.integers(1, 5),
)
def test_a_delayed_scale_is_of_the_largest_of_the_last_steps(amaxes, length):
    scaling, expected = DelayedScaling(length), 1.0
    for step, amax in enumerate(amaxes):
        x = torch.tensor([[amax, -amax / 2]])
        assert float(scaling.scale(x, E5M2)) == pytest.approx(expected, rel=1e-6)
        scaling.scale(x / 2, E5M2)  # a second microbatch: the larger counts
        scaling.update()
        largest = max(amaxes[max(0, step - length + 1) : step + 1])
        end, top = 57344.0, torch.finfo(torch.float32).max
        expected = min(end / largest, top) if largest > 0 else expected


def test_a_stale_scale_cuts_off():
    scaling = DelayedScaling()
    scaling.scale(torch.tensor([[1.0]]), E4M3)
    scaling.update()
    x = torch.tensor([[4.0]])
    assert float(emulate(x, scaling.scale(x, E4M3), E4M3)) == 1.0
    scaling.update()
    assert float(emulate(x, scaling.scale(x, E4M3), E4M3)) == 4.0


@pytest.mark.parametrize(
    ("make", "expected"),
    [
        (CurrentScaling, 4),
        (lambda: BlockScaling(1, 2), 2),
        (lambda: BlockScaling(2, 2), 4),
        (DelayedScaling, 0),
    ],
)
def test_an_overflow_shows_unless_the_scale_is_an_old_one(make, expected):
    x = torch.tensor([[1.0, float("inf")], [1.0, 1.0]])
    got = emulate(x, make().scale(x, E5M2), E5M2)
    assert int(got.isnan().sum()) == expected
    assert not got.isinf().any()
    assert BlockScaling(1, 2).scale(torch.zeros(1, 2), E5M2).tolist() == [[1.0, 1.0]]


def agree(rank, together, first=1.0):
    scalings = [DelayedScaling(2), DelayedScaling(2)]
    for i, scaling in enumerate(scalings):
        scaling.scale(torch.tensor([[first + rank.rank + i]]), E4M3)
    with CollectiveCounter() as sent:
        reduce_and_update(scalings, rank.group if together else None)
    return [float(s.current) for s in scalings], sent.counts(), sent.payload_bytes()


def test_ranks_agree_on_scales_in_one_call(pool2):
    want = [448.0 / 2, pytest.approx(448.0 / 3)]
    for scales, counts, payload in pool2.run(agree, True):
        assert scales == want
        assert counts == {"all_reduce": 1} and payload == {"all_reduce": 8}
    apart = [scales for scales, *_ in pool2.run(agree, False)]
    assert apart == [[448.0, 224.0], want]


def test_a_layer_multiplies_what_it_rounded_forward_and_backward():
    torch.manual_seed(2)
    linear = nn.Linear(6, 5)
    layer = EmulatedFp8Linear(linear, (CurrentScaling(),) * 3)
    x = torch.randn(2, 3, 6, requires_grad=True)
    grad = torch.randn(2, 3, 5)
    out = layer(x)
    out.backward(grad)

    def rounded(tensor, dtype):
        scale = torch.finfo(dtype).max / tensor.abs().max()
        return (tensor * scale).to(dtype).float() / scale

    rows, weight = rounded(x.detach(), E4M3), rounded(linear.weight.detach(), E4M3)
    dy = rounded(grad, E5M2)
    torch.testing.assert_close(out, rows @ weight.T + linear.bias)
    torch.testing.assert_close(x.grad, dy @ weight)
    of_weight = dy.flatten(0, 1).T @ rows.flatten(0, 1)
    torch.testing.assert_close(linear.weight.grad, of_weight)
    torch.testing.assert_close(linear.bias.grad, grad.flatten(0, 1).sum(0))
    assert (out - linear(x)).abs().max() > 1e-3


def build(kind):
    model = build_model(CONFIG)
    row, square = BlockScaling(1, 8), BlockScaling(8, 8)
    make = {
        "current": lambda: (CurrentScaling(),) * 3,
        "delayed": lambda: tuple(DelayedScaling(2) for _ in range(3)),
        "blocks": lambda: (row, square, row),
    }
    return model, emulate_fp8(model.layers, make[kind])


def train(rank, kind):
    """Return losses and the last gradients of two steps of a rank's rows."""
    model, scalings = build(kind)
    losses = []
    for step in range(2):
        batch = make_batch(CONFIG, step=step, batch_size=4 * rank.world_size)
        tokens, labels = shard_batch(batch, rank=rank.rank, world_size=rank.world_size)
        model.zero_grad()
        loss = compute_loss(model(tokens), labels)
        loss.backward()
        losses.append(loss.item())
        if kind == "delayed":
            reduce_and_update(scalings, rank.group)
    return losses, [p.grad for p in model.parameters()]


@pytest.mark.parametrize("kind", ["current", "delayed", "blocks"])
def test_ranks_round_as_one_process_does(pool2, kind):
    model, scalings = build(kind)
    assert len(scalings) == 4 * 3
    kinds = {type(module) for module in model.layers.modules()}
    assert EmulatedFp8Linear in kinds and nn.Linear not in kinds
    results = pool2.run(train, kind)
    for step in range(2):
        batch = make_batch(CONFIG, step=step, batch_size=8)
        for rank, (losses, grads) in enumerate(results):
            tokens, labels = shard_batch(batch, rank=rank, world_size=2)
            model.zero_grad()
            loss = compute_loss(model(tokens), labels)
            loss.backward()
            assert loss.item() == losses[step]
            if step:
                for param, grad in zip(model.parameters(), grads, strict=True):
                    assert torch.equal(param.grad, grad)
        if kind == "delayed":
            reduce_and_update(scalings)
