"""``readerkit quiz export``: the history, or the bank for another program."""

from __future__ import annotations

from pathlib import Path

import click

from readerkit.commands.options import json_option


@click.command(short_help="Write the whole history as JSON.")
@click.argument("file", type=click.Path(dir_okay=False, path_type=Path), required=False)
@json_option
def export(file: Path | None, as_json: bool) -> None:
    """Write the whole history as JSON, to FILE or to the screen.

    \b
    Example:
        readerkit quiz export answers.json
    """
    from readerkit.app.quiz_banks import open_history, tell_damage
    from readerkit.quiz.history_messages import Exported
    from readerkit.quiz.messages import encode_wide
    from readerkit.quiz.report import exported
    from readerkit.terminal.quiz_json import say
    from readerkit.upstreams.store import write_atomically

    history = open_history(to_read=True)
    text = encode_wide(exported(history)) + "\n"
    tell_damage(history)
    if file is None:
        click.echo(text, nl=False)
        return
    write_atomically(file.absolute(), text.encode(), private=True)
    if as_json:
        say(Exported(str(file)))
    else:
        click.echo(f"wrote {file}")
