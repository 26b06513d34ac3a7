"""Activations against the paper's table, and the memory of whole layouts."""

import pytest

from readerkit.errors import EstimateError
from readerkit.estimate.activations import (
    LayerKind,
    activation_bytes_per_layer,
    kv_cache_bytes,
    layer_activations,
)
from readerkit.estimate.bubble import Pipeline
from readerkit.estimate.fit import misfits
from readerkit.estimate.inference import estimate_inference
from readerkit.estimate.layout import Layout, stage_layers
from readerkit.estimate.memory import most_loaded, rank_memory, rank_weights
from readerkit.estimate.memory_estimates import estimate_training
from readerkit.estimate.memory_timeline import first_failure, timeline
from readerkit.estimate.parameters import parameter_count
from readerkit.estimate.rank_layers import layers_of_rank
from readerkit.estimate.shape import Shape
from readerkit.estimate.states import PRECISIONS, WEIGHTS
from readerkit.wording.numbers import format_bytes
from tests.readerkit.estimate.catalog import MODELS, shape

# Korthikanti et al. 2205.05198, table 2, over s b h, with r = a s / h.
TABLE_2 = {
    ("none", 1, False): lambda r, t: 34 + 5 * r,
    ("none", 8, False): lambda r, t: 10 + 24 / t + 5 * r / t,
    ("none", 8, True): lambda r, t: 34 / t + 5 * r / t,
    ("selective", 8, False): lambda r, t: 10 + 24 / t,
    ("selective", 8, True): lambda r, t: 34 / t,
    ("full", 8, False): lambda r, t: 2,
}
GPTS = {"22b": (64, 6144, 4), "175b": (96, 12288, 1), "1t": (160, 25600, 1)}


@pytest.mark.parametrize("model", GPTS)
@pytest.mark.parametrize("row", TABLE_2, ids=str)
def test_korthikanti_table_2(row, model):
    recompute, tp, sp = row
    heads, hidden, micro_batch = GPTS[model]
    kept = activation_bytes_per_layer(
        sequence=2048,
        micro_batch=micro_batch,
        hidden=hidden,
        heads=heads,
        tensor_parallel=tp,
        sequence_parallel=sp,
        recompute=recompute,
    )
    sbh = 2048 * micro_batch * hidden
    assert kept == pytest.approx(sbh * TABLE_2[row](heads * 2048 / hidden, tp))
    tensors = layer_activations(
        shape(f"megatron-{model}"),
        LayerKind(2048, micro_batch, tp, sp, recompute),
    )
    assert sum(tensors.values()) == kept


def test_attention_dominates_gpt3_as_the_paper_says():
    # Section 5: 5 a s / h is 80 for GPT-3 and 64 for MT-NLG, against 34.
    for name, ratio in (("175b", 80), ("530b", 64)):
        gpt = shape(f"megatron-{name}")
        assert 5 * gpt.heads * 2048 / gpt.hidden == ratio
    # 70% and 65% of activations are saved by selective recompute.
    assert round(80 / 114 * 100) == 70
    assert round(64 / 98 * 100) == 65


def test_scores_that_flash_attention_never_writes():
    kind = LayerKind(8192, tensor_parallel=8)
    plain = layer_activations(shape("llama-3-70b"), kind)
    flash = layer_activations(shape("llama-3-70b"), kind._replace(flash=True))
    assert plain["attention scores"] == 2 * 64 * 8192 * 8192 // 8
    assert "attention scores" not in flash
    assert flash["softmax statistics"] == 4 * 64 * 8192 // 8
    assert "dropout masks" not in flash


@pytest.mark.parametrize(
    ("v", "expected"), [(1, 96), (3, 96 * (1 + 7 / 24)), (2, 96 * (1 + 7 / 16))]
)
def test_first_stage_holds_the_layers_of_the_whole_model(v, expected):
    # Korthikanti et al., section 4.2.3: L layers, and L (1 + (p-1)/(p m)) interleaved.
    pipeline = Pipeline("interleaved" if v > 1 else "1f1b", 8, 64, v)
    chunks = pipeline.chunks_in_flight()
    assert chunks * 96 / (8 * v) == pytest.approx(expected)


@pytest.mark.parametrize("name", MODELS)
def test_ranks_together_hold_the_model(name):
    model = shape(name)
    pp = 2 if model.layers % 2 == 0 else 3
    tied = model.vocab * model.hidden if model.tied_embeddings else 0
    layout = Layout.parse({"pp": pp, "recompute": "none"})
    held = sum(sum(rank_weights(model, layout, rank)) for rank in range(pp))
    assert held == parameter_count(model) + tied


def test_tensor_parallel_ranks_hold_norms_and_row_biases_whole():
    gpt = shape("gpt2")
    layout = Layout.parse({"tp": 4})
    gpt = gpt._replace(vocab_multiple=128)
    dense, expert = rank_weights(gpt, layout, 0)
    whole = 12 * (2 * 768 + 4 * 768) + 2 * 768 + 1024 * 768
    split = parameter_count(gpt, vocab=50688) - whole
    assert (dense, expert) == (split / 4 + whole, 0)


def test_rows_of_key_heads_are_cut_where_ranks_outnumber_them():
    # Megatron-LM core_v0.16.1, attention.py: linear_qkv has (a + 2 k) d rows over tp.
    llama = shape("llama-2-70b")
    eight, sixteen = (
        rank_weights(llama, Layout.parse({"tp": tp}), 0)[0] for tp in (8, 16)
    )
    assert sixteen - eight / 2 == (161 * 8192) / 2  # norms alone are whole on each


def test_experts_are_those_of_chunks_of_which_two_have_a_layer_fewer():
    # As Megatron builds it with account_for_embedding_in_pipeline_split and
    # account_for_loss_in_pipeline_split: layers 0-2 and 7-10, 3-6 and 11-13.
    sizes = {"layers": 14, "hidden": 8, "heads": 1, "vocab": 8, "moe_every": 2}
    mixed = Shape.parse(sizes | {"experts": 4, "experts_per_token": 2})
    chunks = {"pp": 2, "virtual_stages": 2, "microbatches": 2}
    layout = Layout.parse(chunks | {"schedule": "interleaved"})
    assert [layers_of_rank(mixed, layout, rank) for rank in (0, 1)] == [(4, 3), (3, 4)]


def test_experts_are_divided_over_their_own_ranks():
    mixtral = shape("mixtral-8x7b")
    layout = Layout.parse({"dp": 8, "ep": 8})
    dense, expert = rank_weights(mixtral, layout, 0)
    assert expert == 32 * 3 * 4096 * 14336
    assert dense + 8 * expert == parameter_count(mixtral)
    kept = PRECISIONS["mixed-18"]
    # One replica of each expert is left: its optimizer is not sharded at all.
    most = most_loaded(mixtral, layout, kept)
    assert most.optimizer == pytest.approx(12 * (dense / 8 + expert))


@pytest.mark.parametrize(
    ("schedule", "ranks", "in_flight", "stages"),
    [
        ("zb-h1", 4, 4, 1),
        ("zb-h2", 4, 7, 1),  # Qi et al. 2401.10241, section 2.2: 2 p - 1
        ("zb-v", 4, 4, 1),  # section 6: as 1F1B, on every rank
        ("dualpipe", 4, 5, 2),  # DeepSeek-V3 2412.19437, table 2: PP + 1, parameters 2x
    ],
)
def test_a_schedule_holds_what_its_paper_says(schedule, ranks, in_flight, stages):
    llama, kept = shape("llama-2-70b"), PRECISIONS["mixed-18"]
    cut = {"pp": ranks, "tp": 8, "microbatches": 16, "recompute": "none", "flash": True}
    plain, layout = (
        Layout.parse(cut | {"schedule": name}) for name in ("1f1b", schedule)
    )
    for rank in range(ranks):
        one = rank_memory(llama, plain, kept, 0)
        held = rank_memory(llama, layout, kept, rank)
        assert held.activations == one.activations / ranks * in_flight
        assert len({held.logits > 0, any(layout.ends(rank)[1:])}) == 1
    every = [sum(rank_weights(llama, layout, rank)) for rank in range(ranks)]
    once = [sum(rank_weights(llama, plain, rank)) for rank in range(ranks)]
    assert sum(every) == pytest.approx(stages * sum(once))
    assert held.optimizer == pytest.approx(12 * every[-1] / stages)


def test_experts_of_a_folded_pipeline_are_those_of_its_stages():
    moe = shape("deepseek-v3")._replace(layers=64)
    for schedule, layers in (("zb-v", [13, 16]), ("dualpipe", [29, 32])):
        cut = {"pp": 4, "microbatches": 8, "schedule": schedule}
        layout = Layout.parse(cut)
        held = [layers_of_rank(moe, layout, rank) for rank in range(4)]
        assert sum(dense for dense, _ in held) == 3 * layout.stages_of_rank
        assert [experts for _, experts in held[:2]] == layers


def test_llama_3_holds_one_layer_fewer_at_both_ends():
    # Dubey et al. 2407.21783, section 3.3.2: 126 layers, 16 pipeline ranks.
    assert stage_layers(126, 16) == [7, *[8] * 14, 7]
    # Megatron's first and last ranks may be given instead; 61 layers divide by nothing.
    assert stage_layers(61, 16, last=1) == [*[4] * 15, 1]
    assert stage_layers(61, 8, first=5) == [5, *[8] * 7]
    assert stage_layers(10, 3, 2, first=2, last=4) == [2, 4, 4]
    for wrong in ({"pp": 2, "first": 30, "last": 30}, {"pp": 4, "first": 2}):
        with pytest.raises(EstimateError, match="layers: got 61 with"):
            stage_layers(61, **wrong)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"tp": 3}, r"tp: got 3, expected a divisor of 64 \(heads\)"),
        ({"pp": 7}, "layers: got 80 for pp 7, expected a multiple of 7"),
        ({"cp": 3}, "cp: got 3, expected a divisor of the sequence 4096"),
        # As Megatron-LM's validate_args asks.
        ({"cp": 2, "sequence": 4098}, "sequence: got 4098, expected a multiple of 2 ×"),
        ({"ep": 2, "dp": 2}, "ep: got 2, expected 1"),
        ({"virtual_stages": 2, "pp": 2}, "virtual_stages: got 2, expected 1"),
        (
            {"virtual_stages": 2, "pp": 4, "schedule": "interleaved"},
            "microbatches: got 1, expected a multiple of pp 4",
        ),
        ({"tp": 3, "pp": 7}, "(?s)tp: got 3.*layers: got 80"),
    ],
)
def test_a_layout_that_the_model_cannot_be_cut_into_is_named(change, message):
    with pytest.raises(EstimateError, match=message):
        estimate_training(shape("llama-2-70b"), Layout.parse(change))


def test_heads_are_exchanged_over_any_blocks_of_a_sequence():
    cut = Layout(cp=2, sequence=4098, cp_kind="ulysses")
    assert misfits(shape("llama-2-70b"), cut) == []


@pytest.mark.parametrize(
    ("given", "gpus", "message"),
    [
        ({"dp": 0}, None, "dp: got 0, expected at least 1"),
        ({"tpp": 2}, None, "unknown size of a layout: got 'tpp'"),
        ({"zero": 4}, None, "unknown ZeRO stage"),
        ({"dp": 4, "tp": 8}, 64, r"4 × 8 × 1 × 1 = 32, expected 64 \(GPUs\)"),
        ({"dp": 4}, 0, "gpus: got 0, expected at least 1"),
    ],
)
def test_a_layout_that_makes_no_sense_is_named(given, gpus, message):
    with pytest.raises(EstimateError, match=message):
        Layout.parse(given, gpus=gpus)


def test_a_layout_that_fits_has_no_reasons():
    assert (
        misfits(shape("llama-2-70b"), Layout.parse({"tp": 8, "pp": 4, "dp": 2})) == []
    )


def test_training_is_the_sum_of_its_items():
    layout = Layout.parse({"dp": 4, "tp": 4, "pp": 4, "microbatches": 32})
    estimate = estimate_training(shape("llama-2-70b"), layout)
    summed = (
        "weights",
        "gradients",
        "optimizer",
        "activations",
        "one layer recomputed",
    )
    assert sum(estimate[name] for name in summed) == estimate["total"]
    assert estimate["weights"] == 2 * estimate["parameters on the GPU"]
    # By hand: 4096 tokens; norms and inputs, attention, feed-forward; over 4 ranks.
    by_hand = 4096 * (8 * 8192 // 4 + (2 * 8192 + 4 * 1024 + 2 * 8192) // 4)
    by_hand += 4096 * 6 * 28672 // 4
    assert estimate["activations"] == 4 * 20 * by_hand  # in flight × layers


def test_stage_3_gathers_two_layers_on_top_of_its_shards():
    llama = shape("llama-2-7b")
    estimate = estimate_training(
        llama, Layout.parse({"dp": 8, "zero": 3}), convention="mixed-16"
    )
    layer = 4 * 4096 * 4096 + 3 * 4096 * 11008 + 2 * 4096
    assert estimate["gathered units"] == layer * (2 * 2 + 2)
    assert estimate["weights"] == 2 * 6_738_415_616 / 8


def test_adam_fails_at_the_first_step_not_when_it_is_built():
    llama, kept = shape("llama-2-7b"), PRECISIONS["mixed-16"]
    most = most_loaded(llama, Layout.parse({"zero": 0, "sequence": 512}), kept)
    names = [moment.name for moment in timeline(most)]
    assert names[:3] == ["model on the GPU", "optimizer built", "first forward"]
    assert timeline(most)[-1].held_bytes == most.total
    assert "fails at 'first step' (optimizer moments)" in first_failure(most, 80e9)
    seventy = most_loaded(shape("llama-2-70b"), Layout.parse({"zero": 0}), kept)
    # 138 GB of weights: nothing after the load matters.
    assert "fails at 'model on the GPU'" in first_failure(seventy, 80e9)
    assert first_failure(most, 192e9).startswith("fits:")


def test_kv_cache_is_keys_and_values_of_grouped_heads():
    # Llama 2 70B, 8 of 64 heads: 320 KiB a token, against 2.5 MiB without groups.
    one = {"layers": 80, "head_dim": 128, "tokens": 1}
    assert kv_cache_bytes(**one, kv_heads=8) == 320 * 1024
    assert kv_cache_bytes(**one, kv_heads=64) == 2560 * 1024
    assert kv_cache_bytes(**one, kv_heads=8, tensor_parallel=8) == 40 * 1024
    assert kv_cache_bytes(**one, kv_heads=8, tensor_parallel=16) == 40 * 1024


def test_inference_is_weights_and_cache():
    estimate = estimate_inference(
        shape("llama-2-7b"), tokens=4096, batch=4, gpu_bytes=24e9
    )
    assert estimate["weights"] == 2 * 6_738_415_616
    assert estimate["KV cache"] == 4 * 4096 * 512 * 1024
    assert estimate["total"] == estimate["weights"] + estimate["KV cache"]
    room = (24e9 - estimate["weights"]) // (512 * 1024)
    assert estimate["tokens that fit beside the weights"] == room


@pytest.mark.parametrize(
    ("model", "batch", "layout"),
    [
        ("gemma-3-27b", 1, {}),
        ("gemma-3-27b", 3, {}),  # windows that are not full
        ("gpt-oss-20b", 7, {"dp": 2}),
        ("llama-4-scout", 2, {"pp": 4}),
        ("llama-2-7b", 4, {}),
    ],
)
def test_as_many_tokens_fit_as_are_said_to(model, batch, layout):
    cut = Layout.parse(layout)
    on_gpu = -(-batch // cut.dp)

    def held(tokens, gpu_bytes=80e9):
        return estimate_inference(
            shape(model), tokens=tokens, batch=batch, layout=cut, gpu_bytes=gpu_bytes
        )

    for room in (1e8, 1e9, 2e10):
        gpu_bytes = float(held(1)["weights"]) + room
        most = held(100_000, gpu_bytes)["tokens that fit beside the weights"] // on_gpu
        assert held(most, gpu_bytes)["left"] >= 0
        assert held(most + 1, gpu_bytes)["left"] < 0


def test_only_windows_are_kept_where_no_layer_is_global():
    # All of Mistral 7B's layers attend to 4096 tokens, of Gemma 2's every second one.
    estimate = estimate_inference(shape("mistral-7b"), tokens=131_072, gpu_bytes=80e9)
    assert estimate["KV cache"] == 4096 * 128 * 1024
    both = estimate_inference(shape("gemma-2-9b"), tokens=8192)
    assert both["KV cache"] == 21 * (8192 + 4096) * 2 * 8 * 256 * 2
    room = (80e9 - estimate["weights"]) // (128 * 1024)
    assert estimate["tokens that fit beside the weights"] == room


def test_fp32_activations_are_four_bytes_an_element():
    llama, layout = shape("llama-2-7b"), Layout.parse({"zero": 0, "recompute": "none"})
    half, full = (
        estimate_training(llama, layout, convention=name)
        for name in ("mixed-16", "fp32-16")
    )
    # No dropout masks in this model: every kept tensor of a layer doubles.
    assert full["activations"] == 2 * half["activations"]
    hidden, logits = 4096 * 4096, 4096 * 32000 * 4
    assert half["last norm and logits"] == 4 * hidden + logits
    assert full["last norm and logits"] == 8 * hidden + logits
    # Said the same where another convention is in force.
    assert f"fp32-16 {format_bytes(full['total'], 2)}" in half.notes[0]
    assert full.items[-3].convention.endswith("4 B an element")


def test_fp32_dropout_masks_stay_one_byte():
    half = layer_activations(shape("gpt2"), LayerKind(128))
    full = layer_activations(shape("gpt2"), LayerKind(128, element_bytes=4))
    assert full["dropout masks"] == half["dropout masks"]
    assert full["attention scores"] * 5 == half["attention scores"] * 9


# KB of a token: DeepSeek-V2 2405.04434, section 2.1.4 ((d_c + d_h^R) l, in 2 bytes);
# Zhao et al. 2505.09343, table 1.
CACHES = {
    "deepseek-v2": 69.12,
    "deepseek-v3": 70.272,
    "qwen2.5-72b": 327.68,
    "llama-3.1-405b": 516.096,
}


@pytest.mark.parametrize(("name", "kilobytes"), CACHES.items())
def test_a_token_in_the_cache_is_what_its_authors_say(name, kilobytes):
    one = estimate_inference(shape(name), tokens=1)
    assert one["KV cache per token"] == kilobytes * 1000
    cut = estimate_inference(shape(name), tokens=1, layout=Layout(tp=8))
    # No rank can leave a latent out.
    divided = 1 if shape(name).kv_rank else 8
    assert cut["KV cache per token"] * divided == one["KV cache per token"]


@pytest.mark.parametrize(
    ("name", "gibibytes"), [("gpt-oss-120b", 60.8), ("gpt-oss-20b", 12.8)]
)
def test_four_bit_experts_are_the_checkpoint_that_is_published(name, gibibytes):
    # gpt-oss 2508.10925, table 1; experts in MXFP4, 4.25 bits, the rest in bf16 (there
    # the experts' biases too: 0.05 GiB).
    four = WEIGHTS["mxfp4"][0]
    held = estimate_inference(shape(name), tokens=1, expert_bytes=four)["weights"]
    assert held / 2**30 == pytest.approx(gibibytes, abs=0.1)


def test_local_layers_keep_a_window():
    # Gemma 3 2503.19786, section 2: five local layers of 1024 for each global one.
    gemma = shape("gemma-3-27b")
    estimate = estimate_inference(gemma, tokens=131_072)
    assert estimate["KV cache"] == 2 * 2 * 16 * 128 * (10 * 131_072 + 52 * 1024)
