"""What the straggler detector reports when an evaluation falls between two reports."""

import json

import torch
import torch.distributed as dist
from megatron.core import utils

RANKS = 1
UPSTREAMS = ["megatron"]


def number(*_):
    return 0


class Event:  # each forward takes 5 ms on this device
    record = elapsed_time = lambda *_: 5.0

    def __init__(self, enable_timing):
        self.timing = enable_timing


dist.init_process_group("gloo")
torch.cuda.is_available, torch.cuda.Event = lambda: True, Event
names = ["temperature", "power_draw", "utilization", "clock_rate", "synchronize"]
for name in [*names, "set_stream"]:
    setattr(torch.cuda, name, number)
detector, seen = utils.StragglerDetector(), []
of_all = detector._min_max
detector._min_max = lambda *args: seen.append((args[0], args[-1])) or of_all(*args)
detector.configure(1, 0, port=0, enabled=True)
for forwards in (100, 100 + 100):  # of 100 steps; of those and of an evaluation of 100
    for _ in range(forwards):
        with detector:
            pass
    detector.report(100 * 15e9, 100)
print("milliseconds =", json.dumps([time for time, _ in seen]))
print("teraflops =", json.dumps([flops for _, flops in seen]))
