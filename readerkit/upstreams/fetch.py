"""Bring an upstream into the cache: sources in order, and only equal bytes."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Iterator, Mapping
from functools import partial
from pathlib import Path

from readerkit.errors import MovedTagError, SourceError
from readerkit.model.git_names import BlobId, TreePath
from readerkit.upstreams.folder_source import folder_source
from readerkit.upstreams.git_address import check_address
from readerkit.upstreams.installed_source import serve_installed
from readerkit.upstreams.lockfile import Lock
from readerkit.upstreams.package_source import serve_package
from readerkit.upstreams.provenance import Provenance, read_provenance, write_provenance
from readerkit.upstreams.source_protocol import Served, Source, is_a_link
from readerkit.upstreams.store import BlobStore, blob_id
from readerkit.upstreams.upstream import Upstream
from readerkit.wording.next_command import typed
from readerkit.wording.numbers import counted

DEFAULT_ORDER = ("installed", "git", "package")
SOURCE_NAMES = ("git", "installed", "package")

Report = Callable[[str], None]
"""Receives one line for each thing that happened."""


def fetch(
    upstream: Upstream,
    lock: Lock,
    store: BlobStore,
    *,
    sources: Collection[str] = DEFAULT_ORDER,
    whole: bool = False,
    report: Report,
) -> Provenance | None:
    """Make every locked file of ``upstream`` present and verified in ``store``.

    With ``whole`` a source is asked for all of them, also for what is there already.

    Returns:
        Where they came from; None when nothing was missing and nobody noted it.

    Raises:
        MovedTagError: a tag left its commit.
        SourceError: no source could serve; the message lists what each one said.
    """
    # A cache that is whole need not be one that can be written.
    if not whole and not missing_files(lock, store):
        return read_provenance(upstream, store)
    with store.locked():
        missing = missing_files(lock, store)
        if not missing and not whole:  # another process has brought them
            return read_provenance(upstream, store)
        asked = [*lock.files] if whole else missing
        tried: list[str] = []
        expected = {path: lock.files[path] for path in asked}
        for name in _possible(upstream, sources):
            report(f"{upstream.name}: trying {name} …")
            served = _try(name, upstream, store, expected, tried, report)
            if served is None:
                continue
            if missing:
                return _keep(upstream, name, served, store, report)
            files = counted(len(asked), "file")
            report(f"{upstream.name}: verified {files} of {served.origin}")
            return read_provenance(upstream, store)
    raise SourceError(_nothing_served(upstream, sources, tried, len(missing)))


def list_files(
    upstream: Upstream,
    store: BlobStore,
    *,
    sources: Collection[str],
    report: Report,
) -> dict[TreePath, BlobId]:
    """Return path and blob id of every included file, for a lock, and keep them.

    Raises:
        SourceError: no source could serve.
    """
    tried: list[str] = []
    with store.locked():
        for name in _possible(upstream, sources):
            served = _try(name, upstream, store, None, tried, report)
            if served is None:
                continue
            if upstream.commit and not served.proves_commit:
                report(
                    f"{upstream.name}: {served.origin} does not name its commit: "
                    f"compare the blob ids with {upstream.commit[:12]} where git "
                    "can be reached"
                )
            for link in served.links:
                report(f"{upstream.name}: left out: {is_a_link(link, served.origin)}")
            _keep(upstream, name, served, store, report)
            return {path: blob_id(data) for path, data in served.files.items()}
    raise SourceError(_nothing_served(upstream, sources, tried, 0))


def _try(
    name: str,
    upstream: Upstream,
    store: BlobStore,
    expected: Mapping[TreePath, BlobId] | None,
    tried: list[str],
    report: Report,
) -> Served | None:
    """Return what a source serves: these blobs, or all that it has; None: not here.

    Raises:
        MovedTagError: whoever serves, it is not what was pinned.
    """
    try:
        paths = None if expected is None else [*expected]
        served = _source(name, store)(upstream, paths)
        if expected is not None:
            _check(served, expected)
        elif not served.files:
            raise SourceError("it has none of the included paths")
    except MovedTagError:
        raise
    except SourceError as error:
        tried.append(f"{name}: {error}")
        return None
    for each in tried:  # where none serves, the error says it
        report(f"{upstream.name}: not from {each}")
    return served


def missing_files(lock: Lock, store: BlobStore) -> list[TreePath]:
    """Return the locked paths that the store lacks or holds altered."""
    return [path for path, blob in lock.files.items() if store.read(blob) is None]


def _possible(upstream: Upstream, sources: Collection[str]) -> list[str]:
    """Return the sources that can serve at all: a release has no commit to ask for."""
    return [name for name in sources if upstream.commit or name != "git"]


def _source(name: str, store: BlobStore) -> Source:
    if name == "installed":
        return serve_installed
    if name == "package":
        return serve_package
    if name == "git":
        return partial(_serve_git, cache=store.root / "git")
    return folder_source(Path(name), store.root / "git" / "folders")


def _serve_git(
    upstream: Upstream, paths: Collection[TreePath] | None, cache: Path
) -> Served:
    # Before the import: GitPython asks git for its version when it is imported.
    check_address(upstream.url)
    from readerkit.upstreams.git_source import serve_git  # which takes 70 ms

    return serve_git(upstream, paths, cache)


def _check(served: Served, expected: Mapping[TreePath, BlobId]) -> None:
    """Refuse the whole source if one file is not the locked one."""
    for path in expected:
        if path not in served.files:
            raise SourceError(f"{served.origin} lacks {path}")
    wrong = [
        (path, got, blob)
        for path, blob in expected.items()
        if (got := blob_id(served.files[path])) != blob
    ]
    if wrong:
        path, got, blob = wrong[0]
        raise SourceError(
            f"{len(wrong)} of {counted(len(expected), 'file')} of {served.origin} "
            f"differ from the lock, {path} first: got blob {got}, expected {blob}"
        )


def _keep(
    upstream: Upstream, name: str, served: Served, store: BlobStore, report: Report
) -> Provenance:
    for data in served.files.values():
        store.write(data)
    when = time.strftime("%Y-%m-%d %H:%M:%S", time.gmtime())
    kept = Provenance(name, served.origin, when, served.public or served.origin)
    write_provenance(upstream, store, kept, served.licence)
    report(
        f"{upstream.name}: {counted(len(served.files), 'file')} from {served.origin}"
    )
    return kept


def _nothing_served(
    upstream: Upstream, sources: Collection[str], tried: list[str], missing: int
) -> str:
    are, them = ("is", "it") if missing == 1 else ("are", "them")
    files = counted(missing, "file")
    what = f"{files} {are} not in the cache and " if missing else ""
    rows = "".join(f"    {row}\n" for row in tried)
    return (
        f"{upstream.name}: {what}no source could serve {them}:\n{rows}"
        f"  to mend it: {', or '.join(_ways(upstream, sources))}"
    )


def _ways(upstream: Upstream, sources: Collection[str]) -> Iterator[str]:
    """Yield what would bring the files, as far as these sources go."""
    again = typed("fetch", upstream.name)
    if len(sources) == 1:
        yield f"leave --source out, and every source is tried: {again}"
    elif {"git", "package"} & {*sources}:
        yield f"connect to a network and run {again}"
    package = upstream.package
    if upstream.installed and package and "installed" in sources:
        yield f"pip install {package.name}=={package.version}"
    version = upstream.tag or upstream.commit[:12] or upstream.pin
    own = typed("fetch", upstream.name, "--source", "PATH")
    yield f"name a checkout of {version}: {own}"
