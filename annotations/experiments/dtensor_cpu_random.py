"""Random numbers of DTensors on two CPU ranks that were seeded alike, and apart."""

import json
import warnings

import torch
import torch.distributed as dist
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.tensor import DTensor, Replicate, Shard
from torch.distributed.tensor._dtensor_spec import DTensorSpec, TensorMeta
from torch.distributed.tensor._random import OffsetBasedRNGTracker

RANKS = 2

warnings.simplefilter("ignore")
dist.init_process_group("gloo")
mesh, rank = init_device_mesh("cpu", (2,)), dist.get_rank()


def alike(placement, seed):
    torch.manual_seed(seed)
    tensor = DTensor.from_local(torch.zeros(4), mesh, [placement], run_check=False)
    local = tensor.uniform_().to_local()
    dist.all_gather(both := [torch.empty(4), torch.empty(4)], local)
    return json.dumps(torch.equal(*both))


def offsets(placement):
    meta = TensorMeta(torch.Size([6, 3]), (3, 1), torch.float32)
    spec = DTensorSpec(mesh, (placement,), tensor_meta=meta)
    mine = object.__new__(OffsetBasedRNGTracker)._compute_rng_offsets(spec)
    dist.all_gather_object(both := [None, None], [int(number) for number in mine])
    return json.dumps(both)


shards, replicas = alike(Shard(0), 7), alike(Replicate(), rank)
offsets_of = offsets(Shard(0)), offsets(Replicate())
if rank == 0:
    print("shards_alike =", shards, "\nreplicas_alike =", replicas)
    print("sharded = {}\nreplicated = {}".format(*offsets_of))
