"""Source ``git``: the pinned commit and the blobs of included paths, nothing else."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Collection, Mapping
from dataclasses import replace
from pathlib import Path, PurePosixPath

from readerkit.errors import MovedTagError, SourceError
from readerkit.model.git_names import BlobId, TreePath, parse_path
from readerkit.upstreams import git_commands
from readerkit.upstreams.source_protocol import Served, is_a_link
from readerkit.upstreams.store import blob_id
from readerkit.upstreams.upstream import Upstream
from readerkit.wording.next_command import typed
from readerkit.wording.numbers import counted

LENT = "lent.git"
"""Beside the fetched objects: a repository over those of a local one."""


def serve_git(
    upstream: Upstream,
    paths: Collection[TreePath] | None,
    cache: Path,
    local: Path | None = None,
) -> Served:
    """Return files of the pinned commit, fetched into a bare repository in ``cache``.

    ``local`` is a repository that the reader named, in place of the book's address.
    The repository is of this fetch alone: the git of a reader that was killed may live
    on, and hold its own locks where it was sent.

    Raises:
        MovedTagError: the tag points at another commit than the pin.
        SourceError: no server, no such commit, a transfer that broke off.
    """
    url = local.resolve().as_uri() if local else upstream.url
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
            served = _fetch(upstream, paths, Path(repository), local)
    except OSError as error:
        raise SourceError(
            f"cannot make a repository in {cache}: {error.strerror or error}"
        ) from None
    licence = upstream.licence
    path = licence.path if licence else None
    pin = upstream.commit[:12]
    return replace(
        served,
        origin=f"git {url} at {pin}",
        public=f"a local git repository at {pin}" if url.startswith("file:") else "",
        licence=served.files.get(path) if path else None,
        files={
            each: data
            for each, data in served.files.items()
            if each != path or upstream.includes(each)
        },
    )


def _fetch(
    upstream: Upstream,
    paths: Collection[TreePath] | None,
    repository: Path,
    local: Path | None,
) -> Served:
    """Return the wanted files, and the text of the licence among them."""
    url = local.resolve().as_uri() if local else upstream.url
    git_commands.create_repository(repository, url, is_named=bool(local))
    if upstream.tag:
        _check_tag(upstream, git_commands.remote_tag(repository, upstream.tag))
    if local:
        lent = git_commands.lend_objects(repository / LENT, local)
        git_commands.create_repository(repository, lent, is_named=True)
    git_commands.fetch_commit(repository, upstream.commit)
    git_commands.check_trees(repository)
    tree = git_commands.tree(repository, upstream.commit)
    wanted, links = _select(upstream, tree, paths)
    if local and (gone := git_commands.lacking(repository / LENT, wanted.values())):
        path = next(path for path, blob in wanted.items() if blob in gone)
        raise SourceError(
            f"{local} lacks {counted(len(gone), 'file')} of the commit, as a partial "
            f"clone may: {path} first; check them out there"
        )
    return Served("", _read(repository, wanted), links, proves_commit=True)


def _check_tag(upstream: Upstream, commit: str) -> None:
    if commit and commit != upstream.commit:
        raise MovedTagError(
            f"tag {upstream.tag} of {upstream.url} has moved: got {commit}, "
            f"expected {upstream.commit}; if the move is meant, pin the new commit in "
            "annotations/upstreams.yaml and run "
            + typed("fetch", upstream.name, "--update-lock")
        )
    if not commit:
        raise SourceError(f"it has no tag {upstream.tag}")


def _select(
    upstream: Upstream, tree: git_commands.Tree, paths: Collection[TreePath] | None
) -> tuple[dict[TreePath, BlobId], tuple[TreePath, ...]]:
    """Return the blobs of the wanted files, and the included paths that are links.

    Raises:
        SourceError: a path that is missing, a link, or none that a lock may hold.
    """
    commit = f"commit {upstream.commit[:12]}"
    links: list[TreePath] = []
    if paths is None:
        try:
            paths = [parse_path(p) for p in tree.blobs if upstream.includes(p)]
            links = [parse_path(p) for p in tree.links if upstream.includes(p)]
        except ValueError as error:
            raise SourceError(f"{commit} is refused: {error}") from None
    missing = [path for path in paths if path not in tree.blobs]
    for path in missing:
        for link in (path, *map(str, PurePosixPath(path).parents)):
            if link in tree.links:
                raise SourceError(is_a_link(path, commit, link))
    if missing:
        lacks = f"lacks {counted(len(missing), 'file')}: {missing[0]} …"
        raise SourceError(f"{commit} {lacks}")
    selected = {path: tree.blobs[path] for path in paths}
    licence = upstream.licence
    if licence and licence.path in tree.blobs:
        selected[licence.path] = tree.blobs[licence.path]
    return selected, tuple(sorted(links))


def _read(repository: Path, wanted: Mapping[TreePath, BlobId]) -> dict[TreePath, bytes]:
    if not wanted:  # git would take no name for the branch of the server
        return {}
    git_commands.fetch_blobs(repository, sorted(set(wanted.values())))
    blobs = git_commands.read_blobs(repository, sorted(set(wanted.values())))
    for path, blob in wanted.items():
        if blob not in blobs:
            raise SourceError(f"the server did not send {path} ({blob[:12]})")
        if blob_id(blobs[blob]) != blob:
            raise SourceError(
                f"{path} is damaged: its bytes do not have id {blob[:12]}"
            )
    return {path: blobs[blob] for path, blob in wanted.items()}
