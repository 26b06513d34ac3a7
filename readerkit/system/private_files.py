"""Files that are the reader's alone: 600, in folders of 700, whatever the umask."""

from __future__ import annotations

import contextlib
import os
import stat
from pathlib import Path

FOLDER, FILE = 0o700, 0o600
_BESIDE = ("-wal", "-shm", "-journal")
"""What SQLite keeps beside a database while it is open."""


def make_folder(path: Path) -> None:
    """Make a folder, and those above it that are missing, for this user alone."""
    for folder in reversed([path, *path.parents]):
        with contextlib.suppress(FileExistsError):
            folder.mkdir(FOLDER)
            folder.chmod(FOLDER)  # a umask may have taken more away
    if not path.is_dir():
        raise NotADirectoryError(f"{path} is not a folder")


def make_database(path: Path) -> None:
    """Make an empty file for SQLite, which gives what it keeps beside it its mode."""
    make_folder(path.parent)
    with contextlib.suppress(FileExistsError):
        os.close(os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL, FILE))
        path.chmod(FILE)
    for each in (path, *(path.with_name(path.name + end) for end in _BESIDE)):
        tighten(each)


def tighten(path: Path) -> None:
    """Take from others what they may do with a file or a folder, and all below it.

    Links stay as they are, with what they lead to. So does what is not this user's.
    """
    try:
        about = path.lstat()
        if stat.S_ISLNK(about.st_mode) or about.st_uid != os.geteuid():
            return
        if about.st_mode & 0o077:
            path.chmod(stat.S_IMODE(about.st_mode) & ~0o077)
        if stat.S_ISDIR(about.st_mode):
            for entry in os.scandir(path):
                tighten(Path(entry.path))
    except OSError:  # gone meanwhile, or on a disk that cannot be written
        return
