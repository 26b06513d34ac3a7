"""Options that several commands share."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import click

Command = TypeVar("Command", bound=Callable[..., Any])


def book_option(command: Command) -> Command:
    """Add ``--book DIR``, the folder of another book than the one that ships."""
    return click.option(
        "--book",
        type=click.Path(exists=True, file_okay=False, path_type=Path),
        envvar="READERKIT_BOOK",
        help="Read the book in this folder instead of the one that ships.",
    )(command)


def json_option(command: Command) -> Command:
    """Add ``--json``, for programs."""
    return click.option(
        "--json", "as_json", is_flag=True, help="Print JSON, and nothing else."
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
