"""Options that several commands share."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NoReturn, TypeVar

import click
from click.core import ParameterSource

from readerkit.model.language import LANGUAGES
from readerkit.terminal.completing import names
from readerkit.terminal.folded import tell
from readerkit.wording import next_command as typed

if TYPE_CHECKING:
    from pathlib import Path

BOOK_VARIABLE = "READERKIT_BOOK"
Command = TypeVar("Command", bound=Callable[..., Any])


class FiniteRange(click.FloatRange):
    """A finite number within bounds: nan, which no bound keeps out, is refused too."""

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> Any:
        """Refuse what is no number that can be counted to."""
        number = click.FLOAT.convert(value, param, ctx)
        if not math.isfinite(number):
            bounds = self._describe_range()
            self.fail(f"got '{value}', expected a finite number: {bounds}", param, ctx)
        return super().convert(number, param, ctx)


class WholeRange(click.IntRange):
    """A whole number within bounds; of what is none, the message says them too."""

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> Any:
        """Refuse what is no whole number with the bounds of those that are."""
        try:
            number = int(value)
        except ValueError:
            bounds = self._describe_range()
            self.fail(f"got '{value}', expected a whole number: {bounds}", param, ctx)
        return super().convert(number, param, ctx)


class _Folder(click.Path):
    """A folder that is there; of one that is not, the message says who named it."""

    def fail(
        self,
        message: str,
        param: click.Parameter | None = None,
        ctx: click.Context | None = None,
    ) -> NoReturn:
        """Blame the variable where nothing was typed."""
        is_set = param and ctx and param.name and not is_typed(ctx, param.name)
        hint = BOOK_VARIABLE if is_set else None
        raise click.BadParameter(message, ctx, param, param_hint=hint)


class _WrittenFile(click.Path):
    """A file to write; a name that is empty, as of an unset variable, is no place."""

    def convert(
        self,
        value: Any,
        param: click.Parameter | None,
        ctx: click.Context | None,
    ) -> Any:
        """Refuse an empty name, which would be this folder."""
        if not str(value):
            self.fail("got '', expected the path of a file", param, ctx)
        return super().convert(value, param, ctx)


def written_file() -> click.Path:
    """Return the type of an option that names a file to write."""
    from pathlib import Path

    return _WrittenFile(dir_okay=False, path_type=Path)


def book_option(command: Command) -> Command:
    """Add ``--book DIR``, the folder of another book than the one that ships."""
    from pathlib import Path

    return click.option(
        "--book",
        type=_Folder(exists=True, file_okay=False, path_type=Path),
        envvar=BOOK_VARIABLE,
        callback=_remember,
        help="Read the book in this folder instead of the one that ships.",
    )(command)


def begun_book_option(command: Command) -> Command:
    """Add ``--book DIR``, a folder that is to be a book; it need not be there yet."""
    from pathlib import Path

    return click.option(
        "--book",
        type=_Folder(file_okay=False, path_type=Path),
        envvar=BOOK_VARIABLE,
        callback=_remember,
        help="The folder that is to be a book; it alone is made if it is not there.",
    )(command)


def folder_option(command: Command) -> Command:
    """Add ``--folder DIR``, where the hand-ins of labs are."""
    from pathlib import Path

    return click.option(
        "--folder",
        type=click.Path(file_okay=False, path_type=Path),
        default=Path("experiments"),
        show_default=True,
        callback=_remember,
        help="Where hand-ins are.",
    )(command)


def say_whose(what: str) -> None:
    """Say that what is listed is of the book that ships, where another is named."""
    import os
    from pathlib import Path

    from readerkit.app.folders import shipped_book

    named = os.environ.get(BOOK_VARIABLE)
    if named and Path(named).absolute() != shipped_book():
        whose = f"{what} are those of the book that ships: {named} has none"
        tell(f"readerkit: {whose}", err=True)


def _remember(
    context: click.Context, parameter: click.Parameter, place: Path | None
) -> Path | None:
    """Have hints name what was typed; what the environment names needs no hint."""
    option = str(parameter.name)
    # The next command has its own.
    context.call_on_close(lambda: typed.remember(option, ""))
    typed.remember(option, str(place) if is_typed(context, option) else "")
    return place


def is_typed(context: click.Context, option: str) -> bool:
    """Return whether an option stands on the command line itself."""
    return context.get_parameter_source(option) is ParameterSource.COMMANDLINE


def shipped_language_option(
    text: str, default: str | None = LANGUAGES[0], **more: Any
) -> Callable[[Command], Command]:
    """Return ``--lang``, a language of what ships; the help says what is in it."""
    kind = click.Choice(LANGUAGES, case_sensitive=False)
    return click.option("--lang", type=kind, default=default, help=text, **more)


def written_topic_option(
    text: str, default: str | None = None
) -> Callable[[Command], Command]:
    """Return ``--topic``, the file that notes are written to."""
    complete = names("note-topics")
    return click.option("--topic", default=default, help=text, shell_complete=complete)


def chosen_notes_options(command: Command) -> Command:
    """Add the options that choose among the notes of a book."""
    options = (
        click.option(
            "--topic", help="Only of this file.", shell_complete=names("note-topics")
        ),
        click.option(
            "--concept",
            metavar="ID",
            help="Only on it.",
            shell_complete=names("concepts"),
        ),
        click.option(
            "--condition",
            metavar="ID",
            help="Only what presumes it.",
            shell_complete=names("conditions"),
        ),
        click.option(
            "--kind",
            type=click.Choice(["citation", "note", "pitfall"]),
            help="Only such.",
        ),
        click.option(
            "--file",
            metavar="PATH",
            help="Only in files so called, or a pattern.",
            shell_complete=names("noted-files"),
        ),
        click.option(
            "--grep", "text", metavar="TEXT", help="Only those that say this."
        ),
    )
    for option in reversed(options):
        command = option(command)
    return command


def json_option(command: Command) -> Command:
    """Add ``--json``, for programs."""
    return click.option(
        "--json", "as_json", is_flag=True, help="Print JSON, and nothing else."
    )(command)


def lang_option(command: Command) -> Command:
    """Add ``--lang``."""
    return click.option(
        "--lang",
        metavar="LANGUAGE",
        help="In another language: es; what is not translated is marked.",
        shell_complete=names("languages"),
    )(command)


def pager_option(command: Command) -> Command:
    """Add ``--no-pager``: long text goes to the terminal at once."""
    return click.option(
        "--pager/--no-pager",
        default=True,
        help="Show what is longer than the terminal a screen at a time, or not.",
    )(command)


def into_option(command: Command) -> Command:
    """Add ``--into``, for what may be written to either of two books."""
    return click.option(
        "--into",
        type=click.Choice(["book", "mine"]),
        help="The book at hand, or your own overlay (the default outside a checkout).",
    )(command)


def own_help_option(command: Command) -> Command:
    """Add ``--help`` to a command that hands its options on to a mini."""
    return click.option(
        "-h",
        "--help",
        "wants_help",
        is_flag=True,
        help="Show this message, or with MINI the options of that mini, and exit.",
    )(command)
