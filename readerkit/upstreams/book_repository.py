"""The repository that a book stands in: its files as they are now, or a branch of it.

It is the reader's own, so that git is asked where it is, without GitPython, whose
import takes longer than a check may. Still no hook, no monitor of it is started.
"""

from __future__ import annotations

import os
import stat
import subprocess
from collections.abc import Callable, Container, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from readerkit.errors import SourceError
from readerkit.model.git_names import BlobId, TreePath, parse_blob, parse_path
from readerkit.upstreams.folder_source import read_file
from readerkit.upstreams.source_protocol import MAX_MEMBER_BYTES
from readerkit.upstreams.store import blob_id
from readerkit.upstreams.upstream import Upstream

GIT_SECONDS = 20
_SAFE = ("-c", "core.fsmonitor=false", "-c", f"core.hooksPath={os.devnull}")
_FILE_MODES = ("100644", "100755", "100664")
_SKIPPED = {"node_modules", "__pycache__", "build", "dist", "target", "venv"}
"""Folders that a tree without git is not asked for."""


@dataclass(frozen=True, slots=True)
class LivingFiles:
    """What is read of a repository: the paths there are, and the bytes of each."""

    paths: frozenset[TreePath]
    read: Callable[[TreePath], bytes]


def top_of(book: Path) -> Path:
    """Return the repository that a book stands in; without git, the folder around it.

    Never what a book names: one that came with a clone sees no more than the clone.
    """
    real = book.resolve()
    tops = (real, *real.parents)
    return next((each for each in tops if (each / ".git").exists()), real.parent)


def head_of(top: Path) -> str:
    """Return the commit that is checked out; empty where there is none."""
    try:
        return _git(top, "rev-parse", "--verify", "--quiet", "HEAD").decode().strip()
    except SourceError:
        return ""


def refs_of(top: Path) -> list[str]:
    """Return the branches and tags of a repository; none where git tells none."""
    asked = ("for-each-ref", "--format=%(refname:short)", "refs/heads", "refs/tags")
    try:
        return _git(top, *asked).decode("utf-8", "replace").split()
    except SourceError:
        return []


def author_of(top: Path) -> str:
    """Return the name that git gives to whoever works here; empty without one."""
    try:
        return _git(top, "config", "user.name").decode("utf-8", "replace").strip()
    except SourceError:
        return ""


def living_files(
    book: Path, upstream: Upstream, noted: Container[str] | None = None
) -> LivingFiles:
    """Return the files of the repository around a book that an upstream includes.

    The book's own folder is not among them, nor are links. Where files are ``noted``,
    no other is there that is too large to be read; who asks for their lines is told so.

    Raises:
        SourceError: no such branch, or a repository that git does not read.
    """
    top = top_of(book)
    own = book.resolve().relative_to(top).as_posix() + "/"
    if upstream.branch:
        blobs = _branch_blobs(top, upstream, own)
        return LivingFiles(frozenset(blobs), lambda path: _blob(top, blobs, path))
    found = frozenset(
        path
        for path in _included(_names(top), upstream, own)
        if _is_file(f"{top}/{path}", is_noted=noted is None or path in noted)
    )
    if noted and not found:
        raise SourceError(
            f"{upstream.name}: {top} has no file of it: expected the book in the "
            f"repository that it is about, with {', '.join(upstream.include)}"
        )
    return LivingFiles(found, lambda path: read_file(top, path))


def _is_file(path: str, *, is_noted: bool) -> bool:
    """Tell whether there is a file, and no link to one, of a size that is read."""
    try:
        known = os.lstat(path)
        may_be_read = is_noted or known.st_size <= MAX_MEMBER_BYTES
        return may_be_read and stat.S_ISREG(known.st_mode)
    except (OSError, ValueError):
        return False


def submodules_of(top: Path) -> list[str]:
    """Return the other repositories that git keeps in this one: they are not read."""
    try:
        rows = _git(top, "ls-files", "-z", "--stage").split(b"\0")
    except SourceError:
        return []
    links = [row.partition(b"\t")[2] for row in rows if row.startswith(b"160000 ")]
    return [path.decode("utf-8", "surrogateescape") for path in links]


def _included(names: Iterable[str], upstream: Upstream, own: str) -> list[TreePath]:
    """Return what an upstream includes; a name that no note could write is none."""
    found = []
    for name in names:
        if name.startswith(own) or not upstream.includes(name):
            continue
        try:
            name.encode()  # bytes that are no UTF-8 stand in no YAML
            found.append(parse_path(name))
        except ValueError:
            continue
    return found


def _names(top: Path) -> list[str]:
    if not (top / ".git").exists():
        return _walked(top)
    asked = ("ls-files", "-z", "--cached", "--others", "--exclude-standard")
    rows = _git(top, *asked).split(b"\0")
    return [row.decode("utf-8", "surrogateescape") for row in rows if row]


def _walked(top: Path) -> list[str]:
    found = []
    for folder, folders, names in os.walk(top):
        folders[:] = [
            name for name in folders if name[0] != "." and name not in _SKIPPED
        ]
        below = Path(folder).relative_to(top)
        found += [(below / name).as_posix() for name in names]
    return found


def _branch_blobs(top: Path, upstream: Upstream, own: str) -> dict[TreePath, BlobId]:
    ref = f"refs/heads/{upstream.branch}"
    try:
        output = _git(top, "ls-tree", "-r", "-z", "--full-tree", ref)
    except SourceError:
        raise SourceError(
            f"{upstream.name}: {top} has no branch '{upstream.branch}': make it, or "
            "name another one in annotations/upstreams.yaml"
        ) from None
    blobs = {}
    for row in filter(None, output.split(b"\0")):
        head, _, name = row.partition(b"\t")
        mode, _, blob = head.decode().split()
        if mode in _FILE_MODES:
            blobs[name.decode("utf-8", "surrogateescape")] = parse_blob(blob)
    return {path: blobs[path] for path in _included(blobs, upstream, own)}


def _blob(top: Path, blobs: Mapping[TreePath, BlobId], path: TreePath) -> bytes:
    size = int(_git(top, "cat-file", "-s", blobs[path]))
    if size > MAX_MEMBER_BYTES:
        raise SourceError(
            f"{path} is too large: got {size:,} bytes, expected at most "
            f"{MAX_MEMBER_BYTES:,}"
        )
    data = _git(top, "cat-file", "blob", blobs[path])
    if blob_id(data) != blobs[path]:
        raise SourceError(f"{path} is damaged in {top}: git gave other bytes")
    return data


def _git(top: Path, *arguments: str) -> bytes:
    """Run git in a repository of the reader's own and return what it printed."""
    # In a hook these name the hook's own index and folder.
    env = {k: v for k, v in os.environ.items() if not k.startswith("GIT_")}
    env |= {"GIT_OPTIONAL_LOCKS": "0", "GIT_TERMINAL_PROMPT": "0"}
    try:
        done = subprocess.run(
            ["git", *_SAFE, "-C", str(top), *arguments],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            env=env,
            timeout=GIT_SECONDS,
            check=False,
        )
    except FileNotFoundError:
        raise SourceError("git is not installed, or not on PATH") from None
    except (OSError, subprocess.TimeoutExpired) as error:
        raise SourceError(f"git cannot be run in {top}: {error}") from None
    if done.returncode:
        said = done.stderr.decode("utf-8", "replace").strip().splitlines()
        raise SourceError(
            f"git {arguments[0]} in {top}: {said[0] if said else 'fails'}"
        )
    return done.stdout
