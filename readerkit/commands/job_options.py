"""The options that say what a job rents, and for how long."""

from __future__ import annotations

from pathlib import Path

import click

from readerkit.commands.options import Command
from readerkit.terminal.completing import names


def job_options(command: Command) -> Command:
    """Add the options that describe what is rented."""
    for option in reversed(
        (
            click.option(
                "--gpu",
                required=True,
                help="Which, as in the price file.",
                shell_complete=names("priced-gpus"),
            ),
            click.option(
                "--vendor",
                default="runpod",
                help="Whose (default runpod).",
                shell_complete=names("vendors"),
            ),
            click.option(
                "--kind",
                type=click.Choice(["spot", "on-demand"]),
                default="spot",
                help="spot (default) or on-demand.",
            ),
            click.option(
                "--cloud",
                type=click.Choice(["community", "secure"]),
                help="Whose machines (default: the dearer).",
            ),
            click.option("--instances", type=int, default=1, help="How many GPUs (1)."),
            click.option(
                "--hours", required=True, help="All hours that are paid, with set-up."
            ),
            click.option("--setup-hours", default="0", help="How many of them set-up."),
            click.option(
                "--lab",
                help="The lab that it is for: 02.",
                shell_complete=names("labs"),
            ),
            click.option(
                "--prices",
                type=click.Path(exists=True, dir_okay=False, path_type=Path),
                help="Your own price file, instead of the one that ships.",
            ),
            click.option(
                "--confirm-price",
                metavar="USD",
                help="What a GPU costs for an hour today, where the file is too old.",
            ),
        )
    ):
        command = option(command)
    return command
