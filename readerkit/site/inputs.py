"""The files that a site is made from, and their digests: nothing changed, no build."""

from __future__ import annotations

import contextlib
import json
import os
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from msgspec import MsgspecError, Struct, convert

from readerkit.app.folders import (
    PACKAGE,
    cache_folder,
    data_folder,
    irregular,
    leads_out,
    shipped_book,
)
from readerkit.errors import ReaderkitError
from readerkit.model.freshness import MadeFrom, digest, digest_all

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

    def content(self) -> MadeFrom:
        """Return the digests of texts, records and minis."""
        return _parts(self._content())

    def served(self) -> MadeFrom:
        """Return where bytes came from: a build may have to fetch them."""
        return _parts(sorted((self.cache / "served").glob("*.json")))

    def marks(self) -> dict[str, list[int]]:
        """Return size and time of each watched file: the same, nothing was saved."""
        marks = {}
        for folder in self.watched():
            for place, _, names in os.walk(folder):
                for path in (f"{place}/{name}" for name in names):
                    with contextlib.suppress(OSError):  # it went away meanwhile
                        marks[path] = _mark(path)
        return marks

    def made_from(self) -> MadeFrom:
        """Return everything that decides what the site looks like."""
        code = sorted(p for p in PACKAGE.rglob("*") if p.suffix in (".py", ".yaml"))
        toolkit = {str(PACKAGE): digest_all(_parts(code))}
        return {**self.content(), **self.served(), **toolkit}

    def looks(self) -> MadeFrom:
        """Return the digests of what pages link to: theme, diagrams."""
        diagrams = (self.book / "site" / "pages" / "diagrams").glob("*")
        return _parts([*self.below("theme"), *sorted(diagrams)])

    def _content(self) -> Iterator[Path]:
        for root, folder, pattern in (
            (self.book, "annotations", "*"),
            (self.book, "site/pages", "*"),
            (self.book, "quizzes", "*"),
            (self.site.parent, self.site.name, "*"),
            (self.minis.parent, self.minis.name, "*.py"),
        ):
            for path in sorted((root / folder).rglob(pattern)):
                if path.is_symlink() and leads_out(path, root):
                    raise ReaderkitError(
                        f"{path}: cannot be read: got a link that leads out of the "
                        "book, expected a regular file"
                    )
                yield path
        yield from sorted((self.mine / "annotations").rglob("*"))
        yield from sorted(self.own_records.rglob("*.json"))


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


def _parts(paths: Iterable[Path]) -> dict[str, str]:
    """Return each file by its path, and its digest."""
    parts = {}
    for path in paths:
        try:
            kind = irregular(path, None)
            data = b"" if kind else path.read_bytes()
        except OSError:  # a file that went away meanwhile
            continue
        if path.is_dir():
            continue
        if kind:
            raise ReaderkitError(
                f"{path}: cannot be read: got {kind}, expected a regular file"
            )
        parts[str(path)] = digest(data)
    return parts


class _State(Struct, frozen=True):
    """What a site remembers of its making."""

    made_from: dict[str, str]
    files: dict[str, list[int]]
    """Size and time of each."""


@dataclass(frozen=True, slots=True)
class Built:
    """A site on disk: what it was made from, and how many files it has."""

    made_from: MadeFrom
    files: int
    """None of them, where one is not as it was written."""


def read_built(site: Path) -> Built | None:
    """Return the state of a built site; None where there is none."""
    try:
        state = convert(json.loads((site / STATE).read_bytes()), _State)
        marks = [_mark(os.path.join(site, path)) for path in state.files]  # noqa: PTH118  a thousand times
    except (OSError, ValueError, MsgspecError):
        return None
    is_whole = marks == [*state.files.values()]
    return Built(state.made_from, len(state.files) if is_whole else 0)


def files_made(site: Path) -> set[str]:
    """Return the files that builds wrote at a place; none where it is no site."""
    try:
        return {STATE, *json.loads((site / STATE).read_bytes())["files"]}
    except (OSError, ValueError, KeyError, TypeError):
        return set()


def state_of(site: Path, made_from: MadeFrom, files: Iterable[str]) -> bytes:
    """Return a site's own file of what it was made from."""
    marks = {path: _mark(os.path.join(site, path)) for path in files}  # noqa: PTH118
    return json.dumps({"made_from": made_from, "files": marks}).encode()


def _mark(path: str) -> list[int]:
    found = os.stat(path)  # noqa: PTH116  a thousand times
    return [found.st_size, found.st_mtime_ns]
