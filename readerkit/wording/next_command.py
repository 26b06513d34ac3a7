"""What to type next: a command line, with the book where one was named.

A hint without ``--book`` would lead from one's own book to the one that ships.
"""

from __future__ import annotations

import shlex
from contextvars import ContextVar

_book: ContextVar[str] = ContextVar("the book that the command line names", default="")


def typed(*words: str) -> str:
    """Return a command line of readerkit for the book at hand.

    >>> typed("annotate", "megatron")
    'readerkit annotate megatron'
    """
    book = _book.get()
    return shlex.join(["readerkit", *words, *(["--book", book] if book else [])])


def remember(book: str) -> None:
    """Have every hint of this command name a book; nothing: the one that ships."""
    _book.set(book)
