"""Names for the shell to complete: from the book and the bank, fast, and never loud.

A parameter says what it takes (``shell_complete=names("notes")``). Nothing is fetched,
parsed or imported that a list of names does not need, and whatever goes wrong, there is
just nothing to complete: an error would land in the middle of a line that is typed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING

import click
from click.shell_completion import CompletionItem

if TYPE_CHECKING:
    from pathlib import Path

Complete = Callable[[click.Context, click.Parameter, str], list[CompletionItem]]
Named = Iterable[tuple[str, str]]
"""Names, and what to say of each."""


def names(what: str, *, several: bool = False, also: str = "") -> Complete:
    """Return the completer of a kind of names, a key of ``known_names.KINDS``.

    Of ``several`` with commas between, the last is completed. Where none fits, the
    shell completes what is ``also`` taken: a "file" or a "dir".
    """

    def complete(
        context: click.Context, parameter: click.Parameter, incomplete: str
    ) -> list[CompletionItem]:
        try:
            from readerkit.app.known_names import KINDS

            found = KINDS[what](_book(context), context.params) if what else ()
            before, comma, last = incomplete.rpartition(",") if several else ("",) * 3
            start = last if several else incomplete
            fitting = [
                CompletionItem(before + comma + name, help=says or None)
                for name, says in found
                if name.startswith(start)
            ]
            return fitting or ([CompletionItem(incomplete, type=also)] if also else [])
        except Exception:  # of whatever kind: see above
            return []

    return complete


def _book(context: click.Context) -> Path | None:
    book: Path | None = context.params.get("book")
    return book
