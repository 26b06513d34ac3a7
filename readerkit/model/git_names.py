"""Names that git gives: a path inside a tree, the id of a blob, the id of a commit.

Each is a type of its own, and made here alone: where a file of a book, a tree or an
archive is read. So nothing that names a file can name one elsewhere, and no id leads
out of the cache. A ``ValueError`` says what is wrong; who reads the file adds where.
"""

from __future__ import annotations

import re
import unicodedata
from typing import NewType

from readerkit.model.invisible import is_unseen

TreePath = NewType("TreePath", str)
"""Slashes between its parts, from the top of a tree, to a file inside it."""
BlobId = NewType("BlobId", str)
"""Git's id of the bytes of a file; empty where there is none."""
CommitId = NewType("CommitId", str)
"""The full id of a commit; empty where nothing is pinned."""

NO_BLOB = BlobId("")
NO_COMMIT = CommitId("")

MAX_PATH_BYTES = 1_000
MAX_PART_BYTES = 240
"""What every file system takes, with room for the ``.html`` of a page behind it."""

_INSIDE = "a path inside the upstream, such as src/pages.py"
_DIGITS = "40 digits of 0-9 and a-f"
_ID = re.compile(r"[0-9a-f]{40}")
_UPSTREAM = re.compile(r"[a-z][a-z0-9-]{0,59}")
_MODULE = re.compile(r"[a-z][a-z0-9_]{0,59}")
_PLAIN = re.compile(r"(?:\w[\w.+-]*/)*\w[\w.+-]*", re.ASCII)
# What a file system that folds case, shortens names or drops their ends takes for .git.
_DOT_GIT = re.compile(r"\.git[. ]*(:.*)?|git~[0-9]+[. ]*", re.DOTALL)


def parse_path(value: object) -> TreePath:
    """Return a path that leads to a file inside its tree, wherever the tree stands.

    Raises:
        ValueError: any other value; says what is wrong with it.
    """
    if not isinstance(value, str):
        raise ValueError(f"path {_shown(value)} is no text: expected {_INSIDE}")
    if _PLAIN.fullmatch(value) and len(value) <= MAX_PART_BYTES:
        return TreePath(value)
    if problem := structure_problem(value) or _spelling_problem(value):
        raise ValueError(f"path {_shown(value)} {problem}: expected {_INSIDE}")
    return TreePath(value)


def parse_blob(value: object) -> BlobId:
    """Return the id of a blob.

    Raises:
        ValueError: any other value.
    """
    return BlobId(_whole(_ID, value, "blob id ", _DIGITS))


def parse_commit(value: object) -> CommitId:
    """Return the full id of a commit.

    Raises:
        ValueError: any other value.
    """
    return CommitId(_whole(_ID, value, "commit id ", _DIGITS))


def parse_upstream(value: object) -> str:
    """Return the name of an upstream, as ``upstreams.yaml`` gives it.

    Raises:
        ValueError: any other value.
    """
    return _whole(_UPSTREAM, value, "upstream ", "a name, such as core")


def parse_module(value: object) -> str:
    """Return the name of a module, as a mini and a comparison have it.

    Raises:
        ValueError: any other value.
    """
    return _whole(_MODULE, value, "", "a name, such as tensor_parallel")


def _whole(pattern: re.Pattern[str], value: object, what: str, expected: str) -> str:
    if isinstance(value, str) and pattern.fullmatch(value):
        return value
    raise ValueError(f"{what}{_shown(value)}: expected {expected}")


def parse_lines(first: object, last: object) -> tuple[int, int]:
    """Return the first and the last line of a place.

    Raises:
        ValueError: no whole numbers from 1 on, or the wrong way round.
    """
    if type(first) is int and type(last) is int and 0 < first <= last:
        return first, last
    got = f"{_shown(first)} to {_shown(last)}"
    raise ValueError(f"lines {got}: expected whole numbers from 1 on, in order")


def place_text(path: str, first: int, last: int) -> str:
    """Return lines of a file as editors know them.

    >>> place_text("a.py", 3, 5), place_text("a.py", 3, 3)
    ('a.py:3-5', 'a.py:3')
    """
    return f"{path}:{first}-{last}" if last > first else f"{path}:{first}"


def structure_problem(path: str) -> str:
    """Return why no tree and no archive may hold a path; empty: it may."""
    parts = path.split("/")
    if path.startswith("/") or "\\" in path or ":" in parts[0]:
        return "is absolute or not a POSIX path"
    if ".." in parts:
        return "leaves its upstream"
    if "\0" in path:
        return "holds a control character"
    if "" in parts or "." in parts:
        return "is not in its shortest form"
    return _git_folder_problem(parts)


def _git_folder_problem(parts: list[str]) -> str:
    """Return which part would be git's own folder, on whichever file system."""
    for part in parts:
        seen = "".join(letter for letter in part if not is_unseen(letter))
        if _DOT_GIT.fullmatch(unicodedata.normalize("NFKC", seen).casefold()):
            return f"goes through {_shown(part)}, git's own folder"
    return ""


def _spelling_problem(path: str) -> str:
    """Return why a path could not be written, or looks like another one."""
    sizes = [len(part.encode("utf-8", "surrogatepass")) for part in path.split("/")]
    if sum(sizes) + len(sizes) - 1 > MAX_PATH_BYTES or max(sizes) > MAX_PART_BYTES:
        most = f"{MAX_PATH_BYTES:,} bytes, and {MAX_PART_BYTES} between two slashes"
        return f"is longer than {most}"
    if path.isascii() and path.isprintable():
        return ""
    for letter in path:
        if ord(letter) < 32:
            return "holds a control character"
        # Half a surrogate pair stands for a byte that is not UTF-8: it is shown as one.
        if not "\udc80" <= letter <= "\udcff" and (
            is_unseen(letter) or (letter != " " and letter.isspace())
        ):
            return f"holds U+{ord(letter):04X}, which cannot be seen"
    if not unicodedata.is_normalized("NFC", path):
        return "is not in Unicode's form NFC, so that an equal one looks like it"
    return ""


def _shown(value: object) -> str:
    text = repr(value) if isinstance(value, str) else type(value).__name__
    return text if len(text) <= 80 else f"{text[:77]}..."
