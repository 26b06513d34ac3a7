"""What upstream needs where there is no GPU, and what it does without."""

import subprocess
import sys

import pytest
import torch
from torch import nn
from torch.distributed.algorithms.ddp_comm_hooks import quantization_hooks
from torch.nn.parallel import DistributedDataParallel

from mini_impls.compare.comparisons import find
from mini_impls.compare.shims import applied, describe, needed

QUANTIZED = find("compression", "torch_quantization")


def quantize_gradients(rank, names):
    """Return a gradient that torch's hook has averaged, or why it could not."""
    layer = nn.Linear(2, 1, bias=False)
    model = DistributedDataParallel(layer, process_group=rank.group)
    hook = quantization_hooks.quantization_pertensor_hook
    model.register_comm_hook(rank.group, hook)
    with applied(names, rank.device):
        try:
            model(torch.tensor([[1.0 + rank.rank, 255.0]])).sum().backward()
        except RuntimeError as error:
            return str(error)
    return layer.weight.grad.flatten().tolist()


@pytest.mark.parametrize("names", [(), QUANTIZED.shims])
@pytest.mark.further
def test_torchs_quantizing_hook_runs_on_gloo_with_its_shim_alone(pool2, names):
    for found in pool2.run(quantize_gradients, names):
        if names:
            assert found == [1.5, 255.0]
        else:
            assert "IndexError" in found


def test_a_gpu_needs_no_other_future_of_a_gather():
    assert needed(QUANTIZED.shims, "cuda") == ()
    assert needed(QUANTIZED.shims, "cpu") == QUANTIZED.shims
    [shim] = describe(QUANTIZED.shims)
    assert "NCCL" in shim.reason


@pytest.mark.sampled
@pytest.mark.parametrize(
    "named", [("experts",), ("pipeline", "--upstream", "megatron_1f1b")]
)
@pytest.mark.further
def test_beside_megatron_no_compiler_is_loaded(named, real_cache):
    command = [sys.executable, "-X", "importtime", "-m", "mini_impls.compare", *named]
    done = subprocess.run(
        [*command, "--steps", "6"], check=True, capture_output=True, text=True
    )
    imported = {row.rpartition("|")[2].strip() for row in done.stderr.splitlines()}
    assert "megatron.core.transformer" in imported
    assert "torch._inductor.compile_fx" not in imported
