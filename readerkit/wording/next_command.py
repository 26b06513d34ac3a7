"""What to type next: a command line, with the book where one was named.

A hint without ``--book`` would lead from one's own book to the one that ships.
"""

from __future__ import annotations

import shlex
from contextvars import ContextVar

SHIPPED = (
    *("break", "budget", "completion", "estimate", "lab", "run"),
    *("quiz delete", "quiz export", "quiz stats"),
)
"""Commands that work on what ships, or on what is the reader's: they take no book."""
LAB_OF_BOOK = ("--check", "--solution")
"""What a lab looks at in a book."""
_book: ContextVar[str] = ContextVar("the book that the command line names", default="")


def typed(*words: str) -> str:
    """Return a command line of readerkit for the book at hand.

    >>> typed("annotate", "megatron")
    'readerkit annotate megatron'
    """
    book = _book.get() if _takes_book(words) else ""
    return written(*words, *(["--book", book] if book else []))


def written(*words: str) -> str:
    """Return a command line for a page or a file: it is read where the book is not.

    >>> written("annotate", "megatron")
    'readerkit annotate megatron'
    """
    return shlex.join(["readerkit", *words])


def remember(book: str) -> None:
    """Have every hint of this command name a book; nothing: the one that ships."""
    _book.set(book)


def _takes_book(words: tuple[str, ...]) -> bool:
    if words[0] == "lab":
        return any(word in LAB_OF_BOOK for word in words)
    return words[0] not in SHIPPED and " ".join(words[:2]) not in SHIPPED
