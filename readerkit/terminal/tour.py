"""A tour in the terminal: each stop with its lines, and the sentence that leads on."""

from __future__ import annotations

import shutil
import textwrap
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import click

from readerkit.app.export_notes import notes_of
from readerkit.app.interface_translation import say_in
from readerkit.app.library import Library
from readerkit.content.tours import Tour
from readerkit.errors import ReaderkitError
from readerkit.terminal.as_json import print_json
from readerkit.terminal.note import note_page
from readerkit.terminal.note_list import plain_notes
from readerkit.terminal.pager import show_paged
from readerkit.wording.meant_name import choose
from readerkit.wording.numbers import counted


def show_tour(
    library: Library, name: str, language: str, *, as_json: bool, pager: bool
) -> None:
    """Print a tour, whole.

    Raises:
        ReaderkitError: no such tour, or several that a name may mean.
    """
    if not library.book.tours:
        raise ReaderkitError(f"{library.root}: this book has no tours")
    meant = choose("tour", name, library.book.tours)
    tour = library.book.tour_in(meant, language)
    if as_json:
        print_json(_plain(library, tour))
    else:
        text = "\n".join(_pages(library, tour, language))
        show_paged(text, pager=pager, language=language)


def _pages(library: Library, tour: Tour, language: str) -> Iterator[str]:
    say, count = say_in(language), len(tour.stops)
    width = min(max(shutil.get_terminal_size().columns, 20), 100)
    stops = counted(count, say("stop"), say("stops"))
    yield click.style(f"{tour.title} ({stops})", bold=True)
    yield textwrap.fill(" ".join(tour.about.split()), width)
    for number, (stop, (note, sources)) in enumerate(
        zip(tour.stops, notes_of(library, tour), strict=True), 1
    ):
        head = say("stop {number} of {count}").format(number=number, count=count)
        yield f"\n{click.style(head, bold=True)}"
        if stop.says:
            yield textwrap.fill(" ".join(stop.says.split()), width)
        said = library.book.translated(note.annotation, language).texts
        shown = replace(note, annotation=note.annotation.with_texts(said))
        yield f"\n{note_page(library, shown, sources, language=language)}"


def _plain(library: Library, tour: Tour) -> dict[str, Any]:
    stops = zip(tour.stops, notes_of(library, tour), strict=True)
    return {
        "id": tour.id,
        "title": tour.title,
        "about": " ".join(tour.about.split()),
        "stops": [
            {
                "says": " ".join(stop.says.split()),
                "note": plain_notes(library, sources, [note])[0],
            }
            for stop, (note, sources) in stops
        ],
    }
