"""Pipelines of two and four ranks against one process, for every schedule."""

import argparse
from datetime import timedelta
from functools import cache

import pytest
import torch
import torch.distributed as dist
from torch import nn
from torch.multiprocessing.reductions import StorageWeakRef

from mini_impls import model, pipeline
from mini_impls.demos.formulas import get_pipeline_traffic
from mini_impls.demos.pipeline import check
from mini_impls.launch import Rank
from mini_impls.model import GPTConfig
from mini_impls.pipeline import (
    PipelineExecutor,
    custom_backward,
    deallocate_output_tensor,
)
from mini_impls.pipeline_stages import (
    PipelineStage,
    find_first_trained,
    split_model,
)
from mini_impls.schedules import Step, get_orders
from mini_impls.timeline import Transfer, add_send_recv, get_peak_in_flight
from mini_impls.traffic import CollectiveCounter

pytestmark = pytest.mark.sampled

CONFIG = GPTConfig(num_layers=8, hidden_size=32, ffn_hidden_size=64)
TIED = GPTConfig(
    num_layers=8,
    hidden_size=32,
    ffn_hidden_size=64,
    share_embeddings_and_output_weights=True,
)
SCHEDULES = [("gpipe", 1), ("1f1b", 1), ("interleaved", 2)]
MICROBATCHES = 4


def make_pipeline(rank, config, schedule, num_model_chunks, num_microbatches, overlap):
    orders = get_orders(schedule, rank.world_size, num_microbatches, num_model_chunks)
    stages = split_model(
        model.build_model(config), rank.rank, rank.world_size, num_model_chunks
    )
    tensor_shape = (1, config.max_sequence_length, config.hidden_size)
    executor = PipelineExecutor(stages, tensor_shape, rank.group, overlap=overlap)
    return executor, add_send_recv(orders)[rank.rank], orders[rank.rank]


def make_optimizer(stages):
    parameters = nn.ModuleList(stages.values()).parameters()
    return torch.optim.AdamW(parameters, lr=1e-3)


# --- the parts ---


@pytest.mark.parametrize("num_stages", [1, 2, 4, 8])
def test_stages_in_a_row_are_the_model_bit_for_bit(num_stages):
    gpt = model.build_model(CONFIG)
    tokens, _ = model.make_batch(CONFIG, step=0, batch_size=2)
    stages = [PipelineStage(gpt, stage, num_stages) for stage in range(num_stages)]
    hidden = tokens
    for stage in stages:
        hidden = stage(hidden)
    assert torch.equal(hidden, gpt(tokens))
    names = [name for stage in stages for name, _ in stage.named_parameters()]
    assert sorted(names) == sorted(name for name, _ in gpt.named_parameters())


def test_rank_holds_every_pth_stage():
    stages = split_model(model.build_model(CONFIG), 1, 2, 4)
    assert list(stages) == [1, 3, 5, 7]
    assert [list(stage.layers) for stage in stages.values()] == [
        ["1"],
        ["3"],
        ["5"],
        ["7"],
    ]


def test_backward_runs_from_an_output_whose_data_is_gone():
    torch.manual_seed(0)
    layer, x, grad = nn.Linear(3, 5), torch.randn(2, 3), torch.randn(2, 5)
    expected = torch.autograd.grad(layer(x), layer.weight, grad)[0]
    out = layer(x)
    storage = StorageWeakRef(out.untyped_storage())
    deallocate_output_tensor(out)
    assert storage.expired()
    with pytest.raises(RuntimeError, match="shape"):
        out.backward(grad)
    custom_backward(out, grad)
    assert torch.equal(layer.weight.grad, expected)


def test_a_stage_receives_in_its_own_type():
    stages = split_model(model.build_model(CONFIG).double(), 1, 2)
    executor = PipelineExecutor(stages, (1, 2, 3), None)
    buffer = executor.get_tensor(Transfer("recv", Step("F", 0, 0), 0))
    assert buffer.dtype is torch.float64 and buffer.shape == (1, 2, 3)


def test_a_view_is_not_let_go_of():
    with pytest.raises(AssertionError, match="view"):
        deallocate_output_tensor(torch.randn(4).view(2, 2))


# --- against one process ---


def make_batches(config, num_microbatches):
    return [
        model.make_batch(config, step=i, batch_size=num_microbatches) for i in range(3)
    ]


@cache
def train_reference(config, num_microbatches):
    """Losses, and the parameters and gradients of the last step, of one process."""
    reference = model.build_model(config)
    optimizer = torch.optim.AdamW(reference.parameters(), lr=1e-3)
    losses = model.train_one_process(
        reference,
        optimizer,
        make_batches(config, num_microbatches),
        chunks=num_microbatches,
    )
    # A tied weight has two names, as it has two copies in a pipeline.
    full = dict(reference.named_parameters(remove_duplicate=False))
    return losses, {name: (p.detach(), p.grad) for name, p in full.items()}


def run_training(rank: Rank, config, schedule, chunks, num_microbatches, overlap):
    """Losses, and this rank's parameters and gradients, after three steps."""
    executor, plan, _ = make_pipeline(
        rank, config, schedule, chunks, num_microbatches, overlap
    )
    embd_group = None
    if config.share_embeddings_and_output_weights:
        embd_group = dist.new_group([0, rank.world_size - 1])
    losses = pipeline.train(
        executor,
        plan,
        make_optimizer(executor.stages),
        make_batches(config, num_microbatches),
        num_microbatches,
        embd_group,
    )
    assert not (executor.send_reqs or executor.recv_reqs), "works are kept"
    return losses, {
        name: (param.detach(), param.grad)
        for stage in executor.stages.values()
        for name, param in stage.named_parameters()
    }


@pytest.mark.parametrize("overlap", [False, True])
@pytest.mark.parametrize(("schedule", "chunks"), SCHEDULES)
def test_three_steps_are_one_process_bit_for_bit(pool, schedule, chunks, overlap):
    expected_losses, full = train_reference(CONFIG, MICROBATCHES)
    answers = pool.run(run_training, CONFIG, schedule, chunks, MICROBATCHES, overlap)
    assert sorted(name for _, mine in answers for name in mine) == sorted(full)
    for _, mine in answers:
        # Each stage adds up its microbatches in the order of one process.
        for name, (param, grad) in mine.items():
            assert torch.equal(param, full[name][0]), name
            assert torch.equal(grad, full[name][1]), name
    *others, (losses, _) = answers
    assert all(nothing == [] for nothing, _ in others)
    assert losses == expected_losses
    assert losses[-1] < losses[0]


@pytest.mark.parametrize("num_microbatches", [1, 3])
def test_any_number_of_microbatches(pool4, num_microbatches):
    expected_losses, full = train_reference(CONFIG, num_microbatches)
    answers = pool4.run(run_training, CONFIG, "1f1b", 1, num_microbatches, False)
    assert answers[-1][0] == expected_losses
    for _, mine in answers:
        for name, (param, _) in mine.items():
            assert torch.equal(param, full[name][0]), name


@pytest.mark.parametrize(("schedule", "chunks"), SCHEDULES)
def test_tied_embeddings_stay_equal_and_equal_one_process(pool, schedule, chunks):
    expected_losses, full = train_reference(TIED, MICROBATCHES)
    answers = pool.run(run_training, TIED, schedule, chunks, MICROBATCHES, False)
    first, last = answers[0][1], answers[-1][1]
    copies = first["embedding.word_embeddings.weight"], last["output_layer.weight"]
    assert torch.equal(copies[0][0], copies[1][0])
    assert torch.equal(copies[0][1], copies[1][1])
    for _, mine in answers:
        # One process adds the two uses for each microbatch, here each stage adds its
        # own over all: other sums, in fp32. Adam makes a step of 1e-3 out of any
        # gradient, so that a rounded near-zero one may move a part of that.
        for name, (param, grad) in mine.items():
            assert (param - full[name][0]).abs().max() < 1e-4, name
            assert (grad - full[name][1]).abs().max() < 1e-6, name
    assert answers[-1][0] == pytest.approx(expected_losses, abs=1e-5)


# --- frozen from the first stage on ---


def freeze(gpt, num_layers):
    """Freeze the embedding and so many layers behind it."""
    for module in (gpt.embedding, *gpt.layers[:num_layers]):
        module.requires_grad_(False)
    return gpt


def run_frozen(rank: Rank, config, schedule, chunks, overlap, num_layers):
    """Losses, parameters and gradients of a step, and how many messages there were."""
    orders = get_orders(schedule, rank.world_size, MICROBATCHES, chunks)
    gpt = freeze(model.build_model(config), num_layers)
    stages = split_model(gpt, rank.rank, rank.world_size, chunks)
    shape = (1, config.max_sequence_length, config.hidden_size)
    executor = PipelineExecutor(stages, shape, rank.group, overlap=overlap)
    ends = dist.new_group([0, rank.world_size - 1])
    with CollectiveCounter() as sent:
        losses = pipeline.train(
            executor,
            add_send_recv(orders)[rank.rank],
            make_optimizer(stages),
            make_batches(config, MICROBATCHES)[:1],
            MICROBATCHES,
            ends if config.share_embeddings_and_output_weights else None,
        )
    named = [pair for stage in stages.values() for pair in stage.named_parameters()]
    return losses, {n: (p.detach(), p.grad) for n, p in named}, sent.counts()


@pytest.mark.parametrize("num_layers", [0, 1, 5, 8])
@pytest.mark.parametrize(("schedule", "chunks"), SCHEDULES)
@pytest.mark.parametrize(
    ("config", "overlap"), [(CONFIG, False), (CONFIG, True), (TIED, False)]
)
def test_no_gradient_goes_to_stages_that_are_frozen(
    pool, schedule, chunks, config, overlap, num_layers
):
    alone = freeze(model.build_model(config), num_layers)
    optimizer = torch.optim.AdamW(alone.parameters(), lr=1e-3)
    batches = make_batches(config, MICROBATCHES)[:1]
    want = model.train_one_process(alone, optimizer, batches, chunks=MICROBATCHES)
    full = dict(alone.named_parameters(remove_duplicate=False))
    answers = pool.run(run_frozen, config, schedule, chunks, overlap, num_layers)
    assert answers[-1][0] == want
    for _, mine, _ in answers:
        for name, (param, grad) in mine.items():
            assert torch.equal(param, full[name]), name
            if full[name].grad is None:
                assert grad is None, name
            else:
                assert torch.equal(grad, full[name].grad), name
    stages = pool.world_size * chunks
    frozen = min(num_layers * stages // config.num_layers, stages - 1)
    sends = sum(counts.get("send", 0) for *_, counts in answers)
    assert sends == MICROBATCHES * ((stages - 1) + (stages - 1 - frozen))
    assert sends == sum(counts.get("recv", 0) for *_, counts in answers)
    # The weight that is tied is the embedding's, which is frozen: no sum of gradients.
    assert not any("all_reduce" in counts for *_, counts in answers)


def test_an_embedding_below_frozen_layers_is_trained():
    gpt = model.build_model(CONFIG)
    assert find_first_trained(gpt, 2) == 0
    gpt.layers.requires_grad_(False)
    assert find_first_trained(gpt, 2) == 0
    gpt.embedding.requires_grad_(False)
    assert find_first_trained(gpt, 2) == 1


# --- what is sent, what is held ---


def run_traffic(rank: Rank, config, schedule, chunks, overlap):
    executor, plan, order = make_pipeline(
        rank, config, schedule, chunks, MICROBATCHES, overlap
    )
    embd_group = None
    if config.share_embeddings_and_output_weights:
        embd_group = dist.new_group([0, rank.world_size - 1])
    batch = model.make_batch(config, step=0, batch_size=MICROBATCHES)
    optimizer = make_optimizer(executor.stages)
    with CollectiveCounter() as sent:
        pipeline.train(executor, plan, optimizer, [batch], MICROBATCHES, embd_group)
    formula = get_pipeline_traffic(executor.tensor_shape, MICROBATCHES, rank, chunks)
    peaks = executor.peak_in_flight, get_peak_in_flight(order)
    return sent.counts(), sent.payload_bytes(), formula, peaks


@pytest.mark.parametrize("overlap", [False, True])
@pytest.mark.parametrize(("schedule", "chunks"), SCHEDULES)
def test_counts_and_bytes_equal_the_formula(pool, schedule, chunks, overlap):
    answers = pool.run(run_traffic, CONFIG, schedule, chunks, overlap)
    message = 1 * CONFIG.max_sequence_length * CONFIG.hidden_size * 4
    boundaries = pool.world_size * chunks - 1
    for counts, payload, formula, _ in answers:
        assert payload == formula
        assert payload == {op: n * message for op, n in counts.items()}
    sends = sum(counts["send"] for counts, *_ in answers)
    assert sends == 2 * MICROBATCHES * boundaries
    assert sends == sum(counts["recv"] for counts, *_ in answers)


def test_tied_embeddings_cost_one_all_reduce_at_both_ends(pool4):
    answers = pool4.run(run_traffic, TIED, "1f1b", 1, False)
    weight = TIED.vocab_size * TIED.hidden_size * 4
    assert [p.get("all_reduce", 0) for _, p, *_ in answers] == [weight, 0, 0, weight]


@pytest.mark.parametrize(("schedule", "chunks"), SCHEDULES)
def test_activations_in_flight_are_those_of_the_schedule(pool, schedule, chunks):
    for *_, (held, expected) in pool.run(run_traffic, CONFIG, schedule, chunks, False):
        assert held == expected


def run_freed(rank: Rank, schedule, chunks, overlap, keep):
    """Most outputs whose data is there after an exchange, and how many there were.

    An input goes with its backward: no more are there than microbatches in flight.
    """
    executor, plan, _ = make_pipeline(
        rank, CONFIG, schedule, chunks, MICROBATCHES, overlap
    )
    hand_over, communicate = executor.hand_over, executor.communicate
    take, backward_step = executor.take, executor.backward_step
    outputs, alive, inputs = [], [], []

    def taken(made_by):
        tensor = take(made_by)
        if made_by.kind == "F":
            inputs.append(StorageWeakRef(tensor.untyped_storage()))
        return tensor

    def gone(step):
        backward_step(step)
        there = sum(not storage.expired() for storage in inputs)
        assert there <= len(executor.output_tensors)

    def noted(step, tensor):
        if step.kind == "F":
            outputs.append(StorageWeakRef(tensor.untyped_storage()))
        hand_over(step, tensor)

    def counted(exchange):
        communicate(exchange)
        # What was sent before is through, and let go of; so will be what is sent now.
        sends = sum(each.action == "send" for each in exchange) if overlap else 0
        assert len(executor.send_reqs) == sends
        sent = {StorageWeakRef(t.untyped_storage()) for _, t in executor.send_reqs}
        there = {storage for storage in outputs if not storage.expired()}
        alive.append(len(there if keep else there - sent))

    executor.hand_over, executor.communicate = noted, counted
    executor.take, executor.backward_step = taken, gone
    with pytest.MonkeyPatch.context() as patch:
        if keep:
            patch.setattr(pipeline, "deallocate_output_tensor", lambda out: None)
            patch.setattr(pipeline, "custom_backward", lambda out, g: out.backward(g))
        batch = model.make_batch(CONFIG, step=0, batch_size=MICROBATCHES)
        optimizer = make_optimizer(executor.stages)
        pipeline.train(executor, plan, optimizer, [batch], MICROBATCHES)
    return max(alive), len(outputs)


@pytest.mark.parametrize("overlap", [False, True])
@pytest.mark.parametrize(("schedule", "chunks"), SCHEDULES)
def test_no_activation_outlives_its_send(pool2, schedule, chunks, overlap):
    answers = pool2.run(run_freed, schedule, chunks, overlap, False)
    assert [alive for alive, _ in answers] == [0, 0]
    assert answers[0][1] == MICROBATCHES * chunks
    # The same count sees outputs that are kept, as many as are in flight.
    kept = pool2.run(run_freed, schedule, chunks, overlap, True)[0][0]
    assert kept >= 2


def run_big_messages(rank: Rank, schedule, chunks, overlap):
    """Messages of 4 MiB: no socket buffer hides a send that nobody receives.

    With fewer microbatches no two ranks have something to send to each other at once.
    """
    config = GPTConfig(
        num_layers=4, max_sequence_length=1024, hidden_size=32, ffn_hidden_size=32
    )
    orders = get_orders(schedule, rank.world_size, MICROBATCHES, chunks)
    stages = split_model(model.build_model(config), rank.rank, rank.world_size, chunks)
    for stage in stages.values():
        for layer in stage.layers.values():
            layer.self_attention = nn.Identity()  # quick: only messages matter
    executor = PipelineExecutor(stages, (32, 1024, 32), rank.group, overlap=overlap)
    batch = model.make_batch(config, step=0, batch_size=32 * MICROBATCHES)
    optimizer = make_optimizer(stages)
    plan = add_send_recv(orders)[rank.rank]
    return pipeline.train(executor, plan, optimizer, [batch], MICROBATCHES)


@pytest.mark.parametrize("overlap", [False, True])
@pytest.mark.parametrize(("schedule", "chunks"), SCHEDULES)
def test_big_messages_do_not_deadlock(pool2, schedule, chunks, overlap):
    _, losses = pool2.run(run_big_messages, schedule, chunks, overlap)
    assert len(losses) == 1


def run_sends_first(rank: Rank):
    """What an exchange prevents: both ranks send, and only then would receive."""
    group = dist.new_group([0, 1], timeout=timedelta(seconds=2))
    message = torch.zeros(1 << 20)
    try:
        dist.send(message, group=group, group_dst=1 - rank.rank)
        dist.recv(message, group=group, group_src=1 - rank.rank)
    except RuntimeError as error:
        return str(error)
    return "went through"


def test_two_sends_that_face_each_other_hang(pool2):
    answers = pool2.run(run_sends_first)
    assert "went through" not in answers
    assert any("imed out" in answer for answer in answers)  # the other: it hung up


# --- mistakes ---


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"layers": 4, "world": 8}, "4 layers cannot be cut into 8 equal stages"),
        ({"layers": 6, "world": 4}, "6 layers cannot be cut into 4 equal stages"),
        (
            {"schedule": "interleaved", "chunks": 2, "microbatches": 3},
            "3 is not a multiple of 2",
        ),
        ({"chunks": 2}, "1f1b takes 1 chunk a rank, not 2"),
    ],
)
def test_sizes_that_do_not_fit_are_named(arguments, message):
    defaults = {
        "schedule": "1f1b",
        "chunks": 1,
        "microbatches": 4,
        "layers": 4,
        "world": 2,
    }
    with pytest.raises(ValueError, match=message):
        check(argparse.Namespace(**defaults | arguments))


def test_layers_are_divided_among_the_chunks_of_all_ranks():
    six = model.build_model(GPTConfig(num_layers=6))
    assert list(split_model(six, 0, 2, 3)) == [0, 2, 4]
    with pytest.raises(ValueError, match="6 layers cannot be cut into 4 equal stages"):
        split_model(six, 0, 2, 2)


def test_dropout_is_refused():
    with pytest.raises(ValueError, match=r"hidden_dropout must be 0 here, not 0\.1"):
        split_model(model.build_model(GPTConfig(hidden_dropout=0.1)), 0, 2)


def run_leak(rank: Rank):
    """A plan that forgets a backward that nobody waits for."""
    executor, plan, _ = make_pipeline(rank, CONFIG, "1f1b", 1, MICROBATCHES, False)
    if rank.rank == 0:
        plan.remove(Step("B", MICROBATCHES - 1, 0))
    batch = model.make_batch(CONFIG, step=0, batch_size=MICROBATCHES)
    try:
        pipeline.train(
            executor, plan, make_optimizer(executor.stages), [batch], MICROBATCHES
        )
    except AssertionError:
        return "leak"
    return "clean"


def test_a_schedule_that_leaks_is_noticed(pool2):
    assert pool2.run(run_leak) == ["leak", "clean"]


def run_alone(rank: Rank):
    """Interleaved chunks on one rank: handed over in memory, nothing sent."""
    alone = [dist.new_group([r]) for r in range(rank.world_size)][rank.rank]
    mine = Rank(0, 1, rank.device, alone)
    executor, plan, _ = make_pipeline(
        mine, CONFIG, "interleaved", 4, MICROBATCHES, False
    )
    batch = model.make_batch(CONFIG, step=0, batch_size=MICROBATCHES)
    optimizer = make_optimizer(executor.stages)
    with CollectiveCounter() as sent:
        (loss,) = pipeline.train(executor, plan, optimizer, [batch], MICROBATCHES)
    reference = model.build_model(CONFIG)
    optimizer = torch.optim.AdamW(reference.parameters(), lr=1e-3)
    (expected,) = model.train_one_process(
        reference, optimizer, [batch], chunks=MICROBATCHES
    )
    return sent.counts(), loss - expected


def test_chunks_of_one_rank_send_nothing(pool2):
    assert pool2.run(run_alone) == [({}, 0.0)] * 2


def test_a_schedule_that_splits_the_backward_is_refused():
    args = argparse.Namespace(
        schedule="zb-h1", world=2, microbatches=4, chunks=1, layers=4
    )
    with pytest.raises(ValueError, match="zb-h1 splits the backward"):
        check(args)
