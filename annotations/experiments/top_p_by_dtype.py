"""How many tokens top-p leaves of one row of logits, in fp32 and in bf16, on a CPU."""

import json
from types import SimpleNamespace

import torch
from megatron.core.inference.text_generation_controllers import (
    text_generation_controller as module,
)

RANKS = 1
UPSTREAMS = ["megatron"]

torch.manual_seed(0)
rows = (2 * torch.randn(8, 128_000)).bfloat16()  # as the output layer gives them
left = []
draw = torch.multinomial


def multinomial(probabilities, **given):
    left.append((probabilities > 0).sum(1))
    return draw(probabilities, **given)


torch.multinomial = multinomial
sample = module.TextGenerationController._torch_sampling_func
controller = SimpleNamespace(sampling_rng=None)
for top_p in 0.5, 0.9, 0.99:
    for dtype in torch.float32, torch.bfloat16:
        sample(controller, rows.to(dtype), 1.0, 0, top_p)
    # To hundreds: CPUs draw and add unlike each other.
    kept = [round(x.double().mean().item(), -2) for x in left]
    print(f"kept_at_{round(100 * top_p)} = {json.dumps(kept)}")
    left.clear()
shares = torch.full((128_000,), 1 / 128_000, dtype=torch.bfloat16)
added = torch.zeros((), dtype=torch.bfloat16)
while added + shares[0] != added:
    added += shares[0]
print(f"equal_shares = {[shares.cumsum(0)[-1].item(), added.item()]}")
