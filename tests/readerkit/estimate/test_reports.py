"""Figures of other tools: those that their own code gives, and what ours differs by."""

from __future__ import annotations

import ast
import sys
from types import ModuleType, SimpleNamespace

import pytest

from readerkit.errors import EstimateError
from readerkit.estimate.layout import Layout
from readerkit.estimate.memory import most_loaded, rank_memory
from readerkit.estimate.report_megatron import estimate_megatron_report
from readerkit.estimate.report_others import (
    Nodes,
    estimate_cookbook,
    estimate_deepspeed,
)
from readerkit.estimate.states import PRECISIONS
from tests.content.test_annotations import at_hand
from tests.readerkit.estimate.catalog import shape

pytestmark = pytest.mark.sampled

KEPT = PRECISIONS["mixed-18"]
LAYOUTS = [
    ("gpt3-175b", {"tp": 8, "pp": 8, "dp": 2, "microbatches": 16, "sequence": 2048}),
    ("gpt3-175b", {"tp": 8, "pp": 8, "microbatches": 4, "zero": 0, "sequence": 2048}),
    ("megatron-530b", {"tp": 8, "pp": 35, "microbatches": 64, "sequence": 2048}),
    ("llama-2-7b", {"tp": 2, "dp": 4, "cp": 2}),
    ("llama-2-7b", {"tp": 2, "recompute": "core_attn,mlp"}),
    ("llama-2-7b", {"dp": 4, "recompute": "none", "zero": 0, "micro_batch": 2}),
    ("llama-3-70b", {"tp": 4, "pp": 4, "dp": 2, "microbatches": 8}),
    ("mixtral-8x7b", {"dp": 8, "ep": 8, "tp": 2, "pp": 2, "recompute": "full"}),
    ("deepseek-v3", {"dp": 8, "tp": 2, "pp": 4, "ep": 8, "last_layers": 13}),
    ("qwen3-235b-a22b", {"dp": 4, "tp": 4, "pp": 2, "microbatches": 8}),
    ("llama-2-70b", {"tp": 4, "pp": 4, "virtual_stages": 5, "microbatches": 8,
                     "schedule": "interleaved"}),
]  # fmt: skip


def megatron_args(model, layout):
    """Return what Megatron-LM's arguments are for a model and a layout."""
    mla = bool(model.kv_rank)
    grouped = not mla and model.kv_heads != model.heads
    pattern = [int(model.has_experts(layer)) for layer in range(model.layers)]
    v, again = layout.virtual_stages, layout.recompute
    return SimpleNamespace(
        kv_channels=model.head_dim,
        num_attention_heads=model.heads,
        hidden_size=model.hidden,
        group_query_attention=grouped,
        num_query_groups=model.kv_heads if grouped else None,
        num_experts=model.experts or None,
        swiglu=model.gated_mlp,
        moe_shared_expert_intermediate_size=model.shared_ffn or None,
        moe_layer_freq=pattern,
        moe_ffn_hidden_size=model.expert_ffn,
        num_layers=model.layers,
        mtp_num_layers=None,
        normalization="RMSNorm" if model.norm == "rmsnorm" else "LayerNorm",
        multi_latent_attention=mla,
        q_lora_rank=model.query_rank or None,
        kv_lora_rank=model.kv_rank,
        qk_head_dim=model.head_dim,
        qk_pos_emb_head_dim=model.rope_dim,
        v_head_dim=model.value_dim,
        ffn_hidden_size=model.ffn,
        padded_vocab_size=model.padded_vocab(layout.tp),
        untie_embeddings_and_output_weights=not model.tied_embeddings,
        pipeline_model_parallel_size=layout.pp,
        tensor_model_parallel_size=layout.tp,
        virtual_pipeline_model_parallel_size=v if v > 1 else None,
        data_parallel_size=layout.dp,
        use_distributed_optimizer=layout.zero > 0,
        seq_length=layout.sequence,
        micro_batch_size=layout.micro_batch,
        sequence_parallel=layout.shards_sequence,
        recompute_granularity="selective" if "," in again else again,
        is_hybrid_model=False,
    )


def megatron_report(monkeypatch):
    """Return Megatron-LM's function, run from the pinned source."""
    path = "megatron/training/theoretical_memory_usage.py"
    source = at_hand("megatron-training").read(path)
    utils = ModuleType("megatron_report.utils")
    utils.print_rank_0 = print
    for name, module in {
        "megatron_report": ModuleType("megatron_report"),
        "megatron_report.utils": utils,
    }.items():
        monkeypatch.setitem(sys.modules, name, module)
    names = {"__name__": "megatron_report.memory", "__package__": "megatron_report"}
    exec(compile(source, path, "exec"), names)
    return names["report_theoretical_memory"]


@pytest.mark.parametrize(("name", "sizes"), LAYOUTS)
def test_megatron_reports_the_same_to_its_last_digit(name, sizes, monkeypatch):
    model, layout = shape(name), Layout.parse(sizes)
    report = megatron_report(monkeypatch)
    theirs = report(megatron_args(model, layout), num_microbatches=layout.microbatches)
    estimate = estimate_megatron_report(model, layout)
    names = ("weight and optimizer", "activation", "theoretical memory")
    for name_, mebibytes in zip(names, theirs, strict=True):
        assert estimate[name_] / 2**20 == pytest.approx(mebibytes, rel=1e-12)
        assert f"{estimate[name_] / 2**20:.2f}" == f"{mebibytes:.2f}"


@pytest.mark.parametrize(("name", "sizes"), LAYOUTS)
def test_the_differences_lead_from_their_figure_to_ours(name, sizes):
    model, layout = shape(name), Layout.parse(sizes)
    first, fullest = (
        rank_memory(model, layout, KEPT, 0),
        most_loaded(model, layout, KEPT),
    )
    report = estimate_megatron_report(model, layout)
    assert report["ours"] == pytest.approx(first.total, rel=1e-12)
    assert estimate_cookbook(model, layout)["ours"] == pytest.approx(fullest.total)


def test_the_cookbook_by_hand():
    # Its first printed example, Pythia 6.9B: tp 2 of 128 GPUs, batch 8, ZeRO 1,
    # checkpointed and partitioned activations.
    layout = Layout.parse(
        {"dp": 64, "tp": 2, "micro_batch": 8, "recompute": "full", "sequence": 2048}
    )
    wide, layers, vocab = 4096, 32, 50432
    params = 2 * vocab * wide + wide * 2048 + 8 * wide * layers + 2 * wide
    params += 2 * 2 * layers * wide**2 + 2 * layers * 4 * wide**2
    estimate = estimate_cookbook(shape("pythia-6.9b"), layout)
    assert estimate["Number of Parameters"] == params
    assert estimate["Per-GPU weights"] == params * 2 / 2
    assert estimate["Per-GPU gradients"] == params * 4
    assert estimate["Per-GPU optimizer"] == params * 12 / 128
    assert estimate["Per-GPU communication"] == 500_000_000 * 2
    assert estimate["Per-GPU activations"] == 2048 * 8 * 4096 * 32 * 34 / 2


def deepspeed_estimator(stage):
    """Return DeepSpeed's function, run from the pinned source."""
    file = "stage_1_and_2.py" if stage == 2 else "stage3.py"
    source = at_hand("deepspeed").read(f"deepspeed/runtime/zero/{file}")
    name = f"estimate_zero{stage}_model_states_mem_needs"
    (found,) = (
        node
        for node in ast.parse(source).body
        if isinstance(node, ast.FunctionDef) and node.name == name
    )
    names = {}
    exec(compile(ast.Module([found], []), file, "exec"), names)
    return names[name]


@pytest.mark.parametrize("params", [2_851_000_000, 6_738_415_616])
@pytest.mark.parametrize(("gpus", "per_node"), [(1, 1), (16, 8), (64, 8), (4, 8)])
@pytest.mark.parametrize(
    ("stage", "offload"),
    [
        *((2, "none"), (2, "optimizer-cpu")),
        *((3, "none"), (3, "optimizer-cpu"), (3, "states-cpu")),
    ],
)
def test_deepspeed_estimates_the_same(params, gpus, per_node, stage, offload):
    largest, per_node = 32_000_000, min(gpus, per_node)
    asked = {"num_gpus_per_node": per_node, "num_nodes": gpus // per_node}
    asked["cpu_offload"] = offload != "none"
    if stage == 3:
        asked |= {"largest_layer_params": largest}
        asked["cpu_offload_params"] = offload == "states-cpu"
    cpu, gpu, *_ = deepspeed_estimator(stage)(params, **asked)
    nodes = Nodes(gpus=gpus, gpus_per_node=per_node, largest_layer=largest)
    ours = estimate_deepspeed(params, nodes, stage=stage, offload=offload)
    assert (ours["per GPU"], ours["per CPU"]) == (gpu, cpu)


@pytest.mark.parametrize(
    ("more", "message"),
    [
        ({"stage": 1}, "zero: got 1, expected 2 or 3"),
        ({"stage": 3}, "largest_layer: got none"),
        ({"stage": 2, "per_node": 3}, "gpus_per_node: got 3, expected a divisor of 16"),
    ],
)
def test_what_deepspeed_cannot_be_asked_is_named(more, message):
    nodes = Nodes(gpus=16, gpus_per_node=more.get("per_node", 8))
    with pytest.raises(EstimateError, match=message):
        estimate_deepspeed(10**9, nodes, stage=more["stage"])
