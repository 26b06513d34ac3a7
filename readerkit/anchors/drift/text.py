"""One file as lines that can be compared: any language, any encoding, any bytes.

A line is known by its letters without white space, so that indentation and the kind of
line end do not count. What the lines mean is not looked at here.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Mapping
from functools import cached_property

from readerkit.anchors.source import is_binary, without_mark

_LONG = 20_000
"""A line of so many bytes is data: it is compared as a whole and never taken apart."""
_WORD = re.compile(rb"[A-Za-z_0-9\x80-\xff]+|[^\sA-Za-z_0-9\x80-\xff]")
BLANK = b""

Weight = Callable[[bytes], float]
"""Returns how much a line says."""
Tree = Mapping[str, bytes]
"""The files of one revision by path; asked for one at a time."""


class FileText:
    """A file's lines, and the keys that equal lines share."""

    def __init__(self, data: bytes) -> None:
        self.is_binary = is_binary(data)
        if self.is_binary:
            data = b""
        self.lines = without_mark(data).split(b"\n")
        if self.lines[-1] == b"":
            self.lines.pop()
        self._tokens: dict[int, tuple[bytes, ...]] = {}
        self._sets: dict[int, frozenset[bytes]] = {}

    @cached_property
    def keys(self) -> list[bytes]:
        """Each line without its white space; blank lines are empty."""
        return [key_of(line) for line in self.lines]

    @cached_property
    def key_set(self) -> frozenset[bytes]:
        """The different keys."""
        return frozenset(self.keys)

    @cached_property
    def indents(self) -> list[int]:
        """How far each line is indented, in columns; -1 where it is blank."""
        found = []
        for line in self.lines:
            bare = line[:400].lstrip()
            lead = line[: len(line[:400]) - len(bare)]
            found.append(len(lead.expandtabs(8)) if bare else -1)
        return found

    def balance(self, first: int, last: int) -> int:
        """Return how many more brackets open than close on some lines, from 0.

        Those in texts and comments count too: it is a hint, not syntax.
        """
        total = 0
        for number in range(first, last + 1):
            line = self.lines[number]
            if len(line) < _LONG:
                total += sum(map(line.count, (b"(", b"[", b"{")))
                total -= sum(map(line.count, (b")", b"]", b"}")))
        return total

    def tokens(self, number: int) -> tuple[bytes, ...]:
        """Return the words and signs of a line, counted from 0."""
        known = self._tokens.get(number)
        if known is None:
            line = self.lines[number]
            known = tuple(_WORD.findall(line)) if len(line) < _LONG else ()
            self._tokens[number] = known
        return known

    def token_set(self, number: int) -> frozenset[bytes]:
        """Return the different words and signs of a line, counted from 0."""
        known = self._sets.get(number)
        if known is None:
            known = self._sets[number] = frozenset(self.tokens(number))
        return known


def key_of(line: bytes) -> bytes:
    """Return what a line is compared by."""
    if len(line) >= _LONG:
        return hashlib.blake2b(line.removesuffix(b"\r"), digest_size=16).digest()
    return b"".join(line.split())


def likeness(one: frozenset[bytes], other: frozenset[bytes]) -> float:
    """Return how much of two lines is the same, from 0 to 1."""
    both = len(one) + len(other)
    return 2 * len(one & other) / both if both else 0.0
