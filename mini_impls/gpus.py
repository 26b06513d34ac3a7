"""Which GPU a rank is on, and how several may share one.

NCCL refuses two ranks of one host on one GPU. Ranks that share one say that they are of
different hosts: then NCCL sends through sockets, here of the loopback interface, and
all that it does on the GPU is real but its speed: the ranks' kernels take turns.
"""

import os

import torch

from mini_impls.machine import INSIST

HOST = "NCCL_HOSTID"
"""By this variable NCCL tells hosts apart, where it is set."""


def check_devices(backend: str, local_ranks: int, *, share: bool = False) -> None:
    """Raise ValueError where this machine cannot hold that many ranks.

    With `share` there may be more of them than GPUs.
    """
    if local_ranks < 1:
        raise ValueError(f"world size {local_ranks} is below 1")
    gpus = torch.cuda.device_count()
    if backend != "nccl" or gpus >= local_ranks or (gpus and share):
        return
    hint = f"; {INSIST} has ranks share them" if gpus else ""
    raise ValueError(f"NCCL needs a GPU a rank: {local_ranks} ranks, {gpus} GPUs{hint}")


def take_device(local_rank: int, local_ranks: int) -> torch.device:
    """Return the GPU of a rank, which it works on from now on."""
    gpus = torch.cuda.device_count()
    device = torch.device("cuda", local_rank % gpus)
    if local_ranks > gpus:
        # To load a kernel at its first use, CUDA may wait for all that runs: for a
        # receive, too, whose send waits for the GPU.
        os.environ.setdefault("CUDA_MODULE_LOADING", "EAGER")
    torch.cuda.set_device(device)
    if local_rank >= gpus:  # the first rank of each GPU is of this host
        host = os.environ.get(HOST, os.uname().nodename)
        os.environ[HOST] = f"{host}, sharing {local_rank // gpus}"
    return device


def ranks_per_gpu(local_ranks: int) -> int:
    """Return how many ranks of this machine are on its most used GPU."""
    return -(-local_ranks // max(torch.cuda.device_count(), 1))
