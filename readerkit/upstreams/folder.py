"""Source ``folder``: a directory or a local git repository that the user names."""

from __future__ import annotations

import os
from collections.abc import Collection
from pathlib import Path

from readerkit.errors import SourceError
from readerkit.upstreams.served import MAX_MEMBER_BYTES, Served, Source
from readerkit.upstreams.upstream import Upstream


def folder_source(root: Path, git_cache: Path) -> Source:
    """Return a source over ``root``: its pinned commit if it is a git repository."""

    def serve(upstream: Upstream, paths: Collection[str] | None) -> Served:
        if not root.is_dir():
            raise SourceError(f"{root} is not a folder")
        if (root / ".git").exists() or (root / "objects").is_dir():
            from readerkit.upstreams.git_source import serve_git

            return serve_git(upstream, paths, git_cache, url=root.resolve().as_uri())
        licence = root / upstream.licence.path if upstream.licence else None
        return Served(
            f"folder {root}",
            files_below(root, upstream, paths),
            licence=licence.read_bytes() if licence and licence.is_file() else None,
        )

    return serve


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
            size = file.stat().st_size
            if size > MAX_MEMBER_BYTES:
                raise SourceError(
                    f"{path} is too large: got {size:,} bytes, "
                    f"expected at most {MAX_MEMBER_BYTES:,}"
                )
            files[path] = file.read_bytes()
        except (OSError, RuntimeError) as error:
            reason = getattr(error, "strerror", None) or error
            raise SourceError(f"cannot read {path} in {root}: {reason}") from None
    return files


def _included(root: Path, upstream: Upstream) -> list[str]:
    found = []
    tops = {pattern.split("/")[0] for pattern in upstream.include}
    for top in sorted(tops):
        for folder, folders, names in os.walk(root / top):
            folders.sort()
            below = Path(folder).relative_to(root)
            paths = [(below / name).as_posix() for name in sorted(names)]
            found += [path for path in paths if upstream.includes(path)]
    return found
