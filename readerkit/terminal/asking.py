"""Questions that a person answers with a word or two, in our own words.

What is no answer is told what would be one, and the question is asked again.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Container
from typing import TypeVar

import click

from readerkit.errors import WrongUseError
from readerkit.model.language import Say, english
from readerkit.terminal.folded import tell
from readerkit.wording.fold import fitting

T = TypeVar("T")
_ANSWERS = {
    **dict.fromkeys(("y", "yes", "s", "si", "sí"), True),
    **dict.fromkeys(("n", "no"), False),
    **dict.fromkeys(("q", "quit"), None),
}
DECLINED = 130
"""The exit code where a person does not agree, as after ^C."""


def ask(
    question: str,
    take: Callable[[str], T],
    expected: str,
    *,
    suffix: str = ": ",
    err: bool = False,
) -> T:
    """Return what `take` makes of the typed line; ask again where it raises ValueError.

    Raises:
        click.Abort: ^C, or nothing more will be typed.
    """
    while True:
        typed = click.prompt(
            fitting(question, sys.stderr if err else sys.stdout),
            default="",
            show_default=False,
            prompt_suffix=suffix,
            err=err,
        )
        try:
            return take(typed.strip())
        except ValueError:
            tell(expected, err=err)


def confirm(
    question: str, *, default: bool, say: Say = english, err: bool = False
) -> bool | None:
    """Return whether a person agrees, or None for q; Enter is the default.

    Raises:
        click.Abort: ^C, or nothing more will be typed.
    """
    keys = say("Y/n") if default else say("y/N")
    answers = {"": default, **_ANSWERS}
    return ask(
        f"{question} [{keys}]",
        lambda typed: answers[one_word(typed, answers)],
        say("Expected y or n; q leaves."),
        err=err,
    )


def one_word(typed: str, words: Container[str]) -> str:
    """Return a word that was typed in any case.

    Raises:
        ValueError: it is none of them.
    """
    word = typed.casefold()
    if word not in words:
        raise ValueError(f"got '{typed}'")
    return word


def agree(question: str, otherwise: str) -> None:
    """Go on only where a person agrees; else say that nothing was done, and end.

    Raises:
        WrongUseError: no terminal, as in a script: it has to say --yes.
    """
    if not (sys.stdin.isatty() and sys.stderr.isatty()):
        raise WrongUseError(f"got no terminal to ask on, expected --yes: {question}")
    if not confirm(question, default=False, err=True):
        tell(otherwise, err=True)
        raise click.exceptions.Exit(DECLINED)
