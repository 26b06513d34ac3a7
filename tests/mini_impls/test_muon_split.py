"""Muon on parts of matrices: the exact modes equal the whole, and what each sends."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as some
from torch import nn

from mini_impls.demos.formulas import get_split_traffic
from mini_impls.muon import zeropower_via_newtonschulz
from mini_impls.muon_split import (
    TensorParallelMuon,
    get_muon_scale_factor,
    newton_schulz,
    newton_schulz_tp,
    split_qkv,
)
from mini_impls.traffic import CollectiveCounter

pytestmark = pytest.mark.sampled


@pytest.fixture(params=[2, 3, 4])
def ranks(request):
    """Two ranks, three and four."""
    return request.getfixturevalue(f"pool{request.param}")


def whole_matrix(shape, seed=0):
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(shape, generator=generator)


def train_part(rank, shape, dim, mode, steps=2):
    """Update this rank's part; return all of it, and what was sent in a step."""
    part = whole_matrix(shape).chunk(rank.world_size, dim)[rank.rank].clone()
    param = nn.Parameter(part)
    optimizer = TensorParallelMuon([param], rank.group, {param: dim}, mode=mode, lr=0.1)
    for step in range(steps):
        grad = whole_matrix(shape, seed=step + 1)
        param.grad = grad.chunk(rank.world_size, dim)[rank.rank].clone()
        with CollectiveCounter() as sent:
            optimizer.step()
    return param.detach(), sent.payload_bytes()


def train_whole(shape, parts=1, dim=0, steps=2):
    """Update a matrix, or each of its parts as if it were one."""
    params = [nn.Parameter(p.clone()) for p in whole_matrix(shape).chunk(parts, dim)]
    optimizer = TensorParallelMuon(params, lr=0.1)
    for step in range(steps):
        grads = whole_matrix(shape, seed=step + 1).chunk(parts, dim)
        for param, grad in zip(params, grads, strict=True):
            param.grad = grad.clone()
        optimizer.step()
    return torch.cat([param.detach() for param in params], dim)


SHAPES = pytest.mark.parametrize("shape", [(24, 12), (12, 24), (12, 12)])
CUTS = pytest.mark.parametrize("dim", [0, 1])


@SHAPES
@CUTS
@pytest.mark.parametrize("mode", ["duplicated", "distributed"])
def test_exact_modes_equal_the_whole_matrix(ranks, shape, dim, mode):
    # A tall matrix cut by rows is turned, as is a wide one cut by rows: then the Gram
    # matrix is the larger one, and what has no value in it stays without.
    want = train_whole(shape)
    answers = ranks.run(train_part, shape, dim, mode)
    got = torch.cat([part for part, _ in answers], dim)
    torch.testing.assert_close(got, want, rtol=1e-3, atol=1e-4)
    for _, sent in answers:
        assert sent == get_split_traffic(shape, mode, dim=dim)


@SHAPES
@CUTS
def test_blockwise_takes_each_part_for_a_matrix(ranks, shape, dim):
    w = ranks.world_size
    answers = ranks.run(train_part, shape, dim, "blockwise")
    got = torch.cat([part for part, _ in answers], dim)
    assert torch.equal(got, train_whole(shape, w, dim))
    assert (got - train_whole(shape)).abs().max() > 1e-2
    assert all(sent == {} for _, sent in answers)


def scaled(rank, mode):
    param = nn.Parameter(torch.zeros(4, 8))
    optimizer = TensorParallelMuon([param], rank.group, {param: 0}, mode=mode)
    grad = whole_matrix((4 * rank.world_size, 8)).chunk(rank.world_size)[rank.rank]
    plain = newton_schulz_tp(grad, rank.group, 0, mode)
    return (optimizer.orthogonalize(param, grad.contiguous()) / plain).mean().item()


@pytest.mark.parametrize("mode", ["duplicated", "distributed"])
def test_the_scale_is_that_of_the_whole_size(pool4, mode):
    assert pool4.run(scaled, mode) == [pytest.approx(16**0.5)] * 4


def test_the_scale_factor_evens_out_the_size_of_entries():
    for shape in ((64, 16), (16, 64)):
        u, _, v = torch.linalg.svd(torch.randn(shape), full_matrices=False)
        update = get_muon_scale_factor(*shape) * (u @ v)
        assert update.square().mean().sqrt() == pytest.approx(1.0)


@given(
    some.integers(1, 4), some.integers(1, 3), some.integers(1, 4), some.integers(1, 6)
)
@settings(max_examples=40, deadline=None)
def test_query_key_and_value_are_three_matrices(groups, queries, width, hidden):
    shapes = (queries * width, width, width)
    rows = groups * sum(shapes)
    grad = torch.arange(1.0, rows * hidden + 1).view(rows, hidden)
    seen = []

    def each(part):
        seen.append(part.clone())
        return part * 10 ** len(seen)

    got = split_qkv(grad, shapes, each)
    assert [tuple(part.shape) for part in seen] == [
        (groups * n, hidden) for n in shapes
    ]
    kinds = ([1] * shapes[0] + [2] * width + [3] * width) * groups
    for row, kind, g in zip(got, kinds, grad, strict=True):
        assert torch.equal(row, g * 10**kind)


def test_only_what_is_marked_comes_apart():
    torch.manual_seed(5)
    marked, plain = nn.Parameter(torch.zeros(8, 4)), nn.Parameter(torch.zeros(8, 4))
    optimizer = TensorParallelMuon(
        [marked, plain], qkv=[marked], qkv_split_shapes=(4, 2, 2)
    )
    grad = torch.randn(8, 4)
    apart, whole = (optimizer.orthogonalize(p, grad) for p in (marked, plain))
    for rows in (slice(0, 4), slice(4, 6), slice(6, 8)):
        alone = newton_schulz_tp(grad[rows], None, None, "blockwise")
        alone = alone * get_muon_scale_factor(*alone.shape)
        torch.testing.assert_close(apart[rows], alone)
    want = newton_schulz_tp(grad, None, None, "blockwise")
    torch.testing.assert_close(whole, want * get_muon_scale_factor(8, 4))


@pytest.mark.parametrize("one", [newton_schulz, zeropower_via_newtonschulz])
def test_of_zeros_nothing_is_made(one):
    assert not one(torch.zeros(3, 5)).any()


def test_products_keep_the_dtype():
    for dtype in (torch.float32, torch.float64):
        x = newton_schulz(torch.randn(3, 5, dtype=dtype))
        s = torch.linalg.svdvals(x)
        assert x.dtype == dtype and s.min() > 0.4 and s.max() < 1.21
