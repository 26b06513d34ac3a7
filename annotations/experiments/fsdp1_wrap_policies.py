"""Units of two spellings of one FSDP1 policy, and which sees a frozen parameter."""

import functools
import json
import warnings

import torch
import torch.distributed as dist
from torch.distributed.fsdp import FullyShardedDataParallel as FSDP
from torch.distributed.fsdp import MixedPrecision, wrap

RANKS = 1

dist.init_process_group("gloo")


class Block(torch.nn.Sequential):
    """A frozen layer, a trained one, and a norm that mixed precision leaves alone."""


def show(name, policy, **options):
    layers = torch.nn.Linear(4, 4), torch.nn.Linear(4, 4), torch.nn.BatchNorm1d(4)
    layers[0].requires_grad_(False)
    options.update(use_orig_params=True, device_id=torch.device("cpu"))
    model = torch.nn.Sequential(Block(*layers))
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        model = FSDP(model, auto_wrap_policy=policy, **options)
    warned = any("requires_grad=True and False" in str(w.message) for w in caught)
    found = {"warns": warned, "units": len(FSDP.fsdp_modules(model))}
    print(name, "=", json.dumps(found))


classes = {Block}
function = functools.partial(
    wrap.transformer_auto_wrap_policy, transformer_layer_cls=classes
)
show("object", wrap.ModuleWrapPolicy(classes))
show("function", function)
show("mixed_precision", function, mixed_precision=MixedPrecision(torch.bfloat16))
