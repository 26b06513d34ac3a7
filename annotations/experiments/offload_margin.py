"""Which groups of activations stay on the device once the first step is over."""

import json
from types import SimpleNamespace as Made

import torch
from megatron.core.pipeline_parallel import fine_grained_activation_offload as offload

RANKS = 1
UPSTREAMS = ["megatron"]

torch.cuda.Event = object
offload.print_offload_summary_table = lambda table: None


def chunk(layers):
    """Return a chunk of layers, with two groups of activations each."""
    made = offload.ChunkOffloadHandler.__new__(offload.ChunkOffloadHandler)
    made.offload_groups = []
    for layer in range(layers):
        for name in ("attn_norm", "moe_act"):
            group = offload.OffloadTensorGroup(name)
            group.label = f"{name} {layer}"
            made.offload_groups.append(group)
    return made


first, second = chunk(2), chunk(2)
manager = Made(
    _cached_chunks_forward=[first, second],
    _cached_chunks_backward=[second, first],
    _offload_margin=0,
)
offload.PipelineOffloadManager.post_warmup_callback(manager)
for name, each in (("first_forward", first), ("first_backward", second)):
    kept = [group.label for group in each.offload_groups if not group.offload]
    print(name, "=", json.dumps(kept))
