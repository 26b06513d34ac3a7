"""What the cache holds: how much of each upstream, whether it is whole; removing it."""

from __future__ import annotations

import contextlib
import shutil
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from readerkit.errors import StoreError
from readerkit.model.git_names import BlobId
from readerkit.upstreams.lockfile import Lock
from readerkit.upstreams.provenance import forget_provenance
from readerkit.upstreams.store import BlobStore
from readerkit.upstreams.upstream import Upstream

FETCHED = ("blobs", "served", "git")
MADE = ("parsed", "diagrams", "scripts")
"""What is made anew, without a word, where it is missing."""


@dataclass(frozen=True, slots=True)
class Holding:
    """How much of an upstream is in the cache."""

    wanted: int
    present: int
    size_bytes: int


def holding(lock: Lock, store: BlobStore) -> Holding:
    """Return the cached files of a lock, by name and size; no byte is verified.

    An empty file is one blob for all upstreams: alone it is nothing that was fetched.
    """
    blobs = lock.files.values()
    size = bytes_of(blobs, store)
    present = sum(store.path(blob).is_file() for blob in blobs) if size else 0
    return Holding(len(lock.files), present, size)


def altered(lock: Lock, store: BlobStore) -> list[str]:
    """Return the files whose cached bytes are not the locked ones; they are removed."""
    return [
        path
        for path, blob in lock.files.items()
        if store.has_file(blob) and store.read(blob) is None
    ]


def bytes_below(root: Path, names: Iterable[str]) -> int:
    """Return the sizes of all files in some folders of the cache."""
    return sum(
        file.stat().st_size
        for name in names
        for file in (root / name).rglob("*")
        if file.is_file() and not file.is_symlink()
    )


def bytes_of(blobs: Iterable[BlobId], store: BlobStore) -> int:
    """Return the sizes of those of some blobs that are in the cache."""
    files = map(store.path, blobs)
    return sum(file.stat().st_size for file in files if file.is_file())


def remove(
    upstreams: Iterable[Upstream], blobs: Collection[BlobId], store: BlobStore
) -> int:
    """Remove what is only of some upstreams, ``blobs``; return bytes freed.

    Raises:
        StoreError: a file that cannot be removed.
    """
    with store.locked(), _writable(store.root):
        freed = bytes_of(blobs, store)
        for file in map(store.path, blobs):
            file.unlink(missing_ok=True)
            with contextlib.suppress(OSError):  # others are in it
                file.parent.rmdir()
        for upstream in upstreams:
            forget_provenance(upstream, store)
    return freed


def remove_all(store: BlobStore) -> int:
    """Remove what readerkit put into the cache, and nothing else; return bytes freed.

    Raises:
        StoreError: a file that cannot be removed.
    """
    root = store.root
    if not root.is_dir():
        return 0
    freed = bytes_below(root, (*FETCHED, *MADE))
    with store.locked("write"), store.locked(), _writable(root):
        for name in (*FETCHED, *MADE):
            if (root / name).is_dir():
                shutil.rmtree(root / name)
    with contextlib.suppress(OSError):  # somebody else's files are there
        for lock in root.glob("*.lock"):
            lock.unlink()
        root.rmdir()
    return freed


@contextlib.contextmanager
def _writable(root: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise StoreError(
            f"cannot remove {error.filename or root}: {error.strerror or error}"
        ) from None
