"""``readerkit export``: notes and tours for other programs."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import click

from readerkit.commands.options import (
    book_option,
    chosen_notes_options,
    shipped_language_option,
    written_file,
)
from readerkit.errors import TakenError
from readerkit.terminal.completing import names

if TYPE_CHECKING:
    from readerkit.app.library import Library
    from readerkit.content.annotations import Annotation
    from readerkit.model.language import Say
    from readerkit.render.exchange.shared_note import SharedNote

FILE = written_file()
FOLDER = click.Path(file_okay=False, path_type=Path)
STDOUT = Path("-")


@dataclass(frozen=True, slots=True)
class _Leaving:
    """What is to leave the book, and in which language."""

    library: Library
    upstream: str | None
    wanted: dict[str, str | None]
    language: str
    tour: str

    def notes(self) -> list[SharedNote]:
        """Return the notes that are wanted, in reading order."""
        from readerkit.app.export_notes import refuse_none, shared_notes
        from readerkit.terminal.note_list import Wanted

        book = self.library.book
        wanted = Wanted.parse(self.wanted, book)

        def fits(note: Annotation) -> bool:
            return wanted.fits(note, book)

        named = self.upstream
        chosen = [self.library.upstream(named)] if named else book.upstreams.values()
        found = [*shared_notes(self.library, chosen, fits, self.language)]
        refuse_none(found)
        return found


@click.command(short_help="Notes and tours for CodeTour, the web, Markdown, SARIF.")
@click.argument("upstream", required=False, shell_complete=names("annotate"))
@click.option("--codetour", type=FOLDER, metavar="DIR", help="A .tour file each topic.")
@click.option(
    "--webannotation", type=FILE, metavar="FILE", help="W3C Web Annotations (JSON-LD)."
)
@click.option("--markdown", type=FILE, metavar="FILE", help="One file to be read.")
@click.option("--sarif", type=FILE, metavar="FILE", help="For tools of code review.")
@click.option("--tour", help="One tour, in its order.", shell_complete=names("tours"))
@chosen_notes_options
@shipped_language_option("By default English.")
@book_option
def export(
    upstream: str | None,
    codetour: Path | None,
    webannotation: Path | None,
    markdown: Path | None,
    sarif: Path | None,
    tour: str | None,
    lang: str,
    book: Path | None,
    **wanted: str | None,
) -> None:
    """Write notes for other programs, those of UPSTREAM or of all; - is the screen.

    CodeTour's files open in a checkout of the pinned commit: put them into its .tours.
    Web Annotations quote their lines, and come back by readerkit import --quotes.
    What is quoted stays under the licence of its upstream, which each file names.

    \b
    Example:
        readerkit export megatron --codetour ../Megatron-LM/.tours
        readerkit export --webannotation notes.jsonld --concept all-gather
        readerkit export pytorch --markdown fsdp2.md --topic fsdp2
        readerkit export --codetour ../pytorch/.tours --tour fsdp2-step
        readerkit export --sarif notes.sarif
    """
    from readerkit.app.folders import refuse_nowhere
    from readerkit.app.library import open_library

    files = {"webannotation": webannotation, "markdown": markdown, "sarif": sarif}
    given = {form: path for form, path in files.items() if path}
    if len(given) + (codetour is not None) != 1:
        raise click.UsageError(
            "expected one of --codetour, --webannotation, --markdown and --sarif"
        )
    refuse_nowhere(codetour or next(iter(given.values())))
    asked = _Leaving(open_library(book), upstream, wanted, lang, tour or "")
    if tour and (upstream or any(wanted.values()) or webannotation or sarif):
        raise click.UsageError("--tour is whole, for --codetour and --markdown")
    if tour:
        _write_one_tour(asked, codetour, markdown)
        return
    if codetour:
        _write_tours(asked, codetour)
        return
    [(form, file)] = given.items()
    _write(_FORMS[form](asked), file)


def _say(asked: _Leaving) -> Say:
    from readerkit.app.interface_translation import say_in

    return say_in(asked.language)


def _web(asked: _Leaving) -> bytes:
    from readerkit.render.exchange.web_annotation import web_annotations

    return web_annotations(_title(asked), asked.notes(), asked.language)


def _markdown(asked: _Leaving) -> bytes:
    from readerkit.render.exchange.code_tour import TourStop
    from readerkit.render.exchange.markdown_notes import markdown_notes

    stops = map(TourStop, asked.notes())
    return markdown_notes(_title(asked), "", stops, _say(asked))


def _sarif(asked: _Leaving) -> bytes:
    from readerkit.render.exchange.sarif_notes import sarif_notes

    return sarif_notes(asked.notes(), _say(asked))


_FORMS = {"webannotation": _web, "markdown": _markdown, "sarif": _sarif}


def _title(asked: _Leaving) -> str:
    say = _say(asked)
    return say("Notes on {titles}").format(titles=_titles(asked))


def _titles(asked: _Leaving) -> str:
    book = asked.library.book
    if asked.upstream:
        return asked.library.upstream(asked.upstream).title
    return ", ".join(u.title for u in book.upstreams.values() if book.notes_on(u.name))


def _write_tours(asked: _Leaving, folder: Path) -> None:
    """Write a file for each topic of each upstream; one that others wrote is kept."""
    from readerkit.app.export_notes import by_topic
    from readerkit.render.exchange.code_tour import TourStop, code_tour

    say, files = _say(asked), {}
    for (name, topic), notes in by_topic(asked.notes()).items():
        title = f"{notes[0].upstream.title}: {topic.replace('_', ' ')}"
        below = folder if asked.upstream else folder / name
        make = partial(code_tour, title, "", notes[0].upstream, say=say)
        files[below / f"{topic}.tour"] = make(map(TourStop, notes))
    for path in files:
        _refuse_foreign(path)
    for path, data in files.items():
        _write(data, path)


def _write_one_tour(asked: _Leaving, folder: Path | None, file: Path | None) -> None:
    """Write a tour of the book for CodeTour, or to be read."""
    from readerkit.app.export_notes import home_of, tour_stops
    from readerkit.render.exchange.code_tour import code_tour
    from readerkit.render.exchange.markdown_notes import markdown_notes
    from readerkit.wording.meant_name import choose

    book, say = asked.library.book, _say(asked)
    tour = book.tours[choose("tour", asked.tour, book.tours)]
    told = book.tour_in(tour.id, asked.language)
    stops = tour_stops(asked.library, tour, asked.language)
    if folder:
        path = folder / f"{tour.id}.tour"
        _refuse_foreign(path)
        _write(code_tour(told.title, told.about, home_of(stops), stops, say), path)
    elif file:
        _write(markdown_notes(told.title, told.about, stops, say), file)


def _refuse_foreign(path: Path) -> None:
    """Refuse to write over a tour that somebody else wrote."""
    from readerkit.render.exchange.code_tour import MADE_BY

    ours = f'"{MADE_BY}": "readerkit"'.encode()
    if path.exists() and ours not in path.read_bytes():
        raise TakenError(
            f"{path}: got a file that readerkit did not write, expected none, or "
            "one of its own: move it away, or name another folder"
        )


def _write(data: bytes, file: Path) -> None:
    from readerkit.upstreams.store import write_atomically

    if file == STDOUT:
        click.echo(data, nl=False)
        return
    write_atomically(file.absolute(), data, named=True)
    click.echo(f"wrote {file}")
