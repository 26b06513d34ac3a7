"""The command group and dispatch: exit codes, and how each kind of failure ends."""

from __future__ import annotations

import codecs
import errno
import io
import os
import signal
import sys
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress

import click

from readerkit import __version__
from readerkit.errors import ReaderkitError, WrongUseError
from readerkit.system import prompt
from readerkit.system.output import OutputError, let_go, printing
from readerkit.terminal.folded import fitting, screen_columns
from readerkit.terminal.group import LateGroup

# A command's module, and what --help says of it.
_COMMANDS = {
    "annotate": ("annotate", "The notes, with every anchor resolved; one by its ID."),
    "break": ("break_", "A mini with one deliberate fault: predict, run, see."),
    "budget": ("budget", "Nothing that costs money starts past its ceiling."),
    "cache": ("cache", "The fetched source: where, how large, verify, remove."),
    "compare": ("compare", "A mini beside its upstream: losses, collectives, bytes."),
    "completion": ("completion", "Complete names in your shell."),
    "doctor": ("doctor", "What works here and what is missing, on one screen."),
    "drift": ("drift", "Where everything stands in another revision of the code."),
    "estimate": (
        "estimate",
        "Memory, communication, bubble, FLOPs, plan: with formulas.",
    ),
    "export": ("export", "Notes and tours for CodeTour, the web, Markdown, SARIF."),
    "fetch": ("fetch", "Bring each UPSTREAM, or all, and verify every file."),
    "import": ("import_", "Notes from CodeTour, or from Web Annotations."),
    "init": ("init", "Begin a book of your own on a repository or a package."),
    "lab": ("lab", "The labs: pages, measurements, checks."),
    "lsp": ("lsp", "Notes in your editor, as a language server on stdio."),
    "mcp": ("mcp", "The book for assistants, by the Model Context Protocol."),
    "note": ("note", "Write a note of your own on FILE:LINES."),
    "path": ("path", "The reading paths: what to read, and what comes next."),
    "progress": ("progress", "The definition of done, each line with its evidence."),
    "prove": ("prove", "Run the experiment behind a sentence of ID."),
    "quiz": ("quiz", "Ask, mark and explain: quiz 35."),
    "rebuild": ("rebuild", "One section of a mini, written anew and graded."),
    "review": ("review", "Mark notes as reviewed against the code as it is now."),
    "run": ("run", "One mini implementation, on processes of this machine."),
    "site": ("site", "Build the reading site, or serve it while you read and write."),
    "start": (
        "start",
        "Show one real stop: the lines, the note, and where to go next.",
    ),
}


@click.group(
    cls=LateGroup,
    late=_COMMANDS,
    context_settings={"help_option_names": ["-h", "--help"]},
)
@click.version_option(__version__, prog_name="readerkit")
def cli() -> None:
    """Read the code that trains large models, with notes on its exact lines.

    \b
    Start here:
        readerkit start
    """


# Facts of the world outside, not bugs, wherever they strike: a disk, an output.
_DISK_ERRORS = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EROFS, errno.EIO}


class _Told(BaseException):
    """Told to end by a signal: as an exception, so that everyone clears up."""


_ENDING = (signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT)


def _end(signum: int, frame: object) -> None:
    signal.signal(signum, signal.SIG_DFL)  # the second time it ends us as it can
    raise _Told(signum)


@contextmanager
def _heeding() -> Iterator[None]:
    """Let a signal that would end this process end the command instead."""
    if threading.current_thread() is not threading.main_thread():
        yield  # only the main thread may take signals
        return
    ours = [s for s in _ENDING if signal.getsignal(s) is signal.SIG_DFL]
    for signum in ours:
        signal.signal(signum, _end)
    try:
        yield
    finally:
        for signum in ours:
            signal.signal(signum, signal.SIG_DFL)


@contextmanager
def _interruptible() -> Iterator[None]:
    """Have ^C raise in here, where ``__main__`` has let it end the process."""
    ours = (
        threading.current_thread() is threading.main_thread()
        and signal.getsignal(signal.SIGINT) is signal.SIG_DFL
    )
    if ours:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        yield
    finally:
        if ours:
            signal.signal(signal.SIGINT, signal.SIG_DFL)


def main(arguments: Sequence[str] | None = None) -> None:
    """Run a command and exit: 0, 1 a mistake, 2 usage, 130 ^C, 3 a bug.

    128 + n says that signal n has ended it.
    """
    _prepare_streams()
    prompt.install()
    try:
        with _heeding():
            code = _run(arguments)
    except _Told as told:
        signum = signal.Signals(told.args[0])
        code = 128 + signum
        if signum != signal.SIGHUP:
            _complain(f"ended by {signum.name}")
        else:  # no terminal is left to say it on, nor for what was printed last
            with suppress(OutputError), printing():
                pass
    sys.exit(code)


def _run(arguments: Sequence[str] | None) -> int:
    """Run a command, say what went wrong, and return the exit code."""
    code: int
    try:
        # Click returns the code of its own exits, and a command's None.
        # Click takes None for: as the output is.
        color = False if os.environ.get("NO_COLOR") else None
        with _interruptible():
            code = (
                cli.main(
                    args=arguments,
                    prog_name="readerkit",
                    standalone_mode=False,
                    color=color,
                    # Click's own help is 50 columns wide at the least.
                    terminal_width=max(min(screen_columns(), 80) - 2, 20),
                )
                or 0
            )
    except click.exceptions.Exit as error:
        code = error.exit_code
    except SystemExit:
        # Click's answer to a closed pipe: its reader has what it wanted. What judges
        # prints by ``printing``, and goes on to its verdict.
        code = 0
    except (click.Abort, KeyboardInterrupt):
        _say("readerkit: interrupted")
        # Python ends itself by SIGINT, whatever it is told, if the interrupt came while
        # a text was executed, as importing a dataclass does; the next text undoes that.
        eval("0")
        code = 130
    except click.ClickException as error:
        said = io.StringIO()
        error.show(said)
        _say(said.getvalue().rstrip("\n"))
        code = error.exit_code
    except (ReaderkitError, OutputError) as error:
        _complain(str(error))
        code = 2 if isinstance(error, WrongUseError) else 1
    except Exception as error:
        # Where a shell asks for names, a traceback would land in the line being typed.
        code = 0 if "_READERKIT_COMPLETE" in os.environ else _unexpected(error)
    return code


def _prepare_streams() -> None:
    codecs.register_error("readerkit-nearest", _nearest)
    # What the caller has closed (<&-, >&-) is nothing, for us and for what we start:
    # else the next file that is opened would take its place.
    for descriptor in range(3):
        try:
            os.fstat(descriptor)
        except OSError:
            os.open(os.devnull, os.O_RDWR)  # the lowest that is free: this one
            os.set_inheritable(descriptor, True)
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        stream = getattr(sys, name)
        if stream is None:
            setattr(sys, name, open(os.devnull, mode))  # noqa: PTH123, SIM115
        # A terminal that knows only ASCII shows what is nearest instead of failing.
        elif hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="readerkit-nearest")


def _nearest(error: UnicodeError) -> tuple[str, int]:
    """Answer a codec that cannot write some letters, or read some bytes."""
    from readerkit.render.terminal_safe import in_ascii

    if isinstance(error, UnicodeDecodeError):  # of what was typed
        return "\N{REPLACEMENT CHARACTER}", error.end
    assert isinstance(error, UnicodeEncodeError)  # of a stream that is written
    return in_ascii(error.object[error.start : error.end]), error.end


def _unexpected(error: Exception) -> int:
    """Tell what the world outside did from a bug; return the code."""
    if isinstance(error, OSError) and not _stands_somewhere():
        _complain("the working folder is gone: go to one that is there, and try again")
        return 1
    if isinstance(error, OSError) and error.errno in _DISK_ERRORS:
        if not error.filename:
            let_go(sys.stdout)
        _complain(f"cannot write {error.filename or 'the output'}: {error.strerror}")
        return 1
    import traceback

    traceback.print_exc()
    _complain("this is a bug: please report it with the lines above")
    return 3


def _stands_somewhere() -> bool:
    try:
        return bool(os.getcwd())  # noqa: PTH109
    except OSError:
        return False


def _complain(message: str) -> None:
    """Say what is wrong, with nothing in it that a terminal would obey."""
    from readerkit.render.terminal_safe import visible

    _say(f"readerkit: {visible(message)}")


def _say(text: str) -> None:
    """Write to stderr; on a terminal words stay whole."""
    try:
        click.echo(fitting(text, sys.stderr), err=True)
    except OSError:  # hung up: nobody is left to read it
        let_go(sys.stderr)
