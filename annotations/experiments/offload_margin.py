"""Which groups of activations stay on the device once the first step is over."""

import json
from types import SimpleNamespace as Made

import torch
from megatron.core.pipeline_parallel import fine_grained_activation_offload as offload

RANKS = 1
UPSTREAMS = ["megatron"]

torch.cuda.Event = object
offload.print_offload_summary_table = lambda table: None


def chunk(*kinds):
    """Return a chunk of two layers, with a group of activations of each kind."""
    made = offload.ChunkOffloadHandler.__new__(offload.ChunkOffloadHandler)
    groups = [(kind, layer) for layer in range(2) for kind in kinds]
    made.offload_groups = [offload.OffloadTensorGroup(kind) for kind, _ in groups]
    for group, (kind, layer) in zip(made.offload_groups, groups, strict=True):
        group.label = f"{kind} {layer}"
    return made


def kept(*chunks):
    """Return what stays of each chunk, if backward takes the last one first."""
    forward, backward = list(chunks), list(chunks)[::-1]
    manager = Made(_cached_chunks_forward=forward, _offload_margin=0)
    manager._cached_chunks_backward = backward
    offload.PipelineOffloadManager.post_warmup_callback(manager)
    return [[g.label for g in c.offload_groups if not g.offload] for c in chunks]


both = ("attn_norm", "moe_act")
first_forward, first_backward = kept(chunk(*both), chunk(*both))
print("first_forward =", json.dumps(first_forward))
print("first_backward =", json.dumps(first_backward))
print("of_other_kinds =", json.dumps(kept(chunk(both[0]), chunk(both[1]))))
