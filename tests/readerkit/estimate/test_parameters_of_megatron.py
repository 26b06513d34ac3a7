"""The parameters of a rank, beside those of the model that Megatron builds for it."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from mini_impls.compare.upstream_files import write_megatron
from readerkit.app.library import open_library
from readerkit.estimate.fit import misfits
from readerkit.estimate.layout import Layout
from readerkit.estimate.memory import rank_weights
from readerkit.estimate.shape import Shape
from tests.helpers import ROOT

pytestmark = pytest.mark.further

BIASES = ("qkv_bias", "attention_output_bias", "mlp_bias")
SMALL: dict[str, Any] = {
    **dict.fromkeys(BIASES, False),
    "layers": 8,
    "hidden": 64,
    "heads": 8,
    "kv_heads": 8,
    "vocab": 257,
    "ffn": 96,
    "norm": "rmsnorm",
    "gated_mlp": True,
}
GPT = {"gated_mlp": False, "norm": "layernorm", "positions": 32}
GPT |= dict.fromkeys(BIASES, True)
EXPERTS = {"experts": 4, "experts_per_token": 2, "expert_ffn": 32}
MIXED = {**EXPERTS, "shared_ffn": 64, "dense_layers": 1}
TWO = {"virtual_stages": 2, "schedule": "interleaved"}
CASES: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "one GPU": ({}, {}),
    "learned positions and biases": (GPT, {"tp": 2, "pp": 2}),
    "tied": ({"tied_embeddings": True}, {"tp": 2, "pp": 2}),
    "vocabulary padded": ({"vocab_multiple": 16}, {"tp": 4}),
    "norms of queries and keys": ({"qk_norm": True}, {"tp": 2}),
    "heads of their own width": ({"head_dim": 16}, {"tp": 2}),
    "key heads, one a rank": ({"kv_heads": 4}, {"tp": 4}),
    "fewer key heads than ranks": ({"kv_heads": 2}, {"tp": 8}),
    "one key head, with biases": ({**GPT, "kv_heads": 1}, {"tp": 4, "pp": 2}),
    "uneven ends": ({}, {"pp": 4, "first_layers": 1, "last_layers": 3}),
    "chunks": ({}, {"pp": 2, "microbatches": 2, **TWO}),
    "experts": (EXPERTS, {"dp": 4, "ep": 2}),
    "experts cut otherwise": (EXPERTS, {"dp": 2, "tp": 2, "ep": 2, "etp": 1}),
    "experts in every other layer": ({**EXPERTS, "moe_every": 2}, {"pp": 4, "tp": 2}),
    "dense layers first, shared experts": (MIXED, {"dp": 2, "pp": 2, "ep": 2}),
    "experts in chunks": ({**MIXED, "layers": 12}, {"pp": 3, "microbatches": 3, **TWO}),
    "experts in uneven chunks": (
        {**EXPERTS, "moe_every": 3, "layers": 14},
        {"pp": 4, "microbatches": 4, **TWO},
    ),
    "two stages of one layer fewer": ({"layers": 6}, {"pp": 4}),
    "context parallel": ({"kv_heads": 2}, {"cp": 2, "tp": 4}),
}


def test_each_rank_holds_what_megatron_builds_for_it(real_cache: Path, tmp_path: Path):
    write_megatron(open_library(ROOT), tmp_path)
    asked, expected = [], []
    for name, (more, cut) in CASES.items():
        shape, layout = SMALL | more, {"sequence": 64, **cut}
        one, made = Shape.parse(shape), Layout.parse(layout)
        assert not misfits(one, made), name
        for rank in range(made.pp):
            asked.append((shape, layout, rank))
            expected.append((name, rank, tuple(rank_weights(one, made, rank))))
    program = Path(__file__).with_name("megatron_parameters.py")
    done = subprocess.run(
        [sys.executable, str(program), str(tmp_path)],
        input=json.dumps(asked),
        env={"PYTHONPATH": str(ROOT), "PATH": "", "HOME": str(tmp_path)},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    found = [
        (name, rank, tuple(counts))
        for (name, rank, _), counts in zip(
            expected, json.loads(done.stdout.splitlines()[-1]), strict=True
        )
    ]
    assert found == expected
