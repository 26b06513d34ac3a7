"""The seeded draw: the numbers, choices and orders of a variant of a question."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from typing import TypeVar

T = TypeVar("T")


class SeededDraw:
    """A stream of draws named by a bank's version, a question and a seed.

    SHA-256 in counter mode: Python promises the sequence of ``random.random`` across
    versions, but not that of its shuffles; a variant has to be the same for the engine,
    the site and a later resume.
    """

    def __init__(self, version: int, question: str, seed: int) -> None:
        self._name = f"{version}\0{question}\0{seed}".encode()
        self._count = 0

    def below(self, bound: int) -> int:
        """Return a number from 0 to ``bound - 1``, each as likely as the others."""
        # 64 bits over a bound of at most thousands: the bias is below 1e-15.
        digest = hashlib.sha256(self._name + b"\0%d" % self._count).digest()
        self._count += 1
        return int.from_bytes(digest[:8], "big") % bound

    def choice(self, items: Sequence[T]) -> T:
        """Return one of the items."""
        return items[self.below(len(items))]

    def shuffled(self, items: Sequence[T]) -> list[T]:
        """Return the items in another order (Fisher and Yates)."""
        mixed = list(items)
        for last in range(len(mixed) - 1, 0, -1):
            other = self.below(last + 1)
            mixed[last], mixed[other] = mixed[other], mixed[last]
        return mixed
