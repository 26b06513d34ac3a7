"""What one token of lab 02 sends at its widest, and what a rank of two holds of it."""

import torch
import torch.distributed as dist

from mini_impls import inference, model
from mini_impls.demos import lab_generation
from mini_impls.traffic import CollectiveCounter

RANKS = 2


def generate(width, group):
    config = lab_generation.get_config(width)
    gpt, context = model.GPT(config), inference.StaticInferenceContext(1, 32)
    inference.tensor_parallel(gpt, context, group)
    with CollectiveCounter() as sent:
        inference.generate(gpt, torch.zeros(1, 8, dtype=torch.long), 2, context)
    token = sent.calls[len(sent.calls) // 2 :]  # the prompt's before it
    weights = sum(p.nbytes for layer in gpt.layers for p in layer.parameters())
    return token, weights, context.num_bytes()


dist.init_process_group("gloo")
alone = [dist.new_group([rank]) for rank in range(2)][dist.get_rank()]
*others, widest = lab_generation.HIDDEN_SIZES
token, weights, cache = generate(widest, dist.group.WORLD)
_, all_weights, whole_cache = generate(widest, alone)
if dist.get_rank() == 0:
    sums = [call.payload_bytes for call in token if call.op == "all_reduce"]
    print(f"widths = {[*others, widest]}")
    print(f"worlds = {[*lab_generation.WORLDS]}")
    print(f"layers = {lab_generation.get_config(widest).num_layers}")
    print(f"all_reduces = {len(sums)}")
    print(f"largest_all_reduce = {max(sums)}")
    print(f"messages = {len(token)}")
    print(f"share_of_weights = {weights / all_weights:.2f}")
    print(f"share_of_cache = {cache / whole_cache:.2f}")
dist.destroy_process_group()
