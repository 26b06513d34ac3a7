"""Every git call; the only importer of GitPython, itself imported only to fetch.

A bare repository, and nothing of anyone's configuration: the caller's ``GIT_*``
variables and ``~/.gitconfig`` would reach git otherwise, and GitPython's ``env=`` can
add variables but not take any away. Hooks, helpers, tags, submodules, work trees and
automatic maintenance are off. Every call is a session of its own, ended as a whole when
its time is up: GitPython's ``kill_after_timeout`` needs ``ps`` to find git's helpers,
and waits for those it did not find.
"""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import tempfile
import threading
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from readerkit.errors import SourceError
from readerkit.model.git_names import BlobId, CommitId, parse_blob, parse_commit
from readerkit.system.children import end_with_parent
from readerkit.upstreams.git_address import check_address

PROBE_SECONDS = 20
"""A firewall that swallows packets must not hold the reader up for minutes."""
TRANSFER_SECONDS = 600
_TRANSFERS = ("fetch", "ls-remote")
"""What may last, and so ends with us. The rest is over before anybody could miss it."""
_LINK = "120000"
"""The mode of a symbolic link in a tree."""

_SETTINGS = {
    "core.hooksPath": os.devnull,
    "core.askPass": "",
    "credential.helper": "",
    "fetch.negotiationAlgorithm": "noop",
    "fetch.recurseSubmodules": "false",
    "fetch.writeCommitGraph": "false",
    # What git only warns of, because old repositories hold it.
    "fsck.badFilemode": "error",
    "fsck.emptyName": "error",
    "fsck.fullPathname": "error",
    "fsck.hasDot": "error",
    "fsck.hasDotdot": "error",
    "fsck.hasDotgit": "error",
    "fsck.nullSha1": "error",
    "fsck.zeroPaddedFilemode": "error",
    "gc.auto": "0",
    "http.lowSpeedLimit": "1000",
    "http.lowSpeedTime": str(PROBE_SECONDS),
    "maintenance.auto": "false",
    "protocol.allow": "never",
}
_ENVIRONMENT = {
    "GIT_CONFIG_NOSYSTEM": "1",
    "GIT_CONFIG_GLOBAL": os.devnull,
    "GIT_TERMINAL_PROMPT": "0",
    "GIT_OPTIONAL_LOCKS": "0",
    "GIT_NO_LAZY_FETCH": "1",
    # Without a git binary GitPython must still import, so that the error can be ours.
    "GIT_PYTHON_REFRESH": "quiet",
}
_swap = threading.Lock()


@contextmanager
def _own_environment() -> Iterator[None]:
    """Hide the caller's git variables from the child; GitPython copies os.environ."""
    with _swap:
        saved = {
            key: os.environ.pop(key)
            for key in list(os.environ)
            if key.startswith("GIT_")
        }
        os.environ.update(_ENVIRONMENT)
        try:
            yield
        finally:
            for key in _ENVIRONMENT:
                os.environ.pop(key, None)
            os.environ.update(saved)


with _own_environment():  # the import itself runs git, or whatever a variable names
    try:
        from git import Git
        from git.exc import GitCommandNotFound
    except ImportError as error:  # a git that fails, or tells no version
        raise SourceError(f"git cannot be used: {error}") from None


def _git(
    repository: Path | None,
    *arguments: str,
    stdin: bytes = b"",
    seconds: float | None = None,
) -> bytes:
    """Run git and return its output.

    Raises:
        SourceError: git is missing, failed (its own words), or did not end in time.
    """
    limit = TRANSFER_SECONDS if seconds is None else seconds
    settings = [
        part for key, value in _SETTINGS.items() for part in ("-c", f"{key}={value}")
    ]
    place = [f"--git-dir={repository}"] if repository else []
    with tempfile.TemporaryFile() as given, _own_environment():
        given.write(stdin)
        given.seek(0)
        try:
            process = Git(os.sep).execute(
                ["git", *settings, *place, *arguments],
                istream=given,
                as_process=True,
                start_new_session=True,
                # With it the kernel copies our page tables: 50 ms for each GB we hold.
                preexec_fn=end_with_parent if arguments[0] in _TRANSFERS else None,
            )
        except GitCommandNotFound:
            raise SourceError("git is not installed, or not on PATH") from None
        except OSError as error:
            raise SourceError(f"git cannot be run: {error.strerror}") from None
        try:
            output, said = process.communicate(timeout=limit)
        except subprocess.TimeoutExpired:
            raise SourceError(
                f"git {arguments[0]}: no answer within {limit:g} s"
            ) from None
        finally:
            if process.poll() is None:  # out of time, or interrupted
                os.killpg(process.pid, signal.SIGKILL)
                process.communicate()
    if process.returncode:
        raise SourceError(f"git {arguments[0]}: {_reason(said, process.returncode)}")
    assert isinstance(output, bytes)  # what a process without a text mode gives
    return output


def _reason(said: bytes, status: int) -> str:
    """Return the one line of git's own words that says what went wrong."""
    # A line that ends with a colon has its reason on the next one.
    text = said.decode("utf-8", "replace").replace(":\n", ": ")
    lines = [line.strip() for line in text.splitlines()]
    telling = [line for line in lines if line.startswith(("fatal:", "error"))]
    return next(iter([*telling, *filter(None, lines)]), f"exit code {status}")


def create_repository(path: Path, url: str, *, is_named: bool = False) -> None:
    """Make ``path`` a bare repository that fetches from ``url``, if it is not yet.

    It can use the scheme of that address and no other: a server cannot lead on to what
    nobody allowed. An address that the reader named may be any.

    Raises:
        SourceError: an address that is refused; nothing was started for it.
    """
    if not is_named:
        check_address(url)
    if not (path / "HEAD").exists():
        path.parent.mkdir(parents=True, exist_ok=True)
        _git(None, "init", "--quiet", "--bare", "--template=", str(path))
    scheme = url.partition("://")[0]
    _git(path, "config", f"protocol.{scheme}.allow", "always")
    _git(path, "config", "remote.origin.url", url)


def lend_objects(path: Path, root: Path) -> str:
    """Return the address of a new bare repository with the objects of a local one.

    It has none of that one's settings: of a partial clone it sends any object that is
    there, where the clone itself would try to send what it lacks.

    Raises:
        SourceError: git does not read that repository, such as another user's.
    """
    ask = ("rev-parse", "--path-format=absolute", "--git-path")
    objects, shallow = (
        os.fsdecode(_git(None, "-C", str(root), *ask, name).removesuffix(b"\n"))
        for name in ("objects", "shallow")
    )
    _git(None, "init", "--quiet", "--bare", "--template=", str(path))
    (path / "objects" / "info").mkdir(exist_ok=True)
    (path / "objects" / "info" / "alternates").write_text(f"{objects}\n")
    with contextlib.suppress(FileNotFoundError):  # where its history ends, if it does
        (path / "shallow").write_bytes(Path(shallow).read_bytes())
    for key in ("uploadpack.allowFilter", "uploadpack.allowAnySHA1InWant"):
        _git(path, "config", key, "true")
    return path.as_uri()


def remote_tag(repository: Path, tag: str) -> str:
    """Return the commit that ``tag`` points at on the server; empty without the tag."""
    name = f"refs/tags/{tag}"
    arguments = ("ls-remote", "origin", name, f"{name}^{{}}")
    output = _git(repository, *arguments, seconds=PROBE_SECONDS).decode()
    ids = {
        ref: commit for commit, ref in (row.split("\t") for row in output.splitlines())
    }
    return ids.get(f"{name}^{{}}") or ids.get(name, "")


def remote_head(repository: Path) -> str:
    """Return the commit of the server's default branch.

    Raises:
        SourceError: a server without one, such as an empty repository.
    """
    output = _git(repository, "ls-remote", "origin", "HEAD", seconds=PROBE_SECONDS)
    commit = output.decode().partition("\t")[0]
    if not commit:
        raise SourceError("it has no commit yet")
    return commit


def fetch_commit(repository: Path, commit: CommitId) -> None:
    """Fetch one commit and its trees: no history, and no blobs if the server can."""
    options = ("--quiet", "--depth=1", "--filter=blob:none", "--no-tags")
    _git(repository, "fetch", *options, "--no-write-fetch-head", "origin", commit)


def fetch_blobs(repository: Path, blobs: Iterable[BlobId]) -> None:
    """Fetch blobs by id, all in one batch."""
    ids = "".join(f"{blob}\n" for blob in blobs).encode()
    options = ("--quiet", "--filter=blob:none", "--no-tags", "--stdin")
    _git(repository, "fetch", *options, "--no-write-fetch-head", "origin", stdin=ids)


def check_trees(repository: Path) -> None:
    """Hold every fetched tree against git's own rules for names and modes.

    Raises:
        SourceError: a tree with an entry named ``..``, ``.git`` in any spelling, twice,
            through a slash, or of a mode that git does not write; names the object.
    """
    _git(repository, "fsck", "--no-dangling", "--no-reflogs", "--no-progress")


@dataclass(frozen=True, slots=True)
class Tree:
    """The files and the links of a commit, by path; what else it holds is left out."""

    blobs: dict[str, BlobId]
    links: frozenset[str]


def tree(repository: Path, commit: CommitId) -> Tree:
    """Return the tree of a commit.

    Its trees were checked: what is in them is a path inside it.
    """
    output = _git(repository, "ls-tree", "-r", "-z", "--full-tree", commit)
    blobs, links = {}, set()
    for row in filter(None, output.split(b"\0")):
        head, _, name = row.partition(b"\t")
        path = name.decode("utf-8", "surrogateescape")
        mode, _, blob = head.decode().split()
        if mode == _LINK:
            links.add(path)
        elif mode.startswith("100"):
            blobs[path] = parse_blob(blob)
    return Tree(blobs, frozenset(links))


def resolve(root: Path, revision: str) -> CommitId:
    """Return the commit that a name stands for in a local repository.

    Raises:
        SourceError: no such commit, or a repository that git does not read.
    """
    ask = ("rev-parse", "--verify", "--quiet", "--end-of-options")
    try:
        found = _git(None, "-C", str(root), *ask, f"{revision}^{{commit}}")
        return parse_commit(found.decode().strip())
    except (SourceError, ValueError):
        raise SourceError(f"{root} has no commit called '{revision}'") from None


def sizes(repository: Path, blobs: Iterable[BlobId]) -> dict[BlobId, int]:
    """Return how large those of some blobs are that a repository holds, in bytes."""
    ids = "".join(f"{blob}\n" for blob in sorted(set(blobs))).encode()
    rows = (
        row.split()
        for row in _git(repository, "cat-file", "--batch-check", stdin=ids).splitlines()
    )
    return {
        parse_blob(row[0].decode()): int(row[2])
        for row in rows
        if len(row) == 3 and row[1] == b"blob"
    }


def lacking(repository: Path, blobs: Iterable[BlobId]) -> set[BlobId]:
    """Return those of some blobs that a repository does not hold."""
    wanted = sorted(set(blobs))
    ids = "".join(f"{blob}\n" for blob in wanted).encode()
    rows = _git(repository, "cat-file", "--batch-check", stdin=ids).splitlines()
    held = [row.split()[1] == b"blob" for row in rows]
    return {blob for blob, is_held in zip(wanted, held, strict=True) if not is_held}


def read_blobs(repository: Path, blobs: Iterable[BlobId]) -> dict[BlobId, bytes]:
    """Return the bytes of fetched blobs, unverified, by id; no other object's.

    Altered objects come back with exit code 0 from git: the caller hashes what it got.

    Raises:
        SourceError: a blob that was not fetched; it is not fetched now either.
    """
    ids = "".join(f"{blob}\n" for blob in blobs).encode()
    output = _git(repository, "cat-file", "--batch", stdin=ids)
    found, position = {}, 0
    while position < len(output):
        end = output.index(b"\n", position)
        head = output[position:end].split()
        position = end + 1
        if len(head) == 3 and head[1] == b"blob":
            size = int(head[2])
            found[parse_blob(head[0].decode())] = output[position : position + size]
            position += size + 1
    return found
