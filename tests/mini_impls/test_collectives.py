"""Collectives made of sends: equal to the backend's, and no byte beyond the formula."""

import pytest
import torch
import torch.distributed as dist

from mini_impls import collectives as c
from mini_impls import collectives_log as log
from mini_impls.traffic import CollectiveCounter

pytestmark = pytest.mark.sampled

ALL_REDUCES = [
    "naive_all_reduce",
    "ring_all_reduce",
    "halving_doubling_all_reduce",
    "tree_all_reduce",
]
REDUCE_SCATTERS = ["ring_reduce_scatter", "pipelined_ring_reduce_scatter"]
HALVES = ["reduce_scatter", "all_gather"]
DTYPES = [
    torch.float32,
    torch.float64,
    torch.float16,
    torch.bfloat16,
    torch.int8,
    torch.uint8,
    torch.int32,
    torch.int64,
    torch.complex64,
]


def find(name):
    """Return a collective from whichever of the two files has it."""
    return getattr(c if hasattr(c, name) else log, name)


def data(rank, numel, dtype=torch.float32):
    generator = torch.Generator().manual_seed(rank)
    if dtype.is_floating_point or dtype.is_complex:
        return torch.randn(numel, generator=generator, dtype=dtype)
    return torch.randint(0, 4, (numel,), generator=generator, dtype=dtype)


class Rounds:
    """Counts the rounds of messages and what each sends."""

    def __enter__(self):
        self.rounds, self.real = 0, dist.batch_isend_irecv
        self.counter = CollectiveCounter()

        def counted(ops):
            self.rounds += 1
            return self.real(ops)

        dist.batch_isend_irecv = counted
        self.counter.__enter__()
        return self

    def __exit__(self, *error):
        self.counter.__exit__(*error)
        dist.batch_isend_irecv = self.real

    @property
    def sent_bytes(self):
        return self.counter.payload_bytes().get("send", 0)


def compare_all_reduces(rank, numel):
    """Run each all-reduce; return its rounds, bytes and largest difference."""
    results = {}
    for name in ALL_REDUCES:
        tensor = data(rank.rank, numel)
        with Rounds() as seen:
            find(name)(tensor, rank.group)
        want = sum(data(r, numel).double() for r in range(rank.world_size))
        results[name] = (
            seen.rounds,
            seen.sent_bytes,
            (tensor.double() - want).abs().max().item() if numel else 0.0,
            tensor,
        )
    return results


@pytest.mark.parametrize("numel", [1, 3, 8, 1000, 1001])
def test_all_reduce_is_the_sum_at_the_stated_cost(pool, numel):
    w = pool.world_size
    per_rank = pool.run(compare_all_reduces, numel)
    for name in ALL_REDUCES:
        for rank, results in enumerate(per_rank):
            rounds, sent_bytes, apart, tensor = results[name]
            want_rounds, elements = log.cost(name, numel, rank, w)
            assert sent_bytes == 4 * elements
            if numel >= w:  # a round in which nobody has an element is no round
                # up and down a tree some ranks sit a round out
                most = max(rank[name][0] for rank in per_rank)
                assert (most if "tree" in name else rounds) == want_rounds
            # fp32 rounds each of the W-1 sums; values are of the order of one
            assert apart < w * 4e-7
            assert torch.equal(tensor, per_rank[0][name][3]), "ranks must not drift"


def test_ring_moves_twice_the_tensor_whatever_the_world(pool4):
    for w in (2, 4, 64):
        rounds, elements = log.cost("ring_all_reduce", 6400, 0, w)
        assert (rounds, elements) == (2 * (w - 1), 2 * 6400 * (w - 1) // w)
        assert log.cost("naive_all_reduce", 6400, 0, w) == (w - 1, 6400 * (w - 1))
        rounds, same = log.cost("halving_doubling_all_reduce", 6400, 0, w)
        assert (rounds, same) == (2 * (w.bit_length() - 1), elements)


def beside_gloo(rank, numel, dtype):
    ours, gloo = data(rank.rank, numel, dtype), data(rank.rank, numel, dtype)
    c.ring_all_reduce(ours, rank.group)
    dist.all_reduce(gloo, group=rank.group)
    return torch.equal(ours, gloo)


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_ring_adds_in_the_order_of_gloo_for_any_dtype(pool, dtype):
    # 4096 cuts into the same chunks in both, so every sum has the same order
    assert all(pool.run(beside_gloo, 4096, dtype))


def every_op(rank):
    w, wrong = rank.world_size, []
    for op, dtype in [
        ("SUM", torch.bool),
        ("AVG", torch.float32),
        ("AVG", torch.complex64),
        ("PRODUCT", torch.int64),
        ("MIN", torch.bfloat16),
        ("MAX", torch.int8),
        ("BAND", torch.int32),
        ("BOR", torch.uint8),
        ("BXOR", torch.int64),
    ]:
        torch_op = getattr(dist.ReduceOp, op)
        inputs = [data(r, 37, torch.int64).to(dtype) for r in range(w)]
        want = inputs[0].clone()
        for other in inputs[1:]:
            want = c.REDUCE[torch_op](want, other)
        if op == "AVG":
            want = want / w  # small integers: exact in any order
        for name in ALL_REDUCES:
            tensor = inputs[rank.rank].clone()
            find(name)(tensor, rank.group, torch_op)
            if not torch.equal(tensor, want):
                wrong.append((op, dtype, name))
        for name in REDUCE_SCATTERS:
            chunks = list(inputs[rank.rank].clone().tensor_split(w))
            mine = find(name)(chunks, rank.group, torch_op)
            if not torch.equal(mine, want.tensor_split(w)[rank.rank]):
                wrong.append((op, dtype, name))
    return wrong


def test_every_operation_reduces(pool):
    assert pool.run(every_op) == [[]] * pool.world_size


def uneven(rank, sizes):
    """Reduce-scatter, then all-gather, chunks of the given sizes."""
    w = rank.world_size
    chunks = list(data(rank.rank, sum(sizes), torch.int64).split(sizes))
    with Rounds() as scatter:
        mine = c.ring_reduce_scatter(chunks, rank.group)
    parts = [torch.full((n,), -1) for n in sizes]
    parts[rank.rank] = mine
    with Rounds() as gather:
        c.ring_all_gather(parts, rank.group)
    want = sum(data(r, sum(sizes), torch.int64) for r in range(w))
    good = torch.equal(torch.cat(parts), want)
    return good, scatter.sent_bytes, gather.sent_bytes


@pytest.mark.parametrize("sizes", [[5, 2, 9, 1], [0, 7, 0, 3], [4, 4, 4, 4]])
def test_chunks_of_any_size(pool4, sizes):
    for rank, (good, scattered, gathered) in enumerate(pool4.run(uneven, sizes)):
        assert good
        assert scattered == 8 * (sum(sizes) - sizes[rank])
        assert gathered == 8 * (sum(sizes) - sizes[rank - 1])


def even_as_may_be(rank, numel):
    """Reduce-scatter, then all-gather, chunks cut as `cost` supposes."""
    chunks = list(data(rank.rank, numel).tensor_split(rank.world_size))
    with Rounds() as scatter:
        c.ring_reduce_scatter(chunks, rank.group)
    with Rounds() as gather:
        c.ring_all_gather(chunks, rank.group)
    w, me = rank.world_size, rank.rank
    stated = [log.cost(f"ring_{what}", numel, me, w) for what in HALVES]
    seen = [(each.rounds, each.sent_bytes // 4) for each in (scatter, gather)]
    return seen, stated


@pytest.mark.parametrize("numel", [1000, 1001, 1003])
def test_both_halves_of_a_ring_cost_what_is_stated(pool, numel):
    for seen, stated in pool.run(even_as_may_be, numel):
        assert seen == stated


def pipelined(rank, numel, segments):
    plain = list(data(rank.rank, numel).tensor_split(rank.world_size))
    overlapped = list(data(rank.rank, numel).tensor_split(rank.world_size))
    in_flight, most, rounds = 0, 0, 0
    real_exchange, real_wait = c.exchange, c.wait

    def exchange(*args):
        nonlocal in_flight, most, rounds
        in_flight, rounds = in_flight + 1, rounds + 1
        most = max(most, in_flight)
        return real_exchange(*args)

    def wait(works):
        nonlocal in_flight
        in_flight -= 1
        real_wait(works)

    c.exchange, c.wait = exchange, wait
    try:
        with CollectiveCounter() as sent:
            got = c.pipelined_ring_reduce_scatter(
                overlapped, rank.group, segments=segments
            )
    finally:
        c.exchange, c.wait = real_exchange, real_wait
    want = c.ring_reduce_scatter(plain, rank.group)
    return torch.equal(got, want), most, rounds, sent.payload_bytes()["send"]


@pytest.mark.parametrize("segments", [2, 3])
def test_pipelined_ring_keeps_two_rounds_in_flight(pool, segments):
    w = pool.world_size
    for rank, (equal, most, rounds, sent_bytes) in enumerate(
        pool.run(pipelined, 1001, segments)
    ):
        assert equal
        assert most == 2
        stated = log.cost("pipelined_ring_reduce_scatter", 1001, rank, w)
        assert (rounds * 2, sent_bytes) == (stated[0] * segments, 4 * stated[1])


def broadcast_from(rank, src):
    tensor = data(rank.rank, 10)
    with Rounds() as seen:
        log.tree_broadcast(tensor, src, rank.group)
    return torch.equal(tensor, data(src, 10)), seen.sent_bytes


@pytest.mark.parametrize("src", [0, 1])
def test_broadcast_reaches_all_in_a_tree(pool, src):
    w = pool.world_size
    answers = pool.run(broadcast_from, src)
    assert all(equal for equal, _ in answers)
    sent = [sent_bytes for _, sent_bytes in answers]
    want = [log.cost("tree_broadcast", 10, r, w, src=src)[1] * 4 for r in range(w)]
    assert sent == want
    assert sum(sent) == (w - 1) * 40
    assert sent[src] == (w - 1).bit_length() * 40


def swap(rank, rows):
    """Send `rows[i][j]` elements from rank i to rank j."""
    w, me = rank.world_size, rank.rank
    inputs = [torch.full((rows[me][j],), 10 * me + j) for j in range(w)]
    outputs = [torch.empty(rows[i][me], dtype=torch.int64) for i in range(w)]
    with Rounds() as seen:
        c.pairwise_all_to_all(outputs, inputs, rank.group)
    good = all(bool((out == 10 * i + me).all()) for i, out in enumerate(outputs))
    return good, seen.sent_bytes


def test_all_to_all_with_uneven_sizes(pool4):
    rows = [[1, 2, 3, 4], [0, 5, 0, 1], [7, 7, 7, 7], [2, 0, 2, 0]]
    for rank, (good, sent_bytes) in enumerate(pool4.run(swap, rows)):
        assert good
        assert sent_bytes == 8 * (sum(rows[rank]) - rows[rank][rank])


def world_of_three(rank):
    group = dist.new_group([0, 1, 2])
    if rank.rank == 3:
        return None
    answers = {}
    for name in ALL_REDUCES:
        tensor = data(rank.rank, 10, torch.int64)
        with Rounds() as seen:
            find(name)(tensor, group)
        want = sum(data(r, 10, torch.int64) for r in range(3))
        answers[name] = (torch.equal(tensor, want), seen.sent_bytes, seen.rounds)
        mean = torch.arange(10.0) * 3 * (rank.rank + 1)  # means that are whole numbers
        find(name)(mean, group, dist.ReduceOp.AVG)
        answers[f"mean by {name}"] = (torch.equal(mean, torch.arange(10.0) * 6),)
    tensor = data(rank.rank, 4)
    log.tree_broadcast(tensor, 2, group)
    answers["tree_broadcast"] = (torch.equal(tensor, data(2, 4)),)
    return answers


def test_a_world_that_is_no_power_of_two(pool4):
    of_ranks = pool4.run(world_of_three)[:3]
    assert all(equal for answers in of_ranks for equal, *_ in answers.values())
    for name in ALL_REDUCES:
        stated = [log.cost(name, 10, rank, 3) for rank in range(3)]
        seen = [answers[name] for answers in of_ranks]
        assert [sent for _, sent, _ in seen] == [8 * elements for _, elements in stated]
        assert {rounds for rounds, _ in stated} == {max(rounds for *_, rounds in seen)}


def world_of_one(rank):
    mine = [dist.new_group([each]) for each in range(rank.world_size)][rank.rank]
    tensors = {name: torch.arange(3.0) for name in ALL_REDUCES}
    with Rounds() as seen:
        for name, tensor in tensors.items():
            find(name)(tensor, mine, dist.ReduceOp.AVG)
    return seen.rounds, [tensor.tolist() for tensor in tensors.values()]


def test_a_world_of_one_sends_nothing(pool2):
    for rounds, tensors in pool2.run(world_of_one):
        assert rounds == 0 and tensors == [[0.0, 1.0, 2.0]] * len(ALL_REDUCES)


def refuse(rank):
    errors = []
    for call in (
        lambda: c.ring_all_reduce(torch.ones(4).int(), rank.group, dist.ReduceOp.AVG),
        lambda: c.pipelined_ring_reduce_scatter(
            [torch.ones(1)] * rank.world_size, rank.group, segments=1
        ),
    ):
        try:
            call()
        except ValueError as error:
            errors.append(str(error))
    return errors


def reduce_columns(rank):
    """A tensor whose elements do not lie one behind the other."""
    refused = []
    for name in ("ring_all_reduce", "halving_doubling_all_reduce"):
        columns = torch.arange(12.0).view(3, 4).t()
        with Rounds() as seen, pytest.raises(RuntimeError, match="view size"):
            find(name)(columns, rank.group)
        refused.append(
            (seen.rounds, torch.equal(columns[0], torch.tensor([0.0, 4, 8])))
        )
    return refused


def test_what_cannot_be_reduced_in_place_is_not_reduced_on_a_copy(pool2):
    assert pool2.run(reduce_columns) == [[(0, True)] * 2] * 2


def test_mistakes_are_refused_before_anything_is_sent(pool2):
    for errors in pool2.run(refuse):
        assert errors == [
            "the mean of torch.int32 is not torch.int32: reduce a floating type",
            "1 segments a chunk cannot keep 2 rounds in flight",
        ]
