"""Source ``git``: the pinned commit and the blobs of included paths, nothing else."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Collection
from pathlib import Path

from readerkit import git
from readerkit.errors import MovedTagError, SourceError
from readerkit.upstreams.served import Served
from readerkit.upstreams.store import blob_id
from readerkit.upstreams.upstream import Upstream
from readerkit.wording import counted


def serve_git(
    upstream: Upstream, paths: Collection[str] | None, cache: Path, url: str = ""
) -> Served:
    """Return files of the pinned commit, fetched into a bare repository in ``cache``.

    The repository is of this fetch alone: the git of a reader that was killed may live
    on, and hold its own locks where it was sent.

    Raises:
        MovedTagError: the tag points at another commit than the pin.
        SourceError: no server, no such commit, a transfer that broke off.
    """
    url = url or upstream.url
    for left in cache.glob(f"{upstream.name}-*.git"):
        shutil.rmtree(left, ignore_errors=True)
    try:
        cache.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(
            prefix=f"{upstream.name}-",
            suffix=".git",
            dir=cache,
            ignore_cleanup_errors=True,
        ) as repository:
            files = _fetch(upstream, paths, Path(repository), url)
    except OSError as error:
        raise SourceError(
            f"cannot make a repository in {cache}: {error.strerror or error}"
        ) from None
    licence_path = upstream.licence.path if upstream.licence else ""
    return Served(
        f"git {url} at {upstream.commit[:12]}",
        {
            path: data
            for path, data in files.items()
            if path != licence_path or upstream.includes(path)
        },
        licence=files.get(licence_path),
        proves_commit=True,
    )


def _fetch(
    upstream: Upstream, paths: Collection[str] | None, repository: Path, url: str
) -> dict[str, bytes]:
    git.create_repository(repository, url)
    if upstream.tag:
        _check_tag(upstream, git.remote_tag(repository, upstream.tag))
    git.fetch_commit(repository, upstream.commit)
    tree = git.tree(repository, upstream.commit)
    return _read(repository, _select(upstream, tree, paths))


def _check_tag(upstream: Upstream, commit: str) -> None:
    if commit and commit != upstream.commit:
        raise MovedTagError(
            f"tag {upstream.tag} of {upstream.url} has moved: got {commit}, "
            f"expected {upstream.commit}; if the move is meant, pin the new commit in "
            f"annotations/upstreams.yaml and run readerkit fetch {upstream.name} "
            "--update-lock"
        )
    if not commit:
        raise SourceError(f"it has no tag {upstream.tag}")


def _select(
    upstream: Upstream, tree: dict[str, str], paths: Collection[str] | None
) -> dict[str, str]:
    wanted = (
        [path for path in tree if upstream.includes(path)] if paths is None else paths
    )
    missing = [path for path in wanted if path not in tree]
    if missing:
        lacks = f"lacks {counted(len(missing), 'file')}: {missing[0]} …"
        raise SourceError(f"commit {upstream.commit[:12]} {lacks}")
    selected = {path: tree[path] for path in wanted}
    licence = upstream.licence
    if licence and licence.path in tree:
        selected[licence.path] = tree[licence.path]
    return selected


def _read(repository: Path, wanted: dict[str, str]) -> dict[str, bytes]:
    git.fetch_blobs(repository, sorted(set(wanted.values())))
    blobs = git.read_blobs(repository, sorted(set(wanted.values())))
    for path, blob in wanted.items():
        if blob not in blobs:
            raise SourceError(f"the server did not send {path} ({blob[:12]})")
        if blob_id(blobs[blob]) != blob:
            raise SourceError(
                f"{path} is damaged: its bytes do not have id {blob[:12]}"
            )
    return {path: blobs[blob] for path, blob in wanted.items()}
