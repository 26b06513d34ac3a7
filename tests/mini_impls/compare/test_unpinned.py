"""Torch as it is installed, where it is not the pinned one."""

from types import SimpleNamespace

import pytest
import torch
import torch.distributed as dist

from mini_impls.compare import unpinned, upstream_files
from readerkit.app.library import open_library
from readerkit.errors import ReaderkitError
from tests.helpers import ROOT

OTHER = "1" * 40


def test_torch_of_another_commit_is_that_commit_with_its_own_files(
    monkeypatch, tmp_path
):
    library = open_library(ROOT)
    file = next(iter(library.lock(library.upstream("pytorch")).files))
    (tmp_path / file).parent.mkdir(parents=True)
    (tmp_path / file).write_text("another version\n")
    monkeypatch.setattr(upstream_files, "TORCH_ROOT", tmp_path)
    monkeypatch.setattr(torch.version, "git_version", OTHER)
    with pytest.raises(ReaderkitError, match="is not the pinned one"):
        upstream_files.check_torch(library)
    found = upstream_files.check_torch(library, unpinned=True)
    assert (found.commit, list(found.blobs)) == (OTHER, [file])


def test_files_of_the_pinned_commit_are_held_against_the_lock_all_the_same(
    monkeypatch, tmp_path
):
    monkeypatch.setattr(upstream_files, "TORCH_ROOT", tmp_path)
    with pytest.raises(ReaderkitError, match="is not the pinned one"):
        upstream_files.check_torch(open_library(ROOT), unpinned=True)


def test_an_older_torch_answers_to_the_pinned_ones_names(monkeypatch):
    assert unpinned.give_names() == {}
    monkeypatch.delattr(dist, "all_gather_single")
    assert unpinned.give_names() == {"all_gather_single": "all_gather_into_tensor"}
    assert dist.all_gather_single is dist.all_gather_into_tensor


def test_parameter_groups_are_found_under_either_name():
    one = object()
    assert unpinned.param_groups(SimpleNamespace(_fsdp_param_groups=[one])) == [one]
    assert unpinned.param_groups(SimpleNamespace(_fsdp_param_group=one)) == [one]
    assert unpinned.param_groups(SimpleNamespace(_fsdp_param_group=None)) == []
