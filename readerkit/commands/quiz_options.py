"""The options that say which questions of a bank are meant."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import click

from readerkit.commands.options import WholeRange
from readerkit.terminal.completing import names


def phase_option(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add ``--phase``, of which the first is meant by default."""
    return click.option(
        "--phase",
        type=WholeRange(0, 999),
        help="By default the first that the book has.",
        shell_complete=names("phases"),
    )(command)


def filter_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add the options to a command: each repeatable, all of them together."""
    options = (
        click.option(
            "--topic",
            "topics",
            multiple=True,
            help="Only this topic; repeatable.",
            shell_complete=names("quiz-topics"),
        ),
        click.option(
            "--objective",
            "objectives",
            multiple=True,
            metavar="ID",
            help="Only this objective; repeatable.",
            shell_complete=names("quiz-objectives"),
        ),
        click.option(
            "--kind",
            "kinds",
            multiple=True,
            help="Only this kind, such as numeric; repeatable.",
            shell_complete=names("quiz-kinds"),
        ),
        click.option(
            "--difficulty",
            "difficulties",
            multiple=True,
            type=WholeRange(1, 3),
            help="Only this difficulty; repeatable.",
        ),
    )
    for option in reversed(options):
        command = option(command)
    return command
