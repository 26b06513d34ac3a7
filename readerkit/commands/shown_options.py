"""How estimates are shown: their language, how much, JSON or a table, its help."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import click

from readerkit.model.language import LANGUAGES, Say, english
from readerkit.terminal.as_json import print_json
from readerkit.terminal.folded import columns, tell

if TYPE_CHECKING:
    from readerkit.estimate.item import Estimate


from collections.abc import Callable
from typing import TypeVar

Command = TypeVar("Command", bound=Callable[..., Any])


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
