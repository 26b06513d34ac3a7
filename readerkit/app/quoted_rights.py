"""Under which terms lines of an upstream are quoted: pinned, or told by its files."""

from __future__ import annotations

import contextlib
from pathlib import Path

from readerkit.app.library import Library
from readerkit.errors import SourceError
from readerkit.model.git_names import TreePath
from readerkit.upstreams import Upstream
from readerkit.upstreams.book_repository import top_of
from readerkit.upstreams.folder_source import read_file
from readerkit.upstreams.licence_text import UNKNOWN, licence_files, licence_of
from readerkit.upstreams.provenance import read_licence


def licence_said(library: Library, upstream: Upstream) -> str:
    """Return a licence in words: its name, whose the code is, and where it stands."""
    if known := upstream.licence:
        return f"{known.spdx}, {known.holder}"
    if upstream.package:
        text = read_licence(upstream, library.store)
        where = f"the package {upstream.package.name}"
        if not text:
            return f"none was found: none came with {where}"
        return _said(text, "the licence", where, upstream.name)
    top = top_of(library.root)
    for name in licence_files(_names(top)):
        with contextlib.suppress(SourceError):  # a folder, or a link
            text = read_file(top, TreePath(name)).decode("utf-8", "replace")
            return _said(text, name, "the repository", upstream.name)
    # A folder beside the book comes with it.
    if upstream.folder:
        return "that of the book"
    names = "LICENSE, LICENCE or COPYING"
    return f"none was found: the repository has no file {names} at its top"


def _names(top: Path) -> list[str]:
    try:
        return [each.name for each in top.iterdir()]
    except OSError:
        return []


def _said(text: str, file: str, where: str, name: str) -> str:
    found = licence_of(text, TreePath(file), name)
    stands = f"{file} of {where}"
    if found.spdx == UNKNOWN:
        return f"that of {stands}, which is none that is known by its text"
    return f"{found.spdx}, {found.holder} ({stands})"
