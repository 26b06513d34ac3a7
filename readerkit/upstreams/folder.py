"""Source ``folder``: a directory or a local git repository that the user names."""

from __future__ import annotations

import os
import stat
from collections.abc import Collection
from itertools import takewhile
from pathlib import Path

from readerkit.errors import SourceError
from readerkit.upstreams.served import MAX_MEMBER_BYTES, Served, Source
from readerkit.upstreams.upstream import Upstream

_NOT_OURS = (
    "{} is a repository of another user, and git reads none of those: name a copy of "
    "your own (cp -r), or a checkout of it"
)


def folder_source(root: Path, git_cache: Path) -> Source:
    """Return a source over ``root``: its pinned commit if it is a git repository."""

    def serve(upstream: Upstream, paths: Collection[str] | None) -> Served:
        if not root.is_dir():
            raise SourceError(f"{root} is not a folder")
        bare = (root / "objects").is_dir() and (root / "HEAD").is_file()
        origin = f"folder {root}"
        if bare or (root / ".git").exists():
            from readerkit.upstreams.git_source import serve_git

            url = root.resolve().as_uri()
            try:
                return serve_git(upstream, paths, git_cache, url=url)
            except SourceError as error:
                if "dubious ownership" not in str(error):
                    raise
                if bare:
                    raise SourceError(_NOT_OURS.format(root)) from None
            # What is checked out there needs no git: it is held against the lock.
            origin = f"the files checked out in {root}, a repository of another user"
        files = files_below(root, upstream, paths)
        return Served(origin, files, licence=_licence(root, upstream))

    return serve


def _licence(root: Path, upstream: Upstream) -> bytes | None:
    if upstream.licence is None:
        return None
    path = upstream.licence.path
    try:
        return files_below(root, upstream, [path])[path]
    except SourceError:
        return None


def files_below(
    root: Path, upstream: Upstream, paths: Collection[str] | None
) -> dict[str, bytes]:
    """Return the included files below ``root``; links that lead out of it are refused.

    Raises:
        SourceError: a path that is missing, too large, or outside ``root``.
    """
    wanted = list(paths) if paths is not None else _included(root, upstream)
    top = root.resolve()
    files = {}
    for path in wanted:
        file = root / path
        try:
            if not file.resolve().is_relative_to(top):
                raise SourceError(f"{path} leads outside {root} through a link")
            status = file.stat()
            if not stat.S_ISREG(status.st_mode):  # reading a pipe would wait for ever
                raise SourceError(f"{path} in {root} is not a regular file")
            if status.st_size > MAX_MEMBER_BYTES:
                raise SourceError(
                    f"{path} is too large: got {status.st_size:,} bytes, "
                    f"expected at most {MAX_MEMBER_BYTES:,}"
                )
            files[path] = file.read_bytes()
        except (OSError, RuntimeError, ValueError) as error:
            reason = getattr(error, "strerror", None) or error
            raise SourceError(f"cannot read {path} in {root}: {reason}") from None
    return files


def _included(root: Path, upstream: Upstream) -> list[str]:
    found = []
    for top in sorted({_top(pattern) for pattern in upstream.include}):
        for folder, folders, names in os.walk(root / top):
            folders.sort()
            below = Path(folder).relative_to(root)
            paths = [(below / name).as_posix() for name in sorted(names)]
            found += [path for path in paths if upstream.includes(path)]
    return found


def _top(pattern: str) -> str:
    """Return the folder below which everything lies that a glob can match."""
    folders = pattern.lstrip("/").split("/")[:-1]
    return "/".join(takewhile(lambda name: not set("*?") & set(name), folders))
