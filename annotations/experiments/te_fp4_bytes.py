"""What Transformer Engine sets aside for a weight of 4096 x 4096 in NVFP4."""

import ast
import json
import math
import sys
from pathlib import Path

UPSTREAMS = ["transformer-engine"]

folder = next(p for p in sys.path if (Path(p) / "transformer_engine").is_dir())
path = Path(folder) / "transformer_engine/pytorch"
found = ast.parse((path / "tensor/nvfp4_tensor.py").read_text())
quantizer = next(n for n in found.body if getattr(n, "name", "") == "NVFP4Quantizer")
names = "get_scale_shape", "get_columnwise_shape", "convert_shape_for_fp4"
utils = ast.parse((path / "utils.py").read_text())
rounding = "round_up_to_nearest_multiple"
body = [n for n in quantizer.body if getattr(n, "name", 0) in names]
body += [n for n in utils.body if getattr(n, "name", 0) == rounding]
there = {"math": math, "NVFP4_BLOCK_SCALING_SIZE": 16}
start = "from __future__ import annotations\nfrom typing import *\n"
exec(start + "\n".join(map(ast.unparse, body)), there)
scale_shape, columnwise_shape, packed = (there[name] for name in names)
scale_shape = getattr(scale_shape, "__func__", scale_shape)

shape, data, scales = (4096, 4096), 0, []
for columnwise in (False, True):
    turned = columnwise_shape.__func__(shape) if columnwise else shape
    data += math.prod(packed.__func__(turned))
    scales.append(math.prod(scale_shape(None, shape, columnwise)))
# Whether a scale is one for 16 or for 16 x 16 is no argument of the function.
print("values_of_a_stored_scale =", math.prod(shape) // scales[0])
print("mebibytes =", json.dumps([data / 2**20, sum(scales) / 2**20]))
print("bits_of_a_value =", json.dumps(8 * (data + sum(scales)) / math.prod(shape)))
