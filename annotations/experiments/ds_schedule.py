"""DeepSpeed's 1F1B by parity of step and stage, beside the mini's order."""

import json
import sys
from pathlib import Path
from types import ModuleType

from mini_impls.schedules import get_orders

UPSTREAMS = ["deepspeed"]

folder = next(p for p in sys.path if (Path(p) / "deepspeed").is_dir())
file = Path(folder) / "deepspeed/runtime/pipe/schedule.py"
text = file.read_text().replace("from ..utils import call_to_str", "")
theirs = ModuleType("schedule")
exec(compile(text, str(file), "exec"), theirs.__dict__)


def names(p, m, stage):
    """Return the names of the commands of each step."""
    steps = theirs.TrainSchedule(m, p, stage).steps()
    return [[type(command).__name__ for command in step] for step in steps]


def computed(steps):
    passes = [n for step in steps for n in step if n.endswith("Pass")]
    return [name[0] for name in passes]


equal, sizes = [], [(2, 4), (4, 4), (4, 8), (3, 5), (8, 2)]
for p, m in sizes:
    for stage, order in enumerate(get_orders("1f1b", p, m)):
        equal.append(computed(names(p, m, stage)) == [step.kind for step in order])
loads = [s for s in range(4) if "LoadMicroBatch" in json.dumps(names(4, 8, s))]
buffers = [theirs.TrainSchedule(8, 4, s).num_pipe_buffers() for s in range(4)]
print("orders_equal =", json.dumps([sum(equal), len(equal)]))
print("steps_of_p4_m8 =", len(names(4, 8, 0)))
print("stages_that_load =", json.dumps(loads))
print("buffers_of_p4_m8 =", json.dumps(buffers))
print("last_step =", json.dumps(names(4, 8, 1)[-1]))
