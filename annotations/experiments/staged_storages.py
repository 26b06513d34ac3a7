"""How much host memory staging takes for a view, and what is then written of it."""

import pathlib
import tempfile

import torch
import torch.distributed.checkpoint as dcp
from torch.distributed.checkpoint.staging import DefaultStager, StagingOptions

RANKS = 1

buffer = torch.ones(1024, 1024)
stager = DefaultStager(StagingOptions(False, False, False, False))
staged = stager.stage({"row": buffer[0]})
print("row =", buffer[0].nbytes)
print("staged =", staged["row"].untyped_storage().nbytes())
folder = tempfile.mkdtemp()
dcp.save(staged, checkpoint_id=folder)
size = pathlib.Path(folder, "__0_0.distcp").stat().st_size
print("written_bytes_below_10000 =", str(size < 10_000).lower())
