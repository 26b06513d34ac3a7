"""Shows long text as git does: through a pager on a terminal, whole in a pipe."""

from __future__ import annotations

import os
import re
import shutil
import sys

import click

from readerkit.app.interface_translation import say_in
from readerkit.terminal.processes import lent_terminal
from readerkit.wording.fold import fold

LESS = "FRX-Ps{}$"
"""As git sets it: leave where all fits, keep colours, leave the text on the screen.

The last line says how to go on: after -P, less takes an s for the short prompt.
"""


def show_paged(
    text: str, *, pager: bool = True, language: str = "en", leave: bool = False
) -> None:
    """Print, a screen at a time where a terminal cannot hold it all.

    ``PAGER`` names the pager, and ``PAGER=cat`` means none; ``LESS`` is the reader's.
    With ``leave`` the pager leaves by itself once the end is on the screen.
    """
    text = text.rstrip("\n") + "\n"
    is_terminal = sys.stdout.isatty()
    is_plain = click.get_current_context().color is False  # NO_COLOR
    columns, height = shutil.get_terminal_size()
    if is_terminal:
        text = fold(text, columns)
    if pager and is_terminal and sys.stdin.isatty() and text.count("\n") >= height:
        prompt = say_in(language)("space: go on   q: leave")
        # less gives these a meaning of its own.
        plain = re.sub(r"([?:.%\\])", r"\\\1", prompt)
        own = os.environ.get("LESS")
        os.environ.setdefault("LESS", "E" * leave + LESS.format(plain))
        with lent_terminal():
            click.echo_via_pager(text, color=not is_plain)
        if own is None:
            del os.environ["LESS"]
    else:
        # Not by click, which writes UTF-8 where a terminal knows only ASCII.
        sys.stdout.write(text if is_terminal and not is_plain else click.unstyle(text))
        sys.stdout.flush()
