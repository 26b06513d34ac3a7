"""Which buffers Transformer Engine makes for overlap, of one precision and of two."""

import ast
import json
import sys
from pathlib import Path
from unittest.mock import MagicMock

UPSTREAMS = ["transformer-engine"]

folder = next(p for p in sys.path if (Path(p) / "transformer_engine").is_dir())
path = Path(folder) / "transformer_engine/pytorch/module/base.py"
names = "initialize_ub", "UserBufferQuantizationMode"
body = [n for n in ast.parse(path.read_text()).body if getattr(n, "name", 0) in names]
start = "from __future__ import annotations\nimport os, warnings\nfrom enum import *\n"
there = {"torch": MagicMock(uint8="fp8"), "tex": MagicMock(), "_NUM_MAX_UB_STREAMS": 3}
exec(start + "\n".join(map(ast.unparse, body)), there)
make, modes, tex = (there[name] for name in (*names, "tex"))
tex.get_stream_priority_range.return_value = 0, -5
tex.CommOverlapP2P = lambda *a, **k: ["ring", a[1], k["num_comm_sm"]]
tex.CommOverlap = lambda *a, **k: ["pieces", a[1], k["num_comm_sm"]]


def buffers(*args):  # what initialize_ub makes, by the name of the product
    unset = "_ub_communicators", "_MIN_STREAM_PRIORITY", "_MAX_STREAM_PRIORITY"
    there.update(dict.fromkeys(unset))
    make([64, 8], 4, False, [getattr(modes, m) for m in args[0]], "bf16", *args[1:])
    return {name: made for (name, _), made in there["_ub_communicators"].items()}


print("made =", json.dumps(buffers(["FP8"])))
fp8 = buffers(["FP8"], {"proj_fprop": {"fp8_buf": True}})["proj_fprop"]
print("scatter_asked_for =", json.dumps(fp8))
asks = {"qkv_dgrad": {"method": "ring_exchange"}}
for name, given in ("two_precisions", asks), ("asked_in_each", [asks, asks]):
    try:
        buffers(["FP8", "NONE"], given)
    except (ValueError, AssertionError) as error:
        print(f"{name} =", json.dumps(str(error)))
