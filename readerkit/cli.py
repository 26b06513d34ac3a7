"""The command group and dispatch: exit codes, and how each kind of failure ends."""

from __future__ import annotations

import sys
import traceback
from collections.abc import Sequence

import click

from readerkit import __version__
from readerkit.commands.annotate import annotate
from readerkit.commands.fetch import fetch
from readerkit.commands.note import note
from readerkit.commands.review import review
from readerkit.commands.start import start
from readerkit.errors import ReaderkitError


@click.group(context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="readerkit")
def cli() -> None:
    """Read the code that trains large models, with notes on its exact lines.

    \b
    Start here:
        readerkit start
    """


for command in (start, annotate, fetch, note, review):
    cli.add_command(command)


def main(arguments: Sequence[str] | None = None) -> None:
    """Run a command and exit: 0, 1 a mistake, 2 usage, 130 ^C, 3 a bug."""
    for stream in (sys.stdout, sys.stderr):
        # A terminal that knows only ASCII shows a question mark instead of failing.
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="replace")
    try:
        cli.main(args=arguments, prog_name="readerkit", standalone_mode=False)
        code = 0
    except click.exceptions.Exit as error:
        code = error.exit_code
    except (click.Abort, KeyboardInterrupt):
        click.echo("readerkit: interrupted", err=True)
        code = 130
    except click.ClickException as error:
        error.show()
        code = error.exit_code
    except ReaderkitError as error:
        click.echo(f"readerkit: {error}", err=True)
        code = 1
    except BrokenPipeError:
        # The reader of a pipe has what it wanted; keep the interpreter from flushing.
        sys.stdout = None
        code = 0
    except Exception:
        traceback.print_exc()
        click.echo(
            "readerkit: this is a bug: please report it with the lines above",
            err=True,
        )
        code = 3
    sys.exit(code)
