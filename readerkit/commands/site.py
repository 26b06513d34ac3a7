"""``readerkit site``: the reading site, built once or served while one writes."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from readerkit.app.folders import BUILT_SITE
from readerkit.commands.options import WholeRange, book_option
from readerkit.system.status import Status
from readerkit.terminal.group import NamingGroup
from readerkit.wording.numbers import counted

if TYPE_CHECKING:
    from readerkit.app.page_questions import OwnAsked

OWN = "figures of your own"
"""What a site was made from beside files, as it is told when it changed."""


@click.group(cls=NamingGroup)
def site() -> None:
    """Build the reading site, or serve it while you read and write.

    \b
    Example:
        readerkit site build
        readerkit site serve
    """


@site.command(short_help="Write the site, which opens from disk.")
@click.option(
    "--output",
    type=click.Path(file_okay=False, path_type=Path),
    help="The folder of the site, which is replaced as a whole: by default "
    "build/site, in the folder of a book that you name.",
)
@click.option(
    "--own",
    is_flag=True,
    help="Questions on your ledger, labs and comparisons, too: for you alone.",
)
@book_option
def build(output: Path | None, own: bool, book: Path | None) -> None:
    """Write the site: it opens from disk, and from any folder of a server.

    With --own its quiz asks about your own figures as they are now; a site that others
    are to read is built without it.

    \b
    Example:
        readerkit site build
        readerkit site build --output reading
        readerkit site build --own
    """
    from msgspec import json

    from readerkit.model.freshness import changes, digest, tell
    from readerkit.site.inputs import find_inputs, read_built

    status = Status()
    status.show("site: looking at what has changed")
    place = (output or (book or Path()) / BUILT_SITE).absolute()
    inputs = find_inputs(book)
    own_asked = _own_asked(inputs.book) if own else {}
    built, today = read_built(place), inputs.made_from()
    if own_asked:
        today = {**today, OWN: digest(json.encode(own_asked))}
    changed = changes(built.made_from, today) if built else []
    if built and built.files and not changed:
        status.clear()
        click.echo(f"{built.files} files, nothing changed")
    else:
        from readerkit.app.library import open_library
        from readerkit.site.build import BuildCache, make_site
        from readerkit.site.publish import Rendered, check_place, publish
        from readerkit.system.garbage import uncollected

        check_place(place)
        with uncollected():
            made = make_site(
                open_library(book),
                inputs,
                BuildCache(is_last=True),
                status=status,
                own_asked=own_asked,
            )
            files = Rendered(made, status)
            written = publish(place, files, {**today, **inputs.served()})
        status.clear()
        why = f": {tell(changed)}" if changed else ""
        click.echo(
            f"{counted(len(files), 'file')}, {len(written):,} of them written{why}"
        )
    click.echo(f"open {place / 'index.html'}")


def _own_asked(book: Path) -> OwnAsked:
    from readerkit.app.own_figures import OwnFigures
    from readerkit.app.page_questions import figures_asked, read_banks

    return figures_asked(read_banks(book), OwnFigures())


@site.command(short_help="Serve it to this machine; pages reload as you write.")
@click.option(
    "--port",
    type=WholeRange(0, 65535),
    default=8035,
    show_default=True,
    help="On this machine's own address, 127.0.0.1; 0 takes a free one.",
)
@book_option
def serve(port: int, book: Path | None) -> None:
    """Serve the site to this machine alone; a page reloads when a note changes.

    \b
    Example:
        readerkit site serve
        readerkit site serve --port 9000
    """
    from readerkit.site.inputs import find_inputs
    from readerkit.site.serve import serve as serve_site

    serve_site(find_inputs(book), book, port)
