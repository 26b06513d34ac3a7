"""Files in the cache of what can be made again, each held against its own digest.

The digest tells what is torn or of other code, nothing else: it is the one that Python
holds its own bytecode against. Without pathlib and hashlib, which take longer than all
that a cold command reads here.
"""

# ruff: noqa: PTH118, PTH120, PTH123
from __future__ import annotations

import contextlib
import os
from functools import cache
from importlib.util import source_hash
from typing import TYPE_CHECKING

from readerkit import __version__
from readerkit.errors import StoreError

if TYPE_CHECKING:
    from pathlib import Path

_PACKAGE = os.path.dirname(os.path.dirname(os.path.realpath(__file__)))


def read_kept(path: str | Path) -> bytes | None:
    """Return the bytes that ``keep`` wrote; None where missing or not whole."""
    try:
        with open(path, "rb") as file:
            found, _, body = file.read().partition(b"\n")
    except OSError:
        return None
    return body if found == digest(body).encode() else None


def keep(path: str | Path, body: bytes) -> None:
    """Keep what can be made again; without a writable cache nothing is kept."""
    from pathlib import Path

    from readerkit.upstreams.store import write_atomically

    with contextlib.suppress(StoreError):
        write_atomically(Path(path), digest(body).encode() + b"\n" + body)


def kept_file(folder: Path, book: Path, ending: str) -> Path:
    """Return where the cache in a folder has something of a book or a file."""
    from pathlib import Path

    return Path(kept_place(str(folder), str(book), ending))


def kept_place(folder: str, file: str, ending: str) -> str:
    """Return the same of paths that are text."""
    return os.path.join(folder, "parsed", f"{digest(os.fsencode(file))}{ending}")


def parsed_by() -> str:
    """Return a digest of the models: what other code kept may lack what they have."""
    return code_digest("content", "model", "quiz", "quiz/kinds", "upstreams")


@cache
def code_digest(*rooms: str) -> str:
    """Return a digest of the code of rooms, by the size and time of each file."""
    files = []
    for room in rooms:
        with os.scandir(os.path.join(_PACKAGE, room)) as entries:
            for entry in entries:
                if entry.name.endswith(".py"):
                    about = entry.stat()
                    files.append(f"{entry.path} {about.st_size} {about.st_mtime_ns}")
    return digest("\n".join((__version__, *sorted(files))).encode())


def digest(body: bytes) -> str:
    """Return the digest of bytes."""
    return source_hash(body).hex()
