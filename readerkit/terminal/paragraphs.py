"""Paragraphs on a terminal: in the reader's language, at a width that can be read.

What a screen cannot hold goes through the pager, whole.
"""

from __future__ import annotations

import os
import re
import shutil
import sys
import textwrap
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import click

from readerkit.app.interface_translation import say_in
from readerkit.model.language import Told, said
from readerkit.render.terminal_safe import visible
from readerkit.terminal.pager import show_paged
from readerkit.wording.numbers import counted

MAX_WIDTH = 88
LINES_AFTER = 2
"""Of a screen, below what is shown together: where one goes on."""
_COMMAND = re.compile(r"(?<=`)readerkit [^`]*(?=`)|\breaderkit(?: [^\s`]+)+$")
_LINK = re.compile(r"\x1b\]8;;[^\x1b]*\x1b\\")
_COLOUR = re.compile(r"\x1b\[[0-9;]*m")


class Paragraphs:
    """Prints texts for a reader, or keeps them until they are shown together."""

    def __init__(self, language: str) -> None:
        self.language = language
        self._say = say_in(language)
        self._held: list[str] | None = None

    def said(self, text: str) -> str:
        """Return a text in the reader's language."""
        return said(text, self._say)

    def counted(self, number: int) -> str:
        """Return so many questions."""
        words = Told("question"), Told("questions")
        return counted(number, *map(self.said, words))

    def tell(
        self, *texts: str, indent: int = 0, wrap: bool = True, **style: Any
    ) -> None:
        """Print a paragraph at a readable width, with nothing a terminal would obey."""
        is_screen = sys.stdout.isatty()
        columns = shutil.get_terminal_size().columns if is_screen else MAX_WIDTH
        shown = " " * indent + visible(" ".join(map(self.said, texts)))
        if wrap:
            # A command is one word: it is copied whole, also where it is too long.
            whole = _COMMAND.sub(lambda m: m[0].replace(" ", "\0"), shown)
            shown = textwrap.fill(
                whole,
                width=max(min(columns, MAX_WIDTH), 20),
                subsequent_indent=" " * (indent + 3 if indent else 0),
                break_long_words=False,
                break_on_hyphens=False,
            ).replace("\0", " ")
        self.put(click.style(shown, **style) if style else shown)

    def put(self, text: str, *, nl: bool = True) -> None:
        """Print, or keep what is shown together with what follows."""
        if self._held is None:
            click.echo(text, nl=nl)
        else:
            self._held.append(text + "\n" * nl)

    @contextmanager
    def together(self) -> Iterator[None]:
        """Show what is told meanwhile a screen at a time, where it is longer than one.

        Else its beginning, whether the answer was right, would have scrolled away.
        """
        if self._held is not None or not sys.stdout.isatty():
            yield
            return
        self._held = []
        try:
            yield
        finally:
            text, self._held = "".join(self._held), None
            columns, height = shutil.get_terminal_size()
            lines = _COLOUR.sub("", _LINK.sub("", text)).splitlines()
            rows = sum(max(1, -(-len(line) // columns)) for line in lines)
            if rows > height - LINES_AFTER:
                # A pager's lines are folded, and addresses stand there in words too.
                show_paged(_LINK.sub("", text), language=self.language, leave=True)
            else:
                click.echo(text, nl=False)


def linked(text: str, address: str) -> str:
    """Return a text that a terminal opens as an address (OSC 8), if it is one that can.

    The address is printed too: those that cannot show the text alone.
    """
    if not sys.stdout.isatty() or os.environ.get("TERM", "dumb") in ("dumb", "linux"):
        return text
    if "://" not in address:  # a file here, with its line
        address = Path(address.rpartition(":")[0]).absolute().as_uri()
    return f"\x1b]8;;{address}\x1b\\{text}\x1b]8;;\x1b\\"
