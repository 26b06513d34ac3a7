"""Upstream code that may run: its locked files in a folder, read back or verified."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from pathlib import Path

from readerkit.errors import SourceError
from readerkit.model.git_names import BlobId, TreePath
from readerkit.upstreams.store import blob_id


def write_files(
    root: Path, paths: Iterable[TreePath], read: Callable[[TreePath], bytes]
) -> None:
    """Write below a folder what `read` has verified.

    Raises:
        SourceError: a file that reads back differently.
    """
    for path in paths:
        data, file = read(path), root / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(data)
        if file.read_bytes() != data:
            raise SourceError(f"{file} does not read back as it was written")


def check_files(name: str, root: Path, files: Mapping[TreePath, BlobId]) -> None:
    """Raise SourceError unless every locked file below `root` has its locked id."""
    wrong = []
    for path, blob in files.items():
        file = root / path
        if not file.is_file():
            wrong.append(f"{path} is missing")
        elif (got := blob_id(file.read_bytes())) != blob:
            wrong.append(f"{path} has blob {got}, expected {blob}")
    if wrong:
        raise SourceError(
            f"{name} in {root} is not the pinned one: {len(wrong)} of "
            f"{len(files)} files differ, first: {wrong[0]}"
        )
