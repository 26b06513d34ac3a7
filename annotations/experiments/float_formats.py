"""Bits, steps and smallest numbers of fp16, bf16 and fp32, as torch has them."""

import json
import math

import torch

RANKS = 1


def show(name, dtype):
    info = torch.finfo(dtype)
    stored = -round(math.log2(info.eps))
    figure = {
        "exponent_bits": info.bits - 1 - stored,
        "significand_bits": stored + 1,
        "smallest": float(f"{info.tiny * info.eps:.0e}"),
    }
    print(name, "=", json.dumps(figure))


show("fp16", torch.float16)
show("bf16", torch.bfloat16)
show("fp32", torch.float32)
