"""Compressed gradients: what each way sends, loses, keeps back and gives in the end."""

import contextlib
import io
import re
from argparse import Namespace

import pytest
import torch
import torch.distributed as dist
from hypothesis import given, settings
from hypothesis import strategies as st
from ranks import RankFailure, RankPool
from small_models import ROUNDINGS, small_models
from torch import nn

from mini_impls.compression import (
    CompressedDataParallel,
    GradBucket,
    PowerSGD,
    TopK,
    all_gather_uint8,
    all_reduce,
    all_reduce_as,
    dequantize,
    orthogonalize,
    quantize,
)
from mini_impls.demos import compression as demo
from mini_impls.model import (
    GPTConfig,
    build_model,
    compute_loss,
    make_batch,
    shard_batch,
)
from mini_impls.traffic import CollectiveCounter
from tests.quick import quick_first

SHAPES = [(12, 20), (20,), (16, 12), (8, 3, 8), (), (2, 2)]
WAYS = {
    "float32": lambda: all_reduce,
    "float16": lambda: all_reduce_as(torch.float16),
    "bfloat16": lambda: all_reduce_as(torch.bfloat16),
    "uint8": lambda: all_gather_uint8,
    "top-k": lambda: TopK(0.1),
    "PowerSGD": lambda: PowerSGD(2, start_iter=0),
}


@pytest.fixture(params=[2, 3, 4])
def pool(request):
    """Two ranks, three and four."""
    return request.getfixturevalue(f"pool{request.param}")


def some_params(shapes=SHAPES):
    return [nn.Parameter(torch.zeros(shape)) for shape in shapes]


def gradient(rank, step, numel, scale=1.0):
    random = torch.Generator().manual_seed(1000 * rank + step)
    return scale * torch.randn(numel, generator=random)


def compress_steps(rank, way, steps=1, constant=False):
    """Return of each step what went in on this rank, what came out, what was sent."""
    compress, bucket = WAYS[way](), GradBucket(some_params())
    seen = []
    for step in range(steps):
        local = gradient(rank.rank, 0 if constant else step, bucket.buffer.numel())
        bucket.buffer.copy_(local)
        with CollectiveCounter() as sent:
            compress(bucket, rank.group)
        seen.append((local, bucket.buffer.clone(), sum(sent.payload_bytes().values())))
    error = getattr(compress, "error", None)
    return seen, torch.zeros(()) if error is None else error


def of_step(results, step, part):
    return [seen[step][part] for seen, _ in results]


def mean(tensors):
    return torch.stack(list(tensors)).mean(0)


@pytest.mark.parametrize("way", WAYS)
def test_all_ranks_are_left_with_the_same(pool, way):
    results = pool.run(compress_steps, way, 2)
    for step in range(2):
        first, *others = of_step(results, step, 1)
        assert all(torch.equal(first, other) for other in others)
        assert torch.isfinite(first).all()


@pytest.mark.parametrize(
    ("way", "relative"), [("float32", 1e-6), ("float16", 2e-3), ("bfloat16", 2e-2)]
)
def test_fewer_bits_round_the_mean(pool, way, relative):
    results = pool.run(compress_steps, way)
    exact, got = mean(of_step(results, 0, 0)), of_step(results, 0, 1)[0]
    size = mean(local.abs() for local in of_step(results, 0, 0))
    assert ((got - exact).abs() <= relative * size + 1e-7).all()
    assert torch.equal(got, exact) == (way == "float32" and len(results) == 2)


def reduce_large_numbers(rank):
    bucket = GradBucket(some_params())
    bucket.buffer.fill_(4e4)
    all_reduce_as(torch.float16)(bucket, rank.group)
    return bucket.buffer


def test_a_mean_that_float16_holds_survives_a_sum_that_it_does_not(pool):
    for mean in pool.run(reduce_large_numbers):
        assert torch.equal(mean, torch.full_like(mean, 4e4))


def test_eight_bits_are_at_most_half_a_step_off(pool):
    results = pool.run(compress_steps, "uint8")
    locals_, got = of_step(results, 0, 0), of_step(results, 0, 1)[0]
    half_steps = [float(x.max() - x.min()) / 255 / 2 for x in locals_]
    off = (got - mean(locals_)).abs().max()
    assert 0 < off <= max(half_steps) * 1.01


@pytest.mark.parametrize("offset", [-5.0, -0.3, 0.0, 0.3, 5.0])
def test_integers_stand_for_zero_and_for_both_ends(offset):
    numbers = torch.linspace(-1, 1, 77) + offset
    numbers[5] = 0.0
    codes, scale_and_zero = quantize(numbers)
    back = dequantize(codes, scale_and_zero)
    assert codes.dtype == torch.uint8 and back[5] == 0.0
    assert (back - numbers).abs().max() <= float(scale_and_zero[0]) * 0.501


@pytest.mark.parametrize("sign", [1.0, -1.0])
def test_integers_reach_from_zero_where_all_numbers_have_one_sign(sign):
    numbers = sign * torch.linspace(4, 6, 21)
    codes, (scale, zero) = quantize(numbers)
    assert float(scale) == pytest.approx(6 / 255)
    assert float(zero) == (0.0 if sign > 0 else 255.0)
    assert codes.tolist() != [codes[0].item()] * 21


def test_nothing_but_zeros_stays_zeros():
    codes, scale_and_zero = quantize(torch.zeros(4))
    assert dequantize(codes, scale_and_zero).tolist() == [0.0] * 4


def test_bytes_are_those_of_the_formula(pool):
    numel = GradBucket(some_params()).buffer.numel()
    ranks = len(pool.run(compress_steps, "float32"))
    k = int(0.1 * numel)
    rows_and_columns = (12 + 20) + (16 + 12) + (8 + 24)
    whole = 20 + 1 + 4
    due = {
        "float32": 4 * numel,
        "float16": 2 * numel,
        "bfloat16": 2 * numel,
        "uint8": ranks * (numel + 8),
        "top-k": ranks * k * (8 + 4),
        "PowerSGD": 4 * (whole + 2 * rows_and_columns),
    }
    for way, expected in due.items():
        assert set(of_step(pool.run(compress_steps, way), 0, 2)) == {expected}, way


@pytest.mark.parametrize(
    ("shape", "is_thin"), [((3, 5), False), ((4, 4), False), ((4, 5), True)]
)
def test_a_matrix_is_sent_whole_unless_that_is_more_than_twice_its_rows_and_columns(
    shape, is_thin
):
    assert PowerSGD(rank=1).is_worth_it(torch.zeros(shape)) == is_thin


@pytest.mark.parametrize("way", ["top-k", "PowerSGD"])
def test_what_a_step_keeps_back_comes_later(pool2, way):
    """All that came out, and what is still kept back, is all that went in."""
    steps = 5
    results = pool2.run(compress_steps, way, steps)
    went_in = sum(mean(of_step(results, step, 0)) for step in range(steps))
    came_out = sum(of_step(results, step, 1)[0] for step in range(steps))
    kept = mean(error for _, error in results)
    assert kept.abs().max() > 0.1
    torch.testing.assert_close(came_out + kept, went_in, atol=1e-4, rtol=1e-4)


def test_top_k_sends_the_largest(pool2):
    results = pool2.run(compress_steps, "top-k")
    numel = results[0][0][0][0].numel()
    expected = torch.zeros(numel)
    for local in of_step(results, 0, 0):
        largest = local.abs().argsort(descending=True)[: int(0.1 * numel)]
        expected[largest] += local[largest] / 2
    torch.testing.assert_close(of_step(results, 0, 1)[0], expected)


def test_power_iteration_comes_nearer_step_by_step(pool2):
    """Of a gradient that stays, the mean of what came out nears the gradient."""
    results = pool2.run(compress_steps, "PowerSGD", 40, True)
    exact = mean(of_step(results, 0, 0))
    means = [
        mean(of_step(results, step, 1)[0] for step in range(n)) for n in (1, 10, 40)
    ]
    off = [float((came_out - exact).norm() / exact.norm()) for came_out in means]
    assert off[0] > 2 * off[1] > 4 * off[2]


def low_rank(rank, of):
    compress, bucket = PowerSGD(2, start_iter=0), GradBucket(some_params([(30, 20)]))
    random = torch.Generator().manual_seed(7)
    left = torch.randn(30, of, generator=random)
    right = torch.randn(of, 20, generator=random)
    bucket.buffer.copy_(((1 + rank.rank) * left @ right).flatten())
    expected = bucket.buffer.clone() * 1.5 / (1 + rank.rank)
    compress(bucket, rank.group)
    return float((bucket.buffer - expected).abs().max())


@pytest.mark.parametrize("of", [0, 1, 2])
def test_a_matrix_of_low_rank_is_sent_as_it_is(pool2, of):
    assert max(pool2.run(low_rank, of)) < 1e-4


def test_columns_become_orthonormal_and_zeros_stay():
    matrix = torch.randn(9, 4, generator=torch.Generator().manual_seed(0))
    matrix[:, 2] = 0.0
    orthogonalize(matrix)
    expected = torch.eye(4)
    expected[2, 2] = 0.0
    torch.testing.assert_close(matrix.T @ matrix, expected, atol=1e-5, rtol=0)


def test_what_only_fp64_tells_apart_is_two_columns():
    column, other = torch.eye(9, 2, dtype=torch.float64).unbind(1)
    matrix = torch.stack((column, column + 1e-9 * other), dim=1)
    orthogonalize(matrix)
    torch.testing.assert_close(matrix, torch.eye(9, 2, dtype=torch.float64))


def test_an_iteration_starts_from_a_stream_of_its_own_in_the_type_of_gradients():
    before = torch.get_rng_state()
    (q,) = PowerSGD(2, seed=1).draw_qs([torch.zeros(9, 7, dtype=torch.float64)])
    assert q.dtype is torch.float64 and q.shape == (7, 2)
    assert torch.equal(torch.get_rng_state(), before)


def test_gradients_have_a_bucket_in_a_type_of_their_own():
    param = nn.Parameter(torch.zeros(2, dtype=torch.float64))
    param.grad = torch.tensor([1.0, 2.0], dtype=torch.float64) / 3
    want, unused = param.grad.clone(), nn.Parameter(torch.ones(1))
    bucket = GradBucket([param, unused])
    bucket.take(param)
    bucket.take(unused)
    assert unused.grad is None
    assert param.grad.data_ptr() == bucket.buffer.data_ptr()
    assert param.grad.dtype is torch.float64 and torch.equal(param.grad, want)


def send_one_of_three(rank):
    bucket = GradBucket(some_params([(3,)]))
    bucket.buffer.copy_(torch.tensor([1.0, -5.0, 2.0]))
    TopK(0.1)(bucket, rank.group)
    return bucket.buffer.tolist()


def test_of_few_elements_one_is_sent(pool2):
    assert pool2.run(send_one_of_three) == [[0.0, -5.0, 0.0]] * 2


def first_steps(rank):
    compress, bucket = PowerSGD(1, start_iter=2), GradBucket(some_params())
    sent, drawn = [], []
    for step in range(4):
        bucket.buffer.copy_(gradient(rank.rank, step, bucket.buffer.numel()))
        with CollectiveCounter() as counter:
            compress(bucket, rank.group)
        sent.append(sum(counter.payload_bytes().values()))
        drawn.append(compress.random.get_state())
    assert torch.equal(drawn[2], drawn[3]), "the last step starts where one ended"
    return sent


def test_power_sgd_sends_the_first_steps_whole(pool2):
    numel = GradBucket(some_params()).buffer.numel()
    sent = pool2.run(first_steps)[0]
    assert sent[:2] == [4 * numel] * 2 and sent[2] == sent[3] < 2 * numel


# --- trainings ---


def off_at_most(way, local_grads, world_size):
    """Return how far a mean may be from the exact one, by what each rank sends."""
    flat = [torch.cat([g.flatten() for g in grads]) for grads in local_grads]
    own = torch.finfo(flat[0].dtype).eps
    if way == "uint8":  # half a step of each rank's, and its own numbers' rounding
        steps = [float(x.max().clamp(min=0) - x.min().clamp(max=0)) / 255 for x in flat]
        return max(sum(steps) / world_size * (0.5 + 2 * 255 * own), 1e-9)
    sent = torch.finfo(getattr(torch, way))
    # Twice for each rank's part (cast, divided), once for each sum and for the result.
    size = max(float(x.abs().max()) for x in flat)
    return (world_size + 3) * (max(sent.eps, own) * size + sent.smallest_normal * own)


def train_along(rank, small, way):
    """Train; return how far each step, and the end, are from what they should be.

    One process makes each step's gradients of all ranks from the very same weights. A
    mean of fewer bits is held against its bound. What keeps something back ends where
    the exact gradients would, but for what it still has.
    """
    compress, gpt, alone = TRAINING[way](), small.build(), small.build()
    model = CompressedDataParallel(gpt, rank.group, compress)
    optimizer = torch.optim.SGD(gpt.parameters(), lr=0.1)
    want = {name: p.detach().clone() for name, p in gpt.named_parameters()}
    w, excess, largest = rank.world_size, [], 1.0
    for batch in small.batches(w, steps=3):
        alone.load_state_dict(gpt.state_dict())
        local_grads = []
        for r in range(w):
            tokens, labels = shard_batch(batch, rank=r, world_size=w)
            alone.zero_grad()
            compute_loss(alone(tokens), labels).backward()
            named = alone.named_parameters()
            local_grads.append({n: p.grad for n, p in named if p.grad is not None})
        optimizer.zero_grad()
        tokens, labels = shard_batch(batch, rank=rank.rank, world_size=w)
        compute_loss(model(tokens), labels).backward()
        due = (
            off_at_most(way, [g.values() for g in local_grads], w)
            if way in FEWER
            else 0
        )
        for name, param in gpt.named_parameters():
            if param.grad is not None:
                exact = sum(grads[name].double() for grads in local_grads) / w
                want[name] = want[name] - 0.1 * exact
                largest = max(largest, float(exact.abs().max()))
                if due:
                    excess.append(float((param.grad - exact).abs().max()) / due)
        optimizer.step()
    if way in FEWER:
        return max(excess)
    kept = compress.error / w
    dist.all_reduce(kept, group=rank.group)
    bucket = model.bucket.gradient_of
    pieces = kept.split([param.numel() for param in bucket])
    kept_of = dict(zip(bucket, pieces, strict=True))
    due = ROUNDINGS * small.rounding() * largest
    for name, param in gpt.named_parameters():
        end = want[name]
        if param in kept_of:
            end = end + 0.1 * kept_of[param].view_as(param)
        excess.append(float((param.detach() - end).abs().max()) / due)
    return max(excess)


TRAINING = {  # of small matrices no more than one column is worth it
    "top-k": WAYS["top-k"],
    "PowerSGD": lambda: PowerSGD(1, start_iter=1),
    "PowerSGD at once": lambda: PowerSGD(1, start_iter=0),
    "half of all": lambda: TopK(0.5),
    **{way: WAYS[way] for way in ("float32", "float16", "bfloat16", "uint8")},
}
FEWER = ("float32", "float16", "bfloat16", "uint8")


def check_random_models(pool: RankPool, data):
    small = data.draw(small_models(may_scale=False))
    way = data.draw(st.sampled_from(list(TRAINING)))
    for excess in pool.run(train_along, small, way):
        assert excess <= 1, f"{excess} times as far as it may be"


@settings(max_examples=12)
@given(data=st.data())
def test_random_models_train_as_one_process_within_a_bound(few_ranks, data):
    check_random_models(few_ranks, data)


@pytest.mark.slow
@settings(max_examples=60)
@given(data=st.data())
def test_many_random_models_train_as_one_process_within_a_bound(few_ranks, data):
    check_random_models(few_ranks, data)


class Forgetful:
    """A compressor that drops what it keeps back."""

    def __init__(self, compress):
        self.compress = compress

    def __call__(self, bucket, group):
        self.compress.error = None
        self.compress(bucket, group)


CONVERGING = {
    **{way: WAYS[way] for way in ("float32", "float16", "uint8")},
    "top-k": lambda: TopK(0.02),
    "PowerSGD": lambda: PowerSGD(1, start_iter=0),
    "top-k, forgetful": lambda: Forgetful(TopK(0.02)),
    "PowerSGD, forgetful": lambda: Forgetful(PowerSGD(1, start_iter=0)),
}
TINY = GPTConfig(
    vocab_size=16,
    max_sequence_length=8,
    num_layers=1,
    hidden_size=16,
    num_attention_heads=2,
    num_query_groups=1,
    ffn_hidden_size=32,
)


def fall(rank, way):
    """Return the loss of the model as it was, and after 40 steps, on other rows."""
    gpt = build_model(TINY)
    model = CompressedDataParallel(gpt, rank.group, CONVERGING[way]())
    optimizer = torch.optim.SGD(gpt.parameters(), lr=0.2)
    others = make_batch(TINY, step=10**5, batch_size=256)
    losses = []
    for step in range(41):
        if step in (0, 40):
            with torch.no_grad():
                losses.append(compute_loss(gpt(others[0]), others[1]).item())
        batch = make_batch(TINY, step=step, batch_size=4 * rank.world_size)
        tokens, labels = shard_batch(batch, rank=rank.rank, world_size=rank.world_size)
        optimizer.zero_grad()
        compute_loss(model(tokens), labels).backward()
        optimizer.step()
    return losses


def check_convergence(pool):
    """A fifth of the fall behind at most; without error feedback, at least a third."""
    losses = {way: pool.run(fall, way)[0] for way in CONVERGING}
    first, last = losses["float32"]
    assert first - last > 1
    behind = {way: (end - last) / (first - last) for way, (_, end) in losses.items()}
    for way, share in behind.items():
        if "forgetful" in way:
            assert share > 1 / 3, behind
        else:
            assert abs(share) < 1 / 5, behind


@pytest.mark.parametrize("world_size", quick_first([2, 3]))
@pytest.mark.further
def test_what_comes_later_or_rounded_converges_and_what_is_dropped_lags(
    request, world_size
):
    check_convergence(request.getfixturevalue(f"pool{world_size}"))


# --- what calls a compressor ---


class Switched(nn.Module):
    """Two layers, of which the second can be left out."""

    def __init__(self):
        super().__init__()
        torch.manual_seed(3)
        self.first, self.second = nn.Linear(4, 4), nn.Linear(4, 4)
        self.frozen = nn.Parameter(torch.ones(4), requires_grad=False)

    def forward(self, x, both=True):
        x = self.first(x) * self.frozen
        return self.second(x) if both else x


def wrapped(rank, unused_second=False, first=0.0):
    module = Switched()
    with torch.no_grad():
        for param in module.parameters():
            param += rank.rank + first  # rank 0's will be kept
    model = CompressedDataParallel(module, rank.group, all_reduce)
    for step in range(2):
        model.zero_grad()
        x = torch.full((3, 4), float(1 + rank.rank + step))
        model(x, both=not (unused_second and step)).square().mean().backward()
    return {name: param.grad for name, param in module.named_parameters()}


def test_each_grad_is_the_mean_over_ranks_that_start_equal(pool2):
    results = pool2.run(wrapped)
    alone = []
    for rank in range(2):
        module = Switched()
        module(torch.full((3, 4), float(2 + rank))).square().mean().backward()
        alone.append(module)
    for name, got in results[0].items():
        grads = [dict(module.named_parameters())[name].grad for module in alone]
        if name == "frozen":
            assert got is None
            continue
        torch.testing.assert_close(got, mean(grads))
        assert torch.equal(got, results[1][name])


def test_a_parameter_without_gradient_is_told(pool2):
    with pytest.raises(RankFailure, match="2 parameters had no gradient this time"):
        pool2.run(wrapped, True)


def test_no_column_is_refused():
    with pytest.raises(ValueError, match="at least 1 column, not 0"):
        PowerSGD(0)


def run_demo(rank, steps):
    args = Namespace(steps=steps, share=0.05, columns=2)
    with contextlib.redirect_stdout(io.StringIO()) as out:
        demo.demo(rank, args)
    return out.getvalue()


@pytest.mark.further
def test_the_demo_shows_bytes_and_distance_of_each_way(pool2):
    shown = pool2.run(run_demo, 4)[0]
    for way in ("float32", "float16", "uint8", "top 5%", "PowerSGD of rank 2"):
        part = shown.split(f"--- {way}\n")[1].split("---")[0]
        assert part.count("one process") == 5
        sent = re.findall(r"(\S+) bytes \(formula ([^)]+)\)", part)
        assert sent and all(payload == due for payload, due in sent)


class Broken(torch.autograd.Function):
    """Ends a backward on its way."""

    @staticmethod
    def forward(ctx, x):
        return x.clone()

    @staticmethod
    def backward(ctx, grad):
        raise ArithmeticError


def reduce_after_a_cut(rank):
    calls, layer = [], nn.Linear(2, 2)
    model = CompressedDataParallel(layer, rank.group, lambda *_: calls.append(1))
    x = torch.ones(1, 2, requires_grad=True)
    with pytest.raises(ArithmeticError):
        model(Broken.apply(x)).sum().backward()
    layer.zero_grad()
    model(torch.ones(1, 2)).sum().backward()
    return len(calls)


def test_after_a_backward_that_was_cut_short_gradients_are_reduced(pool2):
    assert pool2.run(reduce_after_a_cut) == [1, 1]
