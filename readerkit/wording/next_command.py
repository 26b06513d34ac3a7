"""What to type next: a command line, with the book and the folder that were named.

A hint without ``--book`` would lead from one's own book to the one that ships, one
without ``--folder`` from one's hand-ins to where there are none.
"""

from __future__ import annotations

from contextvars import ContextVar

SHIPPED = (
    *("break", "budget", "completion", "estimate", "lab", "rebuild", "run"),
    *("quiz delete", "quiz export", "quiz import", "quiz stats", "quiz undo"),
)
"""Commands that work on what ships, or on what is the reader's: they take no book."""
LAB_OF_BOOK = ("--check", "--solution")
"""What a lab looks at in a book."""
LAB_OF_FOLDER = ("--run", *LAB_OF_BOOK)
"""What a lab does with hand-ins."""
_book: ContextVar[str] = ContextVar("the book that the command line names", default="")
_folder: ContextVar[str] = ContextVar(
    "the folder of hand-ins that it names", default=""
)


def typed(*words: str) -> str:
    """Return a command line of readerkit for the book and the hand-ins at hand.

    >>> typed("annotate", "megatron")
    'readerkit annotate megatron'
    """
    book = _book.get() if _takes_book(words) else ""
    folder = _folder.get() if _takes_folder(words) else ""
    named = {"--folder": folder, "--book": book}
    return written(
        *words, *(word for each in named.items() if each[1] for word in each)
    )


def written(*words: str) -> str:
    """Return a command line for a page or a file: it is read where the book is not.

    >>> written("annotate", "megatron")
    'readerkit annotate megatron'
    """
    import shlex

    return shlex.join(["readerkit", *words])


def remember(option: str, named: str) -> None:
    """Have every hint of this command name a book or a folder; nothing: the usual."""
    {"book": _book, "folder": _folder}[option].set(named)


def _takes_folder(words: tuple[str, ...]) -> bool:
    if words[0] == "lab":
        return any(word in LAB_OF_FOLDER for word in words)
    return words[0] == "progress"


def _takes_book(words: tuple[str, ...]) -> bool:
    if words[0] == "lab":
        return any(word in LAB_OF_BOOK for word in words)
    return words[0] not in SHIPPED and " ".join(words[:2]) not in SHIPPED
