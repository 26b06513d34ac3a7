"""What a history on disk refuses, in words; and a copy of what may only be read."""

from __future__ import annotations

import shutil
import sqlite3
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

from readerkit.errors import ReaderkitError

WAIT_SECONDS = 20


class HistoryError(ReaderkitError):
    """The history cannot be read or written, or is of a newer version."""


def copied_from(path: Path) -> sqlite3.Connection:
    """Return a copy in memory of what may not be written; empty where there is none.

    Raises:
        HistoryError: what cannot be read either.
    """
    copied = sqlite3.connect(":memory:", isolation_level=None)
    if path.exists():
        try:
            _copy(path, copied)
        except OSError as error:
            raise unusable(path, error.strerror or error) from None
        except sqlite3.Error as error:
            raise unusable(path, error) from None
    return copied


def _copy(path: Path, copied: sqlite3.Connection) -> None:
    """Fill a connection from a file that may not be written, its log included."""
    with TemporaryDirectory() as folder:
        for name in (path.name, f"{path.name}-wal"):
            if (path.parent / name).exists():
                shutil.copy(path.parent / name, folder)
        with closing(sqlite3.connect(Path(folder, path.name))) as beside:
            beside.backup(copied)


@contextmanager
def sqlite_errors_told(path: Path) -> Iterator[None]:
    """Say what a database refuses in the words of the reader."""
    try:
        yield
    except sqlite3.IntegrityError:
        raise
    except sqlite3.Error as error:
        raise unusable(path, error) from None


CAUSES: Mapping[str, str] = {
    "SQLITE_FULL": "the disk is full: make room, and go on; what was acknowledged is "
    "kept",
    "SQLITE_IOERR": "the disk is full, or fails: make room, and go on; what was "
    "acknowledged is kept",
    "SQLITE_BUSY": f"another program has held it for {WAIT_SECONDS} s: wait until it "
    "has ended, and go on; what was acknowledged is kept",
    "SQLITE_READONLY": "it may only be read: make it and its folder writable, or set "
    "READERKIT_DATA to another folder",
    "SQLITE_CANTOPEN": "it cannot be opened: make it and its folder writable, or set "
    "READERKIT_DATA to another folder",
}
"""What is so, and what helps, by the name of SQLite's error."""


def unusable(path: Path, error: object) -> HistoryError:
    """Return what to raise: the cause, and what helps."""
    name = str(getattr(error, "sqlite_errorname", ""))
    cause = next((text for each, text in CAUSES.items() if name.startswith(each)), "")
    return HistoryError(
        f"{path}: {cause} ({error})"
        if cause
        else f"{path}: cannot be used: {error}: expected a history that readerkit "
        "wrote, on a disk with room; move the file away to begin a new one, or set "
        "READERKIT_DATA to another folder"
    )
