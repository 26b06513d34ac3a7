"""Puts a built site on disk: whole or not at all, and only what changed."""

from __future__ import annotations

import contextlib
import ctypes
import os
import shutil
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from readerkit.errors import StoreError, TakenError
from readerkit.model.freshness import MadeFrom
from readerkit.site.inputs import STATE, files_made, state_of
from readerkit.system.status import Status

_EXCHANGE = 2  # RENAME_EXCHANGE of renameat2, RENAME_SWAP of renamex_np
_HERE = -100  # AT_FDCWD


@dataclass(slots=True)
class Rendered(Mapping[str, bytes]):
    """Every file of a site, each rendered when it is asked for, and not kept.

    All of them together weigh what the site does; who writes them needs one at a time.
    """

    files: Mapping[str, Callable[[], bytes]]
    status: Status
    done: int = 0

    def __getitem__(self, address: str) -> bytes:
        """Render a file, and show how far it is."""
        self.status.show("site: writing pages", self.done, len(self.files))
        self.done += 1
        return self.files[address]()

    def __iter__(self) -> Iterator[str]:
        """Yield the address of each."""
        return iter(self.files)

    def __len__(self) -> int:
        """Count them."""
        return len(self.files)


def publish(site: Path, files: Mapping[str, bytes], made_from: MadeFrom) -> list[str]:
    """Replace a folder by one with ``files``; return the paths that were written.

    The new folder is made beside the old one, sharing the files that stay the same, and
    takes its place in one step.

    Raises:
        TakenError: something at that place that is no site.
        StoreError: a disk that cannot be written.
    """
    check_place(site)
    try:
        site.parent.mkdir(parents=True, exist_ok=True)
        aside = Path(tempfile.mkdtemp(prefix=f".{site.name}-", dir=site.parent))
        try:
            written = _fill(aside, site, files)
            (aside / STATE).write_bytes(state_of(aside, made_from, files))
            aside.chmod(0o755)
            _swap(aside, site)
        finally:
            shutil.rmtree(aside, ignore_errors=True)
    except OSError as error:
        raise StoreError(
            f"cannot write {site}: {error.strerror or error}: expected a folder "
            "that can be written, on a disk with room; name another with --output"
        ) from None
    return written


def check_place(site: Path) -> None:
    """Refuse to replace what this toolkit did not make.

    Raises:
        TakenError: a file, a link, or a folder with other things in it.
    """
    if not os.path.lexists(site):
        return
    if site.is_dir() and not site.is_symlink():
        made = files_made(site)
        foreign = next((path for path in _files(site) if path not in made), None)
        if foreign is None:
            return
        if made:
            raise TakenError(
                f"{site}: got {foreign}, which no build wrote, expected the files of a "
                "site alone, since they are replaced; move it, or name another --output"
            )
    raise TakenError(
        f"{site}: got something that is no site of readerkit, expected a free place, "
        "an empty folder or an earlier site; name another with --output"
    )


def _files(folder: Path) -> Iterator[str]:
    for place, _, names in os.walk(folder):
        for name in names:
            yield os.path.relpath(f"{place}/{name}", folder)


def _fill(aside: Path, site: Path, files: Mapping[str, bytes]) -> list[str]:
    written = []
    folders = {""}
    for path, data in files.items():
        folder = path.rpartition("/")[0]
        if folder not in folders:
            (aside / folder).mkdir(parents=True, exist_ok=True)
            folders.add(folder)
        old = site / path
        if not (_is_same(old, data) and _link(old, aside / path)):
            (aside / path).write_bytes(data)
            written.append(path)
    return written


def _is_same(path: Path, data: bytes) -> bool:
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
    if not place.exists():
        new.rename(place)
    elif not _exchange(new, place):
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
