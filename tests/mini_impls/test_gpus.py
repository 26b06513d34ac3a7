"""Which GPU a rank is on, as far as that can be asked where there is none."""

import os

import pytest
import torch

from mini_impls import gpus


@pytest.fixture
def of(monkeypatch):
    """Let this machine have so many GPUs."""

    def have(count):
        monkeypatch.setattr(torch.cuda, "device_count", lambda: count)
        monkeypatch.setattr(torch.cuda, "set_device", lambda device: None)
        monkeypatch.delenv(gpus.HOST, raising=False)

    return have


@pytest.mark.parametrize(
    ("there", "ranks", "share", "message"),
    [
        (0, 2, False, "2 ranks, 0 GPUs"),
        (0, 2, True, "2 ranks, 0 GPUs"),
        (1, 2, False, "2 ranks, 1 GPUs; --oversubscribe has ranks share them"),
        (4, 8, False, "8 ranks, 4 GPUs; --oversubscribe has ranks share them"),
    ],
)
def test_more_ranks_than_gpus_are_refused(of, there, ranks, share, message):
    of(there)
    with pytest.raises(ValueError) as refused:
        gpus.check_devices("nccl", ranks, share=share)
    assert str(refused.value) == f"NCCL needs a GPU a rank: {message}"


@pytest.mark.parametrize(
    ("backend", "there", "ranks", "share"),
    [("gloo", 0, 8, False), ("nccl", 2, 2, False), ("nccl", 1, 2, True)],
)
def test_what_fits_is_let_pass(of, backend, there, ranks, share):
    of(there)
    gpus.check_devices(backend, ranks, share=share)


def test_ranks_of_one_gpu_are_of_different_hosts(of, monkeypatch):
    of(2)
    places = []
    for local_rank in range(5):
        monkeypatch.delenv(gpus.HOST, raising=False)
        device = gpus.take_device(local_rank, 5)
        places.append((device.index, os.environ.get(gpus.HOST)))
    assert [index for index, _ in places] == [0, 1, 0, 1, 0]
    assert len(set(places)) == len(places)  # NCCL refuses one host and one GPU
    assert gpus.ranks_per_gpu(5) == 3


def test_alone_on_its_gpu_a_rank_is_of_this_host(of):
    of(2)
    gpus.take_device(1, 2)
    assert gpus.HOST not in os.environ
