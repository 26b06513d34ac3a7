"""Mixed precision: what equals one process, what is skipped, scaled, kept and lost."""

import contextlib
import io
import re
from argparse import Namespace

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as some
from torch import nn

from mini_impls.demos import mixed_precision as demo
from mini_impls.mixed_precision import (
    Float16Module,
    Float16Optimizer,
    MainGrads,
    train_step,
)
from mini_impls.mixed_precision_scaler import ConstantGradScaler, DynamicGradScaler
from mini_impls.model import GPTConfig, build_model, make_batch, shard_batch
from mini_impls.model import compute_loss as compute
from mini_impls.traffic import CollectiveCounter

CONFIG = GPTConfig(hidden_size=32, ffn_hidden_size=64, num_layers=1)
TIED = GPTConfig(
    hidden_size=32,
    ffn_hidden_size=64,
    num_layers=1,
    share_embeddings_and_output_weights=True,
)
STEPS, SCALE = 6, 2.0**21
"""The first scale overflows, and so does one of those that it grows to."""


SLOW = [pytest.param(n, marks=pytest.mark.slow) for n in (3, 4)]


@pytest.fixture(params=[2, *SLOW])
def ranks(request):
    """Two ranks, and, where there is time, three and four."""
    return request.getfixturevalue(f"pool{request.param}")


def dynamic(scale=SCALE, hysteresis=1, **settings):
    return DynamicGradScaler(
        scale, growth_interval=2, hysteresis=hysteresis, **settings
    )


def batches(config, world_size):
    return [make_batch(config, step=i, batch_size=4 * world_size) for i in range(STEPS)]


def train(rank, config, dtype, microbatches=1):
    model = Float16Module(build_model(config), dtype)
    model.module.embedding.position_embeddings.weight.requires_grad_(False)
    scaler = dynamic() if dtype is torch.float16 else None
    main_grads = MainGrads(model.parameters(), rank.group)
    adamw = torch.optim.AdamW(model.parameters(), 3e-3)
    optimizer = Float16Optimizer(adamw, main_grads, scaler)
    steps = []
    for batch in batches(config, rank.world_size):
        here = shard_batch(batch, rank=rank.rank, world_size=rank.world_size)
        parts = [
            shard_batch(here, rank=i, world_size=microbatches)
            for i in range(microbatches)
        ]
        scale = 1.0 if scaler is None else float(scaler.scale)
        loss, was_made, _ = train_step(model, optimizer, parts)
        steps.append((loss, was_made, scale))
    return steps, dict(model.module.state_dict()), main_grads.grad_data.clone()


def alone(config, dtype, world_size, microbatches=1):
    """Return the same of one process: torch's GradScaler, AdamW on float32 copies."""
    model = build_model(config).to(dtype)
    model.embedding.position_embeddings.weight.requires_grad_(False)
    params = [p for p in model.parameters() if p.requires_grad]
    mains = [p.detach().float() for p in params]
    optimizer = torch.optim.AdamW(mains, 3e-3)
    scaler = torch.amp.GradScaler("cpu", SCALE, growth_interval=2)
    is_scaled = dtype is torch.float16
    steps = []
    for batch in batches(config, world_size):
        sums, losses = [torch.zeros_like(main) for main in mains], []
        scale = scaler.get_scale() if is_scaled else 1.0
        for rank in range(world_size):
            here = shard_batch(batch, rank=rank, world_size=world_size)
            of_rank = [torch.zeros_like(main) for main in mains]
            total = 0.0
            for i in range(microbatches):
                part = shard_batch(here, rank=i, world_size=microbatches)
                loss = compute(model(part[0]).float(), part[1]) / microbatches
                total += loss.item()
                scaled = scaler.scale(loss) if is_scaled else loss
                grads = torch.autograd.grad(scaled, params)
                for both, grad in zip(of_rank, grads, strict=True):
                    both += grad
            losses.append(total)
            for both, grad in zip(sums, of_rank, strict=True):
                both += grad * (1 / world_size)
        for main, grad in zip(mains, sums, strict=True):
            main.grad = grad
        before = mains[0].clone()
        if is_scaled:
            scaler.step(optimizer)
            scaler.update()
        else:
            optimizer.step()
        with torch.no_grad():
            for param, main in zip(params, mains, strict=True):
                param.copy_(main)
        steps.append((losses, not torch.equal(before, mains[0]), scale))
    return steps, dict(model.state_dict()), torch.cat([g.flatten() for g in sums])


def assert_near(got, want, world_size, dtype):
    """Bitwise for two ranks; otherwise sums have another order, and are rounded."""
    got, want = got.float(), want.float()
    if world_size == 2:
        torch.testing.assert_close(got, want, rtol=0, atol=0, equal_nan=True)
    else:
        # A last bit of float32 may become one of 16 bits, and AdamW divides.
        step = torch.finfo(dtype).eps
        torch.testing.assert_close(got, want, rtol=8 * step, atol=8 * step)


@pytest.mark.parametrize("config", [CONFIG, TIED], ids=["untied", "tied"])
@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_losses_gradients_and_weights_are_those_of_one_process(ranks, config, dtype):
    w = ranks.world_size
    want, want_state, want_grads = alone(config, dtype, w)
    results = ranks.run(train, config, dtype)
    for rank, (steps, state, grads) in enumerate(results):
        for step, (losses, was_made, scale) in zip(steps, want, strict=True):
            assert step[1:] == (was_made, scale)
            rough = 0 if w == 2 else 2e-2
            assert step[0] == pytest.approx(losses[rank], abs=rough, rel=0)
        for name, tensor in want_state.items():
            assert_near(state[name], tensor, w, dtype)
        assert state.keys() == want_state.keys()
        finite = torch.isfinite(want_grads)
        # The mini takes the scale out of them in place, as torch's scaler does.
        assert torch.equal(torch.isfinite(grads), finite)
        assert_near(grads[finite], want_grads[finite], w, dtype)
    made = [was_made for _, was_made, _ in results[0][0]]
    expected = [False, True] if dtype is torch.float16 else [True]
    assert sorted(set(made)) == expected


def test_microbatches_add_up_in_32_bits(pool2):
    want, want_state, _ = alone(CONFIG, torch.bfloat16, 2, microbatches=2)
    for rank, (steps, state, _) in enumerate(
        pool2.run(train, CONFIG, torch.bfloat16, 2)
    ):
        assert [step[0] for step in steps] == [losses[rank] for losses, *_ in want]
        for name, tensor in want_state.items():
            assert torch.equal(state[name], tensor), name


def sum_of_microbatches(dtype):
    param = nn.Parameter(torch.ones(1, dtype=dtype))
    main_grads = MainGrads([param])
    for size in (1.0, *[2.0**-12] * 64):
        (param * size).sum().backward()
    return float(main_grads.main_grad[param]), param.grad


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_a_small_gradient_is_not_lost_beside_a_large_one(dtype):
    assert sum_of_microbatches(dtype) == (1 + 64 * 2.0**-12, None)


# --- the scale ---


@settings(max_examples=60, deadline=None)
@given(
    found=some.lists(some.booleans(), max_size=60),
    interval=some.integers(1, 5),
    growth=some.sampled_from([2.0, 4.0]),
    backoff=some.sampled_from([0.5, 0.25]),
)
def test_with_a_hysteresis_of_one_the_scale_is_torchs(found, interval, growth, backoff):
    ours = DynamicGradScaler(
        2.0**20,
        min_scale=2.0**-110,
        growth_factor=growth,
        backoff_factor=backoff,
        growth_interval=interval,
        hysteresis=1,
    )
    theirs = torch.amp.GradScaler(
        "cpu", 2.0**20, growth, backoff, growth_interval=interval
    )
    param = nn.Parameter(torch.zeros(1))
    optimizer = torch.optim.SGD([param], 0.0)
    for found_inf in found:
        theirs.scale(torch.zeros(1))
        param.grad = torch.full((1,), float("inf") if found_inf else 1.0)
        theirs.step(optimizer)
        theirs.update()
        ours.update(found_inf)
        # torch stops where float32 does.
        if float(ours.scale) == float("inf"):
            assert theirs.get_scale() * growth > torch.finfo(torch.float32).max
            return
        assert float(ours.scale) == theirs.get_scale()
        assert ours.growth_tracker == theirs._get_growth_tracker()


@settings(max_examples=60, deadline=None)
@given(
    found=some.lists(some.booleans(), max_size=60),
    interval=some.integers(1, 5),
    hysteresis=some.integers(1, 4),
)
def test_overflows_lower_the_scale_and_patience_comes_back_with_growth(
    found, interval, hysteresis
):
    """The exponent is counted from the whole history, without trackers."""
    scaler = DynamicGradScaler(
        2.0**10, min_scale=2.0, growth_interval=interval, hysteresis=hysteresis
    )
    exponent, since_growth, clean = 10, 0, 0
    for found_inf in found:
        scaler.update(found_inf)
        clean = 0 if found_inf else clean + 1
        since_growth += found_inf
        if found_inf and since_growth >= hysteresis:
            exponent = max(1, exponent - 1)
        if clean and clean % interval == 0:
            exponent, since_growth = exponent + 1, 0
        assert float(scaler.scale) == 2.0**exponent
        assert float(scaler.inv_scale) == 2.0**-exponent


def test_a_saved_scaler_goes_on_where_it_stood():
    one, other = dynamic(hysteresis=3), dynamic(2.0, hysteresis=3)
    for found_inf in (True, True, False):
        one.update(found_inf)
    other.load_state_dict(one.state_dict())
    assert other.state_dict() == one.state_dict()  # before growth makes them alike
    seen = []
    for found_inf in (False, True, True, True, False, False):
        one.update(found_inf)
        other.update(found_inf)
        assert one.state_dict() == other.state_dict()
        seen.append(float(one.scale) / SCALE)
    assert seen == [2.0, 2.0, 2.0, 1.0, 1.0, 2.0]


def test_a_constant_scale_stays():
    scaler = ConstantGradScaler(8.0)
    scaler.update(True)
    assert float(scaler.scale) == 8.0 and float(scaler.inv_scale) == 0.125


@pytest.mark.parametrize(
    "settings",
    [
        {"initial_scale": 0.0},
        {"initial_scale": 1.0, "min_scale": 2.0},
        {"min_scale": 0.0},
        {"growth_factor": 1.0},
        {"backoff_factor": 1.0},
        {"backoff_factor": 0.0},
        {"growth_interval": 0},
        {"hysteresis": 0},
    ],
    ids=str,
)
def test_a_scaler_that_cannot_work_is_refused(settings):
    with pytest.raises(ValueError, match=r"above 0|between|does not hold|below 1"):
        DynamicGradScaler(**settings)


# --- the step ---


def one_param(value, dtype, scaler=None, **options):
    param = nn.Parameter(torch.tensor(value, dtype=dtype))
    sgd = torch.optim.SGD([param], 1.0)
    optimizer = Float16Optimizer(sgd, MainGrads([param]), scaler, **options)
    return param, optimizer


def test_main_weights_keep_what_rounding_takes():
    param, optimizer = one_param([1.0], torch.bfloat16)
    seen = []
    for _ in range(4):
        optimizer.zero_grad()
        (param * 2.0**-10).sum().backward()
        optimizer.step()
        seen.append(param.item())
    # Steps of bfloat16 below 1.0 are 2^-8: half of one is the limit, and goes to even.
    assert seen == [1.0, 1.0, 1 - 2.0**-8, 1 - 2.0**-8]
    assert float(optimizer.main_params[param]) == 1 - 4 * 2.0**-10


@pytest.mark.parametrize("bad", [float("inf"), float("-inf"), float("nan")])
def test_a_step_with_an_overflow_leaves_everything_as_it_was(bad):
    param, optimizer = one_param([1.0, 2.0], torch.float16, dynamic(4.0))
    (param * torch.tensor([1.0, bad])).sum().backward()
    assert optimizer.step() == (False, None)
    assert param.tolist() == [1.0, 2.0]
    assert optimizer.main_params[param].tolist() == [1.0, 2.0]
    assert not optimizer.optimizer.state[optimizer.main_params[param]]
    assert float(optimizer.grad_scaler.scale) == 2.0


def test_the_scale_is_taken_out_before_the_norm_is_known():
    param, optimizer = one_param([0.0, 0.0], torch.float16, dynamic(2.0**10))
    optimizer.clip_grad = 1.0
    optimizer.scale_loss((param * torch.tensor([3.0, 4.0])).sum()).backward()
    was_made, norm = optimizer.step()
    assert was_made and norm == pytest.approx(5.0)
    torch.testing.assert_close(param.tolist(), [-0.6, -0.8], atol=1e-3, rtol=0)


def test_a_scale_keeps_small_gradients():
    lost, kept = [], []
    for scale, seen in ((1.0, lost), (2.0**14, kept)):
        param, optimizer = one_param([1.0], torch.float16, ConstantGradScaler(scale))
        # The gradient of the product in between is 1e-8, which float16 has not.
        optimizer.scale_loss((param * 1.0).float().sum() * 1e-8).backward()
        seen.append(float(optimizer.main_grads.main_grad[param]) / scale)
    assert lost == [0.0] and kept[0] == pytest.approx(1e-8, rel=1e-3)


@pytest.mark.parametrize("beside", [[], [torch.float32], [torch.bfloat16]])
def test_float16_without_a_scaler_is_refused(beside):
    params = [nn.Parameter(torch.ones(1, dtype=d)) for d in (torch.float16, *beside)]
    with pytest.raises(ValueError, match="float16 expects a grad scaler"):
        Float16Optimizer(torch.optim.SGD(params, lr=1.0), MainGrads(params))


DTYPES = [torch.float16, torch.bfloat16, torch.float32]
SHAPES = [(), (3,), (2, 5), (1, 1, 4)]


@settings(max_examples=25, deadline=None)
@given(
    kinds=some.lists(
        some.tuples(
            some.sampled_from(SHAPES), some.sampled_from(DTYPES), some.booleans()
        ),
        min_size=1,
        max_size=5,
    ),
    clip=some.sampled_from([0.0, 0.1, 1e6]),
)
def test_any_mix_of_dtypes_is_adamw_on_float32(kinds, clip):
    torch.manual_seed(0)
    params = [
        nn.Parameter(torch.randn(shape).to(dtype), requires_grad=is_trained)
        for shape, dtype, is_trained in (*kinds, ((2, 2), torch.bfloat16, True))
    ]
    trained = [p for p in params if p.requires_grad]
    mains = [nn.Parameter(p.detach().float().clone()) for p in trained]
    theirs = torch.optim.AdamW(mains, 1e-2)
    ours = Float16Optimizer(
        torch.optim.AdamW(params, 1e-2),
        MainGrads(params),
        dynamic(2.0**4),
        clip_grad=clip,
    )
    for _ in range(3):
        ours.zero_grad()
        factors = [torch.randn(p.shape).to(p.dtype) for p in trained]
        loss = sum((p * f).float().sum() for p, f in zip(trained, factors, strict=True))
        ours.scale_loss(loss).backward()
        was_made, norm = ours.step()
        for main, factor in zip(mains, factors, strict=True):
            main.grad = factor.float()
        if clip:
            want = nn.utils.clip_grad_norm_(mains, clip)
            assert norm == pytest.approx(float(want), rel=1e-5)
        theirs.step()
        assert was_made
        for p, main in zip(trained, mains, strict=True):
            mine = ours.main_params[p]
            torch.testing.assert_close(mine, main, rtol=1e-5, atol=1e-6)
            assert torch.equal(p, mine.to(p.dtype)) and p.dtype in DTYPES
            assert (mine is p) == (p.dtype is torch.float32)


# --- ranks with different parameters ---


def step_apart(rank, overflow_on, together, duplicate, clip=100.0):
    """Take one step on a parameter of each rank's own, and one that all have."""
    own = nn.Parameter(torch.zeros(1 + rank.rank, dtype=torch.float16))
    shared = nn.Parameter(torch.zeros(2, dtype=torch.float16))
    optimizer = Float16Optimizer(
        torch.optim.SGD([own, shared], 1.0),
        MainGrads([own, shared]),
        dynamic(4.0),
        rank.group if together else None,
        clip_grad=clip,
        duplicates=[shared] if duplicate and rank.rank else [],
    )
    factor = float("inf") if rank.rank == overflow_on else 2.0
    optimizer.scale_loss((own * factor).sum() + (shared * 3.0).sum()).backward()
    with CollectiveCounter() as sent:
        was_made, norm = optimizer.step()
    scale = float(optimizer.grad_scaler.scale)
    params = [*own.tolist(), *shared.tolist()]
    return was_made, norm, scale, params, sent.counts(), sent.payload_bytes()


@pytest.mark.parametrize("clip", [0.0, 100.0])
@pytest.mark.parametrize("overflow_on", [0, 1])
def test_an_overflow_on_one_rank_skips_the_step_of_all(ranks, overflow_on, clip):
    """A rank alone would leave the others waiting for its part of the norm."""
    for r, result in enumerate(ranks.run(step_apart, overflow_on, True, True, clip)):
        assert result[:3] == (False, None, 2.0)
        assert result[3] == [0.0] * (1 + r + 2)
        assert result[4:] == ({"all_reduce": 1}, {"all_reduce": 4})
    apart = [result[0] for result in ranks.run(step_apart, overflow_on, False, True)]
    assert apart == [rank != overflow_on for rank in range(len(apart))]


def test_a_gradient_that_all_have_counts_once_in_the_norm(ranks):
    w = ranks.world_size
    own = sum(4 * (1 + rank) for rank in range(w))
    for duplicate, times in ((True, 1), (False, w)):
        want = (own + times * 2 * 9) ** 0.5
        for result in ranks.run(step_apart, -1, True, duplicate):
            assert result[0] and result[1] == pytest.approx(want, rel=1e-6)
            assert result[4:] == ({"all_reduce": 2}, {"all_reduce": 8})


def test_a_gradient_that_counts_elsewhere_is_clipped_as_it_is_there(ranks):
    first, *others = (
        result[3] for result in ranks.run(step_apart, -1, True, True, 1.0)
    )
    assert -3.0 < first[-1] < 0.0 and all(other[-2:] == first[-2:] for other in others)


def step_on_what_rank_0_has_too(rank):
    """Take one step on a parameter that all ranks have, and rank 0 counts."""
    shared = nn.Parameter(torch.zeros(4, dtype=torch.bfloat16))
    optimizer = Float16Optimizer(
        torch.optim.SGD([shared], 1.0),
        MainGrads([shared]),
        grad_stats_group=rank.group,
        clip_grad=1.0,
        duplicates=[shared] if rank.rank else [],
    )
    optimizer.scale_loss((shared * 3.0).sum()).backward()
    return optimizer.step()


def test_a_rank_all_of_whose_gradients_count_elsewhere_takes_part(ranks):
    for result in ranks.run(step_on_what_rank_0_has_too):
        assert result == (True, 6.0)


def traffic(rank):
    model = Float16Module(build_model(CONFIG), torch.bfloat16)
    optimizer = Float16Optimizer(
        torch.optim.AdamW(model.parameters()),
        MainGrads(model.parameters(), rank.group),
    )
    batch = make_batch(CONFIG, step=0, batch_size=2)
    with CollectiveCounter() as sent:
        train_step(model, optimizer, [batch, batch])
    return sent.counts(), sent.payload_bytes(), str(sent.calls[0].dtype)


def test_gradients_travel_once_in_four_bytes(pool2):
    numel = sum(p.numel() for p in build_model(CONFIG).parameters())
    for counts, payload, dtype in pool2.run(traffic):
        assert counts == {"all_reduce": 1} and payload == {"all_reduce": 4 * numel}
        assert dtype == "torch.float32"


def test_floats_are_cast_on_the_way_in_and_integers_are_not():
    model = Float16Module(nn.Embedding(5, 4), torch.bfloat16)
    assert model(torch.tensor([1, 4])).dtype is torch.float32
    model = Float16Module(nn.Linear(3, 2), torch.float16)
    out = model(torch.full((1, 3), 1e-9))
    assert out.dtype is torch.float32
    assert torch.equal(out[0], model.module.bias.float())  # 1e-9 was cast to zero


# --- the demonstration ---


def run_demo(rank, steps):
    with contextlib.redirect_stdout(io.StringIO()) as out:
        demo.demo(rank, Namespace(steps=steps, scale=2.0**20))
    return out.getvalue()


@pytest.mark.further
def test_the_demo_shows_what_each_way_loses(pool2):
    first, last = pool2.run(run_demo, 5)
    parts = dict(
        part.split("\n", 1) for part in first.removeprefix("--- ").split("\n--- ")
    )
    for name, text in parts.items():
        rows = re.findall(r"loss (\S+), one process (\d\.\d+)", text)
        if "nothing checked" in name:
            assert [mine for mine, _ in rows[1:]] == ["nan"] * 4
        elif "follows" in name:
            skipped = re.findall(r"overflow at 2\^(\d+), no update", text)
            assert skipped[:3] == ["20", "20", "19"] and len(skipped) < 5
        elif rows:
            assert len(rows) == 5
            assert all(abs(float(a) - float(b)) < 0.03 for a, b in rows)
    text = parts["bfloat16, updates of 0.0003"]
    found = re.findall(r"^(\w+) main weights: (\d+) of 320", text, re.MULTILINE)
    moved = {which: int(number) for which, number in found}
    assert moved.keys() == {"with", "without"} and moved["without"] == 0
    for text, each in ((first, ("no update", "update")), (last, ("no update",) * 2)):
        found = re.findall(r"checked (?:together|each by itself): (.*)", text)
        assert tuple(found) == each


@pytest.mark.parametrize("scale", ["0", "inf", "nan", "-1", "1e-9", "1e39"])
def test_a_scale_that_is_none_is_one_line(capfd, scale):
    assert demo.main(["--scale", scale]) == 2
    out, err = capfd.readouterr()
    assert not out and "is not between 1 and 3e38" in err and err.count("\n") == 1
