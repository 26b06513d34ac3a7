"""Puts a built site on disk: whole or not at all, and only what changed."""

from __future__ import annotations

import contextlib
import ctypes
import os
import shutil
import sys
import tempfile
from collections.abc import Iterable, Mapping
from pathlib import Path

from readerkit.errors import StoreError

_EXCHANGE = 2  # RENAME_EXCHANGE of renameat2, RENAME_SWAP of renamex_np
_HERE = -100  # AT_FDCWD


def publish(site: Path, files: Mapping[str, bytes], kept: Iterable[str]) -> list[str]:
    """Replace a folder by one with ``files``, and those ``kept`` as they are there.

    The new folder is made beside the old one, sharing the files that stay the same, and
    takes its place in one step. Return the paths that were written.

    Raises:
        StoreError: a disk that cannot be written.
    """
    try:
        site.parent.mkdir(parents=True, exist_ok=True)
        aside = Path(tempfile.mkdtemp(prefix=f".{site.name}-", dir=site.parent))
        try:
            written = _fill(aside, site, files, kept)
            aside.chmod(0o755)
            _swap(aside, site)
        finally:
            shutil.rmtree(aside, ignore_errors=True)
    except OSError as error:
        raise StoreError(
            f"cannot write {site}: {error.strerror or error}: expected a folder on a "
            "disk with room; free some space, or name another with --output"
        ) from None
    return written


def _fill(
    aside: Path, site: Path, files: Mapping[str, bytes], kept: Iterable[str]
) -> list[str]:
    written = []
    folders = {os.path.dirname(path) for path in [*files, *kept]}  # noqa: PTH120  quick
    for folder in sorted(folders):
        (aside / folder).mkdir(parents=True, exist_ok=True)
    for path, data in files.items():
        old = site / path
        if not (_same(old, data) and _link(old, aside / path)):
            (aside / path).write_bytes(data)
            written.append(path)
    for path in kept:
        if path not in files and not _link(site / path, aside / path):
            shutil.copyfile(site / path, aside / path)
    return written


def _same(path: Path, data: bytes) -> bool:
    try:
        return path.stat().st_size == len(data) and path.read_bytes() == data
    except OSError:
        return False


def _link(old: Path, new: Path) -> bool:
    try:
        os.link(old, new)
    except OSError:  # a file system without links
        return False
    return True


def _swap(new: Path, place: Path) -> None:
    """Put ``new`` at ``place``; what was there is then at ``new``."""
    if not os.path.lexists(place):
        new.rename(place)
        return
    if place.is_symlink() or not place.is_dir():
        raise StoreError(
            f"{place} is not a folder: expected the place of a site; name another "
            "with --output"
        )
    if not _exchange(new, place):
        # No such call here: for one moment there is no site, and never half of one.
        old = new.with_name(new.name + "-old")
        place.rename(old)
        new.rename(place)
        old.rename(new)


def _exchange(one: Path, other: Path) -> bool:
    """Exchange two folders in one step, where the system can."""
    paths = os.fsencode(one), os.fsencode(other)
    with contextlib.suppress(OSError, AttributeError):
        system = ctypes.CDLL(None, use_errno=True)
        if sys.platform == "darwin":
            return bool(system.renamex_np(*paths, _EXCHANGE) == 0)
        return bool(system.renameat2(_HERE, paths[0], _HERE, paths[1], _EXCHANGE) == 0)
    return False
