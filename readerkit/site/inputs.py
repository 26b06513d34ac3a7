"""The files that a site is made of, and a digest of them: nothing changed, no build."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from readerkit.app.folders import (
    PACKAGE,
    cache_folder,
    data_folder,
    irregular,
    shipped_book,
)
from readerkit.errors import ReaderkitError

STATE = ".readerkit"
"""In the site: what it was made of, and what was written."""


OUR_TOPS = (PACKAGE / "data", PACKAGE.parent)
"""Where the site's own templates are: in the wheel, in a checkout."""


@dataclass(frozen=True, slots=True)
class Inputs:
    """Where everything is that a site is made of."""

    book: Path
    mine: Path
    """The reader's overlay."""
    site: Path
    """Templates and theme."""
    minis: Path
    own_records: Path
    cache: Path

    def below(self, folder: str) -> list[Path]:
        """Return the files of a folder of the site, in order."""
        return sorted(p for p in (self.site / folder).iterdir() if p.is_file())

    def records(self) -> Iterator[Path]:
        """Yield the records, those of the reader last."""
        yield from sorted((self.book / "annotations" / "records").glob("*.json"))
        yield from sorted(self.own_records.glob("*.json"))

    def watched(self) -> list[Path]:
        """Return the folders whose changes a running server takes up."""
        folders = [self.book / "annotations", self.site, self.mine, self.minis]
        folders += [self.book / "quizzes"]
        folders += [self.book / "site"] if self.book / "site" != self.site else []
        return [folder for folder in (*folders, self.own_records) if folder.is_dir()]

    def content_digest(self) -> str:
        """Return a digest of what people wrote, and of records and minis."""
        return _digest(self._content())

    def digest(self) -> str:
        """Return a digest of everything that decides what the site looks like."""
        ours = PACKAGE.rglob("*")
        code = sorted(p for p in ours if p.suffix in (".py", ".yaml"))
        return _digest([*self._content(), *code])

    def looks_digest(self) -> str:
        """Return a digest of what pages show without holding it: theme, diagrams."""
        diagrams = (self.book / "site" / "pages" / "diagrams").glob("*")
        return _digest([*self.below("theme"), *sorted(diagrams)])

    def served_digest(self) -> str:
        """Return a digest of where bytes came from: a build may have to fetch them."""
        return _digest(sorted((self.cache / "served").glob("*.json")))

    def _content(self) -> Iterator[Path]:
        for root in (self.book / "annotations", self.mine / "annotations"):
            yield from sorted(root.rglob("*"))
        for root in (self.book / "site" / "pages", self.book / "quizzes", self.site):
            yield from sorted(root.rglob("*"))
        yield from sorted(self.own_records.glob("*.json"))
        yield from sorted(self.minis.rglob("*.py"))


def find_inputs(given: Path | None) -> Inputs:
    """Return where the parts of the site of a book are; of the one that ships if None.

    Raises:
        ReaderkitError: no templates anywhere.
    """
    book = (given or shipped_book()).absolute()
    mine = data_folder() / "book"
    tops = (book, *OUR_TOPS)
    site = next((top for top in tops if (top / "site" / "templates").is_dir()), None)
    if site is None:
        looked = ", ".join(str(top / "site") for top in tops)
        raise ReaderkitError(
            f"no templates: looked for a folder templates in {looked}; "
            "give the book a folder site, or install the wheel again"
        )
    minis = next((t for t in (book, *tops) if (t / "mini_impls").is_dir()), book)
    own = mine.parent / "records"
    places = (book, mine, site / "site", minis / "mini_impls", own)
    return Inputs(*places, cache_folder())


def _digest(paths: Iterable[Path]) -> str:
    total = hashlib.sha256()
    for path in paths:
        try:
            kind = irregular(path)
            data = b"" if kind else path.read_bytes()
        except OSError:  # a file that went away meanwhile
            continue
        if kind == "a folder":
            continue
        if kind:
            raise ReaderkitError(
                f"{path}: cannot be read: got {kind}, expected a regular file"
            )
        total.update(f"{path}\0{len(data)}\0".encode("utf-8", "surrogateescape"))
        total.update(data)
    return total.hexdigest()


def is_up_to_date(site: Path, digest: str) -> int:
    """Return how many files a site has if it is whole and of this digest; else 0."""
    try:
        state = json.loads((site / STATE).read_bytes())
        if state["digest"] != digest:
            return 0
        files: dict[str, list[int]] = state["files"]
        for path, mark in files.items():
            if _mark(os.path.join(site, path)) != mark:  # noqa: PTH118  a thousand times
                return 0
        return len(files)
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return 0


def files_made(site: Path) -> set[str]:
    """Return the files that builds wrote at a place; none where it is no site."""
    try:
        return {STATE, *json.loads((site / STATE).read_bytes())["files"]}
    except (OSError, ValueError, KeyError, TypeError):
        return set()


def state_of(site: Path, digest: str, files: Iterable[str]) -> bytes:
    """Return what a site remembers of its making."""
    marks = {path: _mark(os.path.join(site, path)) for path in files}  # noqa: PTH118
    return json.dumps({"digest": digest, "files": marks}).encode()


def _mark(path: str) -> list[int]:
    found = os.stat(path)  # noqa: PTH116  a thousand times
    return [found.st_size, found.st_mtime_ns]
