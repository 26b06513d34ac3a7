"""Upstream code that may run: verified before it is imported.

Megatron is written from the cache's verified blobs to a directory and read back, so
that the code that is read is the code that runs. Torch runs as it is installed, where
its files have the locked ids.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from mini_impls.compare.places import MINIS_ROOT, TORCH_ROOT
from readerkit.app.library import Library, note_progress
from readerkit.errors import SourceError
from readerkit.model.git_names import BlobId, CommitId, TreePath
from readerkit.upstreams import Lock
from readerkit.upstreams.fetch import fetch, missing_files
from readerkit.upstreams.store import blob_id


@dataclass(frozen=True, slots=True)
class UpstreamFiles:
    """An upstream whose files were found to be the locked ones."""

    name: str
    commit: CommitId
    blobs: Mapping[TreePath, BlobId]


def write_megatron(library: Library, directory: Path) -> UpstreamFiles:
    """Write Megatron's locked files below `directory` and verify what was written.

    Raises:
        ReaderkitError: no lock, no source that serves it.
        SourceError: a file that reads back differently.
    """
    upstream = library.upstream("megatron")
    lock = library.lock(upstream)
    if missing_files(lock, library.store):
        fetch(upstream, lock, library.store, report=note_progress)
    for path, blob in lock.files.items():
        data = library.store.read(blob)
        if data is None:
            raise SourceError(f"{path} was altered in the cache right after its fetch")
        file = directory / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(data)
    verify("megatron", directory, lock)
    return UpstreamFiles("megatron", lock.commit, lock.files)


def check_torch(library: Library) -> UpstreamFiles:
    """Verify the installed torch against its lock.

    Raises:
        ReaderkitError: no lock.
        SourceError: files that differ from the pinned ones.
    """
    lock = library.lock(library.upstream("pytorch"))
    verify("pytorch", TORCH_ROOT, lock)
    return UpstreamFiles("pytorch", lock.commit, lock.files)


def verify(name: str, root: Path, lock: Lock) -> None:
    """Raise SourceError unless every locked file below `root` has its locked id."""
    wrong = []
    for path, blob in lock.files.items():
        file = root / path
        if not file.is_file():
            wrong.append(f"{path} is missing")
        elif (got := blob_id(file.read_bytes())) != blob:
            wrong.append(f"{path} has blob {got}, expected {blob}")
    if wrong:
        raise SourceError(
            f"{name} in {root} is not the pinned one: {len(wrong)} of "
            f"{len(lock.files)} files differ, first: {wrong[0]}"
        )


def mini_blobs(paths: list[TreePath]) -> dict[TreePath, BlobId]:
    """Return the ids of files of the minis, as they are now."""
    return {path: blob_id((MINIS_ROOT / path).read_bytes()) for path in paths}
