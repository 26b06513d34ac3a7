"""What becomes of --async-save: by format, without and with the persistent worker."""

import ast
import json
import pathlib
from types import SimpleNamespace as Space

import megatron

UPSTREAMS = ["megatron-training"]


def branch(file, function, *words):
    """Return the first `if` of a function that has the words in it, to be run alone."""
    paths = (pathlib.Path(path, "training", file) for path in megatron.__path__)
    tree = ast.parse(next(path for path in paths if path.is_file()).read_text())
    made = next(n for n in tree.body if getattr(n, "name", "") == function)
    texts = [ast.unparse(n) for n in ast.walk(made) if isinstance(n, ast.If)]
    return next(t for t in texts if all(word in t for word in words))


check = branch("arguments.py", "validate_args", "if args.use_dist_ckpt and args.async")
save = branch("checkpointing.py", "save_checkpoint", "NotImplementedError", "legacy")
kinds = Space(LEGACY=0, GLOBAL=1)
for name in ("torch_dist", "torch_dcp", "fsdp_dtensor", "torch"):
    ends = []
    for worker in (False, True):
        args = Space(ckpt_format=name, use_dist_ckpt=name != "torch", async_save=True)
        args.use_persistent_ckpt_worker, args.rank = worker, 0
        there = {"args": args, "warn_rank_0": lambda _: None, "CheckpointType": kinds}
        exec(check, there)
        there["ckpt_type"] = kinds.GLOBAL if args.use_dist_ckpt else kinds.LEGACY
        try:
            exec(save, there)
            ends.append("asynchronous" if args.async_save else "taken back")
        except NotImplementedError:
            ends.append("refused by the save")
    print(name, "=", json.dumps(ends))
