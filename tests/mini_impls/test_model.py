"""The model and its task."""

import math

import pytest
import torch

from mini_impls.expert_routing import ExpertsConfig
from mini_impls.experts import build_moe_model
from mini_impls.layout_stages import LayoutConfig, build_layout_model
from mini_impls.model import (
    GPTConfig,
    build_model,
    compute_loss,
    make_batch,
    reference_run,
    shard_batch,
    train_one_process,
)


@pytest.mark.parametrize(
    "build",
    [
        lambda: build_model(GPTConfig()),
        lambda: build_moe_model(ExpertsConfig()),
        lambda: build_layout_model(LayoutConfig(num_moe_experts=2)),
        lambda: make_batch(GPTConfig(), step=1, batch_size=2),
    ],
    ids=["gpt", "experts", "layout", "batch"],
)
def test_a_model_is_built_beside_the_global_stream(build):
    torch.manual_seed(7)
    before = torch.get_rng_state()
    build()
    assert torch.equal(torch.get_rng_state(), before)


def test_same_seed_gives_same_weights():
    one, two = build_model(GPTConfig(), seed=3), build_model(GPTConfig(), seed=3)
    for a, b in zip(one.parameters(), two.parameters(), strict=True):
        assert torch.equal(a, b)
    other = build_model(GPTConfig(), seed=4)
    assert not torch.equal(one.output_layer.weight, other.output_layer.weight)


@pytest.mark.parametrize("tied", [False, True])
def test_loss_falls(tied):
    config = GPTConfig(share_embeddings_and_output_weights=tied)
    model = build_model(config)
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-3)
    batches = [make_batch(config, step=step, batch_size=16) for step in range(30)]
    losses = train_one_process(model, optimizer, batches)
    assert losses[0] == pytest.approx(4.16, abs=0.1)  # ln 64: it knows nothing
    assert losses[-1] < 2.0


def test_tied_weight_is_one_parameter():
    model = build_model(GPTConfig(share_embeddings_and_output_weights=True))
    assert model.output_layer.weight is model.embedding.word_embeddings.weight
    names = [name for name, _ in model.named_parameters()]
    assert "output_layer.weight" not in names


def test_attention_sees_no_later_token():
    config = GPTConfig()
    model = build_model(config)
    tokens, _ = make_batch(config, step=0, batch_size=2)
    changed = tokens.clone()
    changed[:, 20:] = 0
    before, after = model(tokens), model(changed)
    assert torch.equal(before[:, :20], after[:, :20])
    assert not torch.equal(before[:, 20:], after[:, 20:])


def test_a_slice_of_query_groups_is_a_complete_smaller_attention():
    config = GPTConfig()  # four heads in two groups
    attention = build_model(config).layers[0].self_attention
    qkv = attention.linear_qkv(torch.randn(2, 8, config.hidden_size))
    whole = attention.core_attention(qkv)
    halves = [attention.core_attention(part) for part in qkv.chunk(2, dim=-1)]
    assert torch.equal(whole, torch.cat(halves, dim=-1))


def test_grouped_heads_equal_repeated_keys():
    config = GPTConfig(num_query_groups=1)
    attention = build_model(config).layers[0].self_attention
    qkv = attention.linear_qkv(torch.randn(2, 8, config.hidden_size))
    got = attention.core_attention(qkv)
    query, key, value = qkv.view(2, 8, 6, 16).split([4, 1, 1], dim=2)
    query, key, value = (x.transpose(1, 2) for x in (query, key, value))
    scores = query @ key.transpose(2, 3) / 4
    scores = scores.masked_fill(torch.ones(8, 8).triu(1).bool(), float("-inf"))
    want = (scores.softmax(-1) @ value).transpose(1, 2).reshape(2, 8, -1)
    torch.testing.assert_close(got, want)  # another order of sums inside the kernel


def test_the_difference_from_a_reference_is_the_largest():
    run = reference_run(GPTConfig(), steps=1, batch_size=2, chunks=1)
    params = {name: p.detach().clone() for name, p in run.model.named_parameters()}
    assert run.difference(params.items()) == 0.0
    params["final_layernorm.bias"][0] -= 1.0
    assert run.difference(params.items()) == pytest.approx(1.0)
    params["final_layernorm.bias"].fill_(math.nan)
    assert math.isnan(run.difference(params.items()))


def test_what_adds_to_the_residual_begins_smaller_by_the_root_of_their_number():
    model = build_model(GPTConfig(hidden_size=256, num_layers=8))
    for layer in model.layers:
        for one in (layer.self_attention.linear_proj, layer.mlp.linear_fc2):
            assert one.weight.std().item() == pytest.approx(0.02 / 4, rel=0.05)
        assert layer.mlp.linear_fc1.weight.std().item() == pytest.approx(0.02, rel=0.05)


def test_chunks_give_the_mean_of_the_gradients_of_the_parts():
    config = GPTConfig()
    batch = make_batch(config, step=0, batch_size=8)
    model = build_model(config)
    train_one_process(model, torch.optim.SGD(model.parameters()), [batch], chunks=4)
    want = [torch.zeros_like(p) for p in model.parameters()]
    for rank in range(4):
        part = build_model(config)
        tokens, labels = shard_batch(batch, rank=rank, world_size=4)
        compute_loss(part(tokens), labels).backward()
        for total, p in zip(want, part.parameters(), strict=True):
            total += p.grad / 4
    for p, total in zip(model.parameters(), want, strict=True):
        assert torch.equal(p.grad, total)


def test_a_loss_is_made_in_32_bits():
    logits, labels = torch.randn(2, 3, 5).bfloat16(), torch.ones(2, 3, dtype=int)
    loss = compute_loss(logits, labels)
    assert loss.dtype is torch.float32
    assert torch.equal(loss, compute_loss(logits.float(), labels))


def test_batches_differ_by_step_and_shards_join_to_the_batch():
    config = GPTConfig()
    tokens, labels = make_batch(config, step=1, batch_size=8)
    assert not torch.equal(tokens, make_batch(config, step=2, batch_size=8)[0])
    assert torch.equal(tokens[:, 1:], labels[:, :-1])
    parts = [shard_batch((tokens, labels), rank=r, world_size=4) for r in range(4)]
    assert torch.equal(torch.cat([t for t, _ in parts]), tokens)


@pytest.mark.parametrize(
    ("sizes", "message"),
    [
        ({"hidden_size": 66}, "hidden_size 66 .* num_attention_heads 4"),
        ({"num_query_groups": 3}, "num_attention_heads 4 .* num_query_groups 3"),
    ],
)
def test_sizes_that_do_not_divide_are_refused(sizes, message):
    with pytest.raises(ValueError, match=message):
        GPTConfig(**sizes)


def test_batch_that_does_not_divide_is_refused():
    batch = make_batch(GPTConfig(), step=0, batch_size=6)
    with pytest.raises(ValueError, match=r"6 sequences .* 4"):
        shard_batch(batch, rank=0, world_size=4)
