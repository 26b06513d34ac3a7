"""What a first pass inside no_sync does to a model with a static graph."""

import json

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel

RANKS = 2

dist.init_process_group("gloo")
x = torch.ones(1, 1)


def accumulate(*inside, **options):
    """Return what passes inside no_sync, or outside, raise, if one does."""
    model = DistributedDataParallel(torch.nn.Linear(1, 1, bias=False), **options)
    try:
        for within in inside:
            if within:
                with model.no_sync():
                    model(x).backward()
            else:
                model(x).backward()
    except RuntimeError as error:
        return str(error).split(" at ")[0]
    return ""


found = {
    "by_default": accumulate(True, False),
    "static_inside_first": accumulate(True, False, static_graph=True),
    "static_outside_first": accumulate(False, True, False, static_graph=True),
}
if dist.get_rank() == 0:
    print("\n".join(f"{name} = {json.dumps(text)}" for name, text in found.items()))
dist.destroy_process_group()
