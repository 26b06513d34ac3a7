"""``readerkit review``: a person read the note against its code as it is now."""

from __future__ import annotations

from pathlib import Path

import click

from readerkit.commands.options import book_option
from readerkit.terminal.completing import names


@click.command(short_help="Mark notes as reviewed against the code as it is now.")
@click.argument(
    "note_ids", metavar="ID...", nargs=-1, required=True, shell_complete=names("notes")
)
@click.option("--by", help="Who reads them; by default git's user.name of the book.")
@book_option
def review(note_ids: tuple[str, ...], by: str | None, book: Path | None) -> None:
    """Mark notes as reviewed against the code that their anchors resolve to now.

    The lock keeps who did, and on which day.

    \b
    Example:
        readerkit review tp-row-forward
    """
    from readerkit.app.library import writing

    if by is not None and not by.strip():
        raise click.BadParameter("got nothing, expected a name", param_hint="--by")
    with writing():
        _review(note_ids, by, book)


def _review(note_ids: tuple[str, ...], by: str | None, book: Path | None) -> None:
    from readerkit.app.folders import is_checkout
    from readerkit.app.library import open_library
    from readerkit.app.lock_update import lock_as_read
    from readerkit.errors import ReaderkitError, WrongUseError
    from readerkit.wording.meant_name import choose_all

    library = open_library(book)
    known = library.book.annotations
    note_ids = choose_all("note", note_ids, known)
    floating = [
        name
        for name in note_ids
        if not library.book.upstreams[known[name].upstream].is_locked
    ]
    if floating:
        raise WrongUseError(
            f"{', '.join(floating)}: got a note on a folder, which is read where it "
            "stands and has no lock, expected one on a pinned upstream"
        )
    shipped = [name for name in note_ids if not known[name].mine]
    if shipped and not is_checkout(library.root):
        raise ReaderkitError(
            f"{', '.join(shipped)}: got a note of the copy inside the installed "
            "package, expected your own; review it in a checkout, with --book DIR"
        )
    chosen = [known[name] for name in dict.fromkeys(note_ids)]
    read = lock_as_read(library, chosen, " ".join((by or "").split()))
    for key, span in read.items():
        click.echo(f"{key}: reviewed at {span}")
