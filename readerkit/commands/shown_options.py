"""How estimates are shown: their language, how much, JSON or a table, its help."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import click

from readerkit.commands.options import Command, shipped_language_option
from readerkit.model.language import LANGUAGES, Say, english
from readerkit.terminal.as_json import print_json
from readerkit.terminal.folded import columns
from readerkit.terminal.pager import show_paged

if TYPE_CHECKING:
    from readerkit.estimate.item import Estimate


class OptionGroup:
    """Several options as one decorator, in the order in which they are listed."""

    def __init__(self, *decorators: Callable[[Any], Any]) -> None:
        """Take what adds them."""
        self._decorators = decorators
        self._names = frozenset[str]()

    def __call__(self, command: Command) -> Command:
        """Add them to a command."""
        before = len(_params(command))
        for decorator in reversed(self._decorators):
            command = decorator(command)
        self._names = frozenset(str(each.name) for each in _params(command)[before:])
        return command

    @property
    def names(self) -> frozenset[str]:
        """By which a command gets what they say, once they are one's."""
        return self._names


def _params(command: Any) -> list[click.Parameter]:
    return getattr(command, "__click_params__", [])


def _remember(context: click.Context, _: click.Parameter, language: str) -> None:
    context.meta[_LANGUAGE] = language


_LANGUAGE = "readerkit.estimate.language"
language_option = shipped_language_option(
    "Names, units and symbols in another language; JSON stays as it is.",
    expose_value=False,
    callback=_remember,
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
    from readerkit.app.interface_translation import say_in, say_of_estimates

    return say_in(language), say_of_estimates(language)


def show(
    estimates: Sequence[Estimate],
    *,
    as_json: bool,
    brief: bool,
    below: str = "",
    **more: Any,
) -> None:
    """Print estimates: for a program, or as a table of 80 columns and what is below."""
    if as_json:
        print_json({"estimates": [each.to_plain() for each in estimates], **more})
        return
    from readerkit.render.estimate_table import estimate_table

    _, say_name = spoken()
    table = estimate_table(estimates, brief=brief, say=say_name, width=columns())
    show_sourced(f"{table.rstrip()}\n{below}")


def show_sourced(text: str) -> None:
    """Show an answer; where it is not in English, say what of it stays English."""
    say, _ = spoken()
    if say is not english:
        rest = say("Sources are English, and what has no Spanish yet.")
        text = f"{text.rstrip()}\n\n{click.style(rest, dim=True)}"
    show_answer(text)


def show_answer(text: str) -> None:
    """Print an answer, a screen at a time where a terminal cannot hold it."""
    show_paged(text, language=click.get_current_context().meta[_LANGUAGE])
