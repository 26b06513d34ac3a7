"""Which keys each way of checking a load reports, of one missing and one unexpected."""

import json
import logging
import tempfile

import torch
from megatron.core.dist_checkpointing import ShardedTensor, validation
from megatron.core.dist_checkpointing.core import CheckpointingConfig

RANKS = 1
UPSTREAMS = ["megatron"]

logging.disable(logging.WARNING)
asked, saved = (
    {key: ShardedTensor.from_rank_offsets(key, torch.ones(1)) for key in keys}
    for keys in (("both", "asked_only"), ("both", "saved_only"))
)
seen = {"neither": [], "unexpected": [], "unexpected and missing": []}
for strict in validation.StrictHandling:
    every = validation.StrictHandling.requires_global_app_metadata(strict)
    everywhere = [list(asked.values())] if every else None
    checked = asked, strict, False, None, everywhere, saved
    try:
        _, gone, extra = validation.validate_integrity_and_strict_load(*checked)
    except validation.CheckpointingException as error:
        gone, extra = "saved_only" in str(error), "asked_only" in str(error)
    parts = [name for name, on in (("unexpected", extra), ("missing", gone)) if on]
    seen[" and ".join(parts) or "neither"].append(strict.value)
print("seen =", json.dumps(seen))
saved_as = CheckpointingConfig("torch_dist", 1, "torch", 1)
validation.maybe_load_config = lambda path: saved_as
with tempfile.TemporaryDirectory() as folder:
    try:
        validation.verify_checkpoint_and_load_strategy(folder, None, ("torch", 1))
    except AttributeError as error:
        print("raised =", json.dumps(str(error)))
