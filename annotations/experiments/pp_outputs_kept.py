"""How many outputs of eight microbatches the last stage of 1F1B keeps, and when."""

import json

import torch
import torch.distributed as dist
from torch.distributed.pipelining import PipelineStage, Schedule1F1B

RANKS = 2

dist.init_process_group("gloo")
rank = dist.get_rank()


def kept(**options):
    """Return outputs and graphs kept at the end, and how large what is returned is."""
    stage = PipelineStage(torch.nn.Linear(4, 4), rank, 2, torch.device("cpu"))
    schedule = Schedule1F1B(stage, 8, loss_fn=torch.nn.functional.mse_loss)
    x, graphs, backward = torch.ones(16, 4), [], stage.backward_one_chunk

    def counted(*args, **kwargs):
        graphs.append(len(stage.fwd_cache))
        return backward(*args, **kwargs)

    stage.backward_one_chunk = counted
    whole = schedule.step(*[x] * (rank == 0), target=x, **options)
    size = 0 if whole is None else whole.untyped_storage().nbytes()
    chunks = stage.output_chunks
    own = {chunk.untyped_storage().data_ptr() for chunk in chunks}
    bytes_of_own = sum(chunk.untyped_storage().nbytes() for chunk in chunks)
    return {"graphs": max(graphs), "outputs": [len(own), bytes_of_own], "whole": size}


for name, options in ("default", {}), ("not_returned", {"return_outputs": False}):
    figure = kept(**options)
    found = [None, None]
    dist.all_gather_object(found, figure)
    if rank == 0:
        print(name, "=", json.dumps(found[1]))
dist.destroy_process_group()
