"""``readerkit drift``: where things stand in another revision of their code."""

from __future__ import annotations

from pathlib import Path

import click

from readerkit.commands.options import book_option
from readerkit.errors import ReaderkitError


@click.command(short_help="Where everything stands in another revision of the code.")
@click.option(
    "--spans",
    metavar="FILE",
    type=click.Path(path_type=Path),
    help='Lines to carry: a JSON object each, {"id", "path", "start", "end"}.',
)
@click.option(
    "--from",
    "old",
    metavar="PATH",
    help="Where the lines are: a folder, or DIR@REV, a commit of a git directory.",
)
@click.option("--to", "new", metavar="PATH", help="Where to find them: the same.")
@book_option
def drift(
    spans: Path | None, old: str | None, new: str | None, book: Path | None
) -> None:
    """Find lines of one revision in another, of any language.

    Each row of --spans, {"id", "path", "start", "end"} (lines from 1, both included),
    is answered by a row: id, status, path, start, end, confidence, reason. The status
    is same, moved (the code is the same but for white space), edited, gone or unsure;
    with unsure, the place is the best guess, or null. The confidence is the chance
    that exactly these lines are the right ones. A row that asks for nothing is named
    on stderr, and the exit code is 1.

    \b
    Example:
        readerkit drift --spans lines.jsonl --from v1/ --to v2/
        readerkit drift --spans lines.jsonl --from ~/src/x@v1.0 --to ~/src/x@main
    """
    from readerkit.app.spans import carry_rows
    from readerkit.system.output import printing

    if spans is None or old is None or new is None:
        raise click.UsageError("--spans, --from and --to go together")
    rows, problems = carry_rows(spans, old, new)
    with printing():
        for row in rows:
            click.echo(row)
    if problems:
        raise ReaderkitError("\n".join(problems))
