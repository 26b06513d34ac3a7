"""What a step sends, against the papers' volumes and the seeds' figures."""

import pytest

from readerkit.errors import EstimateError
from readerkit.estimate.compression import (
    cast_ratio,
    compressed_bytes,
    powersgd_ratio,
    top_k_ratio,
)
from readerkit.estimate.functions import FUNCTIONS
from readerkit.estimate.layout import Layout
from readerkit.estimate.overlap import (
    communication_overhead,
    communication_share,
    estimate_overlap,
)
from readerkit.estimate.step_traffic import traffic_of_step
from readerkit.estimate.traffic_estimate import estimate_step_traffic
from readerkit.estimate.volumes import (
    dp_volume_bytes,
    ep_volume_bytes,
    pp_volume_bytes,
    tp_volume_bytes,
)
from tests.readerkit.estimate.catalog import shape


@pytest.mark.parametrize(("stage", "times"), [(0, 1), (1, 1), (2, 1), (3, 1.5)])
def test_zero_volumes_are_1x_1x_and_1_5x_of_ddp(stage, times):
    # Rajbhandari et al., section 7: 2 psi, 2 psi, 3 psi elements for many ranks.
    sent = dp_volume_bytes(params=7.5e9, world_size=64, stage=stage)
    assert sent == pytest.approx(times * 2 * 7.5e9 * 2 * 63 / 64)


def test_accumulation_saves_traffic_only_where_sums_wait():
    def sent(stage, **more):
        return dp_volume_bytes(params=64, world_size=4, stage=stage, **more)

    assert sent(0, microbatches=8) == sent(0)
    assert sent(0, microbatches=8, no_sync=False) == 8 * sent(0)
    assert sent(1, microbatches=8) == sent(1)
    assert sent(2, microbatches=8) == (8 * 128 + 128) * 3 / 4
    assert sent(3, microbatches=8) == 8 * sent(3)


def test_fp32_gradients_cost_twice_what_bf16_weights_do():
    sent = dp_volume_bytes(params=64, world_size=4, stage=1, gradient_bytes=4)
    assert sent == (64 * 4 + 64 * 2) * 3 / 4


LAYER = {"layers": 1, "sequence": 2048, "micro_batch": 1, "hidden": 12288}
SBH = 2048 * 12288 * 2


@pytest.mark.parametrize(
    ("sequence_parallel", "recompute", "times"),
    [
        (False, "none", 8),  # four all-reduces, each twice (t - 1)/t
        (False, "full", 12),
        (True, "none", 10),  # 4 + 4, and both inputs gathered again
        (True, "full", 14),
    ],
)
def test_tensor_parallel_volume_of_a_layer(sequence_parallel, recompute, times):
    sent = tp_volume_bytes(
        **LAYER,
        tensor_parallel=8,
        sequence_parallel=sequence_parallel,
        recompute=recompute,
    )
    assert sent == times * SBH * 7 / 8


def test_pipeline_and_expert_volumes():
    step = {"sequence": 2048, "micro_batch": 1, "hidden": 12288, "microbatches": 16}
    assert pp_volume_bytes(**step) == 2 * 16 * SBH
    assert pp_volume_bytes(**step, virtual_stages=3, shards=8) == 2 * 16 * 3 * SBH / 8
    sent = ep_volume_bytes(
        moe_layers=32,
        sequence=2048,
        micro_batch=1,
        hidden=12288,
        experts_per_token=2,
        expert_parallel=8,
    )
    assert sent == 4 * 32 * 2 * SBH * 7 / 8


def test_a_whole_step_is_its_axes():
    layout = Layout.parse(
        {"dp": 4, "tp": 4, "pp": 4, "microbatches": 32, "recompute": "none"}
    )
    estimate = estimate_step_traffic(shape("llama-2-70b"), layout)
    tokens = 4096 * 8192 * 2
    layers = tp_volume_bytes(
        layers=20,
        sequence=4096,
        micro_batch=1,
        hidden=8192,
        tensor_parallel=4,
        microbatches=32,
        sequence_parallel=True,
    )
    ends = 32 * 2 * tokens * 3 / 4  # the embedding; the output is on the last
    assert estimate["tp in all"] == layers + ends
    assert estimate["pp in all"] == 32 * tokens / 4  # on, and nothing back
    held = 4344053760  # the first rank's parameters
    assert estimate["dp in all"] == held * (4 + 2) * 3 / 4


def test_one_rank_sends_nothing():
    assert estimate_step_traffic(shape("gpt2"), Layout.parse({})).items == ()


def test_compression_is_relative_to_a_named_baseline():
    assert cast_ratio(bits=16) == 2
    assert cast_ratio(bits=8) == 4
    assert cast_ratio(bits=16, baseline="bf16") == 1
    assert cast_ratio(bits=8, baseline="bf16") == 2
    assert top_k_ratio(kept_fraction=0.01) == 50
    assert top_k_ratio(kept_fraction=0.01, baseline="bf16") == pytest.approx(100 / 3)


@pytest.mark.parametrize(
    ("rows", "columns", "rank", "ratio"),
    [(4096, 4096, 1, 2048), (4096, 4096, 64, 32), (1024, 4096, 4, 204.8)],
)
def test_powersgd_ratio(rows, columns, rank, ratio):
    assert powersgd_ratio(rows=rows, columns=columns, rank=rank) == ratio


def test_messages_that_cannot_be_summed_grow_with_the_ranks():
    def sent(method, ranks):
        return compressed_bytes(elements=1024, ranks=ranks, method=method)

    plain = 2 * 7 / 8 * 4096
    assert sent("fp16", 8) == plain / 2
    assert sent("int8", 8) == 7 * 1024 == plain  # four times smaller, and no gain
    assert sent("int8", 64) > 4 * plain


def test_seed_5_6_s_beside_10_s_is_two_numbers():
    times = {"compute_s": 10, "communication_s": 5.6}
    assert round(communication_share(**times) * 100, 1) == 35.9
    assert round(communication_overhead(**times) * 100, 1) == 56
    times["compute_s"] = 3
    assert round(communication_share(**times) * 100) == 65


def test_seed_overlap_of_200_ms_is_two_numbers_and_an_assumption():
    estimate = estimate_overlap(compute_s=1.0, communication_s=0.2, hidden_fraction=1)
    assert estimate["throughput with overlap"] == pytest.approx(1.2)
    assert round(estimate["time saved by overlap"] * 100, 1) == 16.7
    half = estimate_overlap(compute_s=1.0, communication_s=0.2, hidden_fraction=0.5)
    assert half["step"] == pytest.approx(1.1)


@pytest.mark.parametrize("share", [-0.1, 1.1, float("nan")])
def test_a_hidden_fraction_is_a_share(share):
    with pytest.raises(EstimateError, match="hidden_fraction: got"):
        communication_share(compute_s=1, communication_s=1, hidden_fraction=share)


def test_the_words_of_an_expression_return_plain_numbers():
    examples = {
        "zero_bytes_per_param": {"stage": 1, "world_size": 64},
        "ring_all_reduce_bytes": {"size_bytes": 10e9, "ranks": 8},
        "bubble_fraction": {"stages": 4, "microbatches": 16, "of": "ideal"},
        "gpt_parameters": {
            "layers": 12,
            "hidden": 768,
            "vocab": 50257,
            "positions": 1024,
        },
    }
    got = {name: FUNCTIONS[name](**given) for name, given in examples.items()}
    assert got == {
        "zero_bytes_per_param": 4 + 12 / 64,
        "ring_all_reduce_bytes": 17.5e9,
        "bubble_fraction": 3 / 16,
        "gpt_parameters": 124_439_808,
    }
    assert all(callable(FUNCTIONS[name]) for name in FUNCTIONS)


def test_fp32_activations_are_sent_at_four_bytes_an_element():
    layout = Layout.parse({"tp": 2, "pp": 2, "cp": 2, "sequence_parallel": False})
    half, full = (
        estimate_step_traffic(shape("llama-2-7b"), layout, convention=name)
        for name in ("mixed-16", "fp32-16")
    )
    for axis in ("pp in all", "cp in all"):
        assert full[axis] == 2 * half[axis]


def test_no_more_communication_hides_than_there_is_compute():
    times = {"compute_s": 1.0, "communication_s": 5.0}
    estimate = estimate_overlap(**times, hidden_fraction=0.9)
    assert estimate["step"] == 5.0
    assert estimate["throughput with overlap"] == pytest.approx(6 / 5)
    assert estimate["share of total"] == pytest.approx(4 / 5)
    assert "cannot hide behind 1.00 s of compute" in estimate.notes[0]
    assert estimate.items[1].convention == "20.0% of communication hidden"
    assert estimate_overlap(**times, hidden_fraction=0.2).notes == ()


@pytest.mark.parametrize(
    ("stage", "mixed_18", "paper"), [(0, 1, 1), (1, 0.75, 1), (2, 0.75, 1), (3, 1, 1.5)]
)
def test_multiples_of_ddp_are_said_by_both_widths(stage, mixed_18, paper):
    layout = Layout.parse({"dp": 8, "zero": stage})
    estimate = estimate_step_traffic(shape("gpt2"), layout)
    assert estimate["dp, times DDP"] == mixed_18
    assert estimate["dp, times DDP, one width"] == paper
    assert "not the paper's 1x, 1x and 1.5x" in estimate.notes[-1]
    same = estimate_step_traffic(shape("gpt2"), layout, convention="mixed-16")
    assert same["dp, times DDP"] == paper
    assert same.notes == ()


def test_the_first_rank_of_chunks_sends_all_but_one_kind_of_message():
    layout = {"pp": 4, "virtual_stages": 2, "schedule": "interleaved"}
    layout = Layout.parse(layout | {"microbatches": 8})
    sent = estimate_step_traffic(shape("llama-2-7b"), layout)["pp in all"]
    # Two chunks' outputs on, and the second chunk's gradient back to the last rank.
    assert sent == 8 * 3 * 2 * 4096 * 4096


@pytest.mark.parametrize(("recompute", "passes"), [("none", 2), ("full", 3)])
def test_heads_are_gathered_where_ranks_outnumber_those_of_keys(recompute, passes):
    # Megatron-LM core_v0.16.1, attention.py: mixed_qkv is gathered over tp, and its
    # gradient scattered; a rank then has whole heads of keys.
    layout = Layout.parse({"tp": 16, "dp": 1, "microbatches": 3})
    layout = layout._replace(recompute=recompute)
    found = {t.name: t for t in traffic_of_step(shape("llama-2-70b"), layout)}
    names = ("tp: all-gather, heads", "tp: reduce-scatter, heads")
    sent = sum(found[name].sent_bytes for name in names)
    assert sent == passes * 3 * 80 * 2 * 4096 * (64 + 2 * 8) * 128 * 15 / 16
    eight = traffic_of_step(shape("llama-2-70b"), layout._replace(tp=8))
    assert not found.keys() & set(names) & {each.name for each in eight}


CP = {"cp": 8, "sequence": 131072, "microbatches": 2, "flash": True}


@pytest.mark.parametrize(
    ("kind", "each_layer"),
    [
        # zhuzilin/ring-flash-attention: n - 1 hops of keys and values forward and
        # backward, n of their gradients: 3 n - 2 blocks.
        ("ring", 22 * 2 * 2 * 16384 * 1024),
        # Dubey et al. 2407.21783, section 3.3.2: all gathered, gradients scattered.
        ("all-gather", 21 * 2 * 2 * 16384 * 1024),
        # Jacobs et al. 2309.14509, section 3.2: queries, keys, values and output,
        # forward and backward; 7/8 of them go to other ranks.
        ("ulysses", 2 * 2 * 16384 * (2 * 8192 + 2 * 1024) * 7 // 8),
    ],
)
def test_context_parallel_sends_what_its_kind_does(kind, each_layer):
    layout = Layout.parse(CP | {"cp_kind": kind, "zero": 0})
    found = estimate_step_traffic(shape("llama-2-70b"), layout)
    assert found["cp in all"] == 80 * 2 * each_layer


def test_ulysses_needs_heads_for_all_its_ranks():
    layout = Layout.parse({"cp": 16, "sequence": 131072, "cp_kind": "ulysses"})
    with pytest.raises(EstimateError, match="16 × tp 1, expected a divisor of 8"):
        estimate_step_traffic(shape("llama-2-70b"), layout)


@pytest.mark.parametrize(
    ("schedule", "ends", "between"),
    [("zb-h2", 1, 2), ("zb-v", 2, 4), ("dualpipe", 1, 2)],
)
def test_messages_of_a_schedule(schedule, ends, between):
    """ZB-V sends twice as much as 1F1B; an end of the V passes on to itself."""
    llama = shape("llama-2-70b")
    layout = Layout.parse({"pp": 4, "microbatches": 16, "schedule": schedule})
    for rank, each in enumerate((ends, between, between, ends)):
        messages = [
            traffic.calls
            for traffic in traffic_of_step(llama, layout, rank=rank)
            if traffic.operation == "send-recv"
        ]
        assert messages == [16 * each]


def test_both_copies_of_a_dualpipe_stage_sum_their_gradients():
    llama = shape("llama-2-70b")
    cut = {"pp": 4, "microbatches": 16, "dp": 1, "zero": 0}
    one, two = (Layout.parse(cut | {"schedule": name}) for name in ("1f1b", "dualpipe"))
    assert not [t for t in traffic_of_step(llama, one) if t.axis == "dp"]
    [sums] = [t for t in traffic_of_step(llama, two) if t.axis == "dp"]
    assert (sums.operation, sums.ranks) == ("all-reduce", 2)


@pytest.mark.parametrize(
    ("kind", "each_layer"),
    [
        # A key has head_dim + rope_dim = 192 numbers, a value 128, of 128 heads each.
        ("ring", 10 * 2 * 1024 * 128 * (192 + 128)),
        ("ulysses", 2 * 2 * 1024 * 128 * (2 * 192 + 2 * 128) * 3 // 4),
    ],
)
def test_context_parallel_sends_whole_keys_that_come_from_latents(kind, each_layer):
    layout = Layout.parse({"cp": 4, "cp_kind": kind, "zero": 0, "flash": True})
    found = estimate_step_traffic(shape("deepseek-v2"), layout)
    assert found["cp in all"] == 60 * each_layer


@pytest.mark.parametrize("sequence_parallel", [True, False])
def test_tensor_parallel_ranks_gather_latents_not_what_these_are_made_of(
    sequence_parallel,
):
    # Megatron-LM core_v0.16.1, multi_latent_attention.py: the ways down are whole on
    # each rank; the ways up, of 1536 and 512 numbers, gather their input.
    cut = {"tp": 4, "dp": 1, "sequence_parallel": sequence_parallel}
    layout = Layout.parse(cut | {"recompute": "none"})
    found = traffic_of_step(shape("deepseek-v3"), layout)
    sent = sum(t.sent_bytes for t in found if t.of in ("attention", "latents", "key"))
    latents, key, output = 1536 + 512, 64, 7168
    each = 2 * output + 2 * latents
    if sequence_parallel:
        each = 2 * output + 3 * latents + 2 * key
    assert sent == 61 * 2 * 4096 * each * 3 / 4


def test_learned_positions_are_added_to_sums_of_whole_sequences():
    # Megatron-LM core_v0.16.1, language_model_embedding.py: reduce_scatter_embeddings
    # is of a model without a position table.
    def of_embedding(name):
        found = traffic_of_step(shape(name), Layout.parse({"tp": 4, "sequence": 1024}))
        return [each.operation for each in found if each.of == "embedding"]

    assert of_embedding("gpt2") == ["all-reduce"]
    assert of_embedding("llama-2-7b") == ["reduce-scatter"]


def test_a_step_waits_for_the_experts_that_its_first_rank_has_not():
    cut = {"tp": 8, "pp": 16, "dp": 16, "ep": 8, "first_layers": 3, "last_layers": 2}
    v3, layout = shape("deepseek-v3"), Layout.parse(cut)
    dispatched = {
        rank: sum(t.calls for t in traffic_of_step(v3, layout, rank=rank) if t.of == "")
        for rank in (0, 1, 15, None)
    }
    assert dispatched[None] == dispatched[1] > dispatched[15]
    experts = [
        {t.of for t in traffic_of_step(v3, layout, rank=rank) if t.axis == "dp"}
        for rank in (0, 1, None)
    ]
    assert experts == [{""}, {"", "experts"}, {"", "experts"}]
    assert "ep" not in {t.axis for t in traffic_of_step(v3, layout, rank=0)}
