"""Two revisions of an upstream: what its notes were written on, and what they go to."""

from __future__ import annotations

import contextlib
import dataclasses
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from msgspec.structs import replace

from readerkit.app.library import Library, note_progress
from readerkit.app.revisions import CommitTree, open_tree
from readerkit.content.resolved_notes import Sources
from readerkit.errors import AnchorError, SourceError, WrongUseError
from readerkit.model.anchor import Anchor, Span
from readerkit.model.git_names import (
    NO_COMMIT,
    BlobId,
    CommitId,
    TreePath,
    parse_commit,
    parse_path,
)
from readerkit.upstreams import Lock, LockedAnchor, Upstream
from readerkit.upstreams.book_repository import head_of, top_of
from readerkit.upstreams.source_protocol import MAX_MEMBER_BYTES


@dataclass(frozen=True, slots=True)
class OtherRevision:
    """Another revision of an upstream: its files, and how it is called."""

    origin: str
    files: Mapping[TreePath, bytes]
    commit: CommitId = NO_COMMIT
    tag: str = ""
    release: str = ""
    """Of its package, where the files are of one."""
    is_now: bool = False
    """Whether it is what the book reads already: a work tree as it is."""


class SourceTree(Mapping[str, bytes]):
    """An upstream's files as a tree to compare."""

    def __init__(self, sources: Sources) -> None:
        self.sources = sources

    def __getitem__(self, path: str) -> bytes:
        """Return a file's bytes.

        Raises:
            KeyError: no such file.
        """
        if path not in self.sources.paths:
            raise KeyError(path)
        return self.sources.read(TreePath(path))

    def __iter__(self) -> Iterator[str]:
        """Yield the paths."""
        return iter(sorted(self.sources.paths))

    def __len__(self) -> int:
        """Return how many files there are."""
        return len(self.sources.paths)


def old_tree(library: Library, upstream: Upstream, lock: Lock) -> Mapping[str, bytes]:
    """Return the files that the notes of an upstream are locked against.

    Raises:
        ReaderkitError: a folder, which has no lock; or code that is nowhere any more.
    """
    if upstream.folder:
        raise WrongUseError(
            f"{upstream.name} is a folder of this book: it is read where it stands, "
            "and no lock says what it was"
        )
    if not upstream.is_living:
        return SourceTree(library.sources(upstream))
    return _as_locked(top_of(library.root), lock)


def _as_locked(top: Path, lock: Lock) -> Mapping[str, bytes]:
    """Return the files of the commit that most notes were read at, each as locked."""
    from readerkit.upstreams import git_commands

    marks = [anchor.at for anchor in lock.anchors.values() if anchor.at]
    commit = max(marks, key=marks.count, default=head_of(top))
    files: dict[str, bytes] = {}
    with contextlib.suppress(SourceError), open_tree(f"{top}@{commit}") as tree:
        assert isinstance(tree, CommitTree)
        files = {path: tree[path] for path in tree if tree.get(path) is not None}
        wanted: dict[str, BlobId] = {
            a.span.path: a.blob for a in lock.anchors.values() if a.blob
        }
        held = git_commands.read_blobs(tree.repository, sorted(set(wanted.values())))
        files |= {path: held[blob] for path, blob in wanted.items() if blob in held}
    return files


def locked_in(
    before: Sources, anchor: Anchor, locked: LockedAnchor
) -> LockedAnchor | None:
    """Return where the locked code of an anchor is in the files it is followed from.

    It may have been locked on a work tree that no commit ever had.
    """
    if is_same_code(locked.span, locked, before):
        return locked
    try:
        span = before.resolve(anchor)
    except AnchorError:
        return None
    is_there = is_same_code(span, locked, before)
    return dataclasses.replace(locked, span=span) if is_there else None


def is_same_code(span: Span, locked: LockedAnchor, side: Sources) -> bool:
    """Tell whether lines of a revision have the code that was locked."""
    from readerkit.anchors import fingerprint

    try:
        return fingerprint(span, side.file(span.path)).code == locked.fingerprint.code
    except AnchorError:
        return False


def find_target(library: Library, upstream: Upstream, to: str | None) -> OtherRevision:
    """Return the revision that was asked for; without one, the newest release.

    A folder or DIR@REV that is there, a release of its package, or a tag or commit of
    its repository; of code that lives on any revision, without one the files as they
    are now.

    Raises:
        SourceError: none of them; says what each one said.
    """
    if to is None and upstream.is_living:
        sources = library.sources(upstream)
        files = {path: sources.read(path) for path in sources.paths}
        return OtherRevision("the files as they are now", files, is_now=True)
    if to is not None and _is_place(to):
        return _at_place(upstream, to)
    if to is not None and to.startswith(("/", "./", "../", "~")):
        raise WrongUseError(f"--to {to}: got no folder there, expected a checkout")
    tried = []
    ways = (_release,) if to is None else (_release, _tag)
    for way in (_here,) if upstream.is_living else ways:
        try:
            return way(library, upstream, to)
        except SourceError as error:
            tried.append(f"    {error}")
    what = f"revision '{to}'" if to else "newer release"
    raise SourceError(
        f"{upstream.name}: no {what} can be had:\n"
        + "\n".join(tried)
        + "\n  to mend it: name a checkout of it: --to PATH, or --to DIR@REV"
    )


def _is_place(to: str) -> bool:
    folder = Path(to).expanduser()
    return folder.is_dir() or ("@" in to and Path(to.rpartition("@")[0]).is_dir())


def _at_place(upstream: Upstream, to: str) -> OtherRevision:
    with open_tree(to) as tree:
        files = {}
        for name in tree:
            if upstream.includes(name):
                with contextlib.suppress(ValueError, KeyError):
                    path = parse_path(name)
                    if len(data := tree[name]) <= MAX_MEMBER_BYTES:
                        files[path] = data
        commit = tree.commit
    if not files:
        globs = ", ".join(upstream.include)
        raise WrongUseError(f"{to} has no file that {upstream.name} includes: {globs}")
    _, at, revision = to.rpartition("@")
    tag = revision if at and commit and not commit.startswith(revision) else ""
    return OtherRevision(
        to, files, commit, tag if tag not in ("HEAD", "main", "master") else ""
    )


def _here(library: Library, upstream: Upstream, to: str | None) -> OtherRevision:
    """Return a revision of the repository that the book stands in."""
    return _at_place(upstream, f"{top_of(library.root)}@{to}")


def _release(library: Library, upstream: Upstream, to: str | None) -> OtherRevision:
    from readerkit.upstreams.package_source import newest_like, serve_package

    package = upstream.package
    if package is None:
        raise SourceError("it has no package in upstreams.yaml")
    note_progress(f"{upstream.name}: asking the package index …")
    version = (
        meant_release(upstream.tag, package.version, to) if to else newest_like(package)
    )
    if version == package.version and to is None:
        raise SourceError(f"{package.name} {version} is the newest, and pinned already")
    other = replace(upstream, package=replace(package, version=version))
    note_progress(f"{upstream.name}: fetching {package.name} {version} …")
    served = serve_package(other, None)
    tag = upstream.tag.replace(package.version, version)
    has_commit = bool(upstream.commit) and package.version in upstream.tag
    return OtherRevision(
        served.origin, served.files, tag=tag if has_commit else "", release=version
    )


def meant_release(pinned_tag: str, pinned: str, to: str) -> str:
    """Return the release that is meant by its number, or by a tag like the pinned one.

    >>> meant_release("core_v0.16.1", "0.16.1", "core_v0.15.0")
    '0.15.0'
    """
    before, has_version, after = pinned_tag.partition(pinned)
    if has_version and to.startswith(before) and to.endswith(after):
        return to[len(before) : len(to) - len(after)]
    return to.removeprefix("v")


def _tag(library: Library, upstream: Upstream, to: str | None) -> OtherRevision:
    import tempfile

    from readerkit.upstreams import git_commands
    from readerkit.upstreams.git_source import serve_git

    if not upstream.url or to is None:
        raise SourceError("it has no repository in upstreams.yaml")
    try:
        commit, tag = parse_commit(to), ""
    except ValueError:
        with tempfile.TemporaryDirectory(prefix="readerkit-") as folder:
            repository = Path(folder) / "ask.git"
            git_commands.create_repository(repository, upstream.url)
            found = git_commands.remote_tag(repository, to)
        if not found:
            raise SourceError(f"{upstream.url} has no tag {to}") from None
        commit, tag = parse_commit(found), to
    other = replace(upstream, commit=commit, tag=tag)
    served = serve_git(other, None, library.store.root / "git")
    return OtherRevision(served.origin, served.files, commit, tag)


def commit_of(upstream: Upstream, target: OtherRevision) -> CommitId:
    """Return the commit of a release that a package brought, asked of its repository.

    Raises:
        SourceError: it cannot be asked, or has no such tag.
    """
    import tempfile

    from readerkit.upstreams import git_commands

    if target.commit or not upstream.commit:
        return target.commit
    with tempfile.TemporaryDirectory(prefix="readerkit-") as folder:
        repository = Path(folder) / "ask.git"
        git_commands.create_repository(repository, upstream.url)
        found = git_commands.remote_tag(repository, target.tag) if target.tag else ""
    if not found:
        raise SourceError(f"{upstream.url} has no tag {target.tag or '(unknown)'}")
    return parse_commit(found)
