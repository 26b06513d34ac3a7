"""Source ``folder``: a directory or a local git repository that the user names."""

from __future__ import annotations

import os
import stat
from collections.abc import Collection
from dataclasses import replace
from itertools import takewhile
from pathlib import Path

from readerkit.errors import SourceError
from readerkit.model.git_names import TreePath, parse_path
from readerkit.upstreams.source_protocol import (
    MAX_MEMBER_BYTES,
    Served,
    Source,
    is_a_link,
)
from readerkit.upstreams.upstream import Upstream

_NOT_OURS = (
    "{} is a repository of another user, and git reads none of those: name a copy of "
    "your own (cp -r), or a checkout of it"
)


def folder_source(root: Path, git_cache: Path) -> Source:
    """Return a source over ``root``: its pinned commit if it is a git repository."""

    def serve(upstream: Upstream, paths: Collection[TreePath] | None) -> Served:
        if not root.is_dir():
            raise SourceError(f"{root} is not a folder")
        bare = (root / "objects").is_dir() and (root / "HEAD").is_file()
        origin = f"folder {root}"
        if bare or (root / ".git").exists():
            from readerkit.upstreams.git_source import serve_git

            try:
                return serve_git(upstream, paths, git_cache, local=root)
            except SourceError:
                if not _is_of_another_user(root):
                    raise
                if bare:
                    raise SourceError(_NOT_OURS.format(root)) from None
            # What is checked out there needs no git: it is held against the lock.
            origin = f"the files checked out in {root}, a repository of another user"
        served = serve_below(root, upstream, paths)
        licence = _licence(root, upstream)
        return replace(served, origin=origin, licence=licence, public="a local folder")

    return serve


def _is_of_another_user(root: Path) -> bool:
    """Tell whether git refuses a repository for its owner."""
    places = [each for each in (root, root / ".git") if each.exists()]
    return any(each.stat().st_uid != os.geteuid() for each in places)


def _licence(root: Path, upstream: Upstream) -> bytes | None:
    if upstream.licence is None:
        return None
    try:
        return read_file(root, upstream.licence.path)
    except SourceError:
        return None


def serve_below(
    root: Path, upstream: Upstream, paths: Collection[TreePath] | None
) -> Served:
    """Return the included files below ``root``; links are never followed.

    Raises:
        SourceError: a path that is missing, too large, a link or behind one.
    """
    links: tuple[TreePath, ...] = ()
    if paths is None:
        paths, links = _included(root, upstream)
    files = {path: read_file(root, path) for path in paths}
    return Served(f"folder {root}", files, links)


def read_file(root: Path, path: TreePath) -> bytes:
    """Return the bytes of a regular file below a folder, without following a link.

    Raises:
        SourceError: it is none, is too large, or cannot be read.
    """
    file = root
    for part in path.split("/"):
        file /= part
        if file.is_symlink():
            raise SourceError(is_a_link(path, root, file.relative_to(root).as_posix()))
    try:
        status = file.lstat()
        if not stat.S_ISREG(status.st_mode):  # reading a pipe would wait for ever
            raise SourceError(f"{path} in {root} is not a regular file")
        if status.st_size > MAX_MEMBER_BYTES:
            raise SourceError(
                f"{path} is too large: got {status.st_size:,} bytes, "
                f"expected at most {MAX_MEMBER_BYTES:,}"
            )
        return file.read_bytes()
    except OSError as error:
        raise SourceError(
            f"cannot read {path} in {root}: {error.strerror or error}"
        ) from None


def _included(
    root: Path, upstream: Upstream
) -> tuple[list[TreePath], tuple[TreePath, ...]]:
    """Return the included files in order, and beside them the included links."""
    files: list[TreePath] = []
    links: list[TreePath] = []
    for top in sorted({_top(pattern) for pattern in upstream.include}):
        for folder, folders, names in os.walk(root / top):
            folders.sort()
            below = Path(folder).relative_to(root)
            for name in sorted(names):
                if upstream.includes((below / name).as_posix()):
                    path = _parsed(root, (below / name).as_posix())
                    (links if (root / path).is_symlink() else files).append(path)
    return files, tuple(links)


def _parsed(root: Path, path: str) -> TreePath:
    try:
        return parse_path(path)
    except ValueError as error:
        raise SourceError(f"{root}: {error}") from None


def _top(pattern: str) -> str:
    """Return the folder below which everything lies that a glob can match."""
    folders = pattern.lstrip("/").split("/")[:-1]
    return "/".join(takewhile(lambda name: not set("*?") & set(name), folders))
