"""How far the parameters of lab 01 on two ranks end from those of one process."""

import torch
import torch.distributed as dist

from mini_impls.demos import lab_ddp
from mini_impls.launch import Rank

RANKS = 2

dist.init_process_group("gloo")
rank = Rank(dist.get_rank(), 2, torch.device("cpu"), dist.group.WORLD)
found = lab_ddp.train(rank)
digests = [None, None]
dist.all_gather_object(digests, found["digest"])
if rank.rank == 0:
    print(f"apart = {found['parameter_difference']}")
    print(f"digests = {len({*digests})}")
dist.destroy_process_group()
