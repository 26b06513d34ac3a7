"""Ring attention: equal to attention in one place, and as much work on every rank."""

import pytest
import torch
import torch.distributed as dist

from mini_impls import ring_attention as ra


def tensors(tokens):
    generator = torch.Generator().manual_seed(0)
    shape = (2, 3, tokens, 5)
    made = (
        torch.randn(shape, generator=generator, dtype=torch.float64) for _ in "qkvo"
    )
    return [each.requires_grad_() for each in made]


def run_ring(rank, world_size, tokens):
    """Return this rank's output and gradients, of the first ranks of the pool."""
    group = dist.new_group(range(world_size))
    if rank.rank >= world_size:
        return None
    *inputs, grad = (
        ra.shard(t.detach(), rank.rank, world_size) for t in tensors(tokens)
    )
    inputs = [each.clone().requires_grad_() for each in inputs]
    output = ra.ring_attention(*inputs, group)
    output.backward(grad)
    return [output.detach(), *(each.grad for each in inputs)]


@pytest.mark.parametrize("world_size", [1, 2, 3, 4])
def test_a_ring_is_equal_to_one_place_forward_and_backward(pool4, world_size):
    tokens = 2 * world_size * 3
    per_rank = pool4.run(run_ring, world_size, tokens)[:world_size]
    query, key, value, grad = tensors(tokens)
    whole = ra.attention(query, key, value)
    whole.backward(grad.detach())
    want = [whole, query.grad, key.grad, value.grad]
    for found, expected in zip(zip(*per_rank, strict=True), want, strict=True):
        # fp64: the sums of blocks have another order than those of whole rows
        torch.testing.assert_close(
            ra.unshard(list(found)), expected, rtol=0, atol=1e-12
        )


@pytest.mark.parametrize("world_size", [1, 2, 3, 4, 8])
def test_every_rank_has_as_many_blocks_and_each_meets_each_once(world_size):
    counts, met = set(), []
    for rank in range(world_size):
        mine = ra.chunks_of(rank, world_size)
        blocks = [
            (mine[i], ra.chunks_of(source, world_size)[j])
            for source in range(world_size)
            for i, j, _ in ra.pairs(rank, source, world_size)
        ]
        counts.add(len(blocks))
        met += blocks
    assert counts == {2 * world_size + 1}
    chunks = range(2 * world_size)
    assert sorted(met) == [(q, k) for q in chunks for k in range(q + 1)]


def test_tokens_that_do_not_fit_are_refused():
    with pytest.raises(ValueError, match="10 tokens are not divisible into 4 chunks"):
        ra.shard(torch.zeros(1, 1, 10, 1), 0, 2)
