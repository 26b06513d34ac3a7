"""Generation on two and four ranks against one process without a cache."""

import argparse
import contextlib
import io
import itertools
import re
from dataclasses import replace
from types import SimpleNamespace

import pytest
import torch
from safetensors.torch import save_file
from torch import nn

from mini_impls import inference, model
from mini_impls.demos import inference as demo
from mini_impls.demos.inference import generate_alone
from mini_impls.inference import StaticInferenceContext, generate
from mini_impls.launch import Rank
from mini_impls.model import GPTConfig
from mini_impls.traffic import CollectiveCounter
from mini_impls.weights import get_digests, load_weights, save_weights

pytestmark = pytest.mark.sampled

CONFIG = GPTConfig(num_query_groups=4, num_layers=3, max_sequence_length=24)
PROMPT, NEW = 7, 12


def prompt_of(config, batch_size=3):
    tokens, _ = model.make_batch(config, step=5, batch_size=batch_size)
    return tokens[:, :PROMPT]


def run_generate(rank: Rank, config, batch_size):
    gpt = model.build_model(config, seed=3).double()
    context = StaticInferenceContext(batch_size, config.max_sequence_length)
    inference.tensor_parallel(gpt, context, rank.group)
    with CollectiveCounter() as sent:
        made = generate(gpt, prompt_of(config, batch_size), NEW, context)
    held = {name: tuple(p.shape) for name, p in gpt.named_parameters()}
    for p in gpt.parameters():
        assert p.untyped_storage().nbytes() == p.nbytes, "a slice keeps the whole"
    return made.tokens, sent.counts(), sent.payload_bytes(), context.num_bytes(), held


@pytest.mark.parametrize("batch_size", [1, 3])
def test_tokens_are_those_of_one_process_without_a_cache(pool, batch_size):
    alone = model.build_model(CONFIG, seed=3).double()
    expected = generate_alone(alone, prompt_of(CONFIG, batch_size), NEW)
    for tokens, *_ in pool.run(run_generate, CONFIG, batch_size):
        assert torch.equal(tokens, expected)


def test_a_model_that_was_being_trained_drops_nothing_out(pool2):
    dropping = replace(CONFIG, hidden_dropout=0.5)
    alone = model.build_model(CONFIG, seed=3).double()
    expected = generate_alone(alone, prompt_of(CONFIG), NEW)
    for tokens, *_ in pool2.run(run_generate, dropping, 3):
        assert torch.equal(tokens, expected)


def run_logits(rank: Rank, config):
    """Feed the same text in pieces; return the last logits after each."""
    gpt = model.build_model(config, seed=3).double()
    context = StaticInferenceContext(2, config.max_sequence_length)
    inference.tensor_parallel(gpt, context, rank.group)
    tokens, _ = model.make_batch(config, step=1, batch_size=2)
    seen, logits = 0, []
    with torch.inference_mode():
        for size in [PROMPT, *[1] * NEW]:
            logits.append(gpt(tokens[:, seen : seen + size]))
            seen += size
            context.sequence_len_offset = seen
    return torch.stack(logits)


def test_logits_are_those_of_the_whole_text_at_once(pool):
    tokens, _ = model.make_batch(CONFIG, step=1, batch_size=2)
    whole = model.build_model(CONFIG, seed=3).double()(tokens[:, : PROMPT + NEW])
    expected = whole[:, PROMPT - 1 : PROMPT + NEW].transpose(0, 1)
    for logits in pool.run(run_logits, CONFIG):
        # In fp64: the ranks add up in another order, no more.
        torch.testing.assert_close(logits, expected, rtol=1e-12, atol=1e-12)


def test_each_rank_sends_and_holds_what_the_formulas_say(pool):
    world_size = pool.world_size
    for _, counts, sent, cache_bytes, held in pool.run(run_generate, CONFIG, 3):
        assert counts == {"all_reduce": NEW * 2 * 3, "all_gather": NEW}
        expected = {"all_reduce": 0, "all_gather": 0}
        for num_tokens in [PROMPT] + [1] * (NEW - 1):
            step = demo.get_traffic(CONFIG, 3, num_tokens, world_size)
            for op, payload_bytes in step.items():
                expected[op] += 2 * payload_bytes  # fp64 here, the formula is in fp32
        assert sent == expected
        in_fp32 = demo.get_cache_bytes(CONFIG, 3, 24, world_size)
        assert cache_bytes == 2 * in_fp32 == 2 * 4 * 2 * 3 * 3 * 24 * 64 // world_size
        assert held["layers.0.mlp.linear_fc1.weight"] == (256 // world_size, 64)
        assert held["layers.0.mlp.linear_fc2.weight"] == (64, 256 // world_size)
        assert held["layers.0.self_attention.linear_proj.weight"] == (
            64,
            64 // world_size,
        )


def test_one_rank_sends_nothing():
    assert demo.get_traffic(CONFIG, 3, 1, 1) == {}


def test_weights_arrive_with_the_digests_they_left_with(tmp_path):
    gpt = model.build_model(CONFIG)
    path = tmp_path / "model.safetensors"
    digests = save_weights(gpt, path)
    weights = load_weights(path, digests)
    assert get_digests(weights) == digests
    for name, parameter in gpt.named_parameters():
        assert torch.equal(weights[name], parameter)


def test_a_flipped_bit_is_named(tmp_path):
    gpt = model.build_model(CONFIG)
    path = tmp_path / "model.safetensors"
    digests = save_weights(gpt, path)
    data = bytearray(path.read_bytes())
    data[-3] ^= 1
    path.write_bytes(data)
    with pytest.raises(ValueError, match=r"sent \w{12}, arrived \w{12}"):
        load_weights(path, digests)


@pytest.mark.parametrize("change", ["missing", "unexpected", "other dtype", "reshaped"])
def test_other_weights_are_refused(tmp_path, change):
    weights = {"a": torch.arange(6.0), "b": torch.ones(2)}
    digests = get_digests(weights)
    if change == "missing":
        del weights["b"]
    elif change == "unexpected":
        weights["c"] = torch.zeros(1)
    elif change == "other dtype":
        weights["a"] = weights["a"].view(torch.int32)
    else:
        weights["a"] = weights["a"].view(2, 3)
    save_file(weights, tmp_path / "w.safetensors")
    with pytest.raises(ValueError, match="sent "):
        load_weights(tmp_path / "w.safetensors", digests)


ALONE = SimpleNamespace(rank=int, size=lambda: 1)


def test_seconds_are_those_of_each_token_alone(monkeypatch):
    ticks = itertools.count()
    clock = SimpleNamespace(perf_counter=lambda: next(ticks))
    monkeypatch.setattr(inference, "time", clock)
    gpt = model.build_model(CONFIG)
    context = StaticInferenceContext(3, CONFIG.max_sequence_length)
    inference.tensor_parallel(gpt, context, ALONE)
    made = generate(gpt, prompt_of(CONFIG), 4, context)
    assert (made.prefill_s, made.token_s) == (1, [1, 1, 1])


def test_a_layer_may_have_no_bias():
    master, x = nn.Linear(4, 3, bias=False), torch.randn(2, 4)
    for kind in (inference.ColumnParallelLinear, inference.RowParallelLinear):
        assert torch.equal(kind(master, ALONE)(x), master(x))


def test_no_token_more_is_the_prompt():
    prompt, gpt = prompt_of(CONFIG), model.build_model(CONFIG)
    made = generate(gpt, prompt, 0, StaticInferenceContext(3, PROMPT))
    assert torch.equal(made.tokens, prompt)
    assert (made.prefill_s, made.token_s) == (0, [])


def test_text_beyond_the_cache_is_refused():
    context = StaticInferenceContext(3, PROMPT + 2)
    gpt = model.build_model(CONFIG)
    with pytest.raises(ValueError, match="10 tokens do not fit a cache for 9"):
        generate(gpt, prompt_of(CONFIG), 3, context)
    with pytest.raises(ValueError, match="4 sequences do not fit a cache for 3"):
        generate(gpt, prompt_of(CONFIG, 4), 1, context)


@pytest.mark.parametrize(
    ("config", "message"),
    [
        (GPTConfig(num_query_groups=2), "2 query groups are not divisible by 4"),
        (GPTConfig(num_query_groups=4, vocab_size=66), "66 vocabulary entries"),
        (GPTConfig(num_query_groups=4, ffn_hidden_size=30), "30 MLP channels"),
    ],
)
def test_sizes_that_do_not_divide_are_named(config, message):
    with pytest.raises(ValueError, match=message):
        inference.check_sizes(config, 4)


@pytest.mark.parametrize("steps", [0, 25])
def test_demo_refuses_more_tokens_than_the_cache_holds(steps):
    with pytest.raises(ValueError, match=f"--steps {steps}: from 1 to 24"):
        demo.check(argparse.Namespace(world=2, steps=steps))


def run_demo(rank: Rank):
    with contextlib.redirect_stdout(io.StringIO()) as out:
        demo.demo(rank, argparse.Namespace(world=2, backend="gloo", steps=6))
    return out.getvalue()


def test_demo_says_what_it_held_and_sent(pool2):
    out = "".join(pool2.run(run_demo))
    assert "holds 65,536 bytes of keys and values (formula 65,536)" in out
    assert re.search(r"6 tokens: 24 all_reduce, (\S+) bytes \(formula \1\)", out)
    assert out.count("the tokens of one process without a cache: True") == 2
