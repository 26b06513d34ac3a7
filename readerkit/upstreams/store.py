"""The cache: blobs by git id, written atomically, verified whenever they are read."""

from __future__ import annotations

import contextlib
import hashlib
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from readerkit.errors import StoreError
from readerkit.model.git_names import BlobId
from readerkit.system.private_files import make_folder

LOCK_WAIT_SECONDS = 600


def blob_id(data: bytes) -> BlobId:
    """Return the id that git gives to a file with these bytes."""
    digest = hashlib.sha1(b"blob %d\0" % len(data), usedforsecurity=False)
    digest.update(data)
    return BlobId(digest.hexdigest())


def write_atomically(
    path: Path,
    data: bytes,
    *,
    private: bool = False,
    cached: bool = False,
    named: bool = False,
) -> None:
    """Replace ``path`` by ``data`` in one step; a failure leaves the old file whole.

    With ``private`` nobody but this user can read it, nor list a folder made for it.
    That, and what is ``cached``, may be kept in another folder, as an error says, but
    for a file that somebody ``named``: that is written where a link leads.

    Raises:
        StoreError: a disk that is full, read-only, or not a place for files.
    """
    if named:
        path = Path(os.path.realpath(path))
        if path.exists() and not (path.is_file() or path.is_dir()):
            raise StoreError(f"cannot write {path}: it is a device: name a file")
    import tempfile  # reading, which is what most runs do, goes without it

    made: list[Path] = []
    try:
        made += [each for each in (path.parent, *path.parents) if not each.exists()]
        if private:
            make_folder(path.parent)
        path.parent.mkdir(parents=True, exist_ok=True)
        handle, aside = tempfile.mkstemp(dir=path.parent, prefix=".aside-")
        try:
            with os.fdopen(handle, "wb") as file:
                file.write(data)
            Path(aside).chmod(0o600 if private else 0o644)
            Path(aside).replace(path)
        except BaseException:
            with contextlib.suppress(OSError):
                Path(aside).unlink()
            raise
    except OSError as error:
        for folder in dict.fromkeys(made):  # the innermost first
            with contextlib.suppress(OSError):
                folder.rmdir()
        variable = "READERKIT_CACHE" if cached else "READERKIT_DATA" if private else ""
        place = "" if named else variable
        raise StoreError(
            f"cannot write {path}: {error.strerror or error}: expected a writable disk "
            f"with {len(data):,} bytes free"
            + (f"; free some space, or set {place} to another folder" * bool(place))
        ) from None


class BlobStore:
    """A folder of blobs, one file each, named by git blob id.

    There is no list of what is complete: a blob is there, whole, or it is not.
    """

    def __init__(self, root: Path) -> None:
        self.root = root

    def path(self, blob: BlobId) -> Path:
        """Return where a blob is kept."""
        return self.root / "blobs" / blob[:2] / blob[2:]

    def read(self, blob: BlobId) -> bytes | None:
        """Return the verified bytes, or None where they are missing or altered.

        An altered file is removed, so that the next fetch brings it anew.
        """
        path = self.path(blob)
        try:
            data = path.read_bytes()
        except FileNotFoundError:
            return None
        except OSError as error:
            raise StoreError(
                f"cannot read {path}: {error.strerror or error}: expected a readable "
                "cache; mend its permissions, or set READERKIT_CACHE to another folder"
            ) from None
        if blob_id(data) == blob:
            return data
        with contextlib.suppress(OSError):
            path.unlink()
        return None

    def has_file(self, blob: BlobId) -> bool:
        """Tell whether something is kept under this id; ``read`` verifies it."""
        return self.path(blob).exists()

    def write(self, data: bytes) -> BlobId:
        """Keep ``data`` and return its id."""
        blob = blob_id(data)
        if not self.has_file(blob):
            write_atomically(self.path(blob), data, cached=True)
        return blob

    @contextmanager
    def locked(self, work: str = "fetch") -> Iterator[None]:
        """Keep every other process from the same work: by default, fetching."""
        from filelock import FileLock, Timeout

        path = self.root / f"{work}.lock"
        lock = FileLock(path, timeout=LOCK_WAIT_SECONDS)
        try:
            self.root.mkdir(parents=True, exist_ok=True)
            lock.acquire()
        except Timeout:
            raise StoreError(
                f"another process has held {path} for {LOCK_WAIT_SECONDS} s: wait for "
                "it to end, or end it"
            ) from None
        except OSError as error:
            raise StoreError(
                f"cannot use the cache {self.root}: {error.strerror or error}: "
                "set READERKIT_CACHE to a folder that can be written"
            ) from None
        try:
            yield
        finally:
            lock.release()
