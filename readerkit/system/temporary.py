"""Temporary folders that stay for good behind no process, not even a killed one.

Each holds a file that its owner keeps locked. The kernel lets a lock go with the last
process that has it, so one that can be had is of an owner that is gone: whoever makes
the next folder of that name clears it away. What has no such file is left alone.
"""

from __future__ import annotations

import fcntl
import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

LOCK = ".owner"


@contextmanager
def temporary_folder(prefix: str) -> Iterator[str]:
    """Yield a folder that is gone afterwards; clear those that were left behind."""
    clear_left(prefix)
    while True:
        with tempfile.TemporaryDirectory(prefix=prefix) as name:
            owner = os.open(Path(name, LOCK), os.O_RDWR | os.O_CREAT, 0o600)
            try:
                fcntl.flock(owner, fcntl.LOCK_EX)
                # Before it was locked somebody may have taken it for one that is left.
                if Path(name, LOCK).exists():
                    yield name
                    return
            finally:
                os.close(owner)


def clear_left(prefix: str) -> None:
    """Remove this user's folders of that name whose owners are gone."""
    for folder in Path(tempfile.gettempdir()).glob(f"{prefix}*"):
        with suppress(OSError):  # another's, or another has just removed it
            if folder.lstat().st_uid == os.geteuid():
                _remove_if_left(folder)


def _remove_if_left(folder: Path) -> None:
    owner = os.open(folder / LOCK, os.O_RDWR | os.O_NOFOLLOW)
    try:
        fcntl.flock(owner, fcntl.LOCK_EX | fcntl.LOCK_NB)
        shutil.rmtree(folder, ignore_errors=True)
    finally:
        os.close(owner)
