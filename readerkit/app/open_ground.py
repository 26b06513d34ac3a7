"""Opens what the claims of a book are held against."""

from __future__ import annotations

from functools import cache

from readerkit.app.folders import read_at_most
from readerkit.app.kept_outputs import KeptOutputs
from readerkit.app.library import Library
from readerkit.claims.ground import Ground, NotAtHand
from readerkit.errors import ContentError
from readerkit.evidence.record import Record


def open_ground(library: Library) -> Ground:
    """Return what the claims of a book are held against; nothing is read yet."""
    root, book = library.root / "annotations", library.book
    paths = {name: frozenset(lock.files) for name, lock in book.locks.items()}
    paths |= {name: each.paths for name, each in library.folders().items()}
    for each in book.upstreams.values():
        if each.is_living:
            paths[each.name] = library.sources(each).paths

    @cache
    def record(name: str) -> Record | None:
        file = root / "records" / f"{name}.json"
        if name not in book.comparisons or not file.is_file():
            return None
        try:
            return Record.parse(read_at_most(file, library.root).decode(), str(file))
        except (ContentError, UnicodeDecodeError) as error:
            raise NotAtHand(f"the record {name} cannot be read: {error}") from None

    @cache
    def program(name: str) -> str | None:
        file = root / "experiments" / f"{name}.py"
        is_there = file.is_file()
        return read_at_most(file, library.root).decode() if is_there else None

    output = cache(KeptOutputs(library).of)
    return Ground(book.upstreams, paths, library.sources, record, program, output)
