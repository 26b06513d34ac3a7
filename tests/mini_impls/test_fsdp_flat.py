"""Flat parameters: equal to one process, cut anywhere, whole only while in use."""

from contextlib import nullcontext
from dataclasses import replace
from types import SimpleNamespace

import pytest
import torch
import torch.distributed as dist
from torch import nn

from mini_impls.fsdp_flat import FlatState, fully_shard_flat
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

# 33 and 67: no parameter's size divides by two or four
CONFIG = GPTConfig(hidden_size=36, ffn_hidden_size=67, vocab_size=33)
TIED = replace(CONFIG, share_embeddings_and_output_weights=True)
FOUR_LAYERS = replace(CONFIG, num_layers=4)
LAYERS = ["layers.0", "layers.1"]
STEPS = 4


def sgd(model):
    return torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)


def batches(world_size, steps=STEPS):
    return [make_batch(CONFIG, step=i, batch_size=2 * world_size) for i in range(steps)]


def train(rank, config, modules, optimizer_class, defaults, steps=STEPS):
    model = build_model(config)
    state = fully_shard_flat(model, rank.group, modules=modules)
    optimizer, losses = optimizer_class(model.parameters(), **defaults), []
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
    handles = {
        name: (
            handle.sharded_size,
            handle.unpadded_size,
            handle.flat_param.grad,
            handle._full_param_padded.untyped_storage().nbytes(),
            {i.fqn: i.place for i in handle.param_infos},
        )
        for name, handle in state.handles.items()
    }
    return losses, state.full_parameters(), handles, sent.calls


SGD = (torch.optim.SGD, {"lr": 0.1, "momentum": 0.9})


@pytest.mark.parametrize(
    ("config", "modules", "optimizer"),
    [
        pytest.param(CONFIG, LAYERS, SGD, id="layers"),
        pytest.param(TIED, LAYERS, SGD, id="tied"),
        pytest.param(CONFIG, [], SGD, id="root alone"),
        pytest.param(CONFIG, [*LAYERS, "layers.0.mlp"], SGD, id="nested"),
        # an optimizer that treats elements alike does not mind the cuts
        pytest.param(CONFIG, LAYERS, (torch.optim.Adam, {"eps": 1e-3}), id="adam"),
    ],
)
def test_equals_the_one_process_run(pool, config, modules, optimizer):
    w = pool.world_size
    model = build_model(config)
    alone = optimizer[0](model.parameters(), **optimizer[1])
    want_losses = train_one_process(model, alone, batches(w), chunks=w)
    want = dict(model.named_parameters(remove_duplicate=False))
    answers = pool.run(train, config, modules, *optimizer)
    for losses, full, _, _ in answers:
        assert losses == pytest.approx(want_losses, rel=1e-12 if w == 2 else 1e-5)
        assert full.keys() == want.keys()
        for name, p in want.items():
            if w == 2:  # one addition commutes, and dividing by two loses nothing
                assert torch.equal(full[name], p), name
            else:  # gloo adds four terms in an order of its own
                torch.testing.assert_close(full[name], p, rtol=1e-3, atol=1e-5)
    for name, (_, unpadded, _, _, places) in answers[0][2].items():
        flat = torch.cat([answers[r][2][name][2] for r in range(w)])[:unpadded]
        names = {place: fqn for fqn, place in reversed(places.items())}
        grads = [want[names[i]].grad.flatten() for i in range(len(names))]
        torch.testing.assert_close(
            flat,
            torch.cat(grads),
            rtol=0 if w == 2 else 1e-3,
            atol=0 if w == 2 else 1e-5,
        )
        assert all(answers[r][2][name][3] == 0 for r in range(w)), "still whole"


@pytest.mark.parametrize("world_size", [1, 2, 3, 4, 6, 8, 12, 64])
def test_both_divisions_of_a_gradient_make_a_mean(world_size):
    group = SimpleNamespace(size=lambda: world_size)
    state = FlatState(group)
    both = state.gradient_predivide_factor * state.gradient_postdivide_factor
    assert both == world_size
    # Neither the terms nor the sum leave a small type: each is about the root.
    ratio = state.gradient_predivide_factor / state.gradient_postdivide_factor
    assert 1 <= ratio < 3


def test_an_error_within_no_sync_ends_it():
    state = FlatState(SimpleNamespace(size=lambda: 1))
    with pytest.raises(ArithmeticError), state.no_sync():
        raise ArithmeticError
    assert state.sync_gradients


def test_one_step_sends_these_in_this_order(pool):
    w = pool.world_size
    _, _, handles, calls = pool.run(train, CONFIG, LAYERS, *SGD, 1)[0]
    size = {name: 4 * w * sharded for name, (sharded, *_) in handles.items()}
    count = {name: unpadded for name, (_, unpadded, *_) in handles.items()}
    model = build_model(CONFIG)
    layer = sum(p.numel() for p in model.layers[0].parameters())
    rest = sum(p.numel() for p in model.parameters()) - 2 * layer
    assert count == {"": rest, "layers.0": layer, "layers.1": layer}
    for name, numel in count.items():
        assert size[name] == 4 * w * -(-numel // w)
    ag, rs = "all_gather", "reduce_scatter"
    assert [(call.op, call.payload_bytes) for call in calls] == [
        (ag, size[""]),
        (ag, size["layers.0"]),
        (ag, size["layers.1"]),
        (ag, size["layers.1"]),
        (ag, size["layers.0"]),  # ahead of time, while layer 1 computes
        (rs, size["layers.1"]),
        (rs, size["layers.0"]),
        (rs, size[""]),
    ]


def train_on_filled_memory(rank):
    torch.use_deterministic_algorithms(True)  # memory begins as NaN, not as it was
    try:
        _, _, handles, _ = train(rank, CONFIG, LAYERS, *SGD, 1)
    finally:
        torch.use_deterministic_algorithms(False)
    return handles


def test_what_was_padded_has_a_gradient_of_zero(pool):
    """Or a norm of the shards would be of more than the model."""
    answers = pool.run(train_on_filled_memory)
    padded = 0
    for name, (sharded, unpadded, *_) in answers[0].items():
        whole = torch.cat([handles[name][2] for handles in answers])
        assert whole.isfinite().all() and not whole[unpadded:].any(), name
        padded += pool.world_size * sharded - unpadded
    assert padded


def watch(rank):
    """Return the most whole bytes alive at any layer, and what stays afterwards."""
    model = build_model(replace(CONFIG, num_layers=6))
    names = [f"layers.{i}" for i in range(6)]
    state = fully_shard_flat(model, rank.group, modules=names)
    most = 0

    def look(*_):
        nonlocal most
        most = max(
            most,
            sum(
                h._full_param_padded.untyped_storage().nbytes()
                for h in state.handles.values()
            ),
        )

    for layer in model.layers:
        layer.mlp.register_forward_hook(look)
    for handle in state.handles.values():
        handle.flat_param.register_post_accumulate_grad_hook(look)
    tokens, labels = make_batch(CONFIG, step=0, batch_size=2)
    compute_loss(model(tokens), labels).backward()
    whole = {n: h._full_param_padded.nbytes for n, h in state.handles.items()}
    held = sum(p.untyped_storage().nbytes() for p in model.parameters())
    return most, whole, held  # with what a view would keep of its base


def test_memory_falls_while_the_step_runs(pool2):
    for most, whole, held in pool2.run(watch):
        # one order in all processes, whose sets of names are ordered differently
        assert list(whole) == [*(f"layers.{i}" for i in range(6)), ""]
        # the layer that runs and the one gathered ahead of it
        assert most <= whole[""] + 2 * whole["layers.0"]
        assert held == sum(whole.values()) / 2


def accumulate(rank):
    model = build_model(CONFIG)
    state = fully_shard_flat(model, rank.group, modules=LAYERS)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    batch = make_batch(CONFIG, step=0, batch_size=4 * rank.world_size)
    for half in range(2):
        part = half * rank.world_size + rank.rank
        tokens, labels = shard_batch(batch, rank=part, world_size=2 * rank.world_size)
        (compute_loss(model(tokens), labels) / 2).backward()
    with torch.no_grad():  # must neither lose the gradient nor keep stale weights
        before = compute_loss(model(batch[0]), batch[1]).item()
    optimizer.step()
    with torch.no_grad():
        after = compute_loss(model(batch[0]), batch[1]).item()
    return state.full_parameters(), before, after


def test_microbatches_add_up_and_evaluation_between_changes_nothing(pool2):
    model = build_model(CONFIG)
    batch = make_batch(CONFIG, step=0, batch_size=8)
    want_before = compute_loss(model(batch[0]), batch[1]).item()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    train_one_process(model, optimizer, [batch], chunks=4)
    want_after = compute_loss(model(batch[0]), batch[1]).item()
    for full, before, after in pool2.run(accumulate):
        assert before == pytest.approx(want_before, rel=1e-5)
        assert after == pytest.approx(want_after, rel=1e-5)
        for name, p in model.named_parameters():
            # four terms in another order, once
            torch.testing.assert_close(full[name], p, rtol=1e-5, atol=1e-7)


def accumulate_locally(rank, synced):
    """Four microbatches a step; those in `synced` are sent, the last one always."""
    model = build_model(CONFIG)
    state = fully_shard_flat(model, rank.group, modules=LAYERS)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for step in range(2):
        batch = make_batch(CONFIG, step=step, batch_size=4 * rank.world_size)
        optimizer.zero_grad()
        sent, held = [], []
        for i in range(4):
            part = i * rank.world_size + rank.rank
            rows = shard_batch(batch, rank=part, world_size=4 * rank.world_size)
            quiet = nullcontext() if i in (*synced, 3) else state.no_sync()
            with CollectiveCounter() as counter, quiet:
                (compute_loss(model(rows[0]), rows[1]) / 4).backward()
            sent.append(counter.counts().get("reduce_scatter", 0))
            held.append(sum(h.flat_param.grad.numel() for h in state.handles.values()))
        optimizer.step()
    return state.full_parameters(), sent, held


@pytest.mark.parametrize("synced", [(), (1,)], ids=["last alone", "second too"])
def test_no_sync_keeps_whole_gradients_and_sends_their_sum(pool, synced):
    w = pool.world_size
    model = build_model(CONFIG)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    steps = [make_batch(CONFIG, step=i, batch_size=4 * w) for i in range(2)]
    train_one_process(model, optimizer, steps, chunks=4 * w)
    whole = sum(p.numel() for p in model.parameters())
    for full, sent, held in pool.run(accumulate_locally, synced):
        assert sent == [0, 3 if 1 in synced else 0, 0, 3]
        assert held[0] == held[2] == whole  # unsharded: what no_sync costs
        assert held[3] == pytest.approx(whole / w, abs=3)
        for name, p in model.named_parameters():
            # microbatches are added per rank first: another order of 4W terms
            torch.testing.assert_close(full[name], p, rtol=1e-4, atol=1e-6)


class Branch(nn.Module):
    """A part that not every microbatch uses."""

    def __init__(self):
        super().__init__()
        torch.manual_seed(1)
        self.first = nn.Linear(3, 3)
        self.branch = nn.Linear(3, 3)
        self.last = nn.Linear(3, 3)

    def forward(self, x, take):
        x = self.first(x)
        y = self.branch(x)  # without `take` it has no part in the loss
        return self.last(x + y if take else x)


def branches(rank):
    model = Branch()
    state = fully_shard_flat(model, rank.group, modules=["first", "branch", "last"])
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for _ in range(3):
        optimizer.zero_grad()
        for take in (True, False):
            model(torch.full((2, 3), rank.rank + 1.0), take).sum().backward()
        optimizer.step()
    assert not state.exec_order, "the order of a step that is over"
    return state.full_parameters()


def test_what_was_gathered_ahead_in_vain_is_not_stale(pool2):
    model = Branch()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for _ in range(3):
        optimizer.zero_grad()
        for take in (True, False):
            for rank in range(2):
                (model(torch.full((2, 3), rank + 1.0), take).sum() / 2).backward()
        optimizer.step()
    for full in pool2.run(branches):
        for name, p in model.named_parameters():
            torch.testing.assert_close(full[name], p)


def freeze_layers(model):
    model.layers.requires_grad_(False)
    return model


def train_around_frozen(rank):
    """Train embedding and head; gradients run through frozen layers between them."""
    model = freeze_layers(build_model(FOUR_LAYERS))
    names = [f"layers.{i}" for i in range(FOUR_LAYERS.num_layers)]
    state = fully_shard_flat(model, rank.group, modules=names)
    optimizer = sgd(model)
    whole = []

    def count(grad):
        whole.append(sum(state.handles[name].is_unsharded for name in names))

    def watch_gradient(module, args, output):
        output.register_hook(count)

    for layer in model.layers:
        layer.register_forward_hook(watch_gradient)
    for step in range(3):
        batch = make_batch(FOUR_LAYERS, step=step, batch_size=2 * rank.world_size)
        tokens, labels = shard_batch(batch, rank=rank.rank, world_size=rank.world_size)
        optimizer.zero_grad()
        compute_loss(model(tokens), labels).backward()
        optimizer.step()
    return state.full_parameters(), whole


def test_frozen_layers_between_trained_ones_are_freed_in_backward(pool):
    w = pool.world_size
    model = freeze_layers(build_model(FOUR_LAYERS))
    batches = [make_batch(FOUR_LAYERS, step=i, batch_size=2 * w) for i in range(3)]
    train_one_process(model, sgd(model), batches, chunks=w)
    for full, whole in pool.run(train_around_frozen):
        for name, p in model.named_parameters():
            torch.testing.assert_close(full[name], p, rtol=1e-3, atol=1e-5)
        assert len(whole) == 3 * FOUR_LAYERS.num_layers
        assert max(whole) == 2, "this layer, and the one behind it, freed next"


def train_behind_frozen(rank):
    model = nn.Sequential(nn.Linear(2, 2), nn.Linear(2, 2))
    model[0].requires_grad_(False)
    state = fully_shard_flat(model, rank.group, modules=["0", "1"])
    model(torch.ones(2)).sum().backward()  # of numbers that need no gradient
    grads = [handle.flat_param.grad is not None for handle in state.handles.values()]
    return grads, [handle.is_unsharded for handle in state.handles.values()]


def test_a_frozen_layer_may_be_the_first(pool2):
    assert pool2.run(train_behind_frozen) == [([False, True], [False, False])] * 2


class FakeGroup:
    """What sharding asks a group for before anything is sent."""

    def rank(self):
        return 0

    def size(self):
        return 2


def test_what_stands_behind_a_tied_weight_is_flattened_too():
    model = nn.Sequential(nn.Linear(2, 2), nn.Linear(2, 2), nn.Linear(2, 3))
    model[1].weight = model[0].weight
    handle = fully_shard_flat(model, FakeGroup(), modules=[]).handles[""]
    sizes = {i.fqn: handle.numels[i.place] for i in handle.param_infos}
    assert list(sizes.values()) == [4, 2, 4, 2, 6, 3]
    assert handle.unpadded_size == 4 + 2 + 2 + 6 + 3  # the tied one once


def test_a_weight_of_any_type_is_flattened_however_it_is_laid_out():
    model = nn.Linear(3, 4, bias=False)
    weight = torch.arange(12.0).view(3, 4).double().T
    model.weight = nn.Parameter(weight)
    handle = fully_shard_flat(model, FakeGroup(), modules=[]).handles[""]
    assert handle.flat_param.dtype is torch.float64
    assert torch.equal(handle.flat_param, weight.reshape(-1)[:6])


def half_frozen():
    model = nn.Linear(2, 2)
    model.bias.requires_grad_(False)
    return model


@pytest.mark.parametrize(
    ("model", "modules", "message"),
    [
        (half_frozen(), [], "one flat parameter cannot be 2: "),
        (build_model(CONFIG), ["nowhere"], "1 of 1 modules unknown: .*nowhere"),
        (
            build_model(CONFIG),
            ["layers"],
            "1 of 1 modules have no forward to gather before: 'layers' is a ModuleList",
        ),
        (
            build_model(TIED),
            ["embedding", "output_layer"],
            "embedding.word_embeddings.weight is tied to one of 'output_layer'",
        ),
    ],
)
def test_what_cannot_be_flattened_is_named(model, modules, message):
    with pytest.raises(ValueError, match=message):
        fully_shard_flat(model, FakeGroup(), modules=modules)
