"""Files in the cache of what can be made again, each held against its own digest."""

from __future__ import annotations

import contextlib
import hashlib
import os
from functools import cache
from pathlib import Path

from readerkit import __version__
from readerkit.app.folders import PACKAGE
from readerkit.errors import StoreError


def read_kept(path: Path) -> bytes | None:
    """Return the bytes that ``keep`` wrote; None where missing or not whole."""
    try:
        digest, _, body = path.read_bytes().partition(b"\n")
    except OSError:
        return None
    return body if digest == _digest(body) else None


def keep(path: Path, body: bytes) -> None:
    """Keep what can be made again; without a writable cache nothing is kept."""
    from readerkit.upstreams.store import write_atomically

    with contextlib.suppress(StoreError):
        write_atomically(path, _digest(body) + b"\n" + body)


def kept_file(folder: Path, book: Path, ending: str) -> Path:
    """Return where the cache in a folder has something of a book or a file."""
    name = hashlib.sha256(os.fsencode(book)).hexdigest()[:16]
    return folder / "parsed" / f"{name}{ending}"


def parsed_by() -> str:
    """Return a digest of the models: what other code kept may lack what they have."""
    return code_digest("content", "model", "quiz", "quiz/kinds", "upstreams")


@cache
def code_digest(*rooms: str) -> str:
    """Return a digest of the code of rooms, by the size and time of each file."""
    digest = hashlib.sha256(__version__.encode())
    for room in rooms:
        for path in sorted((PACKAGE / room).glob("*.py")):
            about = path.stat()
            digest.update(f"{path} {about.st_size} {about.st_mtime_ns}\n".encode())
    return digest.hexdigest()


def _digest(body: bytes) -> bytes:
    return hashlib.sha256(body).hexdigest().encode()
