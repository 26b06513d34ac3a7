from pathlib import Path

import pytest
import torch

from mini_impls import ddp
from mini_impls.compare import shims
from mini_impls.compare.upstream_files import mini_blobs, program_of
from readerkit.upstreams.store import blob_id


def test_a_mini_has_the_id_that_git_gives_it():
    (blob,) = mini_blobs(["mini_impls/ddp.py"]).values()
    assert blob == blob_id(Path(ddp.__file__).read_bytes())


def test_the_program_of_a_comparison_is_what_its_ranks_import_of_its_folder():
    folder = "mini_impls/compare"
    names = ("ddp", "megatron", "sides", "rank_worker", "lines")
    here = {f"{folder}/{name}.py" for name in names}
    assert here <= {*program_of("ddp")}
    # What judges and shows a record is not in it, nor what other minis face.
    others = {f"{folder}/{name}.py" for name in ("run", "verdicts", "show", "pipeline")}
    assert not others & {*program_of("ddp")}
    assert f"{folder}/zero_redundancy_optimizer.py" in program_of("zero")


def test_a_mini_without_a_module_has_no_program():
    with pytest.raises(FileNotFoundError, match=r"compare/nobody\.py"):
        program_of("nobody")


def test_shims_hold_inside_only():
    names = ["current_device", "synchronize", "cuda_is_cpu"]
    before = torch.cuda.current_device, torch.cuda.synchronize
    with shims.applied(names, torch.device("cpu")):
        assert torch.cuda.current_device() == torch.device("cpu")
        torch.cuda.synchronize()
        assert torch.zeros(1, device="cuda").device.type == "cpu"
    assert (torch.cuda.current_device, torch.cuda.synchronize) == before
    assert [shim.name for shim in shims.describe(names)] == names


def test_what_is_to_be_compiled_late_is_compiled_once_when_it_is_called(monkeypatch):
    compiled = []

    def compile_now(function=None, **options):
        compiled.append((function, options))
        return function

    monkeypatch.setattr(torch, "compile", compile_now)

    def double(value):
        return 2 * value

    with shims.compiling_late():
        late = torch.compile(double, dynamic=True)
        module = torch.compile(torch.nn.Identity())
    assert torch.compile is compile_now
    assert [function for function, _ in compiled] == [module]
    assert (late.__name__, late(2), late(3)) == ("double", 4, 6)
    assert compiled[1:] == [(double, {"dynamic": True})]


def test_no_shim_is_applied_on_a_gpu():
    before = torch.cuda.current_device
    with shims.applied(["current_device"], torch.device("cuda", 0)):
        assert torch.cuda.current_device is before
