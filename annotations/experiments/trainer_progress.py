"""From which operations the trainer's cumulative throughput begins after a new size."""

import ast
import os
import pathlib
import tempfile
from datetime import datetime
from types import SimpleNamespace as Space

import megatron

RANKS = 1
UPSTREAMS = ["megatron-training"]
NAME = "get_start_time_from_progress_log"

files = (pathlib.Path(path, "training/training.py") for path in megatron.__path__)
text = next(file for file in files if file.is_file()).read_text()
made = next(n for n in ast.parse(text).body if getattr(n, "name", "") == NAME)
HEAD = "2026-01-0{day} 00:00:00\tJob ID: 1\t# GPUs: {gpus}\t"
SAVED = "\tIteration: 9\tJob: 1\tCumulative: 1\tOperations: 5e+18\n"


def begin(word):
    """The start that 16 GPUs find after a job of 8 GPUs that saved so."""
    rows = HEAD.format(day=1, gpus=8) + "Starting job\n"
    rows += HEAD.format(day=2, gpus=8) + word + SAVED
    for day in (3, 4):
        rows += HEAD.format(day=day, gpus=16) + "Starting job\n"
    with tempfile.TemporaryDirectory() as folder:
        pathlib.Path(folder, "progress.txt").write_text(rows)
        args = Space(save=folder, world_size=16)
        scope = {"os": os, "open_file": open, "get_args": lambda: args}
        scope["datetime"] = datetime
        exec(ast.unparse(made), scope)
        start, operations = scope[NAME]()
    return [start.day, operations]


print("saved =", begin("Saved checkpoint"))
print("saved_async =", begin("Saving async checkpoint"))
