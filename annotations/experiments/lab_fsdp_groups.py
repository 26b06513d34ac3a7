"""What each wrapping of lab 04 sends in a step, and the most it gathers at once."""

import torch.distributed as dist

from mini_impls.demos.lab_fsdp import CONFIG, get_policies
from mini_impls.fsdp import FSDPParamGroup
from mini_impls.fsdp_options import fully_shard
from mini_impls.model import build_model, compute_loss, make_batch
from mini_impls.traffic import CollectiveCounter

RANKS = 2
unshard, most = FSDPParamGroup.unshard, {}


def measured(group):
    unshard(group)
    groups = state.param_groups.values()
    whole = [g for g in groups if g.is_unsharded or g._all_gather_result is not None]
    most[policy] = max(most.get(policy, 0), sum(map(size, whole)))


def size(group):
    return 8 * sum(p.padded_sharded_size.numel() for p in group.fsdp_params)


dist.init_process_group("gloo")
FSDPParamGroup.unshard, rows = measured, []
for policy, modules in get_policies(CONFIG).items():
    state = fully_shard(gpt := build_model(CONFIG), dist.group.WORLD, modules=modules)
    tokens, labels = make_batch(CONFIG, step=0, batch_size=2)
    with CollectiveCounter() as sent:
        compute_loss(gpt(tokens), labels).backward()
    sizes = [size(group) for group in state.param_groups.values()]
    payload = sum(sent.payload_bytes().values()) / sum(sizes)
    rows.append((len(sizes), len(sent.calls), payload, max(sizes), most[policy]))
groups, messages, models, largest, gathered = map(list, zip(*rows, strict=True))
if dist.get_rank() == 0:
    print(f"{groups = }\n{messages = }\nmodels_sent = {[round(m, 2) for m in models]}")
    print(f"{largest = }\nmost_gathered = {gathered}")
dist.destroy_process_group()
