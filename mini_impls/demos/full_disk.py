"""Whether a disk takes so many bytes: asked where a save has failed."""

import os
import tempfile
from pathlib import Path

from mini_impls.failures import FULL


def try_disk(root: Path, size: int) -> int:
    """Return the error by which a disk does not take so many bytes; 0 if it does."""
    try:
        with tempfile.TemporaryFile(dir=existing(root)) as file:
            file.write(bytes(size))
            file.flush()
            os.fsync(file.fileno())
    except OSError as error:
        return error.errno if error.errno in FULL else 0
    return 0


def existing(path: Path) -> Path:
    """Return a path, or the nearest above it that there is."""
    return next(each for each in (path, *path.absolute().parents) if each.exists())
