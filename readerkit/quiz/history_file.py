"""What a history on disk refuses, in words; and a copy of what may only be read."""

from __future__ import annotations

import shutil
import sqlite3
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, contextmanager, suppress
from errno import EACCES, ENOSPC, EROFS
from itertools import product
from pathlib import Path
from tempfile import TemporaryDirectory

from readerkit.errors import ReaderkitError
from readerkit.wording.next_command import typed

WAIT_SECONDS = 20


class HistoryError(ReaderkitError):
    """The history cannot be read or written, or is of a newer version."""


class DamagedHistory(HistoryError):
    """A history of which a part can no longer be read."""


def copied_from(path: Path) -> sqlite3.Connection:
    """Return a copy in memory of what may not be written; empty where there is none.

    Raises:
        HistoryError: what cannot be read either.
    """
    copied = sqlite3.connect(":memory:", isolation_level=None)
    if is_there(path):
        try:
            _copy(path, copied)
        except OSError as error:
            raise unusable(path, error) from None
        except sqlite3.Error as error:
            raise unusable(path, error) from None
    return copied


def is_there(path: Path) -> bool:
    """Tell whether there is such a file.

    Raises:
        HistoryError: a folder above it lets nobody look.
    """
    try:
        return path.exists()
    except OSError as error:
        raise unusable(path, error) from None


def _copy(path: Path, copied: sqlite3.Connection) -> None:
    """Fill a connection from a file that may not be written, its log included."""
    with _beside(path) as beside:
        beside.backup(copied)


@contextmanager
def _beside(path: Path) -> Iterator[sqlite3.Connection]:
    """Open a copy of a file and its log, so that neither is touched."""
    with TemporaryDirectory() as folder:
        for name in (path.name, f"{path.name}-wal"):
            if (path.parent / name).exists():
                shutil.copy(path.parent / name, folder)
        with closing(sqlite3.connect(Path(folder, path.name))) as beside:
            yield beside


def rows_left(
    path: Path, tables: Sequence[str]
) -> Iterator[tuple[str, dict[str, object]]]:
    """Yield what a damaged file still gives: of each table, from both of its ends.

    SQLite refuses a file that was cut short, or has pages that are none, as a whole.
    Row by row it gives what stands before the damage, and behind it; some rows twice.
    """
    with _beside(path) as damaged:
        for table, order in product(tables, ("", " DESC")):
            with suppress(sqlite3.Error):
                # Else a file shorter than its first page says is not read at all.
                damaged.execute("PRAGMA writable_schema = ON")
                rows = damaged.execute(f"SELECT * FROM {table} ORDER BY rowid{order}")
                names = [column[0] for column in rows.description]
                for row in rows:
                    yield table, dict(zip(names, row, strict=True))


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
    "EACCES": "it is not yours, or closed to you: make it and its folder yours and "
    "open, or set READERKIT_DATA to another folder",
    "SQLITE_CORRUPT": "it is damaged: {export} writes what can still be read; then "
    "move it away, and import that",
    "SQLITE_NOTADB": "it is no history that readerkit wrote: move the file away to "
    "begin a new one, or set READERKIT_DATA to another folder",
}
"""What is so, and what helps, by the name of SQLite's error, or of the system's."""


def unusable(path: Path, error: object) -> HistoryError:
    """Return what to raise: the cause, and what helps."""
    name = str(getattr(error, "sqlite_errorname", ""))
    if isinstance(error, OSError):
        name = {EACCES: "EACCES", EROFS: "SQLITE_READONLY", ENOSPC: "SQLITE_FULL"}.get(
            error.errno or 0, ""
        )
        error = error.strerror or error
    cause = next((text for each, text in CAUSES.items() if name.startswith(each)), "")
    cause = cause.replace("{export}", typed("quiz", "export", "answers.json"))
    kind = DamagedHistory if name.startswith("SQLITE_CORRUPT") else HistoryError
    return kind(
        f"{path}: {cause} ({error})"
        if cause
        else f"{path}: cannot be used: {error}: expected a history that readerkit "
        "wrote, on a disk with room; move the file away to begin a new one, or set "
        "READERKIT_DATA to another folder"
    )
