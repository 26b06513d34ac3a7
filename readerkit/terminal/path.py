"""The reading paths on a terminal: the list of them, one whole, a note of one."""

from __future__ import annotations

import shutil
import textwrap
from collections.abc import Iterable
from dataclasses import dataclass

import click

from readerkit.app.interface_translation import say_in
from readerkit.app.library import Library
from readerkit.content.resolved_notes import resolve_notes
from readerkit.content.routes import Route
from readerkit.errors import WrongUseError
from readerkit.model.language import Say
from readerkit.terminal.note import note_page
from readerkit.wording.next_command import typed
from readerkit.wording.numbers import counted


@dataclass(frozen=True, slots=True)
class PathPages:
    """The pages of a book's reading paths in one language.

    The paths are already in it: what stands around them is said here.
    """

    library: Library
    language: str = "en"

    @property
    def _say(self) -> Say:
        return say_in(self.language)

    def listed(self, paths: Iterable[Route]) -> str:
        """Return a line for each path, and how one goes on from the first."""
        shown, say = [*paths], self._say
        first = shown[0]
        rows = [
            say("The notes on one:"),
            f"  {self._typed(first)}",
            say("The first of them:"),
            f"  {self._typed(first, '1')}",
        ]
        return "\n".join([*map(self._line, shown), *rows])

    def overview(self, path: Route) -> str:
        """Return the stops of a path, and the number of each note."""
        width = max(shutil.get_terminal_size().columns, 20)
        rows, number = textwrap.wrap(f"{path.id}: {path.title}", width), 0
        for stop in path.stops:
            title = textwrap.wrap(stop.title, width)
            rows += ["", *(click.style(row, bold=True) for row in title)]
            about = " ".join(
                stop.about.split()
            )  # with commands, whose ids have hyphens
            rows += textwrap.wrap(about, width, break_on_hyphens=False)
            for note in stop.notes:
                number += 1
                said = self._title(note)
                whole = f"{number:4}  {note}  {said}"
                if len(whole) <= width:
                    rows.append(whole)
                    continue
                more = textwrap.wrap(said, width - 6)
                rows += [f"{number:4}  {note}", *(f"      {row}" for row in more)]
        first = self._typed(path, "1")
        return "\n".join([*rows, "", f"{self._say('Read the first:')} {first}"])

    def note(self, path: Route, number: int) -> str:
        """Return a note of a path between where it stands and where to go.

        Raises:
            WrongUseError: the path has no such note.
        """
        count = len(path.notes)
        if number > count:
            notes = counted(count, "note")
            raise WrongUseError(
                f"path {path.id} has {notes}: got {number}, expected 1 to {count}"
            )
        stop, name = path.notes[number - 1]
        book = self.library.book
        annotation = book.annotations[name]
        said = book.translated(annotation, self.language).texts
        sources = self.library.sources(self.library.upstream(annotation.upstream))
        shown = annotation.with_texts(said)
        [note] = resolve_notes(book, sources, [shown])
        where = self._say("{path}, note {number} of {count}").format(
            path=path.id, number=number, count=count
        )
        page = note_page(self.library, note, sources, language=self.language)
        rows = [f"{where}: {stop.title}", "", page, ""]
        ways = {"previous": number - 1, "next": number + 1}
        width = max(len(self._say(word)) for word in ways) + 2
        for word, there in ways.items():
            if 1 <= there <= count:
                command = self._typed(path, str(there))
                to = self._title(path.notes[there - 1][1])
                rows.append(f"{self._say(word):{width}}{command}  {to}")
        return "\n".join(rows)

    def _line(self, path: Route) -> str:
        say = self._say
        stops = counted(len(path.stops), say("stop"), say("stops"))
        notes = counted(len(path.notes), say("note"), say("notes"))
        said = f"{path.id:12}  {path.title}: {stops}, {notes}"
        width = shutil.get_terminal_size().columns
        return "\n".join(textwrap.wrap(said, width, subsequent_indent=" " * 14))

    def _title(self, name: str) -> str:
        book = self.library.book
        note = book.annotations[name]
        said = book.translated(note, self.language).texts.get("title")
        mark = "" if self.language == "en" else "[en] "
        return said or f"{mark}{note.title}"

    def _typed(self, path: Route, *more: str) -> str:
        language = () if self.language == "en" else ("--lang", self.language)
        return typed("path", path.id, *more, *language)
