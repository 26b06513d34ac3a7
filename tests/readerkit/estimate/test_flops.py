"""FLOPs against the tables of the papers that give them."""

import pytest

from readerkit.errors import EstimateError
from readerkit.estimate.flops import (
    attention_flops_per_token,
    cost_usd,
    flops_utilization,
    forward_flops_per_token,
    korthikanti_hardware_flops,
    korthikanti_model_flops,
    mean_hours_between_failures,
    narayanan_flops_per_iteration,
    six_nd_flops,
    step_flops,
    training_days,
)
from readerkit.estimate.flops_estimate import estimate_flops
from readerkit.estimate.parameters import active_parameter_count
from readerkit.estimate.recompute import module_flops
from tests.readerkit.estimate.catalog import shape

# Narayanan et al. 2104.04473, table 1: layers, hidden, GPUs, batch; TFLOP/s per GPU,
# percent of peak, PFLOP/s together. Peak 312 TFLOP/s (A100).
NARAYANAN = [
    (24, 2304, 32, 512, 137, 44, 4.4),
    (30, 3072, 64, 512, 138, 44, 8.8),
    (36, 4096, 128, 512, 142, 46, 18.2),
    (40, 6144, 256, 1024, 135, 43, 34.6),
    (48, 8192, 512, 1536, 138, 44, 70.8),
    (60, 10240, 1024, 1792, 140, 45, 143.8),
    (80, 12288, 1536, 2304, 148, 47, 227.1),
    (96, 16384, 1920, 2160, 155, 50, 297.4),
    (105, 20480, 2520, 2520, 163, 52, 410.2),
    (128, 25600, 3072, 3072, 163, 52, 502.0),
]
# Korthikanti et al. 2205.05198, table 5: model, GPUs, batch, seconds, MFU, HFU.
KORTHIKANTI = [
    ("megatron-22b", 8, 4, 1.10, 41.5, 43.7),
    ("megatron-175b", 64, 64, 13.75, 51.4, 52.8),
    ("megatron-530b", 280, 280, 37.83, 56.0, 57.0),
    ("megatron-1t", 512, 512, 71.49, 56.3, 57.0),
]


@pytest.mark.parametrize("row", NARAYANAN, ids=str)
def test_narayanan_table_1(row):
    layers, hidden, gpus, batch, teraflops, percent, petaflops = row
    sizes = {"batch": batch, "sequence": 2048, "layers": layers, "hidden": hidden}
    flops = narayanan_flops_per_iteration(**sizes, vocab=51200)
    # The time of a step at the rate of the table gives its share of peak back.
    seconds = flops / (gpus * teraflops * 1e12)
    share = flops_utilization(
        flops=flops, seconds=seconds, gpus=gpus, peak_flops_per_s=312e12
    )
    assert abs(share * 100 - percent) < 0.7
    assert flops / seconds / 1e15 == pytest.approx(petaflops, rel=0.006)


@pytest.mark.parametrize("row", KORTHIKANTI, ids=str)
def test_korthikanti_table_5(row):
    name, gpus, batch, seconds, mfu, hfu = row
    gpt = shape(name)
    sizes = {
        "batch": batch,
        "sequence": 2048,
        "layers": gpt.layers,
        "hidden": gpt.hidden,
        "vocab": gpt.vocab,
    }
    offered = {"seconds": seconds, "gpus": gpus, "peak_flops_per_s": 312e12}
    model = flops_utilization(flops=korthikanti_model_flops(**sizes), **offered)
    assert abs(model * 100 - mfu) < 0.2
    run = flops_utilization(flops=korthikanti_hardware_flops(**sizes), **offered)
    assert abs(run * 100 - hfu) < 0.2


@pytest.mark.parametrize("name", ["megatron-22b", "megatron-175b", "megatron-1t"])
def test_counting_a_gpt_gives_both_papers_formulas(name):
    gpt = shape(name)
    sizes = {"batch": 3, "sequence": 2048}
    formula = sizes | {
        "layers": gpt.layers,
        "hidden": gpt.hidden,
        "vocab": gpt.vocab,
    }
    assert step_flops(gpt, **sizes) == korthikanti_model_flops(**formula)
    assert step_flops(gpt, **sizes, recompute="full") == narayanan_flops_per_iteration(
        **formula
    )


def test_selective_recompute_is_counted_once_where_the_paper_counts_it_thrice():
    gpt = shape("megatron-175b")
    sizes = {"batch": 1, "sequence": 2048}
    model = step_flops(gpt, **sizes)
    counted = step_flops(gpt, **sizes, recompute="selective") / model - 1
    formula = sizes | {"layers": 96, "hidden": 12288, "vocab": 51200}
    paper = korthikanti_hardware_flops(**formula) / model - 1
    assert round(paper * 100, 1) == 2.7  # the abstract of section 6
    assert counted == pytest.approx(paper / 3)


@pytest.mark.parametrize(
    ("params", "tokens", "gpus", "rate", "days"),
    # Narayanan et al., section 5.1: 34 days for GPT-3, 84 for the trillion.
    [(175e9, 300e9, 1024, 140e12, 34), (1.008e12, 450e9, 3072, 163e12, 84)],
)
def test_narayanan_training_times(params, tokens, gpus, rate, days):
    taken = training_days(
        params=params, tokens=tokens, gpus=gpus, flops_per_s_per_gpu=rate, passes=8
    )
    assert round(taken) == days


def test_v100_years_of_gpt3_differ_by_the_assumed_rate():
    def years(rate):
        days = training_days(
            params=175e9, tokens=300e9, gpus=1, flops_per_s_per_gpu=rate
        )
        return days / 365

    assert round(years(28e12)) == 357  # Lambda's 355, from 3.14e23 FLOPs
    assert round(years(34.7e12)) == 288  # Narayanan et al., section 1
    assert six_nd_flops(params=175e9, tokens=300e9) == 3.15e23


def test_llama_3_failed_every_three_hours():
    hours = mean_hours_between_failures(failures=419, days=54)
    assert round(hours, 1) == 3.1


def test_grouped_heads_gates_and_experts_are_counted():
    llama, mixtral = shape("llama-2-70b"), shape("mixtral-8x7b")
    for model in (llama, mixtral):
        forward = forward_flops_per_token(model, sequence=4096)
        scores = model.layers * 4 * 4096 * model.hidden
        # Two FLOPs a weight that a token meets, less the table that is only looked up.
        norms = (2 * model.layers + 1) * model.hidden
        weights = active_parameter_count(model) - model.vocab * model.hidden - norms
        assert forward - scores == 2 * weights


@pytest.mark.parametrize(
    ("name", "gigaflops"), [("deepseek-v2", 155), ("deepseek-v3", 250)]
)
def test_low_rank_attention_costs_what_its_authors_count(name, gigaflops):
    # Zhao et al. 2505.09343, table 2: training, a token, causal, sequences of 4096.
    one = forward_flops_per_token(shape(name), sequence=4096, attention="causal")
    assert round(3 * one / 1e9) == gigaflops


def test_causal_attention_is_half_the_square():
    gpt = shape("gpt2")
    full, causal = (
        forward_flops_per_token(gpt, sequence=1024, attention=kind)
        for kind in ("full", "causal")
    )
    assert full - causal == 12 * 2 * 1024 * 768


def test_time_mfu_and_cost_of_a_token_budget():
    given = {"batch": 1024, "sequence": 4096, "gpus": 64, "peak_flops_per_s": 989e12}
    estimate = estimate_flops(
        shape("llama-2-70b"),
        **given,
        mfu=0.4,
        tokens=2e12,
        usd_per_gpu_hour=2.0,
    )
    assert estimate["MFU"] == pytest.approx(0.4)
    steps = 2e12 / (1024 * 4096)
    assert estimate["training"] == pytest.approx(steps * estimate["step time"] / 86400)
    assert estimate["cost"] == pytest.approx(estimate["GPU-hours"] * 2)
    again = estimate_flops(shape("llama-2-70b"), **given, seconds=estimate["step time"])
    assert again["MFU"] == pytest.approx(0.4)
    assert cost_usd(gpus=2, hours=3, usd_per_gpu_hour=0.35) == pytest.approx(2.1)


def test_the_whole_peak_can_be_used_and_no_more():
    for gpus in range(1, 200):
        given = {"batch": 8, "sequence": 1024, "gpus": gpus, "peak_flops_per_s": 989e12}
        whole = estimate_flops(shape("gpt2"), **given, mfu=1.0)
        seconds = whole["step time"]
        again = estimate_flops(shape("gpt2"), **given, seconds=seconds)
        assert again["MFU"] == pytest.approx(1.0)
        with pytest.raises(EstimateError, match="would be 101% of the peak"):
            estimate_flops(shape("gpt2"), **given, seconds=seconds / 1.01)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"batch": 0}, "batch: got 0"),
        ({"sequence": -4}, "sequence: got -4"),
        ({"recompute": "some"}, "unknown recompute: got 'some'"),
        ({"attention": "half"}, "unknown attention: got 'half'"),
    ],
)
def test_a_step_that_cannot_be_is_named(change, message):
    given = {"batch": 1, "sequence": 8}
    with pytest.raises(EstimateError, match=message):
        step_flops(shape("gpt2"), **given | change)


@pytest.mark.parametrize("name", ["gemma-3-27b", "gpt-oss-120b", "llama-4-scout"])
@pytest.mark.parametrize("sequence", [64, 1024, 32768])
def test_a_local_layer_is_counted_by_its_window(name, sequence):
    model = shape(name)
    every = range(model.layers)
    whole = [(layer + 1) % model.global_every == 0 for layer in every]
    assert sum(whole) == model.layers - model.local_layers
    met = {
        False: min(sequence, model.window),
        True: sequence,
    }
    scores = sum(4 * met[each] * model.heads * model.head_dim for each in whole)
    plain = forward_flops_per_token(model._replace(window=0), sequence=sequence)
    scores -= model.layers * 4 * sequence * model.heads * model.head_dim
    assert forward_flops_per_token(model, sequence=sequence) == plain + scores
    causal = sum(
        min(token + 1, each)
        for each in map(met.get, whole)
        for token in range(sequence)
    )
    count = attention_flops_per_token(model, sequence=sequence, attention="causal")
    exact = 4 * model.heads * model.head_dim * causal / sequence / model.layers
    # Half a square leaves out half of its diagonal.
    assert count == pytest.approx(exact, rel=2 / min(sequence, model.window))


def test_what_is_counted_of_local_layers_is_said():
    one = estimate_flops(shape("gpt-oss-20b"), batch=1, sequence=4096)
    said = [item.convention for item in one.items if "attention" in item.convention]
    assert said and all(
        "of local layers a window of 128 tokens" in each for each in said
    )


def test_queries_made_at_once_are_made_again_with_keys_that_come_from_latents():
    # Megatron-LM core_v0.16.1, multi_latent_attention.py: linear_q_proj is called in
    # qkv_up_proj_and_rope_apply, which mla_up_proj runs again.
    v2 = shape("deepseek-v2")._replace(query_rank=0)
    again = module_flops(v2, frozenset({"mla_up_proj"}), sequence=4096, moe=False)
    assert again == 2 * (5120 * 128 * 192 + 512 * 128 * 256)
