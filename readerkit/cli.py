"""The command group and dispatch: exit codes, and how each kind of failure ends."""

from __future__ import annotations

import codecs
import errno
import os
import sys
from collections.abc import Sequence

import click

from readerkit import __version__
from readerkit.commands.annotate import annotate
from readerkit.commands.break_ import break_
from readerkit.commands.budget import budget
from readerkit.commands.compare import compare
from readerkit.commands.estimate import estimate
from readerkit.commands.fetch import fetch
from readerkit.commands.lab import lab
from readerkit.commands.note import note
from readerkit.commands.quiz import quiz
from readerkit.commands.review import review
from readerkit.commands.run import run
from readerkit.commands.site import site
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


for command in (
    start,
    annotate,
    fetch,
    note,
    review,
    run,
    compare,
    break_,
    budget,
    estimate,
    lab,
    quiz,
    site,
):
    cli.add_command(command)

# Facts of the world outside, not bugs, wherever they strike: a disk, an output.
_DISK_ERRORS = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EROFS, errno.EIO}


def main(arguments: Sequence[str] | None = None) -> None:
    """Run a command and exit: 0, 1 a mistake, 2 usage, 130 ^C, 3 a bug."""
    _prepare_streams()
    try:
        # Click returns the code of its own exits, and a command's None.
        code = (
            cli.main(args=arguments, prog_name="readerkit", standalone_mode=False) or 0
        )
    except click.exceptions.Exit as error:
        code = error.exit_code
    except SystemExit:
        # Click's answer to a closed pipe: its reader has what it wanted.
        code = 0
    except (click.Abort, KeyboardInterrupt):
        click.echo("readerkit: interrupted", err=True)
        code = 130
    except click.ClickException as error:
        error.show()
        code = error.exit_code
    except ReaderkitError as error:
        _complain(str(error))
        code = 1
    except Exception as error:
        code = _unexpected(error)
    sys.exit(code)


def _prepare_streams() -> None:
    codecs.register_error("readerkit-nearest", _nearest)
    for name in ("stdout", "stderr"):
        stream = getattr(sys, name)
        if stream is None:  # closed by the caller: >&-
            setattr(sys, name, open(os.devnull, "w"))  # noqa: PTH123, SIM115
        # A terminal that knows only ASCII shows what is nearest instead of failing.
        elif hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="readerkit-nearest")


def _nearest(error: UnicodeError) -> tuple[str, int]:
    """Answer a codec that cannot write some letters."""
    from readerkit.render.visible import in_ascii

    assert isinstance(error, UnicodeEncodeError)  # of a stream that is written
    return in_ascii(error.object[error.start : error.end]), error.end


def _unexpected(error: Exception) -> int:
    """Tell a disk that is full, or an output that is, from a bug; return the code."""
    if isinstance(error, OSError) and error.errno in _DISK_ERRORS:
        if not error.filename:
            sys.stdout = None  # what is left in it would fail again at the end
        _complain(f"cannot write {error.filename or 'the output'}: {error.strerror}")
        return 1
    import traceback

    traceback.print_exc()
    _complain("this is a bug: please report it with the lines above")
    return 3


def _complain(message: str) -> None:
    """Say what is wrong, with nothing in it that a terminal would obey."""
    from readerkit.render.visible import visible

    click.echo(f"readerkit: {visible(message)}", err=True)
