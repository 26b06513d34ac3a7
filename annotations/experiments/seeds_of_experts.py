"""The seeds of the experts' streams, by pipeline stage and expert-parallel rank."""

import ast
import json
import pathlib
from unittest.mock import MagicMock, patch

import megatron
from megatron.core.tensor_parallel import random

RANKS = 1
UPSTREAMS = ["megatron", "megatron-training"]

files = (pathlib.Path(path, "training/initialize.py") for path in megatron.__path__)
text = next(file for file in files if file.is_file()).read_text()
made = {node.name: node for node in ast.parse(text).body if hasattr(node, "name")}
source = ast.unparse(made["_set_random_seed"])


def seed(stage, rank):
    """Return what the trainer seeds the experts' stream with, given a seed of 1234."""
    scope = {name: MagicMock() for name in ("random", "np", "torch", "tensor_parallel")}
    scope["torch"].cuda.device_count.return_value = 1
    scope["mpu"] = MagicMock()
    scope["mpu"].get_pipeline_model_parallel_rank.return_value = stage
    exec(source, scope)
    scope["_set_random_seed"](1234)
    of_stage = scope["tensor_parallel"].model_parallel_cuda_manual_seed.call_args[0][0]
    with patch.object(random.CudaRNGStatesTracker, "add") as added:
        random.model_parallel_cuda_manual_seed(
            of_stage, tp_rank=0, ep_rank=rank, etp_rank=0
        )
    return dict(call.args for call in added.call_args_list)["expert-parallel-rng"]


seeds = [[seed(stage, rank) for rank in range(2)] for stage in range(2)]
print(f"of_stage_and_rank = {json.dumps(seeds)}")
