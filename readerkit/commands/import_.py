"""``readerkit import``: notes from other programs' files, each with its anchor."""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from readerkit.commands.options import book_option, into_option, written_topic_option
from readerkit.errors import ReaderkitError, WrongUseError
from readerkit.terminal.completing import names
from readerkit.terminal.folded import tell
from readerkit.wording.numbers import counted

if TYPE_CHECKING:
    from readerkit.app.import_files import ImportedTour
    from readerkit.app.import_notes import TakenNotes
    from readerkit.app.library import Library

FILE = click.Path(exists=True, dir_okay=False, path_type=Path)
FILE_OR_FOLDER = click.Path(exists=True, path_type=Path)


@click.command("import", short_help="Notes from CodeTour, or from Web Annotations.")
@click.option(
    "--codetour",
    type=FILE_OR_FOLDER,
    metavar="PATH",
    help="A .tour file of CodeTour, or a folder of them, such as .tours.",
)
@click.option(
    "--quotes", type=FILE, metavar="FILE", help="W3C Web Annotations (JSON-LD)."
)
@click.option(
    "--concept",
    "concepts",
    metavar="ID",
    multiple=True,
    help="What notes are about that do not say it; may be repeated.",
    shell_complete=names("concepts"),
)
@written_topic_option("The file they go to: <topic>.yaml.", "imported")
@into_option
@click.option(
    "--any-ref",
    is_flag=True,
    help="Take the lines of a tour although it is of another revision.",
)
@click.option("--print", "only_print", is_flag=True, help="Print them; write nothing.")
@book_option
def import_(
    codetour: Path | None,
    quotes: Path | None,
    concepts: tuple[str, ...],
    topic: str,
    into: str | None,
    any_ref: bool,
    only_print: bool,
    book: Path | None,
) -> None:
    """Make notes of another program's file, each with the narrowest unique anchor.

    What has no place of its own is listed, and the command exits with 1; the rest is
    written. A file that points outside the book's upstreams is refused as a whole.

    \b
    Example:
        readerkit import --codetour first-steps.tour --concept collectives
        readerkit import --codetour .tours --concept collectives
        readerkit import --quotes notes.jsonld --concept all-gather --print
    """
    from contextlib import nullcontext

    from readerkit.app.library import open_library, writing
    from readerkit.wording.meant_name import choose_all

    if (codetour is None) == (quotes is None):
        raise click.UsageError("expected one of --codetour and --quotes")
    if not re.fullmatch(r"[a-z][a-z0-9_-]*", topic):
        raise WrongUseError(f"--topic: got '{topic}', expected a name such as imported")
    with nullcontext() if only_print else writing():
        library = open_library(book)
        concepts = choose_all("concept", concepts, library.book.concepts)
        made, ways = _read(codetour, quotes, library, concepts, any_ref=any_ref)
        if only_print:
            from readerkit.app.import_notes import as_yaml

            entries = [entry for _, entry in made.entries]
            click.echo(as_yaml(entries) if entries else "", nl=False)
        else:
            _write(library, made, ways, (topic, into, book))
    _report(made)


def _read(
    codetour: Path | None,
    quotes: Path | None,
    library: Library,
    concepts: tuple[str, ...],
    *,
    any_ref: bool,
) -> tuple[TakenNotes, list[ImportedTour]]:
    from readerkit.app.import_files import import_code_tour, import_quotes
    from readerkit.app.import_notes import TakenNotes

    if codetour:
        made = TakenNotes()
        ways = [
            import_code_tour(
                _bytes(file), str(file), library, concepts, made, any_ref=any_ref
            )
            for file in _tour_files(codetour)
        ]
        return made, ways
    assert quotes is not None  # one of them was given
    if any_ref:
        raise click.UsageError("--any-ref is for --codetour: quotes find their lines")
    data = _bytes(quotes)
    return import_quotes(data, str(quotes), library, concepts), []


def _tour_files(place: Path) -> list[Path]:
    """Return the tours of a folder, by their names; or the one file that it is."""
    if not place.is_dir():
        return [place]

    def tell(error: OSError) -> None:  # what was taken away meanwhile is not there
        if not isinstance(error, FileNotFoundError):
            raise WrongUseError(f"{error.filename}: cannot be read: {error.strerror}")

    found = os.walk(place, onerror=tell)
    paths = (Path(folder, name) for folder, _, names in found for name in names)
    files = sorted(path for path in paths if path.suffix == ".tour" and path.is_file())
    if not files:
        raise WrongUseError(
            f"{place}: got a folder without tours, expected files that end in .tour"
        )
    return files


def _bytes(file: Path) -> bytes:
    from readerkit.app.folders import read_at_most
    from readerkit.system.json_file import MAX_BYTES

    data = read_at_most(file, None)
    if len(data) > MAX_BYTES:
        raise WrongUseError(
            f"{file}: got more than {MAX_BYTES:,} bytes, expected a file of notes"
        )
    return data


def _write(
    library: Library,
    made: TakenNotes,
    ways: list[ImportedTour],
    where: tuple[str, str | None, Path | None],
) -> None:
    from readerkit.app.import_notes import write_notes
    from readerkit.app.new_note import note_file, note_root

    topic, into, book = where
    root = note_root(library, into)
    upstreams = {asked.upstream.name: asked.upstream for asked, _ in made.entries}
    target = {name: note_file(root, u, topic) for name, u in upstreams.items()}
    # A tour of notes that the book has already is one of its own.
    tours = _tours(library, ways, root) if made.entries else []
    for path in write_notes(made, target, book, tours):
        click.echo(f"wrote {path}")


def _tours(
    library: Library, ways: list[ImportedTour], root: Path
) -> list[tuple[Path, dict[str, Any]]]:
    """Return the tours that files of CodeTour are, and their places.

    One of a single stop is none.
    """
    from readerkit.app.import_notes import free_name, slug

    found: list[tuple[Path, dict[str, Any]]] = []
    taken = {*library.book.tours}
    for way in ways:
        if len(way.stops) < 2:
            continue
        name = free_name(slug(way.title), taken)
        taken.add(name)
        stops = [
            {"note": note, **({"says": says} if says.strip() else {})}
            for note, says in way.stops
        ]
        title = " ".join(way.title.split()) or name
        about = way.about.strip() or title
        tour = {"id": name, "title": title, "about": about, "stops": stops}
        found.append((root / "annotations" / "tours" / f"{name}.yaml", tour))
    return found


def _report(made: TakenNotes) -> None:
    """Say what became of each note; what has no place ends with 1."""
    if not (made.entries or made.known or made.unplaced):
        tell("nothing to take: no stop or quote in it points at lines", err=True)
    for asked, entry in made.entries:
        tell(f"  {entry['id']}  {asked.span}", err=True)
    for name, known in made.known:
        tell(f"  {name}: in the book already, as {known}", err=True)
    if made.unplaced:
        rows = "\n".join(f"    {name}: {why}" for name, why in made.unplaced)
        count = counted(len(made.unplaced), "note")
        taken = counted(len(made.entries), "note")
        raise ReaderkitError(f"{taken} placed; {count} could not be:\n{rows}")
