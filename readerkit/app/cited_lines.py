"""The lines that a question shows or cites, and where they can be looked at."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import unquote

from readerkit.app.folders import BUILT_SITE, PACKAGE, cache_folder, read_at_most
from readerkit.app.quiz_banks import QuizBanks
from readerkit.errors import ReaderkitError
from readerkit.quiz.messages import QuestionLeftOut
from readerkit.quiz.prompts import CitedLines, LocatePrompt, Prompt
from readerkit.quiz.session import Session
from readerkit.wording.next_command import typed

if TYPE_CHECKING:
    from readerkit.anchors import SourceFile
    from readerkit.upstreams import Upstream


class SourceLines:
    """The lines that places stand for, from the verified cache or the minis' folder."""

    def __init__(self, banks: QuizBanks, book: Path | None) -> None:
        self._banks = banks
        self._book = book
        self._read: dict[tuple[str, str], bytes | None] = {}
        self._lacking: dict[str, str] = {}
        self._upstreams: dict[str, Upstream] = {}

    def lines(self, place: CitedLines, *, fetch: bool = False) -> list[str] | None:
        """Return the lines of a place; None where they are not on this disk.

        With ``fetch`` an upstream that is not in the cache is brought first.
        """
        whole = self._whole(place, fetch=fetch)
        return None if whole is None else _split(whole)[place.first - 1 : place.last]

    def lacking(self, place: CitedLines) -> str:
        """Return why the lines of a place cannot be had, fetched or not; else nothing.

        An upstream that could not be brought is not asked for again.
        """
        if place.upstream in self._lacking and self._whole(place) is None:
            return self._lacking[place.upstream]
        try:
            why = (
                "" if self.lines(place, fetch=True) else f"{place} is not on this disk"
            )
        except ReaderkitError as error:
            # What each source answered follows below; fetching says it.
            why = str(error).splitlines()[0].removesuffix(":")
            why += f"; {typed('fetch', place.upstream)} says why"
        if why:
            self._lacking[place.upstream] = why
        return why

    def source(self, place: CitedLines) -> SourceFile | None:
        """Return the parsed file of a place, to be coloured; None as in ``lines``."""
        from readerkit.anchors import SourceFile

        whole = self._whole(place)
        return None if whole is None else SourceFile(place.path, whole)

    def address(self, place: CitedLines) -> str:
        """Return where the place can be looked at: the site if it is built, or its URL.

        A mini is a file here, and has no other address.
        """
        page, _, fragment = place.page.partition("#")
        # Where `site build` writes it: what stands here is not of a book that is named.
        for folder in [self._book] if self._book else [Path(), self._banks.root]:
            built = (folder / BUILT_SITE).absolute() / unquote(page)
            if built.is_file():
                return f"{built.as_uri()}#{fragment}"
        if place.blob:
            return self.permalink(place)
        top = self._mini_top(place.path)
        return f"{top / place.path}:{place.first}" if top else ""

    def permalink(self, place: CitedLines) -> str:
        """Return the address of lines at the pin; empty where they have none."""
        from readerkit.app.library import open_library
        from readerkit.model.anchor import Span

        if not place.blob:
            return ""
        if place.upstream not in self._upstreams:
            library = open_library(self._book, quiet=True)
            self._upstreams[place.upstream] = library.upstream(place.upstream)
        span = Span(place.path, place.first, place.last)
        return self._upstreams[place.upstream].permalink(span)

    def _whole(self, place: CitedLines, *, fetch: bool = False) -> bytes | None:
        key = (place.upstream, place.path)
        if self._read.get(key) is None:
            self._read[key] = self._file(place, fetch)
        return self._read[key]

    def _file(self, place: CitedLines, fetch: bool) -> bytes | None:
        if not place.blob:
            top = self._mini_top(place.path)
            return read_at_most(top / place.path, top) if top else self._living(place)
        # Both bring the syntax trees along: not before a question needs them.
        from readerkit.upstreams import BlobStore

        data = BlobStore(cache_folder()).read(place.blob)
        if data is None and fetch:
            from readerkit.app.library import open_library

            library = open_library(self._book)
            sources = library.sources(library.upstream(place.upstream))
            data = sources.file(place.path).data
        return data

    def _living(self, place: CitedLines) -> bytes | None:
        """Return a file of code that lives on, as it is now."""
        from readerkit.app.library import open_library

        library = open_library(self._book or self._banks.root, quiet=True)
        upstream = library.book.upstreams.get(place.upstream)
        if upstream is None or not upstream.is_living:
            return None
        sources = library.sources(upstream)
        return sources.read(place.path) if place.path in sources.paths else None

    def _mini_top(self, path: str) -> Path | None:
        ours = [PACKAGE.parent] if path.startswith("mini_impls/") else []
        tops = [self._banks.root, *ours]
        return next((top for top in tops if (top / path).is_file()), None)


def without_lines(
    session: Session, question: Prompt, lines: SourceLines
) -> QuestionLeftOut | None:
    """Leave a question out whose lines cannot be had; None where it can be asked.

    Raises:
        ReaderkitError: no question is left.
    """
    if not isinstance(question, LocatePrompt):
        return None
    why = lines.lacking(question.search)
    if not why:
        return None
    left_out = session.leave_out(why)
    if not session.row.questions:
        raise ReaderkitError(f"nothing is left to ask: {why}")
    return left_out


def numbered(lines: Sequence[str], first: int) -> Iterator[str]:
    """Yield lines of code with their numbers."""
    width = len(str(first + len(lines)))
    for number, line in enumerate(lines, first):
        yield f"{number:{width}}  {line.expandtabs(4)}"


def _split(data: bytes) -> list[str]:
    return [
        line.removesuffix("\r") for line in data.decode("utf-8", "replace").split("\n")
    ]
