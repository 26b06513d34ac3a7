"""Opens what commands work on: the book's files, the cache, the reader's overlay."""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import click

from readerkit.app.folders import (
    PACKAGE,
    cache_folder,
    data_folder,
    irregular,
    read_at_most,
    refuse_no_book,
    shipped_book,
)
from readerkit.app.overlay import for_this_book, read_exactly, read_with_overlay
from readerkit.app.parse_cache import FoundPlaces, Memo
from readerkit.content.book import Book
from readerkit.content.parse_book import BookFile
from readerkit.content.resolved_notes import (
    Remember,
    Sources,
    check_mirrors,
    resolve_each,
)
from readerkit.errors import ContentError, ContentFault, ReaderkitError, SourceError
from readerkit.model.git_names import NO_COMMIT, TreePath
from readerkit.render.terminal_safe import visible
from readerkit.system.status import Status
from readerkit.upstreams import BlobStore, Lock, Upstream
from readerkit.upstreams.book_repository import living_files
from readerkit.upstreams.folder_source import serve_below
from readerkit.upstreams.provenance import Provenance, read_provenance
from readerkit.upstreams.source_protocol import is_a_link
from readerkit.wording.fold import fitting
from readerkit.wording.meant_name import choose
from readerkit.wording.next_command import typed


def note_progress(line: str) -> None:
    """Show progress: on stderr, and only to a person."""
    if sys.stderr.isatty():
        Status().clear()
        click.echo(click.style(visible(line), dim=True), err=True)


def warn(line: str) -> None:
    """Say on stderr what the reader must know, whoever listens."""
    click.echo(fitting(f"readerkit: {visible(line)}", sys.stderr), err=True)


@dataclass(frozen=True, slots=True)
class Library:
    """A book that is open, and the cache its upstreams are read from."""

    root: Path
    """The book's folder, which holds ``annotations/``."""
    mine: Path
    """The reader's overlay, which may not exist yet."""
    book: Book
    store: BlobStore
    left_out: str = ""
    """What of the reader's own notes has faults, and is not in the book."""
    unserved: dict[str, SourceError] = field(default_factory=dict)
    """By upstream: why no source could serve it, so that it is not asked once more."""
    living: dict[str, Sources] = field(default_factory=dict)
    """By upstream that lives on: its files as they were at first sight."""

    def upstream(self, name: str) -> Upstream:
        """Return an upstream by name.

        Raises:
            ReaderkitError: no such upstream; the message names those there are.
        """
        return self.book.upstreams[choose("upstream", name, self.book.upstreams)]

    def folders(self) -> dict[str, Sources]:
        """Return the upstreams that are read where they stand, by name."""
        upstreams = self.book.upstreams.values()
        return {each.name: self.sources(each) for each in upstreams if each.folder}

    def pinned(self) -> list[Upstream]:
        """Return the upstreams that are held against a lock."""
        upstreams = self.book.upstreams.values()
        return [each for each in upstreams if each.is_pinned]

    def lock(self, upstream: Upstream) -> Lock:
        """Return the lock of an upstream, which must be of its pinned commit.

        Raises:
            ReaderkitError: no lock, or one of another commit.
        """
        lock = self.book.locks.get(upstream.name)
        if upstream.is_living:
            return lock or Lock(NO_COMMIT)
        if lock is None or not lock.files:
            got = "no lock"
        elif lock.commit != upstream.commit:
            got = f"the lock of {lock.commit}"
        elif not upstream.commit and lock.tag != upstream.release:
            got = f"the lock of {lock.tag or 'no release'}"
        elif outside := [path for path in lock.files if not upstream.includes(path)]:
            got = f"{outside[0]!r}, which its upstream does not include"
        elif lock.tag and upstream.tag not in ("", lock.tag):
            raise ReaderkitError(
                f"{self.root / 'annotations' / 'upstreams.yaml'}: {upstream.name}: got "
                f"tag '{upstream.tag}' beside the commit that is locked as {lock.tag}, "
                f"expected the commit of '{upstream.tag}'; where both are names of it, "
                + typed("fetch", upstream.name, "--update-lock")
            )
        else:
            return lock
        raise ReaderkitError(
            f"{self.root / 'annotations' / upstream.name}.lock: got {got}, expected "
            f"one of the pinned {upstream.pin_whole}; make it with "
            + typed("fetch", upstream.name, "--update-lock")
        )

    def sources(self, upstream: Upstream, remember: Remember | None = None) -> Sources:
        """Return an upstream's verified files; what is missing is fetched first.

        Of an optional one nothing is: it is absent until ``readerkit fetch`` brings it.
        """
        if upstream.folder:
            files = self._folder_files(upstream)
            return Sources(upstream, files, files.__getitem__, remember)
        if upstream.is_living:
            return self._living(upstream, remember)
        lock = self.lock(upstream)

        def read(path: TreePath) -> bytes:
            return self._read(upstream, lock, path)

        is_absent = upstream.optional and not all(
            self.store.has_file(blob) for blob in lock.files.values()
        )
        return Sources(upstream, lock.files, read, remember, is_absent=is_absent)

    def _living(self, upstream: Upstream, remember: Remember | None) -> Sources:
        """Return the files of the repository around the book, parsed once a run."""
        known = self.living.get(upstream.name)
        if known is None or remember:
            noted = {n.anchor.file for n in self.book.anchored_in(upstream.name)}
            files = living_files(self.root, upstream, noted)
            known = Sources(upstream, files.paths, files.read, remember)
        return self.living.setdefault(upstream.name, known)

    @contextmanager
    def sources_to_list(self, upstream: Upstream) -> Iterator[Sources]:
        """Yield an upstream's files; places that are known are not looked for again."""
        with self._remembered(upstream) as (sources, _):
            yield sources

    @contextmanager
    def sources_to_hold(self, upstream: Upstream) -> Iterator[Sources]:
        """Yield an upstream's files, to hold notes against them.

        In what is pinned every place is found anew. Code that lives on is held at each
        commit: there only files that are not as they were are parsed again.
        """
        if not upstream.is_living:
            yield self.sources(upstream)
            return
        with self._remembered(upstream) as (sources, places):
            # It brings the parser along.
            from readerkit.app.parallel_resolution import find_ahead

            anchored = self.book.anchored_in(upstream.name)
            find_ahead(sources, [each.anchor for each in anchored], places)
            yield sources

    @contextmanager
    def _remembered(self, upstream: Upstream) -> Iterator[tuple[Sources, FoundPlaces]]:
        """Yield an upstream's files, and the places in them, kept for the next time."""
        places = FoundPlaces(self.store.root, self.root, upstream.name)
        yield self.sources(upstream, places.find), places
        places.save()

    def came_from(self, upstream: Upstream) -> Provenance | None:
        """Return where the cached bytes of an upstream came from."""
        return read_provenance(upstream, self.store)

    def _read(self, upstream: Upstream, lock: Lock, path: TreePath) -> bytes:
        blob = lock.files[path]
        was_there = self.store.has_file(blob)
        data = self.store.read(blob)
        if data is None:
            if was_there:
                warn(f"the cached copy of {path} was altered; fetching it again")
            self._fetch(upstream, lock)
            data = self.store.read(blob)
        if data is None:
            raise ReaderkitError(
                f"{self.store.path(blob)}: got altered bytes right after they were "
                "fetched, expected a disk that keeps what is written"
            )
        return data

    def _fetch(self, upstream: Upstream, lock: Lock) -> None:
        """Bring an upstream; where that failed before, fail at once."""
        from readerkit.upstreams.fetch import fetch

        if known := self.unserved.get(upstream.name):
            raise known
        try:
            fetch(upstream, lock, self.store, report=note_progress)
        except SourceError as error:
            self.unserved[upstream.name] = error
            raise

    def _folder_files(self, upstream: Upstream) -> Mapping[TreePath, bytes]:
        beside = [self.root, PACKAGE.parent]
        root = next(
            (top for top in beside if (top / upstream.folder).is_dir()), self.root
        )
        served = serve_below(root, upstream, None)
        if served.links:
            raise ReaderkitError(is_a_link(served.links[0], root))
        return served.files


def open_library(
    book: Path | None = None,
    *,
    whole: bool = False,
    quiet: bool = False,
    as_if: tuple[Path, bytes] | None = None,
) -> Library:
    """Return the library around a book, checked as a whole.

    The book is the folder given, or the one that ships with the package. What of the
    reader's overlay has faults, or is on an upstream that this book lacks, is left out
    and said, unless ``quiet``; with ``whole`` its faults are errors, as the book's own.
    ``as_if`` is one file as it is yet to be: held to the book before it is written.

    Raises:
        ContentError: every fault of every file, as far as it can be known.
        WrongUseError: a folder that is no book.
    """
    root = (book or shipped_book()).absolute()
    refuse_no_book(root)
    mine = data_folder() / "book"
    cache = cache_folder()
    store = BlobStore(cache)
    memo = Memo(cache, root)
    shared, overlay = [*_files(root)], [*_overlay(mine)]
    written = _put(*as_if, (shared, root), (overlay, mine)) if as_if else ""
    own, foreign = for_this_book(overlay, shared, memo.read)
    try:
        parsed, left_out = read_with_overlay(shared, own, memo.read, whole=whole)
    except ContentError as error:
        everything, faults = read_exactly([*shared, *own], memo.read, error)
        faulty = Library(root, mine, everything, store)
        raise ContentError([*faults, *_anchor_faults(faulty, written)]) from None
    for line in filter(None, (foreign, left_out) if not quiet else ()):
        warn(line)
    memo.save()
    return Library(root, mine, parsed, store, left_out)


def _anchor_faults(library: Library, written: str) -> Iterator[ContentFault]:
    """Yield what the cache tells of wrong anchors; in ``written`` alone, if given."""
    for upstream in library.book.upstreams.values():
        every = library.book.anchored_in(upstream.name)
        notes = [each for each in every if written in ("", each.place.file)]
        with contextlib.suppress(ReaderkitError):  # no lock, no folder: told elsewhere
            if upstream.is_pinned:
                files = library.lock(upstream).files
                notes = [
                    note
                    for note in notes
                    if note.anchor.file not in files
                    or library.store.read(files[note.anchor.file]) is not None
                ]
            yield from resolve_each(library.book, library.sources(upstream), notes)[1]
    with contextlib.suppress(ReaderkitError):
        yield from check_mirrors(library.book, library.folders())


@contextmanager
def writing() -> Iterator[None]:
    """Keep every other process from changing a book: open it inside, and save there."""
    with BlobStore(cache_folder()).locked("write"):
        yield


def _files(root: Path) -> Iterator[BookFile]:
    for path in _yaml_and_locks(root / "annotations"):
        below = path.relative_to(root).as_posix()
        data, problem = _read_file(path, root)
        yield BookFile(below, data, problem=problem)


def _put(
    path: Path,
    data: bytes,
    shared: tuple[list[BookFile], Path],
    overlay: tuple[list[BookFile], Path],
) -> str:
    """Put a file among those of the book or of the overlay; return its name."""
    mine = path.is_relative_to(overlay[1])
    files, root = overlay if mine else shared
    below = path.relative_to(root).as_posix()
    new = BookFile(below, data, shown=str(path) if mine else "", mine=mine)
    files[:] = [*(file for file in files if file.path != below), new]
    return new.name


def _overlay(mine: Path) -> Iterator[BookFile]:
    for path in _yaml_and_locks(mine / "annotations"):
        below = path.relative_to(mine).as_posix()
        data, problem = _read_file(path, None)
        yield BookFile(below, data, shown=str(path), mine=True, problem=problem)


def _yaml_and_locks(folder: Path) -> list[Path]:
    """Return the files that are read, and those that look as if they were.

    Names with a dot in front are an editor's own.
    """
    found = []
    for top, folders, names in os.walk(folder):
        folders[:] = [name for name in folders if not name.startswith(".")]
        ends = (".yaml", ".yml", ".lock") if Path(top) == folder else (".yaml", ".yml")
        found += [
            Path(top, name)
            for name in (*folders, *names)
            if name.endswith(ends) and not name.startswith(".")
        ]
    return sorted(found)


def _read_file(path: Path, root: Path | None) -> tuple[bytes, str]:
    """Return the bytes of a file, and why it cannot be read, if it cannot."""
    try:
        kind = irregular(path, root)
        return (b"", kind) if kind else (read_at_most(path, root), "")
    except OSError as error:
        return b"", f"{error.strerror}"
