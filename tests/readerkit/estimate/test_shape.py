"""Parameter counts against those that models publish."""

import pytest

from readerkit.errors import EstimateError
from readerkit.estimate.layout import Layout
from readerkit.estimate.parameters import (
    active_parameter_count,
    attention_parameters,
    narayanan_parameters,
    parameter_count,
)
from readerkit.estimate.parameters_estimate import estimate_parameters
from readerkit.estimate.rank_layers import layers_of_rank
from readerkit.estimate.shape import Shape, padded_vocab
from tests.readerkit.estimate.catalog import MODELS, shape

PUBLISHED = {
    name: model["parameters"] for name, model in MODELS.items() if "parameters" in model
}
# Narayanan et al. 2104.04473, table 1: (billions, hidden, layers); V 51200, s 2048.
TABLE_1 = [
    (1.7, 2304, 24),
    (3.6, 3072, 30),
    (7.5, 4096, 36),
    (18.4, 6144, 40),
    (39.1, 8192, 48),
    (76.1, 10240, 60),
    (145.6, 12288, 80),
    (310.1, 16384, 96),
    (529.6, 20480, 105),
    (1008.0, 25600, 128),
]


@pytest.mark.parametrize(("name", "count"), PUBLISHED.items())
def test_a_public_model_has_its_published_count(name, count):
    assert parameter_count(shape(name)) == count


@pytest.mark.parametrize("name", MODELS)
def test_the_parts_of_an_estimate_sum_to_its_total(name):
    estimate = estimate_parameters(shape(name))
    parts = [
        item.value
        for item in estimate.items
        if item.name != "parameters" and not item.name.startswith("active")
    ]
    assert sum(parts) == estimate["parameters"] == parameter_count(shape(name))
    assert all(item.formula and item.source for item in estimate.items)


@pytest.mark.parametrize(("billions", "hidden", "layers"), TABLE_1)
def test_narayanan_table_1(billions, hidden, layers):
    sizes = {"layers": layers, "hidden": hidden, "vocab": 51200}
    formula = narayanan_parameters(**sizes, sequence=2048)
    assert round(formula / 1e9, 1) == billions
    counted = parameter_count(Shape.parse(sizes | {"heads": 1, "positions": 2048}))
    assert counted - formula == 2 * hidden  # the last norm, which the formula drops


def test_experts_that_a_token_does_not_meet_are_not_active():
    # Jiang et al. 2401.04088: 47B parameters, 13B active.
    assert active_parameter_count(shape("mixtral-8x7b")) == 12_879_925_248
    assert active_parameter_count(shape("llama-2-7b")) == 6_738_415_616


# Billions as published: of the whole model; of one token; and which of the two tables
# the latter counts. Sources: DeepSeek-V2 2405.04434 and V3 2412.19437, abstracts;
# Qwen3 2505.09388, section 2; gpt-oss 2508.10925, table 1; Llama 4's model card.
ACTIVE = [
    ("deepseek-v2", 236, 21, "active per token"),
    ("deepseek-v3", 671, 37, "active without the token table"),
    ("qwen3-235b-a22b", 235, 22, "active per token"),
    ("gpt-oss-20b", 20.91, 3.61, "active without the token table"),
    ("gpt-oss-120b", 116.83, 5.13, "active without the token table"),
    ("llama-4-maverick", 401, 17, "active per token"),
    ("llama-4-scout", 108, 17, "active per token"),
]


@pytest.mark.parametrize(("name", "whole", "active", "convention"), ACTIVE)
def test_models_with_experts_publish_what_a_token_meets(
    name, whole, active, convention
):
    estimate = estimate_parameters(shape(name))
    digits = len(str(whole).partition(".")[2])
    assert round(estimate["parameters"] / 1e9, digits) == whole
    assert round(estimate[convention] / 1e9, digits) == active


@pytest.mark.parametrize(
    ("name", "millions"),
    [("gemma-3-4b", 3209), ("gemma-3-12b", 10759), ("gemma-3-27b", 25600)],
)
def test_gemma_3_without_its_token_table(name, millions):
    # Gemma 3 2503.19786, table 1: non-embedding parameters.
    gemma = shape(name)
    counted = parameter_count(gemma) - gemma.vocab * gemma.hidden
    assert round(counted / 1e6) == millions


def test_low_rank_attention_is_the_matrices_of_its_paper():
    # DeepSeek-V2 2405.04434, appendix C: down, up, turn, output; and two norms.
    down, up = 7168 * (1536 + 512 + 64), 1536 * 128 * 192 + 512 * 128 * 256
    out, norms = 128 * 128 * 7168, 1536 + 512
    v3 = attention_parameters(shape("deepseek-v3"))
    assert v3.whole == down + norms
    assert v3.split == up + out


@pytest.mark.parametrize(
    ("dense", "every", "at"),
    [(0, 1, [0, 1, 2, 3, 4, 5]), (0, 2, [1, 3, 5]), (1, 2, [2, 4]), (2, 3, [4])],
)
def test_experts_are_in_every_nth_layer_after_the_dense_ones(dense, every, at):
    sizes = {"layers": 6, "experts": 4, "experts_per_token": 1}
    one = Shape.parse(GPT | sizes | {"dense_layers": dense, "moe_every": every})
    assert [layer for layer in range(6) if one.has_experts(layer)] == at
    assert (one.moe_layers, one.plain_layers) == (len(at), 6 - len(at))
    held = [layers_of_rank(one, Layout.parse({"pp": 2}), rank) for rank in (0, 1)]
    assert [moe for _, moe in held] == [sum(i // 3 == r for i in at) for r in (0, 1)]


def test_vocabulary_is_padded_to_a_multiple_for_every_rank():
    # Megatron: 50257 to a multiple of 128 × tp.
    assert padded_vocab(vocab=50257, multiple=128) == 50304
    assert padded_vocab(vocab=50257, multiple=128, tensor_parallel=8) == 51200
    assert padded_vocab(vocab=51200, multiple=128, tensor_parallel=8) == 51200


GPT = {"layers": 2, "hidden": 8, "heads": 2, "vocab": 16}


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"layers": 0}, "layers: got 0, expected at least 1"),
        ({"layers": -1}, "layers: got -1, expected at least 1"),
        ({"hidden": 10**19}, "expected at most 1,000,000,000"),
        ({"hidden": 8.5}, "hidden: got 8.5, expected a whole number"),
        ({"hidden": float("nan")}, "hidden: got nan, expected a whole number"),
        ({"hidden": True}, "hidden: got True, expected a whole number"),
        ({"vocab": None}, "a model needs its vocab: got none"),
        ({"heads": 3}, "heads: got 3, expected a divisor of hidden 8"),
        ({"kv_heads": 3}, "kv_heads: got 3, expected a divisor of heads 2"),
        ({"norm": "batch"}, "unknown norm: got 'batch'"),
        ({"hiden": 8}, "unknown size of a model: got 'hiden', expected perhaps hidden"),
        ({"gated_mlp": 1}, "gated_mlp: got 1, expected true or false"),
        ({"experts": 4}, "experts_per_token: got 0, expected 1 to 4"),
        ({"experts_per_token": 2}, "experts: got 0"),
        ({"dense_layers": 1}, "experts: got 0, expected a number beside"),
        (
            {"dense_layers": 3, "experts": 4, "experts_per_token": 2},
            "dense_layers: got 3, expected at most 2",
        ),
        ({"head_dim": 0}, "head_dim: got 0, expected at least 1"),
        ({"kv_heads": 0}, "kv_heads: got 0, expected at least 1"),
        ({"ffn": 0}, "ffn: got 0, expected at least 1"),
        ({"query_rank": 4}, "kv_rank: got 0, expected a number beside query_rank"),
        ({"kv_rank": 4, "kv_heads": 1}, "kv_heads: got 1, expected 2"),
        ({"moe_every": 2}, "experts: got 0, expected a number beside moe_every"),
        ({"moe_every": 0}, "moe_every: got 0, expected at least 1"),
        ({"global_every": 2}, "window: got 0"),
    ],
)
def test_a_shape_that_cannot_be_is_named(change, message):
    with pytest.raises(EstimateError, match=message):
        Shape.parse(GPT | change)


def test_mixtral_8x22b_is_the_release_that_its_source_names():
    # The base model, v0.1, has a vocabulary of 32,000.
    assert parameter_count(shape("mixtral-8x22b")) == 140_620_634_112
