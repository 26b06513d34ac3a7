"""ZeRO equals plain training; each stage keeps and sends what it says."""

from dataclasses import replace

import pytest
import torch
import torch.distributed as dist
from ranks import RankFailure
from torch import nn
from torch.optim import lr_scheduler

from mini_impls.demos.zero import bytes_held
from mini_impls.model import (
    GPTConfig,
    build_model,
    compute_loss,
    make_batch,
    shard_batch,
    train_one_process,
)
from mini_impls.traffic import CollectiveCounter
from mini_impls.zero import ZeroStage1, ZeroStage2
from mini_impls.zero_stage3 import ZeroStage3

pytestmark = pytest.mark.sampled

CONFIG = GPTConfig(num_layers=1, hidden_size=32, ffn_hidden_size=128)
DEEP = GPTConfig(num_layers=4)
TIED = replace(CONFIG, share_embeddings_and_output_weights=True)
STEPS = 4
STAGES = ["1 all_reduce", "1 reduce", "2", "3"]


def batches(config, world_size, steps=STEPS):
    return [make_batch(config, step=i, batch_size=2 * world_size) for i in range(steps)]


def make(stage, model, params, optimizer_class, group, **defaults):
    if stage == "2":
        return ZeroStage2(params, optimizer_class, group, **defaults)
    if stage == "3":
        return ZeroStage3(model, params, optimizer_class, group, **defaults)
    gradients = stage.split()[1]
    return ZeroStage1(params, optimizer_class, group, gradients=gradients, **defaults)


def grouped(model):
    """Two parameter groups, as most trainings have them."""
    decay = [p for p in model.parameters() if p.dim() > 1]
    rest = [p for p in model.parameters() if p.dim() == 1]
    return [{"params": decay, "weight_decay": 0.1}, {"params": rest, "lr": 0.02}]


def train(rank, config, stage, optimizer_class, defaults, groups=False, steps=STEPS):
    model = build_model(config)
    params = grouped(model) if groups else list(model.parameters())
    optimizer = make(stage, model, params, optimizer_class, rank.group, **defaults)
    names = {param: name for name, param in model.named_parameters()}
    losses = []
    for batch in batches(config, rank.world_size, steps):
        tokens, labels = shard_batch(batch, rank=rank.rank, world_size=rank.world_size)
        with CollectiveCounter() as sent:
            optimizer.zero_grad()
            loss = compute_loss(model(tokens), labels)
            loss.backward()
            optimizer.step()
        total = loss.detach().double()
        dist.all_reduce(total, group=rank.group)
        losses.append(total.item() / rank.world_size)
    held = bytes_held(optimizer)
    owned = sum(p.nbytes for p, r in optimizer.param_to_rank.items() if r == rank.rank)
    grads = {
        names[p]: p.grad
        for p in optimizer.params
        if p.grad is not None and optimizer.param_to_rank[p] == rank.rank
    }
    full = {names[p]: t for p, t in optimizer.full_parameters().items()}
    after = bytes_held(optimizer)
    assert after == held, "full_parameters leaves everything as it was"
    own = {p.data_ptr() for p in optimizer.params}
    assert not own & {tensor.data_ptr() for tensor in full.values()}, "no copies"
    assert not any(tensor.requires_grad for tensor in full.values())
    return losses, full, grads, held, owned, sent.counts(), sent.payload_bytes()


def alone(config, world_size, optimizer_class, defaults, groups=False, steps=STEPS):
    model = build_model(config)
    params = grouped(model) if groups else list(model.parameters())
    losses = train_one_process(
        model,
        optimizer_class(params, **defaults),
        batches(config, world_size, steps),
        chunks=world_size,
    )
    return losses, model


@pytest.fixture(scope="module")
def trained():
    """Runs of `train` with SGD that more than one test looks at."""
    runs = {}

    def get(pool, config, stage):
        key = (pool.world_size, config, stage)
        if key not in runs:
            runs[key] = pool.run(train, config, stage, *SGD)
        return runs[key]

    return get


SGD = (torch.optim.SGD, {"lr": 0.1, "momentum": 0.9})


@pytest.mark.parametrize("config", [CONFIG, TIED], ids=["untied", "tied"])
@pytest.mark.parametrize("stage", STAGES)
def test_equals_the_one_process_run(pool, trained, stage, config):
    w = pool.world_size
    want_losses, model = alone(config, w, *SGD)
    want = dict(model.named_parameters())
    seen = set()
    for losses, full, grads, *_ in trained(pool, config, stage):
        assert losses == pytest.approx(want_losses, rel=1e-12 if w == 2 else 1e-5)
        assert full.keys() == want.keys()
        for name, p in want.items():
            if w == 2:  # one addition commutes
                assert torch.equal(full[name], p)
            else:  # gloo adds four terms in an order of its own
                torch.testing.assert_close(full[name], p, rtol=1e-3, atol=1e-5)
        for name, grad in grads.items():
            torch.testing.assert_close(
                grad,
                want[name].grad,
                rtol=0 if w == 2 else 1e-3,
                atol=0 if w == 2 else 1e-5,
            )
        seen |= grads.keys()
    assert seen == want.keys(), "together the owners hold every gradient"


@pytest.mark.parametrize("stage", STAGES)
def test_bytes_sent_are_the_formula(pool, trained, stage):
    count = len(list(build_model(CONFIG).parameters()))
    psi = sum(p.nbytes for p in build_model(CONFIG).parameters())
    *_, counts, payload = trained(pool, CONFIG, stage)[0]
    want = {
        "1 all_reduce": ({"all_reduce": 1, "broadcast": 1}, 1.5),
        "1 reduce": ({"reduce": 1, "broadcast": 1}, 1.0),
        "2": ({"reduce": 1, "broadcast": 1}, 1.0),
        # before forward and before backward
        "3": ({"reduce": 1, "broadcast": 2}, 1.5),
    }[stage]
    assert counts == {op: n * count for op, n in want[0].items()}
    assert payload == {op: n * psi for op, n in want[0].items()}
    # On the wire of a ring an all-reduce is a reduce and a broadcast: 2 psi.
    wire = sum((2 if op == "all_reduce" else 1) * n for op, n in payload.items())
    assert wire / (2 * psi) == want[1]


def test_a_tied_weight_is_borrowed_once_for_both_ends_of_backward(pool, trained):
    count = len(list(build_model(TIED).parameters()))
    *_, counts, _ = trained(pool, TIED, "3")[0]
    # In forward it is given back between the embedding and the output layer; in
    # backward its gradient is whole only after both.
    assert counts == {"broadcast": 2 * count + 1, "reduce": count}


@pytest.mark.parametrize("stage", STAGES)
def test_each_stage_holds_what_it_says(pool, trained, stage):
    psi = sum(p.nbytes for p in build_model(CONFIG).parameters())
    total = 0
    for *_, held, owned, _, _ in trained(pool, CONFIG, stage):
        assert held == {
            "parameters": owned if stage == "3" else psi,
            "gradients": owned if stage in "23" else psi,
            "optimizer state": owned,  # momentum: one value a parameter
        }
        # the greedy partition is even to within the largest parameter
        assert (
            owned
            <= psi / pool.world_size + 4 * CONFIG.hidden_size * CONFIG.ffn_hidden_size
        )
        total += owned
    assert total == psi


class FakeGroup:
    """What stage 1 asks a group for before anything is sent."""

    def rank(self):
        return 0

    def size(self):
        return 2


def test_owners_have_equally_much_not_equally_many():
    params = [nn.Parameter(torch.zeros(n)) for n in (3, 5, 1, 4, 3)]
    optimizer = ZeroStage1(params, torch.optim.SGD, FakeGroup(), lr=0.1)
    # 5 to rank 0, 4 to 1, 3 to 1, the other 3 to 0, 1 to 1: 8 and 8
    assert [optimizer.param_to_rank[p] for p in params] == [1, 0, 1, 1, 0]


def test_a_group_goes_on_where_the_groups_before_it_have_left_most_room():
    groups = [[torch.zeros(n) for n in numels] for numels in ((5, 1), (3, 2))]
    param_groups = [{"params": list(map(nn.Parameter, group))} for group in groups]
    optimizer = ZeroStage1(param_groups, torch.optim.SGD, FakeGroup(), lr=0.1)
    # 5 to rank 0, 1 to 1; then 3 to 1 and the 2 too: 5 and 6
    assert [optimizer.param_to_rank[p] for p in optimizer.params] == [0, 1, 1, 1]


@pytest.mark.parametrize(
    ("optimizer_class", "defaults"),
    [
        (torch.optim.AdamW, {"lr": 1e-3}),
        (torch.optim.Adam, {"lr": 1e-3, "amsgrad": True}),
        (torch.optim.Adagrad, {"lr": 1e-2}),
        (torch.optim.RMSprop, {"lr": 1e-3, "centered": True}),
        (torch.optim.Adafactor, {"lr": 1e-2}),  # looks at rows and columns
        (torch.optim.Rprop, {"lr": 1e-3}),
    ],
    ids=lambda value: getattr(value, "__name__", ""),
)
@pytest.mark.parametrize("stage", ["1 all_reduce", "3"])
def test_any_optimizer_with_parameter_groups(pool2, stage, optimizer_class, defaults):
    want_losses, model = alone(CONFIG, 2, optimizer_class, defaults, True, 4)
    answers = pool2.run(train, CONFIG, stage, optimizer_class, defaults, True, 4)
    for losses, full, *_ in answers:
        assert losses == pytest.approx(want_losses, rel=1e-12)
        for name, p in model.named_parameters():
            assert torch.equal(full[name], p)


def scheduled(rank):
    model = build_model(CONFIG)
    optimizer = ZeroStage1(model.parameters(), torch.optim.SGD, rank.group, lr=1.0)
    optimizer.param_groups[0]["lr"] = 0.0
    before = optimizer.full_parameters()
    compute_loss(
        model(*make_batch(CONFIG, step=0, batch_size=2)[:1]),
        torch.zeros(2, CONFIG.max_sequence_length, dtype=torch.int64),
    ).backward()
    optimizer.step()
    return all(torch.equal(p, before[p]) for p in optimizer.params)


def test_a_changed_learning_rate_reaches_the_local_optimizer(pool2):
    assert pool2.run(scheduled) == [True, True]


SCHEDULERS = {
    "learning rate": lambda optimizer: lr_scheduler.StepLR(optimizer, 1, gamma=0.5),
    "momentum too": lambda optimizer: lr_scheduler.OneCycleLR(optimizer, 0.1, 4),
}


def with_a_scheduler(rank, stage, changes):
    model = build_model(CONFIG)
    params = list(model.parameters())
    optimizer = make(stage, model, params, SGD[0], rank.group, **SGD[1])
    names = {param: name for name, param in model.named_parameters()}
    scheduler = SCHEDULERS[changes](optimizer)
    for batch in batches(CONFIG, rank.world_size, 3):
        tokens, labels = shard_batch(batch, rank=rank.rank, world_size=rank.world_size)
        optimizer.zero_grad()
        compute_loss(model(tokens), labels).backward()
        optimizer.step()
        scheduler.step()
    with pytest.raises(RuntimeError, match=f"rank {rank.rank} of 2 has a part"):
        optimizer.state_dict()
    return {names[p]: t for p, t in optimizer.full_parameters().items()}


@pytest.mark.parametrize("changes", SCHEDULERS)
@pytest.mark.parametrize("stage", STAGES)
def test_a_scheduler_of_torch_drives_it(pool2, stage, changes):
    model = build_model(CONFIG)
    optimizer = SGD[0](model.parameters(), **SGD[1])
    scheduler = SCHEDULERS[changes](optimizer)
    for batch in batches(CONFIG, 2, 3):
        train_one_process(model, optimizer, [batch], chunks=2)
        scheduler.step()
    for full in pool2.run(with_a_scheduler, stage, changes):
        for name, p in model.named_parameters():
            assert torch.equal(full[name], p), name


def accumulate(rank, stage):
    model = build_model(CONFIG)
    optimizer = make(
        stage, model, list(model.parameters()), torch.optim.SGD, rank.group, lr=0.1
    )
    names = {param: name for name, param in model.named_parameters()}
    batch = make_batch(CONFIG, step=0, batch_size=4 * rank.world_size)
    optimizer.zero_grad()
    for half in range(2):
        part = half * rank.world_size + rank.rank
        tokens, labels = shard_batch(batch, rank=part, world_size=2 * rank.world_size)
        (compute_loss(model(tokens), labels) / 2).backward()
    optimizer.step()
    return {names[p]: t for p, t in optimizer.full_parameters().items()}


@pytest.mark.parametrize("stage", ["1 reduce", "2", "3"])
def test_microbatches_add_up(pool2, stage):
    model = build_model(CONFIG)
    train_one_process(
        model,
        torch.optim.SGD(model.parameters(), lr=0.1),
        [make_batch(CONFIG, step=0, batch_size=8)],
        chunks=4,
    )
    for full in pool2.run(accumulate, stage):
        for name, p in model.named_parameters():
            # four terms in another order, once
            torch.testing.assert_close(full[name], p, rtol=1e-5, atol=1e-7)


def watch(rank, stage):
    """Return the most parameter and gradient bytes alive at any module of one step."""
    model = build_model(DEEP)
    optimizer = make(
        stage, model, list(model.parameters()), torch.optim.SGD, rank.group, lr=0.1
    )
    frozen = model.layers[1].mlp.linear_fc1.bias
    frozen.requires_grad_(False)
    most = {"parameters": 0, "gradients": 0}

    def look(*_):
        held = bytes_held(optimizer)
        for key in most:
            most[key] = max(most[key], held[key])

    for module in model.modules():
        if list(module.parameters(recurse=False)):
            module.register_forward_pre_hook(look)
    for p in model.parameters():
        if p.requires_grad:
            p.register_post_accumulate_grad_hook(look)
    tokens, labels = make_batch(DEEP, step=0, batch_size=2)
    compute_loss(model(tokens), labels).backward()
    look()
    owned = sum(p.nbytes for p, r in optimizer.param_to_rank.items() if r == rank.rank)
    after = bytes_held(optimizer)["parameters"]
    grads = bytes_held(optimizer)["gradients"]
    optimizer.step()
    kept = sum(
        p.grad.nbytes
        for p, r in optimizer.param_to_rank.items()
        if r == rank.rank and p.grad is not None
    )
    return most, owned, after, grads, kept


def test_memory_falls_while_the_step_runs(pool4):
    model = build_model(DEEP)
    psi = sum(p.nbytes for p in model.parameters())
    largest = max(
        sum(p.nbytes for p in m.parameters(recurse=False)) for m in model.modules()
    )
    for most, owned, after, *_ in pool4.run(watch, "3"):
        # the module that runs, and the one whose gradients are being added
        assert most["parameters"] <= owned + 2 * largest < psi * 0.5
        assert most["gradients"] <= owned + largest
        assert after == owned, "the frozen parameter is given back too"
    for most, owned, _, grads, kept in pool4.run(watch, "2"):
        assert most["parameters"] == psi
        assert most["gradients"] <= owned + largest
        assert kept <= grads <= kept + largest, "counted between backward and step"
    for most, *_ in pool4.run(watch, "1 reduce"):
        assert most["gradients"] > 0.9 * psi  # all but the frozen one


FROZEN = (
    "linear_fc1.bias",
    "linear_qkv.weight",
    "linear_qkv.bias",
    "embeddings.weight",
)
"""One of a module's two, both of another, and what runs first of all."""


def held_after_each_backward(rank):
    """Return what a rank owns, and what it holds after each of three backwards."""
    model = build_model(CONFIG)
    for name, param in model.named_parameters():
        param.requires_grad_(not name.endswith(FROZEN))
    optimizer = make(
        "3", model, list(model.parameters()), torch.optim.SGD, rank.group, lr=0.1
    )
    owned = sum(p.nbytes for p, r in optimizer.param_to_rank.items() if r == rank.rank)
    held, sent = [], []
    for tokens, labels in batches(CONFIG, 1, 3):
        with CollectiveCounter() as counter:
            optimizer.zero_grad()
            compute_loss(model(tokens), labels).backward()
            held.append(bytes_held(optimizer)["parameters"])
            optimizer.step()
        sent.append(counter.counts())
    return owned, held, sent


def test_frozen_parameters_are_given_back_after_every_backward(pool):
    model = build_model(CONFIG)
    frozen = [n for n, _ in model.named_parameters() if n.endswith(FROZEN)]
    assert len(frozen) == 5
    for owned, held, sent in pool.run(held_after_each_backward):
        assert held == [owned] * 3
        assert sent[1:] == sent[:1] * 2, "and borrowed again by every step"


def skip_a_batch(rank, stage, drop):
    """Return what is held after a batch is dropped, and whether the next step saw it.

    Two batches, the first a hundred times as steep; SGD moves by the gradient.
    """
    model = nn.Sequential(nn.Linear(3, 3), nn.Linear(3, 3))
    params = list(model.parameters())
    optimizer = make(stage, model, params, torch.optim.SGD, rank.group, lr=1.0)
    before = optimizer.full_parameters()
    x = torch.full((1, 3), float(rank.rank + 1))
    if drop:
        (model(x).sum() * 100).backward()
        optimizer.zero_grad()
    held = bytes_held(optimizer)["gradients"]
    model(x).sum().backward()
    optimizer.step()
    after = optimizer.full_parameters()
    return held, [after[param] - before[param] for param in params]


@pytest.mark.parametrize("stage", STAGES)
def test_a_batch_dropped_by_zero_grad_leaves_no_trace(pool2, stage):
    wanted = pool2.run(skip_a_batch, stage, False)
    for (held, moved), (_, want) in zip(
        pool2.run(skip_a_batch, stage, True), wanted, strict=True
    ):
        assert held == 0
        for got, alone in zip(moved, want, strict=True):
            assert alone.abs().sum() > 0
            assert torch.equal(got, alone)


class Attend(nn.Module):
    """Attention, which reads its child's weights and returns a tuple, and an LSTM."""

    def __init__(self):
        super().__init__()
        self.attention = nn.MultiheadAttention(8, 2, batch_first=True)
        self.lstm = nn.LSTM(8, 8, batch_first=True)

    def forward(self, x):
        mixed, _ = self.attention(x, x, x)
        _, (hidden, cell) = self.lstm(mixed)
        return (hidden * cell).sum()  # nothing goes back through the first output


def train_attention(rank, stage):
    model = Attend()
    params = list(model.parameters())
    optimizer = make(stage, model, params, torch.optim.SGD, rank.group, lr=0.1)
    x = torch.randn(2, 3, 8)  # of the same seed on all ranks
    for _ in range(3):
        optimizer.zero_grad()
        model(x * (rank.rank + 1)).backward()
        optimizer.step()
    owned = sum(p.nbytes for p, r in optimizer.param_to_rank.items() if r == rank.rank)
    held = bytes_held(optimizer)["parameters"]
    full = optimizer.full_parameters()
    return [full[param] for param in params], held, owned


def test_weights_read_by_a_parent_and_outputs_in_a_tuple(pool2):
    wanted = pool2.run(train_attention, "1 reduce")
    for (full, held, owned), (want, *_) in zip(
        pool2.run(train_attention, "3"), wanted, strict=True
    ):
        assert held == owned
        for got, plain in zip(full, want, strict=True):
            assert torch.equal(got, plain)


class Tied(nn.Module):
    """Reads an embedding from where no module of that name runs."""

    def __init__(self):
        super().__init__()
        self.table = nn.Embedding(5, 4)
        self.scale = nn.Linear(4, 4)

    def forward(self, x):
        return self.scale(self.table(x)) @ self.table.weight.t()


def read_from_outside(rank, leaf_modules):
    model = Tied()
    optimizer = ZeroStage3(
        model,
        model.parameters(),
        torch.optim.SGD,
        rank.group,
        lr=0.1,
        leaf_modules=leaf_modules,
    )
    model(torch.arange(5)).sum().backward()
    optimizer.step()
    plain = build_tied_step()
    full = optimizer.full_parameters()
    for param, want in zip(model.parameters(), plain.parameters(), strict=True):
        torch.testing.assert_close(full[param], want.detach())


def build_tied_step():
    torch.manual_seed(0)
    model = Tied()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    model(torch.arange(5)).sum().backward()
    optimizer.step()
    return model


def test_a_leaf_module_borrows_what_its_children_hold(pool2):
    pool2.run(read_from_outside, (Tied,))


def too_few(rank):
    ZeroStage1(nn.Linear(2, 2).parameters(), torch.optim.SGD, rank.group, lr=0.1)


def test_more_ranks_than_parameters_is_refused(pool4):
    with pytest.raises(RankFailure, match="2 parameters cannot have 4 owners"):
        pool4.run(too_few)
