"""How often two ranks that hold one tensor each write its bytes to a checkpoint."""

import pathlib
import tempfile

import torch
import torch.distributed as dist
import torch.distributed.checkpoint as dcp

RANKS = 2

dist.init_process_group("gloo")
folder = [tempfile.mkdtemp()]
dist.broadcast_object_list(folder)
weight = torch.ones(1 << 18)
dcp.save({"weight": weight}, checkpoint_id=folder[0])
if dist.get_rank() == 0:
    files = list(pathlib.Path(folder[0]).glob("*.distcp"))
    written = sum(file.stat().st_size for file in files)
    print("copies_written =", written // weight.nbytes)
    for file in pathlib.Path(folder[0]).iterdir():
        file.unlink()
    pathlib.Path(folder[0]).rmdir()
dist.destroy_process_group()
