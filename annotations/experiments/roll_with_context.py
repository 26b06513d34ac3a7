"""A shift by one token on two ranks that hold two chunks each, and what it sends."""

import json

import torch
import torch.distributed as dist
from megatron.core.transformer.multi_token_prediction import roll_tensor

RANKS = 2
UPSTREAMS = ["megatron"]

dist.init_process_group("gloo")
rank = dist.get_rank()
torch.cuda.current_device = lambda: "cpu"
sent = []
send = dist.isend
dist.isend = lambda tensor, **to: (sent.append(tensor.numel()), send(tensor, **to))[1]
tokens = torch.arange(1.0, 9.0).reshape(1, 8)
mine = torch.cat([tokens.chunk(4, dim=1)[i] for i in (rank, 3 - rank)], dim=1)
rolled, total = roll_tensor(mine.clone(), cp_group=dist.group.WORLD)
whole, _ = roll_tensor(tokens.clone())
wanted = torch.cat([whole.chunk(4, dim=1)[i] for i in (rank, 3 - rank)], dim=1)
found = [None, None]
dist.all_gather_object(
    found, (torch.equal(rolled, wanted), rolled[0].tolist(), sent, total.item())
)
if rank == 0:
    print("alike =", json.dumps(all(each[0] for each in found)))
    print("chunks =", [each[1] for each in found])
    print("sent =", [len(each[2]) for each in found])
    print("sums =", [each[3] for each in found])
dist.destroy_process_group()
