"""Data parallelism equals one process, and sends each gradient once."""

import pytest
import torch
import torch.distributed as dist
from ranks import RankFailure
from torch import nn

from mini_impls.ddp import (
    DistributedDataParallel,
    all_reduce_gradients,
    assign_buckets,
    broadcast_params,
)
from mini_impls.demos.ddp import note_sending
from mini_impls.model import (
    GPTConfig,
    build_model,
    compute_loss,
    make_batch,
    shard_batch,
    train_one_process,
)
from mini_impls.traffic import CollectiveCounter

pytestmark = pytest.mark.sampled

CONFIG = GPTConfig()
TIED = GPTConfig(share_embeddings_and_output_weights=True)
STEPS = 4
KB = 1 / 1024  # of a MiB


def batches(config, world_size):
    return [make_batch(config, step=i, batch_size=2 * world_size) for i in range(STEPS)]


def sgd(model):
    return torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)


def alone(config, world_size):
    model = build_model(config)
    losses = train_one_process(
        model, sgd(model), batches(config, world_size), chunks=world_size
    )
    return losses, state_of(model)


def state_of(model):
    named = dict(model.named_parameters())
    grads = {f"{name}.grad": p.grad for name, p in named.items()}
    return {**{n: p.detach() for n, p in named.items()}, **grads}


def train(rank, config, how, caps=(64 * KB, 16 * KB)):
    """Ten steps; return losses, final state, and the traffic of the last step."""
    model = build_model(config, seed=rank.rank)
    if how == "plain":
        broadcast_params(model, rank.group)
        wrapped = model
    else:
        wrapped = DistributedDataParallel(
            model, rank.group, bucket_cap_mb=caps[0], first_bucket_mb=caps[1]
        )
    ready = note_sending(wrapped) if how != "plain" else []
    optimizer, losses = sgd(model), []
    for batch in batches(config, rank.world_size):
        tokens, labels = shard_batch(batch, rank=rank.rank, world_size=rank.world_size)
        with CollectiveCounter() as sent:
            optimizer.zero_grad()
            loss = compute_loss(wrapped(tokens), labels)
            loss.backward()
            if how == "plain":
                all_reduce_gradients(model, rank.group)
            optimizer.step()
        total = loss.detach().double()
        dist.all_reduce(total, group=rank.group)
        losses.append(total.item() / rank.world_size)
    buckets = [
        (len(b.params), b.grad_data.nbytes, n)
        for b, n in zip(getattr(wrapped, "buckets", []), ready, strict=True)
    ]
    return losses, state_of(model), sent.counts(), sent.payload_bytes(), buckets


@pytest.fixture(scope="module")
def trained():
    """Runs of `train` that more than one test looks at."""
    runs = {}

    def get(pool, config, how):
        key = (pool.world_size, config, how)
        if key not in runs:
            runs[key] = pool.run(train, config, how)
        return runs[key]

    return get


def assert_same(got, want, world_size):
    """Bitwise for two ranks, whose one addition commutes."""
    assert got.keys() == want.keys()
    for name in want:
        if world_size == 2:
            assert torch.equal(got[name], want[name]), name
        else:
            # a ring adds four terms in another order for each chunk; ten steps of
            # SGD carry those last bits on
            torch.testing.assert_close(got[name], want[name], rtol=1e-3, atol=1e-5)


@pytest.mark.parametrize("config", [CONFIG, TIED], ids=["untied", "tied"])
@pytest.mark.parametrize("how", ["plain", "overlapped"])
def test_equals_the_one_process_run(pool, trained, how, config):
    w = pool.world_size
    want_losses, want = alone(config, w)
    answers = trained(pool, config, how)
    for losses, state, *_ in answers:
        assert losses == pytest.approx(want_losses, rel=1e-12 if w == 2 else 1e-5)
        assert_same(state, want, w)
        for name, value in answers[0][1].items():
            assert torch.equal(state[name], value), f"{name} differs between ranks"


@pytest.mark.parametrize("config", [CONFIG, TIED], ids=["untied", "tied"])
def test_each_gradient_is_sent_once_and_early(pool, trained, config):
    model = build_model(config)
    params = list(model.parameters())
    grad_bytes = sum(p.nbytes for p in params)
    _, _, counts, payload, buckets = trained(pool, config, "overlapped")[0]
    assert counts == {"all_reduce": len(buckets)}
    assert payload == {"all_reduce": grad_bytes}
    assert sum(size for size, _, _ in buckets) == len(params)
    assert len(buckets) > 4
    issued = [after for _, _, after in buckets]
    assert issued == sorted(issued)
    # All but the last bucket leave while backward still has gradients to compute.
    assert all(after < len(params) for after in issued[:-1])
    _, _, counts, payload, _ = trained(pool, config, "plain")[0]
    assert counts == {"all_reduce": len(params)}
    assert payload == {"all_reduce": grad_bytes}


def test_one_bucket_of_25_mib_holds_a_small_model(pool2):
    *_, buckets = pool2.run(train, CONFIG, "overlapped", (25.0, 1.0))[0]
    assert len(buckets) == 1


def linear_params(*sizes, dtype=torch.float32):
    return [nn.Parameter(torch.zeros(n, dtype=dtype)) for n in sizes]


@pytest.mark.parametrize(
    ("sizes", "first", "rest", "want"),
    [
        ([1, 2, 3, 4], 4, 4, [[3], [2], [1], [0]]),
        ([1, 2, 3, 4], 16, 24, [[3], [2, 1, 0]]),  # 16 B reach 16; 12+8+4 reach 24
        ([1, 2, 3, 4], 17, 8, [[3, 2], [1], [0]]),  # the one that crosses stays
        ([1, 2, 3, 4], 999, 999, [[3, 2, 1, 0]]),
    ],
)
def test_buckets_fill_from_the_last_parameter(sizes, first, rest, want):
    params = linear_params(*sizes)
    buckets = assign_buckets(params, first_bucket_bytes=first, bucket_bytes=rest)
    index = {param: i for i, param in enumerate(params)}
    assert [[index[p] for p in bucket] for bucket in buckets] == want


def test_a_bucket_holds_one_dtype():
    params = linear_params(4) + linear_params(4, dtype=torch.float64) + linear_params(4)
    buckets = assign_buckets(params, first_bucket_bytes=999, bucket_bytes=999)
    # What was opened first is full last: it waits for the first parameter of all.
    assert [len(bucket) for bucket in buckets] == [1, 2]


def test_a_bucket_that_fills_slowly_holds_up_none_of_another_dtype():
    scale, weight = {"dtype": torch.bfloat16}, {"dtype": torch.float32}
    params = [
        p
        for _ in range(3)
        for kind in (weight, scale)
        for p in linear_params(4, **kind)
    ]
    buckets = assign_buckets(params, first_bucket_bytes=16, bucket_bytes=16)
    index = {param: i for i, param in enumerate(params)}
    # 8 B a scale, 16 B a weight: the second scale fills theirs, the third is alone
    assert [[index[p] for p in bucket] for bucket in buckets] == [
        [4],
        [5, 3],
        [2],
        [0],
        [1],
    ]


# --- the awkward cases ---


class Odd(nn.Module):
    """Frozen, sometimes unused and never used parameters, and a buffer."""

    def __init__(self, rank):
        super().__init__()
        torch.manual_seed(rank)
        self.frozen = nn.Linear(4, 4)
        self.frozen.requires_grad_(False)
        self.always = nn.Linear(4, 4)
        self.sometimes = nn.Linear(4, 4)
        self.never = nn.Linear(4, 4)
        self.register_buffer("count", torch.tensor([rank]))

    def forward(self, x, use):
        x = self.always(self.frozen(x))
        return self.sometimes(x) if use else x


def odd(rank, find_unused):
    model = Odd(rank.rank)
    ddp = DistributedDataParallel(
        model, rank.group, bucket_cap_mb=0, find_unused_parameters=find_unused
    )
    ddp(torch.ones(2, 4), True).sum().backward()  # leaves gradients in the buckets
    model.zero_grad()
    with CollectiveCounter() as sent:
        # only rank 0 uses it here, and nobody in the step after
        ddp(torch.ones(2, 4) * (rank.rank + 1), rank.rank == 0).sum().backward()
    first = {
        name: None if p.grad is None else p.grad.clone()  # a view of its bucket
        for name, p in model.named_parameters()
    }
    model.zero_grad()
    ddp(torch.ones(2, 4), False).sum().backward()
    second = {name: p.grad for name, p in model.named_parameters()}
    assert not any(b.grad_reduce_handle for b in ddp.buckets), "a work is kept"
    return first, second, int(model.count), sent.counts()


def test_unused_frozen_and_buffers(pool):
    w = pool.world_size
    want = Odd(0)
    outputs = [want(torch.ones(2, 4) * (r + 1), r == 0).sum() for r in range(w)]
    (sum(outputs) / w).backward()
    for first, second, count, counts in pool.run(odd, True):
        assert count == 0  # rank 0's buffer
        for name, p in want.named_parameters():
            if p.grad is None:
                assert first[name] is None
            else:
                torch.testing.assert_close(first[name], p.grad)
        assert second["always.weight"] is not None
        assert second["sometimes.weight"] is None
        # six trainable parameters, each a bucket of its own, and the map of uses
        assert counts == {"all_reduce": 7}


class Branch(nn.Module):
    """The layer whose gradients come first is not used everywhere."""

    def __init__(self):
        super().__init__()
        torch.manual_seed(0)
        self.always, self.sometimes = nn.Linear(4, 4), nn.Linear(4, 4)

    def forward(self, x, use):
        x = self.always(x)
        return self.sometimes(x) if use else x


def branch(rank):
    model = Branch()
    ddp = DistributedDataParallel(
        model, rank.group, bucket_cap_mb=0, find_unused_parameters=True
    )
    ready = note_sending(ddp)
    for _ in range(2):
        model.zero_grad()
        ddp(torch.ones(2, 4), rank.rank > 0).sum().backward()
    return [p.grad for p in model.parameters()], ready


def test_a_rank_may_send_all_its_buckets_before_another_has_found_what_is_unused(pool):
    w, want = pool.world_size, Branch()
    outputs = [want(torch.ones(2, 4), r > 0).sum() for r in range(w)]
    (sum(outputs) / w).backward()
    answers = pool.run(branch)
    assert answers[0][1] == [2, 2, 2, 2]  # when backward was over
    assert answers[1][1] == [1, 2, 3, 4]  # one by one
    for grads, _ in answers:
        for grad, param in zip(grads, want.parameters(), strict=True):
            torch.testing.assert_close(grad, param.grad)


def test_unused_parameter_is_named(pool2):
    with pytest.raises(RankFailure, match=r"4 of 6 parameters had no .*never\.bias"):
        pool2.run(unused_everywhere)


def unused_everywhere(rank):
    ddp = DistributedDataParallel(Odd(rank.rank), rank.group)
    ddp(torch.ones(2, 4), False).sum().backward()


def go_on_after_the_error(rank, how):
    ddp = DistributedDataParallel(Odd(rank.rank), rank.group, bucket_cap_mb=0)
    x = torch.full((2, 4), rank.rank + 1.0)
    with pytest.raises(RuntimeError, match="had no gradient"):
        ddp(x, False).sum().backward()
    if how == "evaluate":
        with torch.no_grad():
            return ddp(x, True).shape
    model = ddp if how == "train" else ddp.module
    model(x, True).sum().backward()


@pytest.mark.parametrize(
    ("how", "message"),
    [
        ("train", "cut short, with 2 gradients ready and 0 of 6 buckets sent"),
        ("train the module itself", "always.* was ready already"),
    ],
)
def test_no_training_follows_a_backward_that_was_cut_short(pool2, how, message):
    with pytest.raises(RankFailure, match=message):
        pool2.run(go_on_after_the_error, how)


def test_evaluation_follows_a_backward_that_was_cut_short(pool2):
    assert pool2.run(go_on_after_the_error, "evaluate") == [(2, 4), (2, 4)]


def nothing_to_train(rank):
    DistributedDataParallel(nn.Linear(2, 2).requires_grad_(False), rank.group)


def test_module_without_trainable_parameters_is_refused(pool2):
    with pytest.raises(RankFailure, match="0 of the module's parameters"):
        pool2.run(nothing_to_train)


def accumulate(rank, set_to_none):
    model = build_model(CONFIG)
    ddp = DistributedDataParallel(model, rank.group, bucket_cap_mb=64 * KB)
    optimizer = sgd(model)
    for step in range(3):
        batch = make_batch(CONFIG, step=step, batch_size=6 * rank.world_size)
        # rows of rank r: microbatches r, W+r, 2W+r of the whole batch
        parts = [
            shard_batch(batch, rank=i * rank.world_size + rank.rank, world_size=n)
            for i, n in enumerate([3 * rank.world_size] * 3)
        ]
        optimizer.zero_grad(set_to_none=set_to_none)
        with CollectiveCounter() as quiet, ddp.no_sync():
            for tokens, labels in parts[:-1]:
                (compute_loss(ddp(tokens), labels) / 3).backward()
        with CollectiveCounter() as sent:
            tokens, labels = parts[-1]
            (compute_loss(ddp(tokens), labels) / 3).backward()
        optimizer.step()
    payload = sent.payload_bytes()
    return state_of(model), quiet.counts(), payload


@pytest.mark.parametrize("set_to_none", [True, False])
def test_no_sync_adds_locally_and_sends_once(pool, set_to_none):
    w = pool.world_size
    model = build_model(CONFIG)
    train_one_process(
        model,
        sgd(model),
        [make_batch(CONFIG, step=i, batch_size=6 * w) for i in range(3)],
        chunks=3 * w,
    )
    want = state_of(model)
    for state, quiet, payload in pool.run(accumulate, set_to_none):
        assert quiet == {}
        assert payload == {"all_reduce": sum(p.nbytes for p in model.parameters())}
        for name in want:
            # microbatches are added per rank first: another order of 3W terms
            torch.testing.assert_close(state[name], want[name], rtol=1e-4, atol=1e-6)


def leave_no_sync_by_an_error(rank):
    """A microbatch fails within `no_sync`; the batch after it is another one."""
    module = nn.Linear(2, 2).double()
    ddp = DistributedDataParallel(module, rank.group)
    with pytest.raises(ArithmeticError), ddp.no_sync():
        raise ArithmeticError
    with CollectiveCounter() as sent:
        ddp(torch.full((1, 2), rank.rank + 1.0).double()).sum().backward()
    return sent.counts(), module.weight.grad


def test_an_error_within_no_sync_ends_it(pool2):
    for counts, grad in pool2.run(leave_no_sync_by_an_error):
        assert counts == {"all_reduce": 1}
        assert torch.equal(grad, torch.full((2, 2), 1.5).double())


def accumulate_in_a_branch(rank, find_unused):
    model = Branch()
    ddp = DistributedDataParallel(
        model, rank.group, bucket_cap_mb=0, find_unused_parameters=find_unused
    )
    x = torch.full((2, 4), rank.rank + 1.0)
    with ddp.no_sync():
        ddp(x, True).sum().backward()
    ddp(x, False).sum().backward()
    return [p.grad for p in model.parameters()]


@pytest.mark.parametrize("find_unused", [False, True])
def test_what_was_used_within_no_sync_only_is_sent(pool2, find_unused):
    want = Branch()
    for use in (True, False):
        for rank in range(2):
            (want(torch.full((2, 4), rank + 1.0), use).sum() / 2).backward()
    for grads in pool2.run(accumulate_in_a_branch, find_unused):
        for grad, param in zip(grads, want.parameters(), strict=True):
            torch.testing.assert_close(grad, param.grad)


class Fork(nn.Module):
    """Two branches whose gradients arrive in an order of the rank's own."""

    def __init__(self):
        super().__init__()
        self.a, self.b = nn.Linear(4, 3), nn.Linear(4, 5)

    def forward(self, x, a_first):
        if a_first:
            first, second = self.a(x), self.b(x)
        else:
            second, first = self.b(x), self.a(x)
        return first.sum() + second.sum()


def fork(rank):
    torch.manual_seed(0)
    model, order = Fork(), []
    for name, p in model.named_parameters():
        p.register_post_accumulate_grad_hook(lambda _, n=name: order.append(n))
    ddp = DistributedDataParallel(model, rank.group, bucket_cap_mb=0, first_bucket_mb=0)
    ddp(torch.full((2, 4), rank.rank + 1.0), rank.rank % 2 == 0).backward()
    return order, {name: p.grad for name, p in model.named_parameters()}


def test_ranks_may_compute_gradients_in_another_order(pool):
    w = pool.world_size
    answers = pool.run(fork)
    assert answers[0][0] != answers[1][0]
    for _, grads in answers:
        mean = sum(range(1, w + 1)) / w
        assert torch.equal(grads["a.weight"], torch.full((3, 4), 2 * mean))
        assert torch.equal(grads["b.weight"], torch.full((5, 4), 2 * mean))
