"""How estimates are shown: in which language, with how much, as JSON or a table."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import click

from readerkit.commands.grouped_options import OptionGroup
from readerkit.model.language import LANGUAGES, Say, english
from readerkit.terminal.as_json import print_json
from readerkit.terminal.folded import columns, tell

if TYPE_CHECKING:
    from readerkit.estimate.item import Estimate


def _remember(context: click.Context, _: click.Parameter, language: str) -> None:
    context.meta[_LANGUAGE] = language


_LANGUAGE = "readerkit.estimate.language"
language_option = click.option(
    "--lang",
    type=click.Choice(LANGUAGES),
    default=LANGUAGES[0],
    expose_value=False,
    callback=_remember,
    help="Names, units and symbols in another language; JSON stays as it is.",
)
brief_option = OptionGroup(
    click.option(
        "--brief", is_flag=True, help="Only the numbers, without formulas and sources."
    ),
    language_option,
)


def spoken() -> tuple[Say, Say]:
    """Return what says phrases, and names of estimates, as it was asked for."""
    language = click.get_current_context().meta[_LANGUAGE]
    if language == LANGUAGES[0]:
        return english, english
    from readerkit.app.interface_words import say_in, say_of_estimates

    return say_in(language), say_of_estimates(language)


def show(
    estimates: Sequence[Estimate], *, as_json: bool, brief: bool, **more: Any
) -> None:
    """Print estimates: for a program, or as a table of 80 columns."""
    if as_json:
        print_json({"estimates": [each.to_plain() for each in estimates], **more})
        return
    from readerkit.render.estimate_table import estimate_table

    say, say_name = spoken()
    tell(estimate_table(estimates, brief=brief, say=say_name, width=columns()))
    if say is not english:
        tell_rest(say("Sources are English, and what has no Spanish yet."))


def tell_rest(rest: str) -> None:
    """Say what of an answer stays English."""
    tell(click.style(f"\n{rest}", dim=True))
