"""Sequence parallelism on two and four ranks against one process."""

import pytest
import torch
from torch import nn
from torch.nn import functional as F
from torch.utils._python_dispatch import TorchDispatchMode

from mini_impls import model, sequence_parallel_model
from mini_impls.demos.formulas import get_sequence_parallel_traffic
from mini_impls.launch import Rank
from mini_impls.model import GPTConfig
from mini_impls.sequence_parallel import (
    ColumnParallelLinear,
    RowParallelLinear,
    gather_from_sequence_parallel_region,
    reduce_scatter_to_sequence_parallel_region,
    scatter_to_sequence_parallel_region,
)
from mini_impls.sequence_parallel_model import (
    RNGStatesTracker,
    model_parallel_manual_seed,
)
from mini_impls.traffic import CollectiveCounter

pytestmark = pytest.mark.sampled

# In fp64 the order of sums shows in the last digits only.
FP64 = {"rtol": 1e-12, "atol": 1e-12}

CONFIG = GPTConfig(num_query_groups=4)
TIED = GPTConfig(num_query_groups=4, share_embeddings_and_output_weights=True)
DROPOUT = GPTConfig(num_query_groups=4, hidden_dropout=0.2)


def everything(shape, *, seed=0, dtype=torch.float64):
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(shape, generator=generator, dtype=torch.float64).to(dtype)


# --- the operators ---


def run_operators(rank: Rank):
    answers = {}
    number = float(rank.rank + 1)
    whole = everything((8, 3))

    x = whole.clone().requires_grad_()
    out = scatter_to_sequence_parallel_region(x, rank.group)
    out.backward(torch.full_like(out, number))
    answers["scatter"] = (out.detach(), x.grad)

    for partial in (True, False):
        x = torch.full((2, 3), number, requires_grad=True)
        out = gather_from_sequence_parallel_region(x, rank.group, partial)
        # Every rank's gradient of row i is i: parts to add, or W times the whole.
        grad = torch.arange(out.size(0), dtype=out.dtype).unsqueeze(1).expand(-1, 3)
        out.backward(grad)
        answers["gather", partial] = (out.detach(), x.grad)

    x = (whole * number).requires_grad_()
    out = reduce_scatter_to_sequence_parallel_region(x, rank.group)
    out.backward(torch.full_like(out, number))
    answers["reduce_scatter"] = (out.detach(), x.grad)
    return answers


def test_operators_and_their_gradients(pool):
    world_size, whole = pool.world_size, everything((8, 3))
    numbers = torch.arange(1, world_size + 1)
    rows = 8 // world_size
    gathered = numbers.repeat_interleave(rows).unsqueeze(1).expand(-1, 3)
    total = float(numbers.sum())
    for rank, answers in enumerate(pool.run(run_operators)):
        out, grad = answers["scatter"]
        assert torch.equal(out, whole.chunk(world_size)[rank])
        assert torch.equal(grad, gathered.double())

        expected = numbers.repeat_interleave(2).unsqueeze(1).expand(-1, 3).float()
        mine = torch.tensor([2.0 * rank, 2.0 * rank + 1]).unsqueeze(1).expand(-1, 3)
        out, grad = answers["gather", True]
        assert torch.equal(out, expected)
        assert torch.equal(grad, mine * world_size)
        out, grad = answers["gather", False]
        assert torch.equal(out, expected)
        assert torch.equal(grad, mine)

        out, grad = answers["reduce_scatter"]
        torch.testing.assert_close(out, (whole * total).chunk(world_size)[rank], **FP64)
        assert torch.equal(grad, gathered.double())


# --- linear layers ---


def full_mlp():
    torch.manual_seed(3)
    return nn.Linear(8, 16, dtype=torch.float64), nn.Linear(16, 8, dtype=torch.float64)


def run_mlp(rank: Rank, regather):
    fc1, fc2 = full_mlp()
    column = ColumnParallelLinear(fc1, rank.group, regather)
    row = RowParallelLinear(fc2, rank.group)
    x = everything((8, 2, 8)).chunk(rank.world_size)[rank.rank].clone()
    grad = everything((8, 2, 8), seed=1).chunk(rank.world_size)[rank.rank]
    x.requires_grad_()
    out = row(F.gelu(column(x)))
    out.backward(grad)
    parameters = (column.weight, column.bias, row.weight, row.bias)
    return out.detach(), x.grad, [p.grad for p in parameters]


@pytest.mark.parametrize("regather", [False, True])
def test_column_then_row_equals_two_linear_layers_on_all_tokens(pool, regather):
    fc1, fc2 = full_mlp()
    x = everything((8, 2, 8)).requires_grad_()
    expected = fc2(F.gelu(fc1(x)))
    expected.backward(everything((8, 2, 8), seed=1))
    answers = pool.run(run_mlp, regather)
    whole = torch.cat([out for out, _, _ in answers])
    torch.testing.assert_close(whole, expected.detach(), **FP64)
    torch.testing.assert_close(torch.cat([g for _, g, _ in answers]), x.grad, **FP64)
    parts = list(zip(*(grads for _, _, grads in answers), strict=True))
    for got, full in (
        (torch.cat(parts[0]), fc1.weight.grad),
        (torch.cat(parts[1]), fc1.bias.grad),
        (torch.cat(parts[2], dim=1), fc2.weight.grad),
        (sum(parts[3]), fc2.bias.grad),  # each rank saw its own tokens only
    ):
        torch.testing.assert_close(got, full, **FP64)


def test_gathering_again_changes_no_bit(pool2):
    for plain, again in zip(
        pool2.run(run_mlp, False), pool2.run(run_mlp, True), strict=True
    ):
        assert torch.equal(plain[0], again[0])
        assert torch.equal(plain[1], again[1])
        assert all(map(torch.equal, plain[2], again[2]))


def run_autocast(rank: Rank, regather):
    """One step of an MLP in fp32 whose products are made in bf16."""
    fc1, fc2 = (layer.float() for layer in full_mlp())
    column = ColumnParallelLinear(fc1, rank.group, regather)
    row = RowParallelLinear(fc2, rank.group)
    x = everything((8, 2, 8), dtype=torch.float32).chunk(rank.world_size)[rank.rank]
    x = x.clone().requires_grad_()
    with torch.autocast(x.device.type, torch.bfloat16):
        out = row(F.gelu(column(x)))
    grad = everything((8, 2, 8), seed=1).chunk(rank.world_size)[rank.rank]
    out.backward(grad.to(out.dtype))
    grads = [x.grad, column.weight.grad, column.bias.grad, row.weight.grad]
    return out.detach(), grads


def test_under_autocast_backward_multiplies_in_the_dtype_of_forward(pool2):
    answers = zip(
        pool2.run(run_autocast, True), pool2.run(run_autocast, False), strict=True
    )
    for (out, grads), (plain_out, plain) in answers:
        assert torch.equal(out, plain_out)
        for grad, expected in zip(grads[1:], plain[1:], strict=True):
            assert grad.dtype == torch.float32
            assert torch.equal(grad, expected)  # the same products, in bf16
        # Plain, the parts are cast to fp32 and added; regathered, added in bf16.
        torch.testing.assert_close(grads[0], plain[0], rtol=1e-2, atol=1e-2)


class Names(TorchDispatchMode):
    def __init__(self):
        super().__init__()
        self.seen = []

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        self.seen.append(func.__name__.split(".")[0])
        return func(*args, **(kwargs or {}))


def run_order(rank: Rank):
    column = ColumnParallelLinear(nn.Linear(8, 16), rank.group)
    out = column(torch.randn(4, 2, 8, requires_grad=True))
    with Names() as names:
        out.backward(torch.randn_like(out))
    wanted = ("mm", "_allgather_base_", "_reduce_scatter_base_")
    return [name for name in names.seen if name in wanted]


def test_each_collective_of_backward_is_on_its_way_behind_a_product(pool2):
    assert pool2.run(run_order)[0] == [
        "_allgather_base_",  # behind the input's gradient
        "mm",
        "_reduce_scatter_base_",  # behind the weight's gradient
        "mm",
    ]


def run_saved_bytes(rank: Rank, regather):
    column = ColumnParallelLinear(nn.Linear(8, 16), rank.group, regather)
    x = torch.randn(8 // rank.world_size, 2, 8, requires_grad=True)
    saved = []

    def pack(tensor):
        saved.append(tensor)
        return tensor

    with torch.autograd.graph.saved_tensors_hooks(pack, lambda tensor: tensor):
        column(x)
    weight = column.weight.untyped_storage().data_ptr()
    return sum(t.nbytes for t in saved if t.untyped_storage().data_ptr() != weight)


def test_gathering_again_keeps_one_shard_for_backward(pool):
    full = 8 * 2 * 8 * 4
    assert set(pool.run(run_saved_bytes, False)) == {full}
    assert set(pool.run(run_saved_bytes, True)) == {full // pool.world_size}


# --- random streams ---


def test_fork_draws_elsewhere_and_comes_back():
    generator = torch.Generator()
    tracker = model_parallel_manual_seed(5, 0, generator)
    expected = torch.rand(4, generator=torch.Generator().manual_seed(5))
    own = torch.rand(4, generator=torch.Generator().manual_seed(5 + 2718))
    first = torch.rand(2, generator=generator)
    with tracker.fork():
        inside = torch.rand(2, generator=generator)
    with pytest.raises(KeyError), tracker.fork(), tracker.fork("unknown"):
        pass
    second = torch.rand(2, generator=generator)
    with tracker.fork():
        inside = torch.cat([inside, torch.rand(2, generator=generator)])
    assert torch.equal(torch.cat([first, second]), expected)
    assert torch.equal(inside, own)
    with pytest.raises(ValueError, match="'model-parallel-rng' exists already"):
        tracker.add("model-parallel-rng", 1)


def run_masks(rank: Rank):
    tracker = model_parallel_manual_seed(5, rank.rank, torch.default_generator)
    dropout = sequence_parallel_model.SequenceParallelDropout(0.5, tracker)
    return dropout(torch.ones(64)), torch.rand(4)


def test_shards_drop_differently_and_the_common_stream_agrees(pool):
    answers = pool.run(run_masks)
    masks = {tuple(mask.tolist()) for mask, _ in answers}
    assert len(masks) == pool.world_size
    assert all(torch.equal(common, answers[0][1]) for _, common in answers)


# --- a whole model ---


class ReferenceDropout(nn.Module):
    """One process that drops each shard of the sequence with that rank's stream."""

    def __init__(self, p, world_size):
        super().__init__()
        self.p = p
        self.trackers = []
        for rank in range(world_size):
            tracker = RNGStatesTracker(torch.default_generator)
            tracker.add("model-parallel-rng", 11 + 2718 + rank)
            self.trackers.append(tracker)

    def forward(self, hidden):
        shards = []
        for tracker, shard in zip(
            self.trackers, hidden.chunk(len(self.trackers), dim=1), strict=True
        ):
            with tracker.fork():
                shards.append(F.dropout(shard.transpose(0, 1).contiguous(), self.p))
        return torch.cat(shards).transpose(0, 1)


def run_training(rank: Rank, config, regather):
    """Differences from one process after ten steps, and what all ranks must share."""
    batches = [model.make_batch(config, step=i, batch_size=4) for i in range(3)]
    reference, gpt = model.build_model(config), model.build_model(config)
    if config.hidden_dropout:
        dropout = ReferenceDropout(config.hidden_dropout, rank.world_size)
        reference.embedding.embedding_dropout = dropout
        for layer in reference.layers:
            layer.hidden_dropout = dropout
    sgd = torch.optim.SGD(reference.parameters(), lr=0.1, momentum=0.9)
    expected = model.train_one_process(reference, sgd, batches)
    grads = model.build_model(config)
    with torch.no_grad():
        for target, source in zip(
            grads.parameters(), reference.parameters(), strict=True
        ):
            target.copy_(source.grad)

    tracker = model_parallel_manual_seed(11, rank.rank, torch.default_generator)
    partial = sequence_parallel_model.sequence_parallel(
        gpt, rank.group, tracker, regather=regather
    )
    sgd = torch.optim.SGD(gpt.parameters(), lr=0.1, momentum=0.9)
    losses = sequence_parallel_model.train(gpt, sgd, batches, partial, rank.group)
    for full in (reference, grads):
        sequence_parallel_model.sequence_parallel(full, rank.group, tracker)
    return {
        "losses": losses,
        "loss": max(abs(a - b) for a, b in zip(losses, expected, strict=True)),
        "parameter": max(
            (a - b).abs().max().item()
            for a, b in zip(gpt.parameters(), reference.parameters(), strict=True)
        ),
        "grad": max(
            (a.grad - b).abs().max().item()
            for a, b in zip(gpt.parameters(), grads.parameters(), strict=True)
        ),
        "replicated": [
            param.detach()
            for name, param in gpt.named_parameters()
            if "linear" not in name or name.endswith(("proj.bias", "fc2.bias"))
        ],
    }


@pytest.mark.parametrize("regather", [False, True])
@pytest.mark.parametrize("config", [CONFIG, TIED, DROPOUT], ids=["", "tied", "dropout"])
def test_three_steps_equal_one_process(pool, config, regather):
    answers = pool.run(run_training, config, regather)
    losses = answers[0]["losses"]
    assert losses[-1] < losses[0] - 0.05
    for answer in answers:
        # fp32: sums over D and F are split in W parts and weight gradients add up the
        # tokens in another order, each rounded at 1e-7 of its size; the loss is near 4,
        # gradients near 1, and ten steps pass it all on.
        assert answer["loss"] < 3e-6
        assert answer["grad"] < 5e-6
        assert answer["parameter"] < 3e-6
        assert answer["losses"] == losses
        assert all(map(torch.equal, answer["replicated"], answers[0]["replicated"]))


def run_slices_alone(rank: Rank):
    gpt = model.build_model(CONFIG)
    tracker = model_parallel_manual_seed(1, rank.rank, torch.default_generator)
    sequence_parallel_model.sequence_parallel(gpt, rank.group, tracker)
    return [p.untyped_storage().nbytes() == p.nbytes for p in gpt.parameters()]


def test_slices_keep_nothing_of_the_whole_weight(pool2):
    for alone in pool2.run(run_slices_alone):
        assert all(alone)


def run_partial(rank: Rank):
    gpt = model.build_model(CONFIG)
    tracker = model_parallel_manual_seed(0, rank.rank, torch.default_generator)
    partial = sequence_parallel_model.sequence_parallel(gpt, rank.group, tracker)
    tokens, labels = model.make_batch(CONFIG, step=0, batch_size=4)
    model.compute_loss(gpt(tokens), labels).backward()
    before = [param.grad.clone() for param in partial]
    sequence_parallel_model.allreduce_non_tensor_model_parallel_grads(
        partial, rank.group
    )
    names = {param: name for name, param in gpt.named_parameters()}
    return [names[p] for p in partial], before, [p.grad for p in partial]


def test_norms_and_row_biases_hold_a_part_of_their_gradient_until_it_is_added(pool):
    reference = model.build_model(CONFIG)
    tokens, labels = model.make_batch(CONFIG, step=0, batch_size=4)
    model.compute_loss(reference(tokens), labels).backward()
    full = {name: param.grad for name, param in reference.named_parameters()}
    answers = pool.run(run_partial)
    assert sorted(answers[0][0]) == sorted(
        name
        for name in full
        if "norm" in name or name.endswith(("linear_proj.bias", "linear_fc2.bias"))
    )
    for i, name in enumerate(answers[0][0]):
        parts = [before[i] for _, before, _ in answers]
        assert not torch.equal(parts[0], parts[1]), name
        for _, _, after in answers:
            torch.testing.assert_close(after[i], sum(parts))
            torch.testing.assert_close(after[i], full[name], atol=1e-7, rtol=1e-4)


def run_frozen(rank: Rank):
    """Train the embedding and the output layer alone, the rest is frozen."""
    batches = [model.make_batch(CONFIG, step=i, batch_size=4) for i in range(3)]
    gpt, reference = model.build_model(CONFIG), model.build_model(CONFIG)
    for full in (gpt, reference):
        full.layers.requires_grad_(False)
        full.final_layernorm.requires_grad_(False)
    tracker = model_parallel_manual_seed(0, rank.rank, torch.default_generator)
    partial = sequence_parallel_model.sequence_parallel(gpt, rank.group, tracker)
    sgd = torch.optim.SGD(gpt.parameters(), lr=0.1)
    sequence_parallel_model.train(gpt, sgd, batches, partial, rank.group)
    sgd = torch.optim.SGD(reference.parameters(), lr=0.1)
    model.train_one_process(reference, sgd, batches)
    trained = {n: p.detach() for n, p in gpt.named_parameters() if p.requires_grad}
    want = dict(reference.named_parameters())
    worst = max((p - want[n]).abs().max().item() for n, p in trained.items())
    return list(trained), worst


def test_frozen_weights_stay_frozen(pool2):
    for trained, worst in pool2.run(run_frozen):
        assert all(name.startswith(("embedding.", "output")) for name in trained)
        assert len(trained) == 3
        assert worst < 3e-6  # fp32, as above


def run_traffic(rank: Rank, regather):
    gpt = model.build_model(CONFIG)
    tracker = model_parallel_manual_seed(0, rank.rank, torch.default_generator)
    partial = sequence_parallel_model.sequence_parallel(
        gpt, rank.group, tracker, regather=regather
    )
    optimizer = torch.optim.AdamW(gpt.parameters())
    batch = model.make_batch(CONFIG, step=0, batch_size=4)
    with CollectiveCounter() as sent:
        sequence_parallel_model.train(gpt, optimizer, [batch], partial, rank.group)
    return sent.counts(), sent.payload_bytes(), batch[0].numel()


@pytest.mark.parametrize("regather", [False, True])
def test_counts_and_bytes_equal_the_formula(pool, regather):
    layers, hidden_size = CONFIG.num_layers, CONFIG.hidden_size
    for counts, payload, num_tokens in pool.run(run_traffic, regather):
        gathers = (6 if regather else 4) * layers + 2
        assert counts == {
            "all_gather": gathers,
            "reduce_scatter": 4 * layers,
            "all_reduce": 1,
        }
        hidden = num_tokens * hidden_size * 4
        assert payload == {
            "all_gather": gathers * hidden,
            "reduce_scatter": 4 * layers * hidden,
            "all_reduce": (6 * layers + 2) * hidden_size * 4,
        }
        assert payload == get_sequence_parallel_traffic(
            CONFIG, num_tokens, pool.world_size, regather=regather
        )


@pytest.mark.parametrize(
    ("config", "world_size", "message"),
    [
        (GPTConfig(), 4, "2 query groups are not divisible by 4 ranks"),
        (GPTConfig(ffn_hidden_size=129), 2, "129 MLP channels are not divisible by 2"),
        (GPTConfig(max_sequence_length=31), 2, "31 tokens are not divisible by 2"),
    ],
)
def test_sizes_that_do_not_fit_are_named(config, world_size, message):
    with pytest.raises(ValueError, match=message):
        sequence_parallel_model.check_sizes(config, world_size)


def run_short_batch(rank: Rank):
    gpt = model.build_model(CONFIG)
    tracker = model_parallel_manual_seed(0, rank.rank, torch.default_generator)
    sequence_parallel_model.sequence_parallel(gpt, rank.group, tracker)
    with pytest.raises(ValueError, match="31 tokens are not divisible by 2"):
        gpt(torch.zeros(1, 31, dtype=torch.long))


def test_a_sequence_that_does_not_divide_is_named(pool2):
    pool2.run(run_short_batch)
