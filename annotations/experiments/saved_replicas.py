"""How often the bytes of a tensor that two ranks hold stand in a checkpoint."""

import pathlib
import shutil
import tempfile

import torch
import torch.distributed as dist
import torch.distributed.checkpoint as dcp

RANKS = 2

dist.init_process_group("gloo")
weight = torch.ones(1 << 18)
for name, together in (("copies_written", True), ("copies_planned_alone", False)):
    folder = [tempfile.mkdtemp()]
    dist.broadcast_object_list(folder)
    dcp.save({"weight": weight}, checkpoint_id=folder[0], use_collectives=together)
    if dist.get_rank() == 0:
        files = pathlib.Path(folder[0]).glob("*.distcp")
        print(name, "=", sum(file.stat().st_size for file in files) // weight.nbytes)
        shutil.rmtree(folder[0])
dist.destroy_process_group()
