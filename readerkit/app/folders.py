"""Where things are: the book that ships, the cache, and what belongs to the reader."""

from __future__ import annotations

import contextlib
import errno
import os
import stat
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from readerkit.app.own_place import own_place
from readerkit.errors import ReaderkitError, WrongUseError
from readerkit.system.json_file import MAX_BYTES
from readerkit.system.private_files import tighten
from readerkit.wording.meant_name import did_you_mean

if TYPE_CHECKING:
    from readerkit.budget import Ledger

PACKAGE = Path(__file__).resolve().parent.parent
BUILT_SITE = Path("build/site")
"""Where a site is written: in the folder of a named book, else where one stands."""


def shipped_book() -> Path:
    """Return the folder of the book inside the package, or of the checkout."""
    data = PACKAGE / "data"
    return data if data.is_dir() else PACKAGE.parent


def is_checkout(root: Path) -> bool:
    """Tell whether a book may be written to: it is not the copy inside a package."""
    return root != PACKAGE / "data"


def cache_folder() -> Path:
    """Return where fetched source is kept: ``READERKIT_CACHE``, or the user's cache."""
    return _own_folder("READERKIT_CACHE", "user_cache_path")


def data_folder() -> Path:
    """Return where the reader's things are: ``READERKIT_DATA``, or the user's data."""
    folder = _own_folder("READERKIT_DATA", "user_data_path")
    _tighten_once(folder)
    return folder


def is_own(path: Path) -> bool:
    """Tell whether a file is among the reader's own, which nobody else may read."""
    return path.absolute().is_relative_to(data_folder())


@cache
def _tighten_once(folder: Path) -> None:
    """Close the reader's folder to others; a home, or one that all share, stays."""
    with contextlib.suppress(OSError, RuntimeError):  # no such folder, or no home
        is_shared = folder.stat().st_mode & stat.S_ISVTX
        if not is_shared and not Path("~").expanduser().is_relative_to(folder):
            tighten(folder)


def irregular(path: Path, root: Path | None) -> str:
    """Return what a path is if it is no regular file of the book at root, else nothing.

    What is none is never opened: reading from a pipe waits until somebody writes to it.
    Without a root the file is the reader's own, and so is where its links lead.

    Raises:
        OSError: nothing is there, or nothing that may be looked at.
    """
    mode = path.stat().st_mode
    if root and leads_out(path, root):
        return "a link that leads out of the book"
    if stat.S_ISREG(mode):
        return ""
    kinds = {stat.S_IFDIR: "a folder", stat.S_IFIFO: "a named pipe"}
    return kinds.get(stat.S_IFMT(mode), "a device or socket")


def leads_out(path: Path, root: Path) -> bool:
    """Tell whether a file below a book is really elsewhere, through a link.

    A folder at the book's top may be a link itself: what is in it stays inside it.
    """
    real = os.path.realpath(path)
    if real == str(path):
        return False
    folder, *below = path.relative_to(root).parts
    tops = (root, root / folder) if below else (root,)
    return not any(Path(real).is_relative_to(os.path.realpath(top)) for top in tops)


def read_at_most(path: Path, root: Path | None) -> bytes:
    """Return a file of a book; of one too large to be any, a little more than that.

    Raises:
        ReaderkitError: no such file, no regular one, or one elsewhere.
    """
    try:
        if kind := irregular(path, root):
            raise OSError(errno.EINVAL, f"got {kind}, expected a regular file")
        with path.open("rb") as file:
            return file.read(MAX_BYTES + 1)
    except OSError as error:
        raise ReaderkitError(f"{path}: cannot be read: {error.strerror}") from None


def refuse_no_book(root: Path) -> None:
    """Refuse a folder that is no book.

    Raises:
        WrongUseError: it is none; names the book that it lies in.
    """
    of_book = "annotations/upstreams.yaml"
    if not (root / of_book).is_file():
        near = [each for each in root.parents if (each / of_book).is_file()]
        hint = f": {did_you_mean(f'--book {near[0]}')}" if near else ""
        raise WrongUseError(
            f"{root}: got a folder without {of_book}, expected a book{hint}"
        )


def refuse_nowhere(path: Path) -> None:
    """Refuse to write in a folder that is not there: a slip of the hand makes none.

    Raises:
        WrongUseError: there is none.
    """
    folder = path.absolute().parent
    if not folder.is_dir():
        raise WrongUseError(
            f"{path}: got no folder {folder}, expected one: make it, or name another "
            "place"
        )


def _own_folder(variable: str, kind: str) -> Path:
    if place := own_place(variable, kind):
        folder = Path(place)
        _refuse_unusable(folder, variable)
        return folder
    raise ReaderkitError(
        f"this user has no home folder: set {variable} to a folder for readerkit"
    )


def _refuse_unusable(folder: Path, variable: str) -> None:
    """Refuse a folder of the reader's own that is a file, or closed to the reader.

    One that is not there yet will be made; one that may only be read can be of use.

    Raises:
        ReaderkitError: it is such a one.
    """
    try:
        is_folder = stat.S_ISDIR(folder.stat().st_mode)
        is_open = not is_folder or os.access(folder, os.R_OK | os.X_OK)
    except PermissionError:
        is_folder, is_open = True, False
    except OSError:  # not there, or what writes it says what is wrong
        return
    if not is_folder:
        raise ReaderkitError(
            f"{folder}: got a file, expected a folder: set {variable} to one"
        )
    if not is_open:
        raise ReaderkitError(
            f"{folder}: it is not yours, or closed to you: open it, or set {variable} "
            "to another folder"
        )


def open_ledger() -> Ledger:
    """Return the ledger of this user; there is no option for another one."""
    from readerkit.budget import Ledger

    return Ledger(data_folder() / "budget.sqlite")
