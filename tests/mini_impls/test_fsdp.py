"""Sharded training equals one process; memory and traffic are what they should be."""

from dataclasses import replace

import pytest
import torch
import torch.distributed as dist
from torch import nn
from torch.utils.checkpoint import checkpoint, set_checkpoint_early_stop

from mini_impls.fsdp_flat import fully_shard_flat
from mini_impls.fsdp_options import fully_shard
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

CONFIG = GPTConfig(hidden_size=32, ffn_hidden_size=64)
TIED = replace(CONFIG, share_embeddings_and_output_weights=True)
STEPS = 4
LAYERS = ["layers.0", "layers.1"]
ALL = ["", *LAYERS]


def sgd(model):
    return torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)


def batches(world_size, steps=STEPS):
    return [make_batch(CONFIG, step=i, batch_size=2 * world_size) for i in range(steps)]


def rows_of(tensor, rank, world_size):
    """Return the rows that `rank` keeps, fewer or none on the last ranks."""
    rows = -(-len(tensor) // world_size)
    return tensor[rank * rows : (rank + 1) * rows]


def alone(config, world_size, steps=STEPS):
    model = build_model(config)
    losses = train_one_process(
        model, sgd(model), batches(world_size, steps), chunks=world_size
    )
    return losses, model


def train(rank, config, modules, options, steps=STEPS):
    model = build_model(config)
    state = fully_shard(model, rank.group, modules=modules, **options)
    optimizer, losses = sgd(model), []
    for batch in batches(rank.world_size, steps):
        tokens, labels = shard_batch(batch, rank=rank.rank, world_size=rank.world_size)
        with CollectiveCounter() as sent:
            optimizer.zero_grad()
            loss = compute_loss(model(tokens), labels)
            loss.backward()
            optimizer.step()
        total = loss.detach().double()
        dist.all_reduce(total, group=rank.group)
        losses.append(total.item() / rank.world_size)
    named = dict(model.named_parameters())
    shards = {name: p.detach() for name, p in named.items()}
    grads = {name: p.grad for name, p in named.items()}
    whole = [p for g in state.param_groups.values() for p in g.fsdp_params]
    still_held = sum(p.all_gather_output.untyped_storage().nbytes() for p in whole)
    full = state.full_parameters(model)
    own = {p.data_ptr() for p in model.parameters()}
    assert not own & {tensor.data_ptr() for tensor in full.values()}, "no copies"
    return losses, shards, grads, full, sent.calls, still_held


def assert_close(got, want, world_size, name):
    if world_size == 2:  # one addition commutes
        assert torch.equal(got, want), name
    else:  # gloo adds four terms in an order of its own
        torch.testing.assert_close(got, want, rtol=1e-3, atol=1e-5)


@pytest.mark.parametrize(
    ("config", "modules", "options"),
    [
        pytest.param(CONFIG, ALL, {}, id="defaults"),
        pytest.param(TIED, ALL, {}, id="tied"),
        pytest.param(CONFIG, ALL, {"reshard_after_forward": False}, id="kept"),
        pytest.param(CONFIG, ALL, {"prefetch": False}, id="plain"),
        pytest.param(CONFIG, [""], {}, id="one group"),
        pytest.param(CONFIG, ["embedding", *LAYERS, "output_layer"], {}, id="no root"),
        pytest.param(TIED, LAYERS, {}, id="rest replicated"),
        pytest.param(CONFIG, ["", "layers.0", "layers.0.mlp"], {}, id="nested"),
    ],
)
def test_equals_the_one_process_run(pool, config, modules, options):
    w = pool.world_size
    want_losses, model = alone(config, w)
    want = dict(model.named_parameters())
    answers = pool.run(train, config, modules, options)
    for rank, (losses, shards, grads, full, _, still_held) in enumerate(answers):
        assert losses == pytest.approx(want_losses, rel=1e-12 if w == 2 else 1e-5)
        assert full.keys() == model.state_dict().keys()
        for name, p in want.items():
            assert_close(full[name], p, w, name)
            sharded = "" in modules or any(name.startswith(m + ".") for m in modules)
            mine = rows_of(p, rank, w) if sharded else p
            assert_close(shards[name], mine, w, name)
            grad = rows_of(p.grad, rank, w) if sharded else p.grad
            assert_close(grads[name], grad, w, name)
            if not sharded:
                assert torch.equal(grads[name], answers[0][2][name])
        assert still_held == 0, "whole parameters outlived the step"


# --- what is sent ---


def sizes(world_size, config=CONFIG):
    """Return padded bytes of the root and of a layer."""
    model = build_model(config)

    def padded(params):
        return sum(
            -(-len(p) // world_size) * world_size * p[0].numel() * 4 for p in params
        )

    layer = padded(model.layers[0].parameters())
    rest = [p for n, p in model.named_parameters() if not n.startswith("layers.")]
    return padded(rest), layer


@pytest.mark.parametrize("prefetch", [True, False])
def test_one_step_sends_these_in_this_order(pool, prefetch):
    root, layer = sizes(pool.world_size)
    ag, rs = "all_gather", "reduce_scatter"
    forward = [(ag, root), (ag, layer), (ag, layer)]
    backward = {
        # layer 1, and layer 0 ahead of time, while layer 1 computes
        True: [(ag, layer), (ag, layer), (rs, layer), (rs, layer), (rs, root)],
        False: [(ag, layer), (rs, layer), (ag, layer), (rs, layer), (rs, root)],
    }
    for *_, calls, _ in pool.run(train, CONFIG, ALL, {"prefetch": prefetch}, 1):
        got = [(call.op, call.payload_bytes) for call in calls]
        assert got == forward + backward[prefetch]


def test_kept_parameters_are_gathered_once(pool2):
    root, layer = sizes(2)
    options = {"reshard_after_forward": False}
    *_, calls, _ = pool2.run(train, CONFIG, ALL, options, 1)[0]
    gathered = [call.payload_bytes for call in calls if call.op == "all_gather"]
    assert gathered == [root, layer, layer]


def test_replicated_rest_is_all_reduced(pool2):
    root, _ = sizes(2)
    *_, calls, _ = pool2.run(train, CONFIG, LAYERS, {}, 1)[0]
    reduced = [call.payload_bytes for call in calls if call.op == "all_reduce"]
    assert sum(reduced) == root
    assert [c.op for c in calls].count("all_gather") == 4


def events(rank, prefetch):
    """Return gathers, and starts and ends of the layers, in order of one forward."""
    log = []
    model = build_model(CONFIG)
    for i, layer in enumerate(model.layers):
        layer.mlp.register_forward_hook(lambda *_, i=i: log.append(f"ran {i}"))
    state = fully_shard(model, rank.group, modules=ALL, prefetch=prefetch)
    for name, group in state.param_groups.items():

        def unshard(name=name, group=group, real=group.unshard):
            if group._all_gather_result is None and not group.is_unsharded:
                log.append(f"gather {name or 'root'}")
            real()

        group.unshard = unshard
    model(make_batch(CONFIG, step=0, batch_size=2)[0])
    return log


def test_the_next_gather_starts_before_the_layer_runs(pool2):
    assert pool2.run(events, True)[0] == [
        "gather root",
        "gather layers.0",
        "gather layers.1",
        "ran 0",
        "ran 1",
    ]
    assert pool2.run(events, False)[0] == [
        "gather root",
        "gather layers.0",
        "ran 0",
        "gather layers.1",
        "ran 1",
    ]


# --- what is held ---


def watch(rank, config, options):
    """Return the most bytes of whole parameters alive at any layer of one step."""
    model = build_model(config)
    modules = ["", *(f"layers.{i}" for i in range(config.num_layers))]
    state = fully_shard(model, rank.group, modules=modules, **options)
    whole = [p for g in state.param_groups.values() for p in g.fsdp_params]
    most = 0

    def look(*_):
        nonlocal most
        held = sum(p.all_gather_output.untyped_storage().nbytes() for p in whole)
        most = max(most, held)

    for layer in model.layers:
        layer.mlp.register_forward_hook(look)
    for p in whole:
        p.unsharded_param.register_post_accumulate_grad_hook(look)
    tokens, labels = make_batch(config, step=0, batch_size=2)
    compute_loss(model(tokens), labels).backward()
    return most, sum(p.nbytes for p in model.parameters())


def test_memory_falls_while_the_step_runs(pool2):
    config = replace(CONFIG, num_layers=6)
    root, layer = sizes(2, config)
    for options, want in [
        ({"prefetch": False}, root + layer),
        ({}, root + layer),  # what is gathered ahead waits in the gather's own buffer
        ({"reshard_after_forward": False}, root + 6 * layer),
    ]:
        for most, held in pool2.run(watch, config, options):
            assert most == want
            assert held == (root + 6 * layer) / 2


# --- dtypes ---


def mixed(rank, reduce_dtype):
    model = build_model(CONFIG)
    fully_shard(
        model,
        rank.group,
        modules=ALL,
        compute_dtype=torch.bfloat16,
        reduce_dtype=reduce_dtype,
    )
    tokens, labels = shard_batch(
        batches(rank.world_size)[0], rank=rank.rank, world_size=rank.world_size
    )
    with CollectiveCounter() as sent:
        compute_loss(model(tokens), labels).backward()
    grads = {name: p.grad for name, p in model.named_parameters()}
    return grads, {p.dtype for p in model.parameters()}, sent.calls


@pytest.mark.parametrize("reduce_dtype", [torch.float32, None])
def test_compute_in_bf16_reduce_in_another_dtype(pool2, reduce_dtype):
    per_rank = []
    for rank in range(2):
        model = build_model(CONFIG).bfloat16()
        tokens, labels = shard_batch(batches(2)[0], rank=rank, world_size=2)
        compute_loss(model(tokens), labels).backward()
        per_rank.append({name: p.grad for name, p in model.named_parameters()})
    used = reduce_dtype or torch.bfloat16
    for rank, (grads, dtypes, calls) in enumerate(pool2.run(mixed, reduce_dtype)):
        assert dtypes == {torch.float32}
        for call in calls:
            assert call.dtype == (torch.bfloat16 if call.op == "all_gather" else used)
        for name, grad in grads.items():
            a, b = (rows_of(g[name], rank, 2).to(used) for g in per_rank)
            assert grad.dtype == torch.float32
            assert torch.equal(grad, ((a + b) / 2).float()), name


def mixed_with_replicated_head(rank):
    options = {"compute_dtype": torch.bfloat16, "output_dtype": torch.float32}
    losses, *_ = train(rank, CONFIG, LAYERS, options, 3)
    return losses


def test_output_dtype_hands_fp32_to_what_is_not_sharded(pool2):
    want, _ = alone(CONFIG, 2, 3)
    for losses in pool2.run(mixed_with_replicated_head):
        assert losses == pytest.approx(want, rel=1e-2)  # bf16 has 8 bits
        assert losses != want


# --- what a training does besides ---


class Chain(nn.Module):
    """Three layers, each a group of its own; with a checkpoint, each runs twice."""

    def __init__(self, early_stop=None):
        super().__init__()
        torch.manual_seed(0)
        self.layers = nn.ModuleList(
            nn.Sequential(nn.Linear(4, 6), nn.Tanh(), nn.Linear(6, 4), nn.Sigmoid())
            for _ in range(3)
        )
        self.early_stop = early_stop

    def forward(self, x):
        for layer in self.layers:
            if self.early_stop is None:
                x = layer(x)
            else:
                with set_checkpoint_early_stop(self.early_stop):
                    x = checkpoint(layer, x, use_reentrant=False)
        return x


CHAIN = ["layers.0", "layers.1", "layers.2"]


def inputs(rank, step):
    generator = torch.Generator().manual_seed(10 * step + rank)
    return torch.randn(2, 4, generator=generator)


def chain_alone(world_size, steps=3):
    model = Chain()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.5)
    for step in range(steps):
        optimizer.zero_grad()
        for rank in range(world_size):
            (model(inputs(rank, step)).pow(2).mean() / world_size).backward()
        optimizer.step()
    return {name: p.detach() for name, p in model.named_parameters()}


def chain_checkpointed(rank, flat, early_stop):
    model = Chain(early_stop)
    shard = fully_shard_flat if flat else fully_shard
    state = shard(model, rank.group, modules=CHAIN)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.5)
    for step in range(3):
        with CollectiveCounter() as sent:
            optimizer.zero_grad()
            model(inputs(rank.rank, step)).pow(2).mean().backward()
            optimizer.step()
    full = state.full_parameters() if flat else state.full_parameters(model)
    return full, sent.counts()


@pytest.mark.parametrize("flat", [False, True])
@pytest.mark.parametrize("early_stop", [True, False])
def test_layers_may_be_checkpointed(pool2, flat, early_stop):
    want = chain_alone(2)
    for full, sent in pool2.run(chain_checkpointed, flat, early_stop):
        for name, p in want.items():
            torch.testing.assert_close(full[name], p, rtol=1e-5, atol=1e-6)
        # Each layer's gathers: for forward, for backward; none for the second forward.
        assert sent == {"all_gather": 6, "reduce_scatter": 3}


def step_after_part_of_a_forward(rank, grad):
    model = Chain()
    state = fully_shard(model, rank.group, modules=CHAIN)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.5)
    for step in range(3):
        optimizer.zero_grad()
        model(inputs(rank.rank, step)).pow(2).mean().backward()
        with torch.set_grad_enabled(grad):
            model.layers[0](inputs(rank.rank, step))  # the next is gathered in vain
        optimizer.step()
    return state.full_parameters(model)


@pytest.mark.parametrize("grad", [False, True])
def test_what_was_gathered_ahead_is_dropped_once_the_shards_change(pool2, grad):
    want = chain_alone(2)
    for full in pool2.run(step_after_part_of_a_forward, grad):
        for name, p in want.items():
            torch.testing.assert_close(full[name], p, rtol=1e-5, atol=1e-6)


def freeze_norms(model):
    """Freeze the first parameters of each layer, which then keep their version."""
    for layer in model.layers:
        layer.input_layernorm.requires_grad_(False)


def keep_a_forward_without_a_backward(rank, options, freezes):
    """The root, and all if they are kept, stay gathered while the shards change."""
    model = build_model(CONFIG)
    if freezes:
        freeze_norms(model)
    state = fully_shard(model, rank.group, modules=ALL, **options)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    losses = []
    for batch in batches(rank.world_size, 3):
        tokens, labels = shard_batch(batch, rank=rank.rank, world_size=rank.world_size)
        optimizer.zero_grad()
        loss = compute_loss(model(tokens), labels)
        loss.backward()
        compute_loss(model(tokens), labels)  # looked at, with gradients on
        optimizer.step()
        losses.append(loss.item())
    return state.full_parameters(model), losses


@pytest.mark.parametrize("freezes", [False, True])
@pytest.mark.parametrize("options", [{}, {"reshard_after_forward": False}])
def test_what_a_forward_kept_is_dropped_once_the_shards_change(pool2, options, freezes):
    model = build_model(CONFIG)
    if freezes:
        freeze_norms(model)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    train_one_process(model, optimizer, batches(2, 3), chunks=2)
    for full, _ in pool2.run(keep_a_forward_without_a_backward, options, freezes):
        for name, p in model.named_parameters():
            assert torch.equal(full[name], p), name


def freeze_late(rank):
    model = Chain()
    fully_shard(model, rank.group, modules=CHAIN)
    model.layers[1].requires_grad_(False)
    before = [p.detach().clone() for p in model.layers[1].parameters()]
    optimizer = torch.optim.AdamW(model.parameters(), lr=0.5)
    model(inputs(rank.rank, 0)).pow(2).mean().backward()
    optimizer.step()
    frozen = list(model.layers[1].parameters())
    trained = [p.grad is not None for p in model.layers[0].parameters()]
    return all(map(torch.equal, before, frozen)), [p.grad for p in frozen], trained


def test_what_is_frozen_after_sharding_stays_as_it_is(pool2):
    for is_same, grads, trained in pool2.run(freeze_late):
        assert is_same and all(trained)
        assert grads == [None] * 4


def probe(rank, wrap):
    """Train a replicated head on a frozen trunk; all of it may be in a checkpoint."""
    model = Chain()
    model.layers[:2].requires_grad_(False)
    fully_shard(model, rank.group, modules=CHAIN[:2])
    optimizer = torch.optim.SGD(model.layers[2].parameters(), lr=0.5)
    for step in range(3):
        optimizer.zero_grad()
        x = inputs(rank.rank, step)
        output = checkpoint(model, x, use_reentrant=False) if wrap else model(x)
        output.pow(2).mean().backward()
        optimizer.step()
    return {name: p.detach() for name, p in model.layers[2].named_parameters()}


@pytest.mark.parametrize("wrap", [False, True])
def test_a_replicated_head_on_a_frozen_trunk_gets_the_mean_gradient(pool2, wrap):
    model = Chain()
    model.layers[:2].requires_grad_(False)
    optimizer = torch.optim.SGD(model.layers[2].parameters(), lr=0.5)
    for step in range(3):
        optimizer.zero_grad()
        for rank in range(2):
            (model(inputs(rank, step)).pow(2).mean() / 2).backward()
        optimizer.step()
    first, second = pool2.run(probe, wrap)
    for name, p in model.layers[2].named_parameters():
        assert torch.equal(first[name], second[name]), name
        torch.testing.assert_close(first[name], p.detach(), rtol=1e-5, atol=1e-6)


# --- awkward models ---


class Odd(nn.Module):
    """Few rows, a frozen weight, a branch not always taken, a buffer."""

    def __init__(self):
        super().__init__()
        torch.manual_seed(1)
        self.first = nn.Linear(3, 5)
        self.first.bias.requires_grad_(False)
        self.branch = nn.Linear(5, 5)
        self.last = nn.Linear(5, 1)
        self.register_buffer("scale", torch.tensor(2.0))

    def forward(self, x, take):
        x = self.first(x)
        if take:
            x = self.branch(x)
        return self.last(x) * self.scale


STEPS_OF_ODD = 3


class FakeGroup:
    """What sharding asks a group for before anything is sent."""

    def rank(self):
        return 0

    def size(self):
        return 2


def odd(rank):
    model = Odd()
    state = fully_shard(model, rank.group, modules=["", "first", "branch", "last"])
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for _ in range(STEPS_OF_ODD):
        optimizer.zero_grad()
        for take in (True, False):
            model(torch.full((2, 3), rank.rank + 1.0), take).sum().backward()
        optimizer.step()
    shapes = {name: tuple(p.shape) for name, p in model.named_parameters()}
    return state.full_parameters(model), shapes


def test_uneven_rows_frozen_weights_and_a_branch(pool):
    """The branch is gathered ahead and then not used: the next step must not."""
    w = pool.world_size
    model = Odd()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for _ in range(STEPS_OF_ODD):
        optimizer.zero_grad()
        for take in (True, False):
            for rank in range(w):
                (model(torch.full((2, 3), rank + 1.0), take).sum() / w).backward()
        optimizer.step()
    for rank, (full, shapes) in enumerate(pool.run(odd)):
        for name, tensor in model.state_dict().items():
            torch.testing.assert_close(full[name], tensor)
        assert shapes["first.weight"] == tuple(
            rows_of(model.first.weight, rank, w).shape
        )
        assert shapes["last.weight"] == ((1, 5) if rank == 0 else (0, 5))


def accumulate(rank):
    model = build_model(CONFIG)
    state = fully_shard(model, rank.group, modules=ALL)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    batch = make_batch(CONFIG, step=0, batch_size=4 * rank.world_size)
    for half in range(2):
        part = half * rank.world_size + rank.rank
        tokens, labels = shard_batch(batch, rank=part, world_size=2 * rank.world_size)
        (compute_loss(model(tokens), labels) / 2).backward()
    optimizer.step()
    with torch.no_grad():
        before = compute_loss(model(batch[0]), batch[1]).item()
        held = [g.is_unsharded for g in state.param_groups.values()]
    return state.full_parameters(model), before, held


def test_microbatches_add_up_and_evaluation_leaves_nothing_behind(pool2):
    model = build_model(CONFIG)
    batch = make_batch(CONFIG, step=0, batch_size=8)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    train_one_process(model, optimizer, [batch], chunks=4)
    loss = compute_loss(model(batch[0]), batch[1]).item()
    for full, evaluated, held in pool2.run(accumulate):
        assert evaluated == pytest.approx(loss, rel=1e-5)
        assert held == [False] * 3
        for name, p in model.named_parameters():
            # four terms in another order, once
            torch.testing.assert_close(full[name], p, rtol=1e-5, atol=1e-7)


def accumulate_locally(rank):
    """Three microbatches a step, of which the last one alone is sent."""
    model = build_model(CONFIG)
    state = fully_shard(model, rank.group, modules=LAYERS)  # the rest is replicated
    optimizer, held = sgd(model), 0
    for step in range(2):
        batch = make_batch(CONFIG, step=step, batch_size=6 * rank.world_size)
        optimizer.zero_grad()
        for i in range(3):
            part = i * rank.world_size + rank.rank
            rows = shard_batch(batch, rank=part, world_size=3 * rank.world_size)
            state.set_requires_gradient_sync(i == 2)
            with CollectiveCounter() as sent:
                (compute_loss(model(rows[0]), rows[1]) / 3).backward()
            if i == 1:
                quiet = sent.counts()
                whole = [p for g in state.param_groups.values() for p in g.fsdp_params]
                kept = (p.unsharded_accumulated_grad for p in whole)
                held = sum(grad.nbytes for grad in kept if grad is not None)
        optimizer.step()
    return state.full_parameters(model), quiet, sent.payload_bytes(), held


def test_without_gradient_sync_microbatches_add_up_whole_and_are_sent_once(pool):
    w = pool.world_size
    model = build_model(CONFIG)
    steps = [make_batch(CONFIG, step=i, batch_size=6 * w) for i in range(2)]
    train_one_process(model, sgd(model), steps, chunks=3 * w)
    root, layer = sizes(w)
    for full, quiet, payload, held in pool.run(accumulate_locally):
        assert quiet == {"all_gather": 4}  # parameters travel all the same
        assert held == sum(p.nbytes for p in model.layers.parameters())
        assert payload["reduce_scatter"] == 2 * layer
        assert payload["all_reduce"] == root
        for name, p in model.named_parameters():
            # microbatches are added per rank first: another order of 3W terms
            torch.testing.assert_close(full[name], p, rtol=1e-4, atol=1e-6)


def test_microbatches_add_up_in_the_dtype_of_the_reduction(pool2):
    per_rank = []
    for rank in range(2):
        model = build_model(CONFIG)
        grads = {name: 0.0 for name, _ in model.named_parameters()}
        batch = make_batch(CONFIG, step=0, batch_size=12)
        for i in range(3):
            copy = build_model(CONFIG).bfloat16()
            tokens, labels = shard_batch(batch, rank=2 * i + rank, world_size=6)
            (compute_loss(copy(tokens), labels) / 3).backward()
            for name, p in copy.named_parameters():
                grads[name] = grads[name] + p.grad.float()
        per_rank.append(grads)
    answers = pool2.run(accumulate_once_in_bf16)
    for rank, got in enumerate(answers):
        for name, grad in got.items():
            a, b = (rows_of(grads[name], rank, 2) for grads in per_rank)
            assert torch.equal(grad, (a + b) / 2), name


def accumulate_once_in_bf16(rank):
    model = build_model(CONFIG)
    state = fully_shard(
        model,
        rank.group,
        modules=ALL,
        compute_dtype=torch.bfloat16,
        reduce_dtype=torch.float32,
    )
    batch = make_batch(CONFIG, step=0, batch_size=12)
    for i in range(3):
        tokens, labels = shard_batch(batch, rank=2 * i + rank.rank, world_size=6)
        state.set_requires_gradient_sync(i == 2)
        (compute_loss(model(tokens), labels) / 3).backward()
    return {name: p.grad for name, p in model.named_parameters()}


def accumulate_in_a_branch(rank):
    model = Odd()
    state = fully_shard(model, rank.group, modules=["", "first", "branch", "last"])
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for _ in range(STEPS_OF_ODD):
        optimizer.zero_grad()
        for take in (True, False):  # the branch has nothing when the others are sent
            state.set_requires_gradient_sync(not take)
            model(torch.full((2, 3), rank.rank + 1.0), take).sum().backward()
        optimizer.step()
    return state.full_parameters(model)


def test_what_was_used_before_the_last_microbatch_only_is_sent_with_it(pool2):
    model = Odd()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for _ in range(STEPS_OF_ODD):
        optimizer.zero_grad()
        for take in (True, False):
            for rank in range(2):
                (model(torch.full((2, 3), rank + 1.0), take).sum() / 2).backward()
        optimizer.step()
    for full in pool2.run(accumulate_in_a_branch):
        for name, tensor in model.state_dict().items():
            torch.testing.assert_close(full[name], tensor)


def two_losses(rank, together):
    """Two backwards through one forward, or one through the sum of both losses."""
    model = build_model(CONFIG)
    fully_shard(model, rank.group, modules=ALL)
    tokens, labels = make_batch(CONFIG, step=rank.rank, batch_size=2)
    logits = model(tokens)
    first, second = compute_loss(logits, labels), logits.square().mean()
    if together:
        (first + second).backward()
    else:
        first.backward(retain_graph=True)
        second.backward()
    return {name: p.grad for name, p in model.named_parameters()}


def test_a_second_backward_through_one_forward_adds_to_the_first(pool2):
    want = pool2.run(two_losses, True)
    for grads, expected in zip(pool2.run(two_losses, False), want, strict=True):
        for name, grad in grads.items():
            # two sums of two ranks each, added, and one sum of both
            torch.testing.assert_close(grad, expected[name], rtol=1e-4, atol=1e-6)


class Again(nn.Module):
    """The outer layer runs before the inner one, and after it."""

    def __init__(self):
        super().__init__()
        torch.manual_seed(0)
        self.outer, self.inner = nn.Linear(4, 4), nn.Linear(4, 4, bias=False)

    def forward(self, x):
        return self.outer(self.inner(self.outer(x)))


def run_a_group_twice(rank):
    model = Again()
    fully_shard(model, rank.group, modules=["outer", "inner"])
    with CollectiveCounter() as sent:
        model(torch.full((2, 4), rank.rank + 1.0)).sum().backward()
    grads = {name: p.grad for name, p in model.named_parameters()}
    return grads, [(call.op, call.payload_bytes) for call in sent.calls]


def test_a_group_that_runs_twice_has_each_time_the_one_before_it_gathered(pool2):
    model = Again()
    for rank in range(2):
        (model(torch.full((2, 4), rank + 1.0)).sum() / 2).backward()
    ag, rs = "all_gather", "reduce_scatter"
    outer, inner = 4 * (16 + 4), 4 * 16
    forward = [(ag, outer), (ag, inner), (ag, outer), (ag, inner)]
    # The inner one is there, as the next by name; autograd adds both uses up first.
    backward = [(ag, outer), (ag, outer), (rs, inner), (rs, outer)]
    for rank, (grads, calls) in enumerate(pool2.run(run_a_group_twice)):
        assert calls == forward + backward
        for name, p in model.named_parameters():
            torch.testing.assert_close(grads[name], rows_of(p.grad, rank, 2))


class TwoHeads(nn.Module):
    """A head that may be used again for an output that no loss comes from."""

    def __init__(self):
        super().__init__()
        torch.manual_seed(0)
        self.body, self.head = nn.Linear(4, 4), nn.Linear(4, 4)

    def forward(self, x, again):
        x = self.body(x)
        if again:
            self.head(x + 1)
        return self.head(x)


def backward_twice_after_an_unused_output(rank):
    model = TwoHeads()
    fully_shard(model, rank.group, modules=["body", "head"])
    x = torch.full((2, 4), rank.rank + 1.0)
    model(x, True).sum().backward()
    output = model(x, False)
    output.sum().backward(retain_graph=True)
    output.sum().backward()
    return {name: p.grad for name, p in model.named_parameters()}


def test_what_backward_did_not_reach_is_not_reached_by_the_next(pool2):
    model = TwoHeads()
    for rank in range(2):
        (model(torch.full((2, 4), rank + 1.0), False).sum() * 3 / 2).backward()
    for rank, grads in enumerate(pool2.run(backward_twice_after_an_unused_output)):
        for name, p in model.named_parameters():
            torch.testing.assert_close(grads[name], rows_of(p.grad, rank, 2))


def add_up_beside_a_replicated_head(rank):
    model = TwoHeads()
    state = fully_shard(model, rank.group, modules=["body"])
    x = torch.full((2, 4), rank.rank + 1.0)
    state.set_requires_gradient_sync(False)
    with CollectiveCounter() as quiet:
        model(x, False).sum().backward()
    state.set_requires_gradient_sync(True)
    model.body.requires_grad_(False)  # the shards are what one may freeze
    model(x, False).sum().backward()
    grads = {name: p.grad for name, p in model.named_parameters()}
    return quiet.counts(), grads


def test_what_is_replicated_adds_up_too_and_a_shard_may_be_frozen(pool2):
    model = TwoHeads()
    for rank in range(2):
        (model(torch.full((2, 4), rank + 1.0), False).sum() / 2).backward()
    answers = pool2.run(add_up_beside_a_replicated_head)
    for rank, (quiet, grads) in enumerate(answers):
        assert quiet == {"all_gather": 2}
        once = rows_of(model.body.weight.grad, rank, 2)  # of the first microbatch
        torch.testing.assert_close(grads["body.weight"], once)
        torch.testing.assert_close(grads["head.weight"], 2 * model.head.weight.grad)
        torch.testing.assert_close(grads["head.bias"], 2 * model.head.bias.grad)


class Stopped(TwoHeads):
    """A body that backward does not reach, and a flag that its head is called with."""

    def __init__(self):
        super().__init__()
        self.head = Flagged()

    def forward(self, x):
        return self.head(self.body(x).detach().requires_grad_(), True)


class Flagged(nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(4))

    def forward(self, x, twice):
        return x * self.weight * (1 + twice)


def gather_in_vain(rank):
    model = Stopped()
    state = fully_shard(model, rank.group, modules=["body", "head"])
    x = torch.ones(2, 4, requires_grad=True)
    output = model(x)
    output.sum().backward()
    pending = [g._all_gather_result for g in state.param_groups.values()]
    return output.detach(), model.head.weight.grad, pending


def test_what_was_gathered_in_vain_does_not_outlive_backward(pool2):
    want = Stopped()
    want(torch.ones(2, 4)).sum().backward()
    for rank, (output, grad, pending) in enumerate(pool2.run(gather_in_vain)):
        assert torch.equal(output, want(torch.ones(2, 4)).detach())
        assert torch.equal(grad, rows_of(want.head.weight.grad, rank, 2))
        assert pending == [None, None]


def test_a_name_that_begins_like_another_is_another():
    model = nn.Sequential(*(nn.Linear(2, 2) for _ in range(11)))
    model[10].requires_grad_(False)  # and replicated all the same
    rest = {p for name, p in model.named_parameters() if name[:2] != "1."}
    state = fully_shard(model, FakeGroup(), modules=["1"])
    assert set(state.replicated) == rest  # those of "10" among them


class Scalar(nn.Identity):
    def __init__(self):
        super().__init__()
        self.gain = nn.Parameter(torch.tensor(1.0))


class Tables(nn.Identity):
    def __init__(self):
        super().__init__()
        self.tables = nn.ModuleDict({"words": nn.Embedding(4, 2)})


class TwoTypes(nn.Identity):
    def __init__(self):
        super().__init__()
        self.a = nn.Linear(2, 2)
        self.b = nn.Linear(2, 2, dtype=torch.float64)


@pytest.mark.parametrize(
    ("model", "modules", "message"),
    [
        (Scalar(), [""], "gain has 0 dimensions; sharding needs 1"),
        (TwoTypes(), [""], "a group must have 1 dtype, got 2"),
        (build_model(CONFIG), ["layers.7"], "1 of 1 modules unknown: .*layers.7"),
        (
            build_model(CONFIG),
            ["", "layers"],
            "1 of 2 modules have no forward to gather before: 'layers' is a ModuleList",
        ),
        (
            Tables(),
            ["tables"],
            "1 of 1 .*'tables' is a ModuleDict; name the modules in",
        ),
        (
            build_model(TIED),
            ["embedding", "output_layer"],
            r"tied .*word_embeddings.weight.* lie in 2 groups",
        ),
    ],
)
def test_what_cannot_be_sharded_is_named(model, modules, message):
    with pytest.raises(ValueError, match=message):
        fully_shard(model, FakeGroup(), modules=modules)
