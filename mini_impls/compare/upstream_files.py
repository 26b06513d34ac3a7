"""Upstream code that may run: verified before it is imported.

Megatron is written from the cache's verified blobs to a directory and read back, so
that the code that is read is the code that runs. Torch runs as it is installed, where
its files have the locked ids.
"""

import ast
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import torch

from mini_impls.compare.places import LAUNCHER, MINIS_ROOT, TORCH_ROOT
from readerkit.app.library import Library
from readerkit.model.git_names import (
    BlobId,
    CommitId,
    TreePath,
    parse_commit,
    parse_path,
)
from readerkit.upstreams.on_disk import check_files, write_files
from readerkit.upstreams.store import blob_id

PROGRAM = "mini_impls.compare"


@dataclass(frozen=True, slots=True)
class UpstreamFiles:
    """An upstream whose files were found to be the locked ones."""

    name: str
    commit: CommitId
    blobs: Mapping[TreePath, BlobId]


def write_megatron(library: Library, directory: Path) -> UpstreamFiles:
    """Write Megatron's locked files below `directory`.

    Raises:
        ReaderkitError: no lock, no source that serves it.
        SourceError: a file that reads back differently.
    """
    upstream = library.upstream("megatron")
    lock = library.lock(upstream)
    write_files(directory, lock.files, library.sources(upstream).read)
    return UpstreamFiles("megatron", lock.commit, lock.files)


def check_torch(library: Library, *, unpinned: bool = False) -> UpstreamFiles:
    """Verify the installed torch against its lock.

    With `unpinned` one of another commit is taken too: as that commit, with the files
    that it has of the locked ones.

    Raises:
        ReaderkitError: no lock.
        SourceError: files that differ from the pinned ones.
    """
    lock = library.lock(library.upstream("pytorch"))
    commit = torch.version.git_version
    if unpinned and commit not in (None, lock.commit):
        there = [path for path in lock.files if (TORCH_ROOT / path).is_file()]
        blobs = {path: blob_id((TORCH_ROOT / path).read_bytes()) for path in there}
        return UpstreamFiles("pytorch", parse_commit(str(commit)), blobs)
    check_files("pytorch", TORCH_ROOT, lock.files)
    return UpstreamFiles("pytorch", lock.commit, lock.files)


def program_of(mini: str) -> list[TreePath]:
    """Return the files that build, step and watch both sides of a mini's comparisons.

    Those are the launcher, where every stack ends, and what `rank_worker` and the
    mini's own module import of their neighbours: with another line there, others may
    run upstream.
    """
    found = {parse_path(LAUNCHER[1])}
    todo = first = [f"{PROGRAM}.rank_worker", f"{PROGRAM}.{mini}"]
    while todo:
        name, *todo = todo
        path = parse_path(f"{name.replace('.', '/')}.py")
        # Of what is imported from a module some is a module, and some is none.
        if path in found or not (name in first or (MINIS_ROOT / path).is_file()):
            continue
        found.add(path)
        for node in ast.walk(ast.parse((MINIS_ROOT / path).read_bytes())):
            if isinstance(node, ast.ImportFrom) and node.module:
                names = [node.module, *(f"{node.module}.{a.name}" for a in node.names)]
                todo += [n for n in names if n.startswith(f"{PROGRAM}.")]
    return sorted(found)


def mini_blobs(paths: list[TreePath]) -> dict[TreePath, BlobId]:
    """Return the ids of files of ours, as they are now."""
    return {path: blob_id((MINIS_ROOT / path).read_bytes()) for path in paths}
