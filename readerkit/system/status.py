"""What a command does now and how far it is: one line on stderr, on a terminal alone.

A line that is drawn leaves the cursor at its start, so that whatever is printed next
takes its place. On a terminal that cannot go back (TERM=dumb) it is a line of its own,
for each thing that is done and now and then. In a pipe there is nothing.
"""

from __future__ import annotations

import os
import sys
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from typing import TextIO

STARTED = "READERKIT_STARTED"
"""Names the pipe that a process closes which speaks for itself from now on."""
REDRAW_S = 0.1
PLAIN_S = 10.0
"""How often one thing is told of again, where every time is a line."""


@dataclass(slots=True)
class Status:
    """The line of one process; several may take turns on one terminal."""

    stream: TextIO = field(default_factory=lambda: sys.stderr)
    _doing: str = ""
    _text: str = ""
    _below: tuple[str, ...] = ()
    _drawn: float = 0.0

    def show(self, doing: str, done: int = 0, of: int = 0) -> None:
        """Say what is done, and how far it is where somebody counts."""
        self._draw(doing, f"{doing} {done:,} of {of:,}" if of else doing)

    def show_below(self, rows: Sequence[str]) -> None:
        """Have these below the line from now on; not where it cannot go back."""
        self._below = tuple(rows)

    def room_below(self) -> tuple[int, int]:
        """Return how many letters fit on a line below, and how many lines do."""
        columns, lines = self._size()
        return columns, lines - 2

    def draw_again(self) -> None:
        """Draw what stands below once more, under what was printed since."""
        if self._below and not _is_plain() and self._is_watched():
            self._put(self._text)

    def clear(self) -> None:
        """Take it away, before anything else is printed on the terminal."""
        if not _is_plain() and self._is_watched():
            self._write("\r\x1b[J")

    @contextmanager
    def waiting(self, doing: str, *, clears: bool = True) -> Iterator[None]:
        """Say what is waited for, and for how long already; then take it away.

        Or leave it to whoever speaks next.
        """
        over, begun = threading.Event(), time.monotonic()

        def tell() -> None:
            self._draw(doing, doing)
            while not over.wait(1.0):
                self._draw(doing, f"{doing}: {time.monotonic() - begun:.0f} s")

        teller = threading.Thread(target=tell, daemon=True)
        teller.start()
        try:
            yield
        finally:
            over.set()
            teller.join()
            if clears:
                self.clear()

    def _draw(self, doing: str, text: str) -> None:
        now, pause = time.monotonic(), PLAIN_S if _is_plain() else REDRAW_S
        is_soon = doing == self._doing and now - self._drawn < pause and not self._below
        if is_soon or text == self._text:
            return
        self._doing, self._text, self._drawn = doing, text, now
        if not self._is_watched():
            return
        if _is_plain():
            self._write(f"{text}\n")
        else:
            self._put(text)

    def _put(self, text: str) -> None:
        columns, lines = self.room_below()
        below = self._below[:lines]
        rows = "".join(f"\n{row[:columns]}" for row in below)
        back = f"\x1b[{len(below)}A" if below else ""
        self._write(f"\r\x1b[J\x1b[2m{text[:columns]}\x1b[0m{rows}{back}\r")

    def _is_watched(self) -> bool:
        """Tell whether this is the foreground of a terminal: others keep quiet."""
        if self.stream is None or self.stream.closed or not self.stream.isatty():
            return False
        with suppress(OSError):  # a terminal that is not ours has no foreground
            return os.tcgetpgrp(self.stream.fileno()) == os.getpgrp()
        return True

    def _size(self) -> tuple[int, int]:
        """Return how many letters fit on a line, and how many lines there are."""
        with suppress(OSError):
            size = os.get_terminal_size(self.stream.fileno())
            return max(1, size.columns - 1), max(2, size.lines)
        return 79, 24

    def _write(self, text: str) -> None:
        with suppress(OSError):  # the terminal was closed: nobody watches any more
            self.stream.write(text)
            self.stream.flush()


def take_over() -> None:
    """Speak from now on, in place of whoever has started this process."""
    pipe = os.environ.pop(STARTED, None)
    if pipe is not None:
        os.close(int(pipe))
    Status().clear()


def _is_plain() -> bool:
    """Tell whether the terminal cannot go back on a line."""
    return os.environ.get("TERM", "dumb") == "dumb"
