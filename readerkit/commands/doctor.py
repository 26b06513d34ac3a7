"""``readerkit doctor``: what works here and what is missing, on one screen."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path

import click

from readerkit.commands.options import book_option, json_option
from readerkit.terminal.as_json import print_json

_MARKS = {
    "works": ("ok", "green"),
    "missing": ("--", "yellow"),
    "broken": ("!!", "red"),
}


@click.command(short_help="What works here and what is missing, on one screen.")
@json_option
@book_option
def doctor(as_json: bool, book: Path | None) -> None:
    """Look at what readerkit rests on: each thing, how it is, and what mends it.

    Nothing is fetched and nothing heavy is run. It fails where something is broken
    that everything needs; what is only missing (--) is for the commands it names.

    \b
    Example:
        readerkit doctor
    """
    from readerkit.app.doctor import examine, is_well
    from readerkit.errors import ReaderkitError
    from readerkit.render.terminal_safe import visible_line
    from readerkit.terminal.folded import tell

    rows = [*examine(book)]
    if as_json:
        print_json({"ok": is_well(rows), "rows": [asdict(row) for row in rows]})
    else:
        width = max(len(row.what) for row in rows)
        for row in rows:
            mark, colour = _MARKS[row.state]
            detail = visible_line(row.detail)
            tell(f"{click.style(mark, fg=colour)}  {row.what:{width}}  {detail}")
            if row.mend:
                tell(f"    {'':{width}}  {click.style(row.mend, bold=True)}")
    if not is_well(rows):
        broken = ", ".join(row.what for row in rows if row.state == "broken")
        raise ReaderkitError(f"broken: {broken}: see what mends it above")
