"""Offload: bytes of each way, the numbers of one process, and who waits for a copy."""

import threading
import time
from types import SimpleNamespace

import pytest
import torch
import torch.distributed as dist
from torch import nn
from torch.autograd.graph import save_on_cpu

from mini_impls.demos.offload import estimated, unit_names
from mini_impls.model import (
    GPTConfig,
    build_model,
    compute_loss,
    make_batch,
    shard_batch,
    train_one_process,
)
from mini_impls.offload import HostLink, HostOptimizer, OverlappedHostOptimizer
from mini_impls.offload_activations import (
    ActivationOffload,
    offload_layers,
    save_on_host,
)
from mini_impls.offload_states import OffloadedModel, OffloadedUnit, find_owners
from mini_impls.traffic import CollectiveCounter

pytestmark = pytest.mark.sampled

CPU = torch.device("cpu")
CONFIG = GPTConfig(hidden_size=32, ffn_hidden_size=64)
KINDS = (HostOptimizer, OverlappedHostOptimizer)


class Held(HostLink):
    """A link whose copies are made when a test lets them, in the order asked for."""

    def __init__(self):
        super().__init__(CPU)
        self.may_go = threading.Event()
        self.asked = []

    def start(self, source, way, into=None):
        self.asked.append((way, tuple(source.shape)))
        return super().start(source, way, into)

    def _copy(self, source, into, way, ready):
        assert self.may_go.wait(60)
        super()._copy(source, into, way, ready)


def batches_of(steps, rows):
    return [make_batch(CONFIG, step=i, batch_size=rows) for i in range(steps)]


# --- the link ---


def test_a_copy_is_of_the_moment_and_its_bytes_and_seconds_count():
    link = HostLink(CPU, bytes_per_s=4e3)  # a second, so that a busy machine is quicker
    source = torch.arange(1000.0)
    begin = time.perf_counter()
    copy = link.start(source, "to host")
    assert time.perf_counter() - begin < 1, "start has waited"
    arrived = copy.wait()
    assert arrived.data_ptr() != source.data_ptr()
    assert torch.equal(arrived, source)
    assert link.moved == {"to host": 4000}
    assert link.busy_s["to host"] >= 1 and link.busy_s["to device"] == 0
    assert 0 < link.exposed_s <= time.perf_counter() - begin
    waited = link.exposed_s
    assert copy.wait() is arrived and link.exposed_s == waited
    into = torch.empty(1000)
    assert link.start(arrived, "to device", into=into).wait() is into
    assert torch.equal(into, source)
    assert link.exposed_s > waited + 0.5, "one wait more"
    link.forget()
    assert not link.moved and link.exposed_s == 0 == link.busy_s["to host"]
    threads = [thread for lane in link.lanes.values() for thread in lane._threads]
    link.close()
    assert len(threads) == 2 and not any(thread.is_alive() for thread in threads)


def test_seconds_of_all_copies_of_one_way_add_up():
    link = HostLink(CPU, bytes_per_s=4e3)
    for numel in (500, 100):  # the longer first, which the last alone would not be
        link.start(torch.ones(numel), "to host").wait()
    link.close()
    assert link.busy_s["to host"] > 0.59


def test_what_had_work_beside_it_is_not_exposed():
    link = HostLink(CPU, bytes_per_s=1e5)
    copy = link.start(torch.ones(1000), "to device")
    time.sleep(0.3)
    copy.wait()
    assert link.exposed_s == 0


def test_the_two_ways_do_not_wait_for_each_other():
    link = Held()
    out = link.start(torch.ones(3), "to host")
    link.lanes["to device"].submit(lambda: None).result(30)
    assert not out.done.done()
    link.may_go.set()
    assert out.wait().tolist() == [1.0, 1.0, 1.0]


@pytest.mark.parametrize("is_over", [False, True])
def test_a_copy_that_fails_says_so_where_it_is_waited_for(is_over):
    link = HostLink(CPU)
    copy = link.start(torch.ones(3), "to device", into=torch.empty(4))
    if is_over:
        link.close()  # once the copy has ended
    with pytest.raises(RuntimeError, match="size"):
        copy.wait()


@pytest.mark.parametrize("speed", [0.0, -1.0])
def test_a_link_that_moves_nothing_is_refused(speed):
    with pytest.raises(ValueError, match="moves nothing"):
        HostLink(CPU, bytes_per_s=speed)


# --- the optimizer on the host ---


def alone(batches, chunks):
    gpt = build_model(CONFIG)
    optimizer = torch.optim.AdamW(gpt.parameters(), lr=3e-3)
    return gpt, train_one_process(gpt, optimizer, batches, chunks=chunks)


@pytest.mark.parametrize("chunks", [1, 3])
@pytest.mark.parametrize("kind", KINDS)
def test_an_optimizer_on_the_host_changes_no_bit(kind, chunks):
    batches, link, gpt = batches_of(3, 6), HostLink(CPU), build_model(CONFIG)
    optimizer = kind(gpt.parameters(), torch.optim.AdamW, link, lr=3e-3)
    losses = train_one_process(gpt, optimizer, batches, chunks=chunks)
    reference, want = alone(batches, chunks)
    assert losses == want
    pairs = zip(gpt.parameters(), reference.parameters(), strict=True)
    assert all(torch.equal(a, b) for a, b in pairs)
    due = estimated(CONFIG, 1, "optimizer-cpu")
    times = chunks if kind is OverlappedHostOptimizer else 1
    assert link.moved["to host"] == 3 * times * due["to host"]
    assert link.moved["to device"] == 3 * due["to device"]
    params = list(gpt.parameters())
    assert all(p.grad is None for p in params)
    state = sum(t.nbytes for t in optimizer.state())
    assert state == 8 * sum(p.numel() for p in params) + 4 * len(params)
    here = {p.untyped_storage().data_ptr() for p in params}
    assert not here & {
        h.untyped_storage().data_ptr() for h in optimizer.host_of.values()
    }


def test_each_microbatch_counts_on_the_host():
    test_an_optimizer_on_the_host_changes_no_bit(OverlappedHostOptimizer, 3)


def test_a_step_is_over_when_its_weights_are_on_the_device():
    for kind in KINDS:
        layer, link = nn.Linear(64, 64, bias=False), HostLink(CPU, bytes_per_s=5e5)
        optimizer = kind(layer.parameters(), torch.optim.SGD, link, lr=0.1)
        layer(torch.ones(1, 64)).sum().backward()
        optimizer.step()
        assert torch.equal(layer.weight, optimizer.host_of[layer.weight])


def test_gradients_leave_while_backward_goes_on_and_weights_while_others_update():
    layers = nn.Sequential(nn.Linear(2, 3, bias=False), nn.Linear(3, 4, bias=False))
    link = Held()
    link.may_go.set()
    optimizer = OverlappedHostOptimizer(
        layers.parameters(), torch.optim.SGD, link, lr=0.1
    )
    link.asked.clear()
    link.may_go.clear()
    layers(torch.ones(1, 2)).sum().backward()  # ends, with no copy made
    assert link.asked == [("to host", (4, 3)), ("to host", (3, 2))]
    assert all(p.grad is None for p in layers.parameters())
    seen = []
    for inner in optimizer.optimizers.values():
        inner.register_step_pre_hook(lambda *args: seen.append(len(link.asked)))
    link.may_go.set()
    optimizer.step()
    assert seen == [2, 3], "the second update begins with the first weight under way"
    assert [way for way, _ in link.asked[2:]] == ["to device"] * 2


@pytest.mark.parametrize("kind", KINDS)
def test_frozen_and_unused_parameters_stay_and_gradients_can_be_dropped(kind):
    used, unused, frozen = (nn.Parameter(torch.ones(3)) for _ in range(3))
    frozen.requires_grad_(False)
    link = HostLink(CPU)
    params = [used, unused, frozen]
    optimizer = kind(params, torch.optim.AdamW, link, lr=0.1, weight_decay=0.5)
    for _ in range(2):  # one on the host already, where each leaves by itself
        (used * frozen).sum().backward()
    optimizer.zero_grad()
    optimizer.step()
    assert used.tolist() == [1.0] * 3
    (used * frozen).sum().backward()
    optimizer.step()
    assert (used < 1.0).all() and unused.tolist() == frozen.tolist() == [1.0] * 3
    # What one microbatch alone has used is updated all the same.
    unused.sum().backward()
    (used * frozen).sum().backward()
    optimizer.step()
    assert (unused < 1.0).all()
    # A step that has no gradient for it leaves it: the one before is used up.
    before = unused.detach().clone()
    (used * frozen).sum().backward()
    optimizer.step()
    assert torch.equal(unused, before)


class Counts(torch.optim.SGD):
    """Keeps a number that is no tensor, as SparseAdam does."""

    def step(self):
        for param in self.param_groups[0]["params"]:
            self.state[param]["steps"] = self.state[param].get("steps", 0) + 1
        super().step()


@pytest.mark.parametrize("kind", KINDS)
def test_of_the_state_only_tensors_are_returned(kind):
    weight = nn.Parameter(torch.ones(3))
    optimizer = kind([weight], Counts, HostLink(CPU), lr=0.1, momentum=0.9)
    weight.sum().backward()
    optimizer.step()
    assert [t.tolist() for t in optimizer.state()] == [[1.0] * 3]


def test_an_optimizer_of_nothing_is_refused():
    frozen = nn.Parameter(torch.ones(3), requires_grad=False)
    with pytest.raises(ValueError, match="0 parameters are trained"):
        HostOptimizer([frozen], torch.optim.SGD, HostLink(CPU), lr=0.1)


# --- weights on the host ---


def train_states(rank, prefetch, microbatches, tied):
    """Train beside one process; return what is apart, moved, sent and kept."""
    config = GPTConfig(
        hidden_size=32,
        ffn_hidden_size=64,
        share_embeddings_and_output_weights=tied,
        vocab_size=62,
    )
    rows = 2 * rank.world_size * microbatches
    batches = [make_batch(config, step=i, batch_size=rows) for i in range(3)]
    reference, gpt, link = build_model(config), build_model(config), HostLink(CPU)
    optimizer = torch.optim.AdamW(reference.parameters(), 3e-3)
    parts = rank.world_size * microbatches
    want = train_one_process(reference, optimizer, batches, chunks=parts)
    names = unit_names(gpt)
    offloaded = OffloadedModel(gpt, rank.group, link, modules=names, prefetch=prefetch)
    optimizer = torch.optim.AdamW(gpt.parameters(), 3e-3)
    losses = []
    for batch in batches:
        total = 0.0
        with CollectiveCounter() as sent:
            for i in range(microbatches):
                at = rank.rank * microbatches + i
                tokens, labels = shard_batch(batch, rank=at, world_size=parts)
                loss = compute_loss(gpt(tokens), labels) / microbatches
                loss.backward()
                total += loss.item()
        optimizer.step()
        optimizer.zero_grad()
        losses.append(total)
    with torch.no_grad():  # as it is now, and nothing is left behind
        tokens = batches[0][0]
        evaluated = (gpt(tokens) - reference(tokens)).abs().max().item()
    mine, worst = dict(gpt.named_parameters()), 0.0
    for name, param in reference.named_parameters():
        c = -(-len(param) // rank.world_size)
        whole = param.detach()[rank.rank * c : (rank.rank + 1) * c]
        assert mine[name].shape == whole.shape
        apart = (mine[name].detach() - whole).abs().flatten().tolist()
        worst = max([worst, *apart])
    total_loss = torch.tensor(losses)
    dist.all_reduce(total_loss, group=rank.group)
    off = (total_loss / rank.world_size - torch.tensor(want)).abs().max().item()
    left = sum(
        t.untyped_storage().nbytes() for u in offloaded.units for t in u.gathered
    )
    whole, w = estimated(config, 1, "states-cpu"), rank.world_size
    added = sum((-len(p) % w) * (p.nbytes // len(p)) for p in reference.parameters())
    due = {
        "to host": 3 * microbatches * (whole["to host"] + added) / w,
        # The evaluation is one forward more.
        "to device": (3 * 2 * microbatches + 1) * (whole["to device"] / 2 + added) / w,
    }
    return worst, off, evaluated, dict(link.moved), due, sent.payload_bytes(), left


@pytest.fixture(params=[2, 3, 4])
def pool(request):
    """Two ranks, three and four."""
    return request.getfixturevalue(f"pool{request.param}")


@pytest.mark.parametrize(
    ("prefetch", "microbatches", "tied"),
    [(False, 1, False), (True, 1, True), (True, 3, False)],
)
def test_weights_on_the_host_train_as_one_process(pool, prefetch, microbatches, tied):
    results = pool.run(train_states, prefetch, microbatches, tied)
    for worst, off, evaluated, moved, due, sent, left in results:
        assert worst < 2e-5 and off < 2e-6 and evaluated < 2e-4
        assert moved == due
        w = pool.world_size
        a_step = 2 * microbatches * w * due["to host"] // (3 * microbatches)
        assert sent == {"all_gather": a_step, "reduce_scatter": a_step // 2}
        assert left == 0


def fetch_order(rank, prefetch, frozen):
    """Return how many copies had been asked for when each module began to run.

    Then the way of each copy, and how many units were whole as each went backward.
    """
    link = Held()
    link.may_go.set()
    layers = [nn.Linear(2, 2, bias=frozen) for _ in range(3)]
    for layer in layers if frozen else ():
        layer.bias.requires_grad_(False)
    model = nn.Sequential(*layers)
    names = ["0", "1", "2"]
    offloaded = OffloadedModel(
        model, rank.group, link, modules=names, prefetch=prefetch
    )
    begun, whole = [], []

    def count(grad):
        whole.append(sum(unit.is_unsharded for unit in offloaded.units))

    def watch(module, args, output):
        output.register_hook(count)

    for layer in layers:
        layer.register_forward_pre_hook(lambda *args: begun.append(len(link.asked)))
        layer.register_forward_hook(watch)
    out = model(torch.ones(1, 2, requires_grad=True))
    forward, link.asked = [way for way, _ in link.asked], []
    out.sum().backward()
    return begun, forward, [way for way, _ in link.asked], whole


@pytest.mark.parametrize("frozen", [False, True])  # some of each unit
def test_the_next_unit_is_on_its_way_while_this_one_runs(pool2, frozen):
    down, up = "to device", "to host"
    for begun, forward, backward, whole in pool2.run(fetch_order, True, frozen):
        assert (begun, forward, whole) == ([2, 3, 3], [down] * 3, [1] * 3)
        assert backward == [down, down, up, down, up, up]
    for begun, forward, backward, whole in pool2.run(fetch_order, False, frozen):
        assert (begun, forward, whole) == ([1, 2, 3], [down] * 3, [1] * 3)
        assert backward == [down, up] * 3


def stale(rank):
    """Fetch a unit ahead, change its rows, and return what its module then saw."""
    link, layer = HostLink(CPU), nn.Linear(4, 4, bias=False)
    offloaded = OffloadedModel(layer, rank.group, link, modules=[""])
    offloaded.units[0].fetch()
    with torch.no_grad():
        layer.weight.fill_(3.0)
        return layer(torch.ones(1, 4)).tolist(), link.moved["to device"]


def test_rows_that_changed_since_they_were_fetched_are_fetched_again(pool2):
    for seen, moved in pool2.run(stale):
        assert seen == [[12.0] * 4] and moved == 2 * 32


def partly_used(rank):
    """Train a unit of which one parameter has no gradient, and a frozen one."""
    unit = nn.ModuleDict({name: nn.Linear(3, 3) for name in ("a", "b", "c")})
    unit.c.requires_grad_(False)
    unit.forward = lambda x: unit["c"](unit["a"](x))
    OffloadedModel(unit, rank.group, HostLink(CPU), modules=[""])
    unit(torch.full((1, 3), 1.0 + rank.rank)).sum().backward()
    return {name: p.grad for name, p in unit.named_parameters()}


def test_unused_and_frozen_parameters_of_a_unit_have_no_gradient(pool2):
    for grads in pool2.run(partly_used):
        have = {name for name, grad in grads.items() if grad is not None}
        assert have == {"a.weight", "a.bias"}


def test_a_name_that_begins_like_another_is_another():
    model = nn.Sequential(*(nn.Linear(2, 2) for _ in range(11)))
    found = dict(find_owners(dict(model.named_modules()), ["", "1"]))
    assert set(found["1"]) == set(model[1].parameters())
    assert set(model[10].parameters()) <= set(found[""])
    model = nn.Sequential(nn.Sequential(nn.Linear(2, 2)))  # "0" has none of its own
    named = find_owners(dict(model.named_modules()), ["0", "0.0"])
    assert [name for name, _ in named] == ["0.0"]


def test_rows_on_the_host_have_the_type_of_the_parameter():
    layer = nn.Linear(3, 2).double()
    owners = {param: [(layer, name)] for name, param in layer.named_parameters()}
    want = [param.detach().clone() for param in owners]
    unit = OffloadedUnit(
        owners, SimpleNamespace(rank=int, size=lambda: 1), HostLink(CPU)
    )
    assert all(map(torch.equal, unit.shards, want))
    assert {shard.dtype for shard in unit.shards} == {torch.float64}


def refused(rank, modules):
    link = HostLink(CPU)
    model = nn.Sequential(nn.Linear(2, 2), nn.Linear(2, 2))
    if modules == ["", "1"]:
        model[1].weight = model[0].weight
    OffloadedModel(model, rank.group, link, modules=modules)


@pytest.mark.parametrize(
    ("modules", "says"),
    [
        (["0", "7"], "1 modules unknown: 7"),
        (["0"], "1.weight is in none of the modules named"),
        (["", "1"], "1.weight is tied over two units"),
    ],
)
def test_modules_that_do_not_hold_everything_once_are_refused(pool2, modules, says):
    with pytest.raises(AssertionError, match=f"ValueError: {says}"):
        pool2.run(refused, modules)


# --- activations ---


def gradients(gpt, batch, around=None, after=None):
    gpt.zero_grad()
    if around is None:
        logits = gpt(batch[0])
    else:
        with around:
            logits = gpt(batch[0])
    if after is not None:
        after()
    compute_loss(logits, batch[1]).backward()
    return [p.grad.clone() for p in gpt.parameters()]


DEEP = GPTConfig(hidden_size=32, ffn_hidden_size=64, num_layers=4)


@pytest.mark.parametrize("way", ["plain", "part by part", "ahead", "all layers"])
def test_activations_come_back_as_they_left(way):
    batch, gpt = make_batch(DEEP, step=0, batch_size=4), build_model(DEEP)
    want = gradients(gpt, batch)
    link = HostLink(CPU)
    if way == "plain":
        got = gradients(gpt, batch, save_on_host(link))
    else:
        offload = ActivationOffload(
            link, gpt.parameters(), prefetch=way != "part by part"
        )
        offload_layers(gpt.layers, offload, but_last=way != "all layers")
        got = gradients(gpt, batch, after=offload.end_forward)
    assert all(map(torch.equal, got, want))
    assert link.moved["to host"] == link.moved["to device"] > 0


def test_plain_moves_what_torchs_hook_is_handed():
    batch, gpt, handed = make_batch(DEEP, step=0, batch_size=4), build_model(DEEP), []
    hooks = save_on_cpu()

    def pack(tensor):
        handed.append(tensor.nbytes)
        return hooks.pack_hook(tensor)

    torchs = torch.autograd.graph.saved_tensors_hooks(pack, hooks.unpack_hook)
    want = gradients(gpt, batch, torchs)
    link = HostLink(CPU)
    assert all(map(torch.equal, gradients(gpt, batch, save_on_host(link)), want))
    assert link.moved["to host"] == sum(handed)


def kept_by(layer, hidden, weights):
    """Return the bytes of what a layer keeps: no weights, and nothing twice."""
    kept = []
    hooks = torch.autograd.graph.saved_tensors_hooks(kept.append, lambda x: x)
    with hooks:
        layer(hidden)
    seen = {}
    for tensor in kept:
        key = tensor.untyped_storage().data_ptr(), tensor.storage_offset()
        if tensor.untyped_storage().data_ptr() not in weights:
            seen[(*key, tensor.shape, tensor.stride())] = tensor.nbytes
    return sum(seen.values())


def test_by_parts_nothing_leaves_twice_and_no_weight_and_not_the_last_layer():
    batch, gpt, link = make_batch(DEEP, step=0, batch_size=4), build_model(DEEP), None
    weights = {p.untyped_storage().data_ptr() for p in gpt.parameters()}
    hidden = torch.randn(4, DEEP.max_sequence_length, DEEP.hidden_size)
    hidden.requires_grad_()
    one_layer = kept_by(gpt.layers[0], hidden, weights)
    link = HostLink(CPU)
    offload = ActivationOffload(link, gpt.parameters())
    offload_layers(gpt.layers, offload)
    gradients(gpt, batch, after=offload.end_forward)
    assert link.moved["to host"] == (DEEP.num_layers - 1) * one_layer


def test_what_is_freed_and_made_again_at_one_address_is_another_tensor():
    """With a link that is done at once, later tensors take the memory of earlier."""
    torch.manual_seed(0)
    x = torch.randn(64, 64, requires_grad=True)

    def run():
        out = x
        for _ in range(100):  # an address is not always taken again
            out = torch.tanh(out) * torch.sigmoid(out)
        return out.sum()

    (want,) = torch.autograd.grad(run(), x)
    link = HostLink(CPU)
    offload = ActivationOffload(link, [])

    class AtOnce(HostLink):
        def start(self, source, way, into=None):
            copy = super().start(source, way, into)
            copy.wait()
            return copy

    offload.link = AtOnce(CPU)
    with offload.part():
        out = run()
    (got,) = torch.autograd.grad(out, x)
    assert torch.equal(got, want)


def test_a_square_matrix_and_its_transpose_are_two_tensors():
    x, weight = torch.randn(4, 4, requires_grad=True), torch.randn(4, 4)
    (want,) = torch.autograd.grad(((x @ x.T) * weight).sum(), x)
    with ActivationOffload(HostLink(CPU), []).part():
        out = ((x @ x.T) * weight).sum()
    assert torch.equal(*torch.autograd.grad(out, x), want)


def test_one_memory_of_two_types_is_two_tensors():
    x, table = (torch.randn(3, dtype=torch.float64).requires_grad_() for _ in "ab")
    places = torch.tensor([2, 0, 1])
    with ActivationOffload(HostLink(CPU), []).part():
        out = (x * places.view(torch.float64)).sum() + (table[places] * x).sum()
    got = torch.autograd.grad(out, (x, table))
    assert torch.equal(got[0], places.view(torch.float64) + table[places])
    assert torch.equal(got[1], x[[1, 2, 0]])


def test_what_is_small_is_small_in_bytes():
    link = HostLink(CPU)
    x, wide = torch.randn(4, requires_grad=True), torch.randn(4).double()
    with ActivationOffload(link, [], min_bytes=32).part():
        (x * x).sum(), (x.double() * wide).sum()
    assert link.moved["to host"] == wide.nbytes == 32


def test_small_tensors_stay_and_a_graph_may_be_gone_through_again_and_again():
    link, x = HostLink(CPU), torch.randn(8, 8, requires_grad=True)
    small = torch.randn(1, 8, requires_grad=True)
    offload = ActivationOffload(link, [], min_bytes=100)
    with offload.part():
        out = ((x * x) + (small * small)).sum()
    assert link.moved["to host"] == x.nbytes
    for _ in range(3):
        got = torch.autograd.grad(out, (x, small), retain_graph=True)
        assert torch.equal(got[0], 2 * x) and torch.equal(got[1], 2 * small * 8)
    assert link.moved["to device"] == 3 * x.nbytes, "it left after each"


@pytest.mark.parametrize(("prefetch", "came"), [(True, {(7,), (5,)}), (False, {(7,)})])
def test_a_part_returns_while_backward_is_behind_it_and_goes_when_it_is_used(
    prefetch, came
):
    link = Held()
    link.may_go.set()
    sizes = [3, 5, 7]
    tensors = [torch.randn(n, requires_grad=True) for n in sizes]
    offload, outs, arrived = ActivationOffload(link, [], prefetch=prefetch), [], []
    for x in tensors:
        with offload.part():
            y = x * 1.0
            outs.append((y * y).sum())
    offload.end_forward()
    out = outs[2] + outs[1] * 1.0 + outs[0] * 1.0
    link.asked.clear()
    outs[2].register_hook(lambda g: arrived.append(len(link.asked)))
    torch.autograd.grad(outs[2], tensors[2], retain_graph=True)
    # The part itself, and all of the one before it; the first not yet.
    assert {shape for way, shape in link.asked if way == "to device"} == came
    torch.autograd.grad(out, tensors, retain_graph=True)
    with offload.part():
        (tensors[0] * tensors[0]).sum()
    assert offload.last is not None and offload.last.before is None
    kept = [k for k in offload.last.tensors.values()]
    assert kept[0].users == 2 and kept[0].returning is None
    kept[0].take()
    assert kept[0].returning is not None
    kept[0].take()
    assert kept[0].returning is None
