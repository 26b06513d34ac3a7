"""Which fields a stock bf16 run starts apart from the defaults of their class."""

import argparse
import dataclasses
import json
import sys
from types import ModuleType
from unittest.mock import MagicMock

import megatron
import torch
from megatron.core.transformer import TransformerConfig

UPSTREAMS = ["megatron", "megatron-training"]

trainer = ModuleType("megatron.training")  # its own imports need more than torch
trainer.__path__ = [f"{path}/training" for path in megatron.__path__]
utils = MagicMock(get_device_arch_version=lambda: 9)
utils.update_use_dist_ckpt = lambda args: setattr(args, "use_dist_ckpt", True)
sys.modules |= {"megatron.training": trainer, "megatron.training.utils": utils}
from megatron.training import arguments  # noqa: E402

given = {"num_layers": 2, "hidden_size": 64, "num_attention_heads": 4}
typed = given | {"micro_batch_size": 1, "seq_length": 32, "max_position_embeddings": 32}
line = [f"--{key.replace('_', '-')}={value}" for key, value in typed.items()]
parser = arguments.add_megatron_arguments(argparse.ArgumentParser())
args = parser.parse_args([*line, "--bf16"])
args.rank, args.world_size, args.hybrid_layer_pattern = 0, 1, None
arguments.validate_args(args)
theirs = arguments.core_transformer_config_from_args(args)
plain = TransformerConfig(**given, bf16=True, params_dtype=torch.bfloat16)
fields = [field.name for field in dataclasses.fields(plain)]


def value(config, name):  # a partial is equal to itself alone
    return getattr(found := getattr(config, name), "keywords", found)


apart = [n for n in fields if value(theirs, n) != value(plain, n)]
print("\nfields =", len(fields), "\napart =", json.dumps(apart))
