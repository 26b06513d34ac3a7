"""Two revisions of a code base as trees to compare: folders, or commits by DIR@REV."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from readerkit.errors import WrongUseError
from readerkit.model.git_names import NO_COMMIT, BlobId, CommitId

MAX_FILE_BYTES = 64_000_000
"""A larger file is not read: no source is, and its lines would fill the memory."""
_SKIPPED = {".git", ".hg", ".svn", "node_modules", "__pycache__", ".venv"}


class FolderTree(Mapping[str, bytes]):
    """The files below a folder; links are not followed, nothing is kept."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.commit = NO_COMMIT
        self._paths: list[str] | None = None

    def __getitem__(self, path: str) -> bytes:
        """Return a file's bytes.

        Raises:
            KeyError: none, a link, behind a link, too large, or not to be read.
        """
        file = self.root
        try:
            for part in path.split("/"):
                file /= part
                if part in ("", ".", "..") or file.is_symlink():
                    raise KeyError(path)
            status = file.stat()
            if not stat.S_ISREG(status.st_mode) or status.st_size > MAX_FILE_BYTES:
                raise KeyError(path)
            return file.read_bytes()
        except (OSError, ValueError):
            raise KeyError(path) from None

    def __iter__(self) -> Iterator[str]:
        """Yield the paths of all files, in order."""
        if self._paths is None:
            self._paths = sorted(self._walk())
        return iter(self._paths)

    def __len__(self) -> int:
        """Return how many files there are."""
        return sum(1 for _ in self)

    def _walk(self) -> Iterator[str]:
        for top, folders, names in os.walk(self.root):
            folders[:] = [name for name in folders if name not in _SKIPPED]
            below = Path(top).relative_to(self.root)
            yield from ((below / name).as_posix() for name in names)


class CommitTree(Mapping[str, bytes]):
    """The files of a commit; those asked for first are read alone, then all at once."""

    def __init__(
        self, repository: Path, blobs: Mapping[str, BlobId], commit: CommitId
    ) -> None:
        self.repository, self._blobs, self.commit = repository, blobs, commit
        self._read: dict[BlobId, bytes] = {}
        self._has_all = False

    def preload(self, paths: Iterable[str]) -> None:
        """Read some files at once, those that are there."""
        self._load(self._blobs[path] for path in paths if path in self._blobs)

    def __getitem__(self, path: str) -> bytes:
        """Return a file's bytes.

        Raises:
            KeyError: the commit has none, the repository lacks it, it is too large.
        """
        blob = self._blobs[path]
        if blob not in self._read and not self._has_all:
            self._has_all = True
            self._load(self._blobs.values())
        return self._read[blob]

    def __iter__(self) -> Iterator[str]:
        """Yield the paths of all files."""
        return iter(self._blobs)

    def __len__(self) -> int:
        """Return how many files there are."""
        return len(self._blobs)

    def _load(self, blobs: Iterable[BlobId]) -> None:
        from readerkit.upstreams import git_commands

        wanted = {blob for blob in blobs if blob not in self._read}
        sizes = git_commands.sizes(self.repository, wanted)
        small = [blob for blob, size in sizes.items() if size <= MAX_FILE_BYTES]
        if small:
            self._read |= git_commands.read_blobs(self.repository, sorted(small))


@contextmanager
def open_tree(given: str) -> Iterator[FolderTree | CommitTree]:
    """Yield the files of a folder, of a bare repository's HEAD, or of DIR@REV.

    A folder with an ``@`` in its name is that folder. Nothing of a repository's own
    settings is used, and nothing in it is changed.

    Raises:
        WrongUseError: neither; says what was expected.
        SourceError: no such revision.
    """
    path = Path(given).expanduser()
    folder, at, revision = given.rpartition("@")
    if path.is_dir():
        bare = (path / "objects").is_dir() and (path / "HEAD").is_file()
        if not bare:
            files = FolderTree(path.absolute())
            if not files:
                raise WrongUseError(
                    f"got the folder {given} without a file, expected code"
                )
            yield files
            return
        folder, at, revision = given, "@", "HEAD"
    root = Path(folder).expanduser()
    if not at or not revision or not root.is_dir():
        raise WrongUseError(
            f"got '{given}', expected a folder, or a git directory and one of its "
            "revisions as DIR@REV, such as ~/src/project@v1.2"
        )
    with _commit_tree(root.absolute(), revision) as tree:
        yield tree


@contextmanager
def _commit_tree(root: Path, revision: str) -> Iterator[CommitTree]:
    import tempfile

    from readerkit.upstreams import git_commands

    commit = git_commands.resolve(root, revision)
    with tempfile.TemporaryDirectory(prefix="readerkit-") as folder:
        lent = Path(folder) / "lent.git"
        git_commands.lend_objects(lent, root)
        yield CommitTree(lent, git_commands.tree(lent, commit).blobs, commit)
