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

# A little more than half of the smallest number of fp16 is kept, a little less is not.
half = torch.finfo(torch.float16).tiny * torch.finfo(torch.float16).eps / 2
kept, lost = (float(torch.tensor(half * each).half()) for each in (1.01, 0.99))
print("halved =", json.dumps({"kept": float(f"{kept:.0e}"), "lost": lost}))
