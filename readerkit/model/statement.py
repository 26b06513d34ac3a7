"""What a statement of a file does, in a word: for who takes it for another one."""

from __future__ import annotations

from typing import Literal

from readerkit.model.stored import Stored

Deed = Literal[
    "comment",
    "docstring",
    "blank",
    "defines",
    "condition",
    "repeats",
    "loop",
    "context",
    "branch",
    "assigns",
    "changes",
    "calls",
    "returns",
    "raises",
    "asserts",
    "imports",
    "decorates",
    "declares",
    "deletes",
    "passes",
    "continues",
    "breaks",
    "other",
]


class Statement(Stored, frozen=True, array_like=True):
    """A statement without those within it: of a compound one its head."""

    first: int
    last: int
    does: Deed
    name: str = ""
    """What is defined, or given a value; what is asked of, or gone through."""
    by: str = ""
    """What is called for it."""
