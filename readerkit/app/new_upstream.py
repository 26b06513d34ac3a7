"""What a new book is to be about: a repository here, at an address, or a package."""

from __future__ import annotations

import re
import sys
import tempfile
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from readerkit.errors import ReaderkitError, SourceError, WrongUseError
from readerkit.model.code_languages import ENDINGS, titles_here
from readerkit.model.git_names import BlobId, CommitId, TreePath
from readerkit.upstreams import BlobStore, Lock, Upstream
from readerkit.upstreams.book_repository import living_files, top_of
from readerkit.upstreams.licence_text import (
    LICENCE_FILES,
    licence_files,
    licence_of,
)
from readerkit.upstreams.source_protocol import MAX_MEMBER_BYTES
from readerkit.upstreams.upstream import Licence, Package, Wheel
from readerkit.wording.next_command import typed

Read = Callable[[TreePath], bytes]

_PACKAGE = re.compile(
    r"(?P<name>[A-Za-z0-9][A-Za-z0-9._-]*)(==(?P<version>[A-Za-z0-9._+!-]+))?"
)


@dataclass(frozen=True, slots=True)
class NewUpstream:
    """An upstream that is to be written, and its files as they are at hand."""

    upstream: Upstream
    paths: tuple[TreePath, ...]
    read: Read
    lock: Lock | None = None
    """Of what is pinned."""
    written: dict[str, Any] = field(default_factory=dict)
    """Its entry in ``upstreams.yaml``."""


def every_ending() -> tuple[str, ...]:
    """Return a glob for each ending of a language that can be read here."""
    return tuple(
        f"**/*{ending}"
        for ending, language in ENDINGS.items()
        if language.is_here and language.is_program
    )


def is_address(subject: str) -> bool:
    """Tell whether a subject is the address of a repository."""
    return "://" in subject or bool(re.match(r"[\w.-]+@[\w.-]+:", subject))


def name_for(subject: str) -> str:
    """Return what an upstream is called by the last part of what it comes from."""
    last = subject.rstrip("/").rpartition("/")[2].removesuffix(".git")
    last = last.partition("==")[0]
    words = re.sub(r"[^a-z0-9]+", "-", last.lower()).strip("-")
    return re.sub(r"^[^a-z]+", "", words)[:60] or "code"


def here(name: str, book: Path, include: Iterable[str]) -> NewUpstream:
    """Return the repository around a book, as its files are now.

    Raises:
        ReaderkitError: none of its files is of a language that is read.
    """
    wanted = tuple(include) or every_ending()
    if (top_of(book) / "objects").is_dir() and (top_of(book) / "HEAD").is_file():
        raise WrongUseError(
            f"{top_of(book)}: got a bare repository, expected one with its files: "
            f"git clone it, then {typed('init', 'THE CLONE')}"
        )
    everything = Upstream(name, name, wanted, worktree=True)
    files = living_files(book, everything)
    top = top_of(book)
    large = sorted(
        p for p in files.paths if (top / p).stat().st_size > MAX_MEMBER_BYTES
    )
    paths = tuple(sorted(files.paths - {*large}))
    if large and not paths:
        raise WrongUseError(
            f"{top}: no file to read: {large[0]} has "
            f"{(top / large[0]).stat().st_size:,} bytes, expected at most "
            f"{MAX_MEMBER_BYTES:,}: name others with --include"
        )
    kept = _kept(wanted, paths, top, is_given=bool(tuple(include)))
    upstream = Upstream(name, name, kept, exclude=tuple(large), worktree=True)
    written = {"name": name, "title": name, "worktree": True, "include": [*kept]}
    written |= {"exclude": large} if large else {}  # no page could show them
    return NewUpstream(upstream, paths, files.read, None, written)


def from_address(
    url: str, name: str, include: Iterable[str], store: BlobStore
) -> NewUpstream:
    """Return a repository at an address, pinned at what its default branch is now.

    Raises:
        ReaderkitError: no repository there, an address that is refused, no file that
            is read, or none that says whose text it is.
    """
    from readerkit.upstreams import git_commands
    from readerkit.upstreams.fetch import list_files
    from readerkit.upstreams.git_address import check_address

    check_address(url)
    with tempfile.TemporaryDirectory(prefix="readerkit-") as folder:
        git_commands.create_repository(Path(folder), url)
        commit = CommitId(git_commands.remote_head(Path(folder)))
    wanted = tuple(include) or every_ending()
    asked = Upstream(name, name, (*wanted, *LICENCE_FILES), url=url, commit=commit)
    files = list_files(asked, store, sources=("git",), report=_quiet)
    licence = _licence(files, store, name)
    files = {
        path: blob
        for path, blob in files.items()
        if Upstream(name, name, wanted).includes(path)
    }
    kept = _kept(wanted, files, url, is_given=bool(tuple(include)))
    upstream = Upstream(name, name, kept, url=url, commit=commit, licence=licence)
    rights = {"spdx": licence.spdx, "path": licence.path, "holder": licence.holder}
    written: dict[str, Any] = {"name": name, "title": name, "url": url}
    written |= {"commit": str(commit)}
    written |= {"include": [*kept], "licence": rights}
    return _pinned(upstream, files, store, written)


def from_package(
    subject: str, name: str, include: Iterable[str], store: BlobStore
) -> NewUpstream:
    """Return a release of a package: the one that is named, installed, or newest.

    Raises:
        ReaderkitError: no such package or release, or no file that is read.
    """
    from readerkit.upstreams.fetch import list_files
    from readerkit.upstreams.installed_source import (
        import_name,
        installed_version,
        linked_folder,
    )
    from readerkit.upstreams.package_source import newest_release

    match = _PACKAGE.fullmatch(subject)
    if match is None:
        raise WrongUseError(
            f"{subject}: got neither a folder that is there, nor an address, nor the "
            "name of a package: expected one of them"
        )
    project, version = match["name"], match["version"] or ""
    own = installed_version(project)
    if not version and own and (folder := linked_folder(project)):
        there = typed("init", folder)
        raise WrongUseError(
            f"{subject}: got a package that is installed as a link to {folder}, where "
            f"it is edited: expected that folder, {there}, or a release of the index, "
            f"{subject}==RELEASE"
        )
    installed = import_name(project) if own and version in ("", own) else ""
    try:
        wheel = None
        if not installed:
            version, is_pure = newest_release(project, version)
            python = f"{sys.version_info.major}.{sys.version_info.minor}"
            wheel = Wheel(python, "any") if is_pure else None
        package = Package(project, version or own, wheel)
        top = f"{installed}/" if installed else ""
        wanted = tuple(include) or tuple(f"{top}{each}" for each in every_ending())
        asked = Upstream(name, name, wanted, package=package, installed=installed)
        order = ("installed",) if installed else ("package",)
        files = list_files(asked, store, sources=order, report=_quiet)
    except SourceError as error:
        no_folder = "" if own or version else "no folder of that name is here, and "
        raise ReaderkitError(f"{subject}: {no_folder}{error}") from None
    kept = _kept(wanted, files, subject, is_given=bool(tuple(include)))
    upstream = Upstream(name, name, kept, package=package, installed=installed)
    release: dict[str, Any] = {"name": project, "version": package.version}
    if wheel:
        release["wheel"] = {"python": wheel.python, "platform": wheel.platform}
    written: dict[str, Any] = {"name": name, "title": name, "include": [*kept]}
    written |= {"package": release}
    written |= {"installed": installed} if installed else {}
    return _pinned(upstream, files, store, written)


def _pinned(
    upstream: Upstream,
    files: dict[TreePath, BlobId],
    store: BlobStore,
    written: dict[str, Any],
) -> NewUpstream:
    def read(path: TreePath) -> bytes:
        return store.read(files[path]) or b""

    version = upstream.package.version if upstream.package else ""
    lock = Lock(upstream.commit, files, tag=version)
    return NewUpstream(upstream, tuple(sorted(files)), read, lock, written)


def _kept(
    globs: tuple[str, ...], paths: Iterable[str], where: object, *, is_given: bool
) -> tuple[str, ...]:
    """Return the globs that stand for a file at all; those that were typed must."""
    every = [*paths]
    fitting = {
        g for g in globs if any(Upstream("x", "x", (g,)).includes(p) for p in every)
    }
    if not fitting or (is_given and len(fitting) < len({*globs})):
        lacking = ", ".join(g for g in globs if g not in fitting)
        titles = titles_here()
        raise WrongUseError(
            f"{where}: no file to read: expected "
            + (
                f"a glob that fits a file, got {lacking}"
                if is_given
                else f"one of {titles}, by its ending"
            )
        )
    return tuple(glob for glob in globs if glob in fitting)


def _licence(files: dict[TreePath, BlobId], store: BlobStore, name: str) -> Licence:
    found = licence_files(files)
    if not found:
        raise ReaderkitError(
            f"{name}: no file LICENSE, LICENCE or COPYING at its top: whose text it is "
            "has to stand in the book; write upstreams.yaml by hand, or clone it and "
            + typed("init", "THE CLONE")
        )
    path = TreePath(found[0])
    text = (store.read(files[path]) or b"").decode("utf-8", "replace")
    return licence_of(text, path, name)


def _quiet(line: str) -> None:
    """Say nothing: what came is told once the book is written."""
