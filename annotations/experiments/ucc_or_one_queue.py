"""Which assertion on the number of connections ends a tensor-parallel run over UCC."""

import ast
import json
import pathlib
from types import SimpleNamespace as Space

import megatron

UPSTREAMS = ["megatron", "megatron-training"]


def branch(file, function, start):
    """Return the first `if` of a function that begins so, to be run alone."""
    paths = (pathlib.Path(path, file) for path in megatron.__path__)
    tree = ast.parse(next(path for path in paths if path.is_file()).read_text())
    made = next(n for n in tree.body if getattr(n, "name", "") == function)
    texts = [ast.unparse(n) for n in ast.walk(made) if isinstance(n, ast.If)]
    return next(text for text in texts if text.startswith(start))


first = "if (args.tensor_model_parallel_size > 1 or args.context"
trainer = branch("training/arguments.py", "validate_args", first)
first = "if 'CUDA_DEVICE_MAX_CONNECTIONS' in os.environ"
core = branch("core/parallel_state.py", "initialize_model_parallel", first)
args = Space(tensor_model_parallel_size=2, context_parallel_size=1, rank=0)
args.use_torch_fsdp2 = args.use_megatron_fsdp = False
cases = {"unset": (None, 0, 9), "one": ("1", 0, 9), "eight": ("8", 0, 9)}
cases |= {"with_experts_overlapped": ("8", 1, 9), "blackwell": ("8", 0, 10)}
for name, (value, args.overlap_moe_expert_parallel_comm, arch) in cases.items():
    around = Space(environ={"CUDA_DEVICE_MAX_CONNECTIONS": value} if value else {})
    there = {"args": args, "os": around, "get_device_arch_version": lambda: arch}  # noqa: B023
    there["warn_rank_0"], end = lambda *_: None, "starts"
    for text, where in (core, "core"), (trainer, "trainer"):
        try:
            exec(text, there)
        except AssertionError:
            end = where
    print(name, "=", json.dumps(end))
