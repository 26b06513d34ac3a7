"""The members of a wheel or an sdist, by name; nothing is unpacked.

An archive with a member that no honest one has is refused as a whole: a name that leads
out of it or stands there twice, a link, a device, an encrypted file, or more bytes than
any release holds.
"""

from __future__ import annotations

import stat
import tarfile
import unicodedata
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import IO

from readerkit.errors import SourceError
from readerkit.model.git_names import structure_problem

MAX_ARCHIVE_BYTES = 1_500_000_000
MAX_MEMBERS = 200_000
MAX_UNPACKED_BYTES = 8_000_000_000

Member = tuple[str, int, IO[bytes]]
"""The path of a file inside the archive, the size it claims, and its bytes."""


class _SeenNames:
    """What an archive has shown so far: each name once, and not too much in all."""

    def __init__(self, archive: Path) -> None:
        self._archive = archive.name
        self._seen: dict[str, str] = {}
        self._bytes = 0

    def refuse(self, name: str, problem: str) -> SourceError:
        return SourceError(f"{self._archive} is refused: its member {name!r} {problem}")

    def check(self, name: str, size: int) -> None:
        """Take one more file.

        Raises:
            SourceError: a name or a size that no honest archive has.
        """
        if problem := structure_problem(name):
            raise self.refuse(name, problem)
        same = unicodedata.normalize("NFC", name).casefold()
        if same in self._seen:
            other = (
                "" if self._seen[same] == name else f", once as {self._seen[same]!r}"
            )
            raise self.refuse(name, f"is in it twice{other}")
        self._seen[same] = name
        self._bytes += size
        if len(self._seen) > MAX_MEMBERS:
            raise SourceError(f"{self._archive} has over {MAX_MEMBERS:,} members")
        if self._bytes > MAX_UNPACKED_BYTES:
            most = f"expected at most {MAX_UNPACKED_BYTES:,}"
            raise self.refuse(name, f"makes it {self._bytes:,} bytes unpacked, {most}")


def wheel_members(archive: Path) -> Iterator[Member]:
    """Yield the files of a wheel, every member of it checked before the first.

    Raises:
        SourceError: an archive that is refused.
    """
    _check_size(archive)
    names = _SeenNames(archive)
    with zipfile.ZipFile(archive) as wheel:
        files = []
        for member in wheel.infolist():
            name = member.orig_filename  # the other one ends at a NUL
            kind = stat.S_IFMT(member.external_attr >> 16)
            if kind == stat.S_IFLNK:
                raise names.refuse(name, "is a link, and links are never followed")
            if kind not in (0, stat.S_IFREG, stat.S_IFDIR):
                raise names.refuse(name, "is neither a file nor a folder")
            if member.flag_bits & 1:
                raise names.refuse(name, "is encrypted")
            if name.endswith("/"):
                _check_folder(names, name)
                continue
            names.check(name, member.file_size)
            files.append(member)
        for member in files:
            with wheel.open(member) as stream:
                yield member.filename, member.file_size, stream


def sdist_members(archive: Path) -> Iterator[Member]:
    """Yield the files of an sdist by their path below its one folder.

    It is read once from front to back, so what is refused may stand behind a file.

    Raises:
        SourceError: an archive that is refused.
    """
    _check_size(archive)
    names = _SeenNames(archive)
    with tarfile.open(archive, "r|*") as sdist:
        for member in sdist:
            if member.issym() or member.islnk():
                problem = "is a link, and links are never followed"
                raise names.refuse(member.name, problem)
            if member.isdir():
                _check_folder(names, member.name)
                continue
            stream = sdist.extractfile(member) if member.isreg() else None
            if stream is None:
                raise names.refuse(member.name, "is neither a file nor a folder")
            names.check(member.name, member.size)
            yield member.name.partition("/")[2], member.size, stream


def _check_size(archive: Path) -> None:
    if archive.stat().st_size > MAX_ARCHIVE_BYTES:
        raise SourceError(f"{archive.name} is over {MAX_ARCHIVE_BYTES:,} bytes")


def _check_folder(names: _SeenNames, name: str) -> None:
    if problem := structure_problem(name.removesuffix("/")):
        raise names.refuse(name, problem)
