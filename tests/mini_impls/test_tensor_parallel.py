"""Tensor parallelism on two and four ranks against one process."""

from types import SimpleNamespace

import pytest
import torch
import torch.distributed as dist
from torch import nn
from torch.nn import functional as F
from torch.utils._python_dispatch import TorchDispatchMode

from mini_impls import model, tensor_parallel
from mini_impls.demos.formulas import get_tensor_parallel_traffic
from mini_impls.launch import Rank
from mini_impls.model import GPTConfig, SelfAttention
from mini_impls.tensor_parallel import (
    ColumnParallelLinear,
    RowParallelLinear,
    VocabParallelEmbedding,
    copy_to_tensor_model_parallel_region,
    reduce_from_tensor_model_parallel_region,
)
from mini_impls.traffic import CollectiveCounter
from mini_impls.vocab_parallel_loss import (
    gathered_cross_entropy,
    vocab_parallel_cross_entropy,
)

pytestmark = pytest.mark.sampled

# In fp64 the order of sums shows in the last digits only; in fp32 the sums of 256
# products that one layer makes differ by some 1e-7 of their size.
FP64 = {"rtol": 1e-12, "atol": 1e-12}

SHARED_GROUPS = GPTConfig(num_attention_heads=4, num_query_groups=1)
CONFIGS = {
    "default": GPTConfig(),
    "one group a head": GPTConfig(num_query_groups=4),
    "one group for all ranks": SHARED_GROUPS,
    "tied": GPTConfig(share_embeddings_and_output_weights=True),
}


def everything(shape, *, seed=0, dtype=torch.float64):
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(shape, generator=generator, dtype=torch.float64).to(dtype)


def mine(tensor, rank, dim):
    return tensor.chunk(rank.world_size, dim=dim)[rank.rank]


# --- f and g ---


def run_f_and_g(rank: Rank):
    x = torch.full((2, 3), float(rank.rank + 1), requires_grad=True)
    through_f = copy_to_tensor_model_parallel_region(x, rank.group)
    through_f.backward(torch.full((2, 3), 10.0 * (rank.rank + 1)))
    y = torch.full((2, 3), float(rank.rank + 1), requires_grad=True)
    through_g = reduce_from_tensor_model_parallel_region(y, rank.group)
    through_g.backward(torch.full((2, 3), 5.0))
    return through_f.detach(), x.grad, through_g.detach(), y.grad, y.detach()


def test_f_and_g_are_conjugate(pool):
    total = sum(range(1, pool.world_size + 1))
    for rank, answers in enumerate(pool.run(run_f_and_g)):
        forward_f, grad_f, forward_g, grad_g, input_g = answers
        assert torch.equal(forward_f, torch.full((2, 3), rank + 1.0))
        assert torch.equal(grad_f, torch.full((2, 3), 10.0 * total))
        assert torch.equal(forward_g, torch.full((2, 3), float(total)))
        assert torch.equal(grad_g, torch.full((2, 3), 5.0))
        assert torch.equal(input_g, torch.full((2, 3), rank + 1.0)), "input changed"


def run_shared_gradient(rank: Rank):
    # `add` hands one and the same gradient to both of its inputs.
    a = torch.ones(3, requires_grad=True)
    b = torch.ones(3, requires_grad=True)
    out = a + copy_to_tensor_model_parallel_region(b, rank.group)
    out.backward(torch.ones(3))
    # A transposed gradient is not contiguous.
    c = torch.ones(2, 3, requires_grad=True)
    through_f = copy_to_tensor_model_parallel_region(c, rank.group)
    through_f.t().backward(torch.full((3, 2), 2.0))
    return a.grad, b.grad, c.grad


def test_f_reduces_its_own_gradient_only_and_any_layout(pool2):
    for a, b, c in pool2.run(run_shared_gradient):
        assert torch.equal(a, torch.ones(3))
        assert torch.equal(b, torch.full((3,), 2.0))
        assert torch.equal(c, torch.full((2, 3), 4.0))


# --- column- and row-parallel linear ---


def full_mlp():
    torch.manual_seed(3)
    return nn.Linear(8, 16, dtype=torch.float64), nn.Linear(16, 8, dtype=torch.float64)


def run_mlp(rank: Rank, overlap):
    fc1, fc2 = full_mlp()
    column = ColumnParallelLinear(fc1, tp_group=rank.group, overlap=overlap)
    row = RowParallelLinear(fc2, tp_group=rank.group)
    x = everything((2, 5, 8)).requires_grad_()
    out = row(F.gelu(column(x)))
    out.backward(everything((2, 5, 8), seed=1))
    layers = [column.weight, column.bias, row.weight, row.bias]
    return out.detach(), x.grad, [p.grad for p in layers]


@pytest.mark.parametrize("overlap", [False, True])
def test_column_then_row_equals_two_linear_layers(pool, overlap):
    fc1, fc2 = full_mlp()
    x = everything((2, 5, 8)).requires_grad_()
    expected = fc2(F.gelu(fc1(x)))
    expected.backward(everything((2, 5, 8), seed=1))
    world_size = pool.world_size
    for rank, (out, grad_x, grads) in enumerate(pool.run(run_mlp, overlap)):
        torch.testing.assert_close(out, expected.detach(), **FP64)
        torch.testing.assert_close(grad_x, x.grad, **FP64)
        for got, whole, dim in zip(
            grads,
            [fc1.weight.grad, fc1.bias.grad, fc2.weight.grad, fc2.bias.grad],
            [0, 0, 1, None],
            strict=True,
        ):
            part = whole if dim is None else whole.chunk(world_size, dim)[rank]
            torch.testing.assert_close(got, part, **FP64)


def test_overlapped_is_bitwise_the_plain_version(pool2):
    for plain, overlapped in zip(
        pool2.run(run_mlp, False), pool2.run(run_mlp, True), strict=True
    ):
        assert torch.equal(plain[0], overlapped[0])
        assert torch.equal(plain[1], overlapped[1])
        assert all(map(torch.equal, plain[2], overlapped[2]))


def run_autocast(rank: Rank, overlap):
    """One step of an MLP in fp32 whose products are made in bf16."""
    fc1, fc2 = (layer.float() for layer in full_mlp())
    column = ColumnParallelLinear(fc1, tp_group=rank.group, overlap=overlap)
    row = RowParallelLinear(fc2, tp_group=rank.group)
    x = everything((2, 5, 8), dtype=torch.float32).requires_grad_()
    with torch.autocast(x.device.type, torch.bfloat16):
        out = row(F.gelu(column(x)))
    out.backward(everything((2, 5, 8), seed=1).to(out.dtype))
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
        # Plain, the parts are cast to fp32 and added; overlapped, added in bf16.
        torch.testing.assert_close(grads[0], plain[0], rtol=1e-2, atol=1e-2)


class Names(TorchDispatchMode):
    def __init__(self):
        super().__init__()
        self.seen = []

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        self.seen.append(func.__name__.split(".")[0])
        return func(*args, **(kwargs or {}))


def run_order(rank: Rank, overlap):
    column = ColumnParallelLinear(
        nn.Linear(8, 16), tp_group=rank.group, overlap=overlap
    )
    x = torch.randn(2, 5, 8, requires_grad=True)
    out = column(x)
    with Names() as names:
        out.backward(torch.randn_like(out))
    return [name for name in names.seen if name in ("mm", "bmm", "allreduce_")]


def test_input_gradient_is_on_its_way_while_the_weight_gradient_is_made(pool2):
    assert pool2.run(run_order, True)[0] == ["mm", "allreduce_", "mm"]
    assert pool2.run(run_order, False)[0] == ["mm", "mm", "allreduce_"]


# --- attention ---


def full_attention(config):
    torch.manual_seed(4)
    return SelfAttention(config).to(torch.float64)


def run_attention(rank: Rank, config):
    # The whole model's cut, applied to one block.
    gpt = model.build_model(config).to(torch.float64)
    gpt.layers[0].self_attention = full_attention(config)
    tensor_parallel.tensor_parallel(gpt, rank.group)
    attention = gpt.layers[0].self_attention
    x = everything((2, 6, config.hidden_size)).requires_grad_()
    out = attention(x)
    out.backward(everything(out.shape, seed=1))
    names = ("linear_qkv.weight", "linear_qkv.bias", "linear_proj.weight")
    parameters = dict(attention.named_parameters())
    return out.detach(), x.grad, [parameters[name].grad for name in names]


@pytest.mark.parametrize(("heads", "groups"), [(4, 4), (4, 2), (4, 1), (8, 2), (8, 4)])
def test_attention_by_heads_and_groups_equals_full_attention(pool, heads, groups):
    config = GPTConfig(num_layers=1, num_attention_heads=heads, num_query_groups=groups)
    full = full_attention(config)
    x = everything((2, 6, config.hidden_size)).requires_grad_()
    expected = full(x)
    expected.backward(everything(expected.shape, seed=1))
    qkv, proj = full.linear_qkv, full.linear_proj
    wholes = [(qkv.weight.grad, 0), (qkv.bias.grad, 0), (proj.weight.grad, 1)]
    for rank, (out, grad_x, grads) in enumerate(pool.run(run_attention, config)):
        torch.testing.assert_close(out, expected.detach(), **FP64)
        torch.testing.assert_close(grad_x, x.grad, **FP64)
        for got, (whole, dim) in zip(grads, wholes, strict=True):
            part = whole.chunk(pool.world_size, dim)[rank]
            torch.testing.assert_close(got, part, **FP64)


# --- the vocabulary ---


def run_embedding(rank: Rank, ids):
    torch.manual_seed(5)
    embedding = VocabParallelEmbedding(nn.Embedding(16, 4), tp_group=rank.group)
    out = embedding(ids)
    out.backward(everything(out.shape, dtype=torch.float32))
    return out.detach(), embedding.weight.grad


def test_vocabulary_parallel_embedding_is_bitwise_the_full_one(pool):
    ids = torch.tensor([[0, 3, 4, 7, 8], [11, 12, 15, 15, 0]])
    torch.manual_seed(5)
    full = nn.Embedding(16, 4)
    expected = full(ids)
    expected.backward(everything(expected.shape, dtype=torch.float32))
    for rank, (out, grad) in enumerate(pool.run(run_embedding, ids)):
        assert torch.equal(out, expected.detach())  # every sum has one term
        assert torch.equal(grad, full.weight.grad.chunk(pool.world_size)[rank])


def run_cross_entropy(rank: Rank, cross_entropy, logits, target):
    shard = mine(logits, rank, -1).clone().requires_grad_()
    before = shard.detach().clone()
    loss = cross_entropy(shard, target, rank.group)
    loss.mean().backward(retain_graph=True)
    assert torch.equal(shard.detach(), before), "the logits were written to"
    assert torch.equal(*torch.autograd.grad(loss.mean(), shard), shard.grad)
    return loss.detach(), shard.grad


@pytest.mark.parametrize(
    "parallel", [gathered_cross_entropy, vocab_parallel_cross_entropy]
)
@pytest.mark.parametrize(
    ("scale", "dtype"),
    [(1.0, torch.float32), (1e4, torch.float32), (1.0, torch.bfloat16)],
)
def test_vocabulary_parallel_loss_equals_cross_entropy(pool, scale, dtype, parallel):
    logits = (everything((2, 5, 16)) * scale).to(dtype)
    target = torch.tensor([[0, 3, 4, 7, 8], [11, 12, 15, 1, 2]])
    whole = logits.clone().requires_grad_()
    expected = F.cross_entropy(
        whole.float().flatten(0, 1), target.flatten(), reduction="none"
    )
    expected.mean().backward()
    # One exponential and one sum apart; a bf16 gradient is rounded to 8 bits.
    answers = pool.run(run_cross_entropy, parallel, logits, target)
    for rank, (loss, grad) in enumerate(answers):
        torch.testing.assert_close(loss.flatten(), expected.detach())
        part = whole.grad.chunk(pool.world_size, -1)[rank]
        torch.testing.assert_close(grad, part)


# --- a whole model ---


def make_optimizer(name, parameters):
    if name == "sgd":
        return torch.optim.SGD(parameters, lr=0.1, momentum=0.9)
    return torch.optim.AdamW(parameters, lr=1e-3)


def run_training(rank: Rank, config, optimizer, steps, overlap=True):
    """Largest differences from one process, and this rank's replicated parameters."""
    batches = [model.make_batch(config, step=i, batch_size=4) for i in range(steps)]
    reference, gpt = model.build_model(config), model.build_model(config)
    torch.manual_seed(7)  # dropout: the stream that one process draws from
    reference_optimizer = make_optimizer(optimizer, reference.parameters())
    expected = model.train_one_process(reference, reference_optimizer, batches)
    grads = model.build_model(config)
    with torch.no_grad():
        for target, source in zip(
            grads.parameters(), reference.parameters(), strict=True
        ):
            target.copy_(source.grad)

    tensor_parallel.tensor_parallel(gpt, rank.group, overlap=overlap)
    torch.manual_seed(7)
    losses = tensor_parallel.train(
        gpt, make_optimizer(optimizer, gpt.parameters()), batches, rank.group
    )
    for full in (reference, grads):
        tensor_parallel.tensor_parallel(full, rank.group)
    pairs = list(zip(gpt.parameters(), reference.parameters(), strict=True))
    return {
        "losses": losses,
        "loss": max(abs(a - b) for a, b in zip(losses, expected, strict=True)),
        "parameter": max((a - b).abs().max().item() for a, b in pairs),
        "grad": max(
            (a.grad - b).abs().max().item()
            for a, b in zip(gpt.parameters(), grads.parameters(), strict=True)
        ),
        "replicated": {
            name: param.detach()
            for name, param in gpt.named_parameters()
            if "norm" in name
            or "position" in name
            or name.endswith(("proj.bias", "fc2.bias"))
        },
    }


@pytest.mark.parametrize("name", CONFIGS)
def test_three_steps_equal_one_process(pool, name):
    answers = pool.run(run_training, CONFIGS[name], "sgd", 3)
    for answer in answers:
        # fp32: sums over D and F are split in W parts, each rounded at 1e-7 of its
        # size; the loss is near 4, gradients near 1, and three steps pass it all on.
        assert answer["loss"] < 3e-6
        assert answer["grad"] < 5e-6
        assert answer["parameter"] < 3e-6
    losses = answers[0]["losses"]
    assert losses[-1] < losses[0] - 0.1
    for answer in answers[1:]:
        assert answer["losses"] == losses
        # All-reduce gives every rank the same bits, so what is held twice stays equal.
        for key, value in answer["replicated"].items():
            assert torch.equal(value, answers[0]["replicated"][key]), key


@pytest.mark.parametrize("overlap", [False, True])
def test_adamw_equals_one_process(pool2, overlap):
    for answer in pool2.run(run_training, GPTConfig(), "adamw", 3, overlap):
        assert answer["loss"] < 2e-6
        # Adam divides by the root of the second moment: a rounding error in a gradient
        # that is nearly zero moves its parameter by a part of the step of 1e-3.
        assert answer["parameter"] < 1e-4


def test_dropout_between_the_layers_draws_the_same_on_every_rank(pool):
    config = GPTConfig(hidden_dropout=0.2)
    for answer in pool.run(run_training, config, "sgd", 3):
        assert answer["loss"] < 2e-6
        assert answer["parameter"] < 2e-6


def run_slices_alone(rank: Rank, config):
    gpt = model.build_model(config)
    tensor_parallel.tensor_parallel(gpt, rank.group)
    return [p.untyped_storage().nbytes() == p.nbytes for p in gpt.parameters()]


@pytest.mark.parametrize("name", CONFIGS)
def test_slices_keep_nothing_of_the_whole_weight(pool2, name):
    for alone in pool2.run(run_slices_alone, CONFIGS[name]):
        assert all(alone)


def run_initial_weights(rank: Rank):
    gpt = model.build_model(GPTConfig())
    tensor_parallel.tensor_parallel(gpt, rank.group)
    return {name: param.detach() for name, param in gpt.named_parameters()}


def test_initial_weights_are_slices_of_the_full_ones(pool):
    full = dict(model.build_model(GPTConfig()).named_parameters())
    shards = pool.run(run_initial_weights)
    for name, whole in full.items():
        parts = [shard[name] for shard in shards]
        dims = [d for d in range(whole.dim()) if parts[0].shape[d] != whole.shape[d]]
        if dims:
            assert torch.equal(torch.cat(parts, dim=dims[0]), whole.detach()), name
        else:
            assert all(torch.equal(part, whole.detach()) for part in parts), name


def run_frozen(rank: Rank):
    """Return which weights train, and the largest difference of their gradients."""
    gpt, reference = model.build_model(GPTConfig()), model.build_model(GPTConfig())
    for full in (gpt, reference):
        full.embedding.requires_grad_(False)
        full.layers[0].requires_grad_(False)
        full.layers[1].mlp.linear_fc1.weight.requires_grad_(False)  # as under LoRA
    tensor_parallel.tensor_parallel(gpt, rank.group)
    tokens, labels = model.make_batch(GPTConfig(), step=0, batch_size=4)
    vocab_parallel_cross_entropy(gpt(tokens), labels, rank.group).mean().backward()
    model.compute_loss(reference(tokens), labels).backward()
    want = dict(reference.named_parameters())
    trained, worst = [], 0.0
    for name, param in gpt.named_parameters():
        assert param.requires_grad == (param.grad is not None)
        if param.requires_grad:
            trained.append(name)
            grad = want[name].grad
            if grad.shape != param.shape:
                cut = [a != b for a, b in zip(grad.shape, param.shape, strict=True)]
                grad = mine(grad, rank, cut.index(True))
            worst = max(worst, (param.grad - grad).abs().max().item())
    return trained, worst


def test_a_layer_may_have_no_bias():
    alone = SimpleNamespace(rank=int, size=lambda: 1)
    master, x = nn.Linear(4, 3, bias=False), torch.randn(2, 4)
    for kind in (ColumnParallelLinear, RowParallelLinear):
        assert torch.equal(kind(master, tp_group=alone)(x), master(x))


def test_frozen_weights_stay_frozen(pool):
    reference = model.build_model(GPTConfig())
    expected = [
        name
        for name, _ in reference.named_parameters()
        if not name.startswith(("embedding", "layers.0"))
        and name != "layers.1.mlp.linear_fc1.weight"
    ]
    for trained, worst in pool.run(run_frozen):
        assert trained == expected
        assert worst < 5e-6  # fp32: sums over D and F are split in W parts


def run_traffic(rank: Rank, config, overlap):
    gpt = model.build_model(config)
    tensor_parallel.tensor_parallel(gpt, rank.group, overlap=overlap)
    optimizer = torch.optim.AdamW(gpt.parameters())
    batch = model.make_batch(config, step=0, batch_size=4)
    with CollectiveCounter() as sent:
        tensor_parallel.train(gpt, optimizer, [batch], rank.group)
    return sent.counts(), sent.payload_bytes(), batch[0].numel()


@pytest.mark.parametrize("overlap", [False, True])
@pytest.mark.parametrize("name", CONFIGS)
def test_counts_and_bytes_equal_the_formula(pool, name, overlap):
    config = CONFIGS[name]
    for counts, payload, num_tokens in pool.run(run_traffic, config, overlap):
        layers = config.num_layers
        shared = config.num_query_groups % pool.world_size != 0
        expected = {"all_reduce": 4 * layers + 2 + 3}
        if shared:
            expected |= {"all_gather": layers, "reduce_scatter": layers}
        assert counts == expected
        assert payload == get_tensor_parallel_traffic(
            config, num_tokens, pool.world_size
        )
        hidden = num_tokens * config.hidden_size * 4
        assert payload["all_reduce"] == (4 * layers + 2) * hidden + 12 * num_tokens


def run_one_rank(rank: Rank):
    """A group of one rank: nothing to send but the loss's three numbers a token."""
    alone = [dist.new_group([r]) for r in range(rank.world_size)][rank.rank]
    config = GPTConfig()
    gpt, reference = model.build_model(config), model.build_model(config)
    tensor_parallel.tensor_parallel(gpt, alone)
    batch = model.make_batch(config, step=0, batch_size=4)
    optimizer = torch.optim.SGD(gpt.parameters(), lr=0.1)
    with CollectiveCounter() as sent:
        (loss,) = tensor_parallel.train(gpt, optimizer, [batch], alone)
    optimizer = torch.optim.SGD(reference.parameters(), lr=0.1)
    (expected,) = model.train_one_process(reference, optimizer, [batch])
    assert sent.payload_bytes() == get_tensor_parallel_traffic(
        config, batch[0].numel(), 1
    )
    return abs(loss - expected)


def test_a_group_of_one_is_the_full_model(pool2):
    assert max(pool2.run(run_one_rank)) < 1e-6


@pytest.mark.parametrize(
    ("config", "world_size", "message"),
    [
        (GPTConfig(), 3, "4 attention heads are not divisible by 3"),
        (GPTConfig(ffn_hidden_size=130), 4, "130 MLP channels are not divisible by 4"),
        (GPTConfig(vocab_size=63), 2, "63 vocabulary entries are not divisible by 2"),
        (
            GPTConfig(
                hidden_size=96,
                num_attention_heads=12,
                num_query_groups=3,
            ),
            4,
            "3 query groups are no multiple of 4 ranks, and 4 ranks no multiple of 3",
        ),
        (
            GPTConfig(
                hidden_size=24,
                num_attention_heads=12,
                num_query_groups=1,
                ffn_hidden_size=48,
                vocab_size=24,
            ),
            3,
            "28 rows of query, key and value are not divisible by 3",
        ),
    ],
)
def test_sizes_that_do_not_fit_are_named(config, world_size, message):
    with pytest.raises(ValueError, match=message):
        tensor_parallel.check_sizes(config, world_size)
