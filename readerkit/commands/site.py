"""``readerkit site``: the reading site, built once or served while one writes."""

from __future__ import annotations

from pathlib import Path

import click

from readerkit.commands.options import book_option


@click.group()
def site() -> None:
    """Build the reading site, or serve it while you read and write.

    \b
    Example:
        readerkit site build
        readerkit site serve
    """


def _output_option(command: click.decorators.FC) -> click.decorators.FC:
    return click.option(
        "--output",
        type=click.Path(file_okay=False, path_type=Path),
        default=Path("build/site"),
        show_default=True,
        help="The folder of the site; it is replaced as a whole.",
    )(command)


@site.command()
@_output_option
@book_option
def build(output: Path, book: Path | None) -> None:
    """Write the site: it opens from disk, and from any folder of a server.

    \b
    Example:
        readerkit site build
        readerkit site build --output /srv/www/reading
    """
    from readerkit.commands.library import open_library
    from readerkit.commands.site_build import build as build_site

    built = build_site(open_library(book), output.absolute())
    click.echo(f"{built.pages} pages, {built.written} files written")
    click.echo(f"open {built.site / 'index.html'}")
