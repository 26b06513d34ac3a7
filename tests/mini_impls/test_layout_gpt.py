"""A GPT on several dimensions equals one process: losses, gradients, updates."""

import contextlib
import io
import re
from argparse import Namespace
from dataclasses import replace
from types import SimpleNamespace

import pytest
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from ranks import RankPool

from mini_impls.demos import layout as demo
from mini_impls.demos.layout_traffic import get_layout_traffic
from mini_impls.layout_gpt import (
    LayoutEmbedding,
    all_reduce,
    move,
    positions_of,
    stay,
)
from mini_impls.layout_stages import (
    ORDER,
    LayoutConfig,
    LayoutStage,
    TwoLayouts,
    build_layout_model,
    check_sizes,
    make_groups,
)
from mini_impls.layout_train import LayoutTrainer
from mini_impls.model import make_batch, train_one_process
from mini_impls.traffic import CollectiveCounter

pytestmark = pytest.mark.sampled

DENSE = LayoutConfig(
    vocab_size=16,
    max_sequence_length=8,
    num_layers=2,
    hidden_size=16,
    num_attention_heads=4,
    num_query_groups=2,
    ffn_hidden_size=24,
)
EXPERTS = replace(DENSE, num_moe_experts=4)
STEPS, ROWS, LR = 3, 2, 1e-2
CLOSE = {"atol": 2e-6, "rtol": 1e-4}
"""Sums over ranks and microbatches have another order than those of one process."""


def own_slice(whole, mine, tp):
    """Return the part of one process's tensor that a rank has, by its shape."""
    for dim, (all_of_it, some) in enumerate(zip(whole.shape, mine.shape, strict=True)):
        if all_of_it != some:
            return whole.chunk(tp.size(), dim)[tp.rank()]
    return whole


def make_trainer(rank, config, sizes, microbatches, order=ORDER, dtype=torch.float32):
    """Return this rank's groups and trainer, and the rows of a batch."""
    layouts = TwoLayouts.parse(rank.world_size, sizes, order=order)
    check_sizes(config, layouts)
    groups = make_groups(layouts, rank.rank)
    tokens = config.max_sequence_length // groups.layer.cp.size()
    trainer = LayoutTrainer(
        LayoutStage(build_layout_model(config), groups).to(dtype),
        groups,
        microbatches=microbatches,
        microbatch_shape=(ROWS, tokens, config.hidden_size),
        learning_rate=LR,
    )
    return groups, trainer, ROWS * microbatches * groups.dp_size


def trained(rank, config, sizes, microbatches, steps=STEPS, order=ORDER):
    """Train on a layout and alone, hold both together; return the names of the part."""
    groups, trainer, rows = make_trainer(rank, config, sizes, microbatches, order)
    batches = [make_batch(config, step=i, batch_size=rows) for i in range(steps)]
    losses = trainer.train(batches)
    alone = build_layout_model(config)
    optimizer = torch.optim.AdamW(alone.parameters(), LR)
    chunks = microbatches * groups.dp_size
    expected = train_one_process(alone, optimizer, batches, chunks=chunks)
    assert bool(losses) is (groups.pp.rank() == groups.pp.size() - 1)
    if losses:
        torch.testing.assert_close(losses, expected, atol=2e-5, rtol=0)
    whole, tp = dict(alone.named_parameters()), groups.layer.tp
    for name, param in trainer.stage.named_parameters():
        grad = own_slice(whole[name].grad, param, tp)
        torch.testing.assert_close(param.grad, grad, **CLOSE)
        updated = own_slice(whole[name].detach(), param, tp)
        # AdamW divides small sums by their size: a little apart becomes far apart.
        torch.testing.assert_close(param.detach(), updated, atol=2e-4, rtol=1e-3)
    return [name for name, _ in trainer.stage.named_parameters()]


CUTS_OF_TWO = {
    "tp": (DENSE, {"tp": 2}),
    "cp": (DENSE, {"cp": 2}),
    "pp": (DENSE, {"pp": 2}),
    "dp": (DENSE, {}),
    "tp, experts": (EXPERTS, {"tp": 2, "ep": 2}),
    "cp, experts": (EXPERTS, {"cp": 2, "ep": 2}),
    "pp, experts": (EXPERTS, {"pp": 2}),
    "dp, experts": (EXPERTS, {"ep": 2}),
    "dp, copies of experts": (EXPERTS, {}),
}
THREES = replace(
    DENSE,
    max_sequence_length=12,
    num_layers=3,
    hidden_size=12,
    num_attention_heads=6,
    num_query_groups=3,
    ffn_hidden_size=15,
)
EXPERTS_OF_THREE = replace(THREES, num_moe_experts=6)
CUTS_OF_THREE = {
    "tp": (THREES, {"tp": 3}),
    "cp": (THREES, {"cp": 3}),
    "pp": (THREES, {"pp": 3}),
    "dp": (DENSE, {}),
    "tp, experts": (EXPERTS_OF_THREE, {"tp": 3, "ep": 3}),
    "cp, experts": (EXPERTS_OF_THREE, {"cp": 3, "ep": 3}),
    "pp, experts": (EXPERTS_OF_THREE, {"pp": 3}),
    "dp, experts": (EXPERTS_OF_THREE, {"ep": 3}),
    "dp, copies of experts": (EXPERTS, {}),
}
CUTS_OF_FOUR = {
    "dp": (DENSE, {}),
    "tp, dp": (DENSE, {"tp": 2}),
    "pp, dp": (DENSE, {"pp": 2}),
    "tp, pp": (DENSE, {"tp": 2, "pp": 2}),
    "tp, cp": (DENSE, {"tp": 2, "cp": 2}),
    "cp, pp": (DENSE, {"cp": 2, "pp": 2}),
    "cp": (DENSE, {"cp": 4}),
    "dp, ep of all": (EXPERTS, {"ep": 4}),
    "dp, ep of half": (EXPERTS, {"ep": 2}),
    "tp, dp, ep of half": (EXPERTS, {"tp": 2, "ep": 2}),
    "tp, dp, ep of all": (EXPERTS, {"tp": 2, "ep": 4}),
    "tp, cp, ep": (EXPERTS, {"tp": 2, "cp": 2, "ep": 2}),
    "cp, pp, ep": (EXPERTS, {"cp": 2, "pp": 2, "ep": 2}),
    "tp, pp, copies of experts": (EXPERTS, {"tp": 2, "pp": 2}),
}
CUTS_OF_EIGHT = {
    "tp, dp, pp": (DENSE, {"tp": 2, "pp": 2}),
    "tp, cp, pp": (DENSE, {"tp": 2, "cp": 2, "pp": 2}),
    "tp, cp, dp, ep": (EXPERTS, {"tp": 2, "cp": 2, "ep": 4}),
    "tp, dp, pp, ep": (EXPERTS, {"tp": 2, "pp": 2, "ep": 2}),
    "tp, cp, pp, ep": (EXPERTS, {"tp": 2, "cp": 2, "pp": 2, "ep": 4}),
}


def check_cut(pool, config, sizes, microbatches=3):
    """Hold every rank's part against one process, and all parts against the whole."""
    names = pool.run(trained, config, sizes, microbatches)
    assert set().union(*names) == {
        n for n, _ in build_layout_model(config).named_parameters()
    }


@pytest.mark.parametrize("cut", CUTS_OF_TWO)
def test_two_ranks_cut_any_way_train_as_one_process(pool2, cut):
    check_cut(pool2, *CUTS_OF_TWO[cut])


@pytest.mark.parametrize("cut", CUTS_OF_THREE)
def test_three_ranks_cut_any_way_train_as_one_process(pool3, cut):
    check_cut(pool3, *CUTS_OF_THREE[cut])


@pytest.mark.parametrize("cut", CUTS_OF_FOUR)
def test_four_ranks_cut_any_way_train_as_one_process(pool4, cut):
    check_cut(pool4, *CUTS_OF_FOUR[cut])


def step_in_fp64(rank):
    _, trainer, rows = make_trainer(rank, DENSE, {"pp": 2}, 4, dtype=torch.float64)
    held, forward_step = [], trainer.schedule.forward_step

    def noted(microbatches, i, input_tensor, kept, losses):
        output = forward_step(microbatches, i, input_tensor, kept, losses)
        held.append(len(kept))
        return output

    trainer.schedule.forward_step = noted
    trainer.step(make_batch(DENSE, step=0, batch_size=rows))
    return {p.grad.dtype for p in trainer.stage.parameters()}, max(held)


def test_stages_exchange_their_own_type_and_keep_what_is_in_flight(pool2):
    assert pool2.run(step_in_fp64) == [({torch.float64}, 2), ({torch.float64}, 1)]


def test_a_pipeline_is_right_with_fewer_microbatches_than_stages(pool4):
    check_cut(pool4, replace(DENSE, num_layers=4), {"pp": 4}, microbatches=2)


@pytest.fixture(scope="module")
def pool8():
    """Eight ranks."""
    pool = RankPool(8)
    yield pool
    pool.close()


@pytest.mark.slow
@pytest.mark.parametrize("cut", CUTS_OF_EIGHT)
def test_eight_ranks_on_all_dimensions_train_as_one_process(pool8, cut):
    check_cut(pool8, *CUTS_OF_EIGHT[cut], microbatches=2)


@settings(
    max_examples=6,
    deadline=None,
    suppress_health_check=list(HealthCheck),
    derandomize=True,
)
@given(
    layers=st.sampled_from([2, 4]),
    groups=st.sampled_from([2, 4]),
    experts=st.sampled_from([0, 2, 6]),
    tokens=st.sampled_from([4, 12]),
    microbatches=st.integers(1, 4),
    order=st.sampled_from(["tp-cp-ep-dp-pp", "dp-tp-cp-ep-pp", "cp-ep-dp-tp-pp"]),
    kind=st.sampled_from(["tp", "cp", "dp", "pp"]),
)
def test_random_models_in_any_order_of_ranks_train_as_one_process(
    pool2, layers, groups, experts, tokens, microbatches, order, kind
):
    config = replace(
        DENSE,
        num_layers=layers,
        num_query_groups=groups,
        num_moe_experts=experts,
        max_sequence_length=tokens,
    )
    sizes = {} if kind == "dp" else {kind: 2}
    if experts and kind != "pp":
        sizes["ep"] = 2
    pool2.run(trained, config, sizes, microbatches, 2, order)


def sent(rank, config, sizes):
    """Return what a step sent by kind, and what it should."""
    groups, trainer, rows = make_trainer(rank, config, sizes, microbatches=2)
    due = get_layout_traffic(config, trainer.stage, groups, microbatches=2, rows=ROWS)
    with CollectiveCounter() as counter:
        trainer.step(make_batch(config, step=0, batch_size=rows))
    return counter.payload_bytes(), due


@pytest.mark.parametrize("cut", CUTS_OF_FOUR)
def test_a_step_sends_what_the_formula_says(pool4, cut):
    for measured, due in pool4.run(sent, *CUTS_OF_FOUR[cut]):
        assert measured == due


def test_parts_of_a_sequence_meet_as_many_keys_each():
    for world_size in (1, 2, 4):
        parts = [positions_of(r, world_size, 16) for r in range(world_size)]
        assert sorted(torch.cat(parts).tolist()) == list(range(16))
        assert len({int((part + 1).sum()) for part in parts}) == 1
    assert positions_of(0, 2, 8).tolist() == [0, 1, 6, 7]


@pytest.mark.parametrize(
    ("world_size", "sizes", "config", "said"),
    [
        (4, {"tp": 3}, DENSE, "4 ranks are not divisible by tp 3 x cp 1 x pp 1"),
        (4, {"ep": 3}, DENSE, "4 ranks are not divisible by 3"),
        (4, {"tp": 4}, DENSE, "2 query groups are not divisible by 4"),
        (6, {"pp": 3}, DENSE, "2 layers are not divisible by 3"),
        (8, {"cp": 8}, DENSE, "8 tokens of a sequence are not divisible by 16"),
        (8, {"ep": 8}, EXPERTS, "4 experts are not divisible by 8"),
        (2, {}, replace(DENSE, share_embeddings_and_output_weights=True), "tied"),
    ],
)
def test_what_cannot_be_cut_is_refused(world_size, sizes, config, said):
    with pytest.raises(ValueError, match=said):
        check_sizes(config, TwoLayouts.parse(world_size, sizes))


def test_experts_in_other_stages_are_refused():
    with pytest.raises(ValueError, match="experts would be in other stages"):
        TwoLayouts.parse(8, {"tp": 2, "pp": 2}, order="tp-cp-ep-pp-dp")


@pytest.mark.parametrize(
    "pool", [2, pytest.param(4, marks=pytest.mark.slow)], indirect=True
)
def test_the_demo_shows_groups_bytes_and_one_process(pool):
    args = Namespace(world=pool.world_size, steps=3, tp=0, cp=0, pp=0, ep=0)
    texts = pool.run(shown, args)
    for text in texts:
        pairs = re.findall(r"([\d,]+) \(formula ([\d,]+)\)", text)
        assert len(pairs) >= 4 and all(sent == due for sent, due in pairs)
        off = re.findall(r"(?:gradient|parameter) (\S+e-\d+)", text)
        assert len(off) == 4 and all(float(each) < 1e-4 for each in off)
    assert "tp    0 1" in texts[0]
    losses = re.findall(
        r"loss ([\d.]+) -> ([\d.]+), one process (\S+) -> ([\d.]+)", texts[-1]
    )
    assert len(losses) == 2
    for first, last, of_one, last_of_one in losses:
        assert (first, last) == (of_one, last_of_one) and float(last) < float(first)


def shown(rank, args):
    with contextlib.redirect_stdout(io.StringIO()) as out:
        demo.demo(rank, args)
    return out.getvalue()


@pytest.mark.parametrize(
    ("argv", "said"),
    [
        (["--tp", "-1"], "--tp -1 is below 0"),
        (["--tp", "3"], "2 ranks are not divisible by tp 3"),
        (["--world", "4", "--tp", "4"], "2 query groups are not divisible by 4"),
    ],
)
def test_the_demo_refuses_in_one_line(capfd, argv, said):
    assert demo.main(argv) == 2
    captured = capfd.readouterr()
    assert captured.out == "" and said in captured.err
    assert captured.err.count("\n") == 1


ALONE = SimpleNamespace(rank=lambda: 0, size=lambda: 1)


def test_the_embedding_drops_what_that_of_the_model_drops():
    gpt = build_layout_model(LayoutConfig(hidden_dropout=0.5))
    hidden = LayoutEmbedding(gpt.embedding, ALONE)(torch.zeros(2, 32, dtype=torch.long))
    assert (hidden == 0).any()


@pytest.mark.parametrize("before_it_is_cut", [True, False])
def test_what_is_frozen_stays(before_it_is_cut):
    config, layer = LayoutConfig(), SimpleNamespace(tp=ALONE, cp=ALONE, ep=ALONE)
    groups = SimpleNamespace(
        pp=ALONE, layer=layer, dp_cp=ALONE, expert_dp=ALONE, place={"dp": 0}, dp_size=1
    )
    gpt = build_layout_model(config)
    gpt.layers[0].requires_grad_(not before_it_is_cut)
    stage = LayoutStage(gpt, groups)
    if not before_it_is_cut:
        stage.layers["0"].requires_grad_(False)
    weight = stage.layers["0"].mlp.linear_fc1.weight
    before = weight.clone()
    shape = (2, 32, 64)
    trainer = LayoutTrainer(
        stage, groups, microbatches=1, microbatch_shape=shape, learning_rate=0.01
    )
    trainer.step(make_batch(config, step=0, batch_size=2))
    assert torch.equal(weight, before)  # nor does AdamW decay it


def move_beside_another(rank):
    # `add` hands one gradient to both; what was made last is the first to go on.
    x, beside = (torch.ones(3, requires_grad=True) for _ in range(2))
    waits = beside * 1.0
    (move(x, stay, all_reduce, rank.group) + waits).backward(torch.ones(3))
    return x.grad, beside.grad


def test_a_gradient_that_others_read_is_not_summed_in_place(pool):
    for of_x, beside in pool.run(move_beside_another):
        assert torch.equal(of_x, torch.full((3,), float(pool.world_size)))
        assert torch.equal(beside, torch.ones(3))
