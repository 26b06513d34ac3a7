"""A line that a person types, asked for so that ^C is not lost.

``input()`` writes the end of its prompt and then waits, both in C: an interrupt that
comes between the two is noted and not acted upon, until something else is typed.
"""

from __future__ import annotations

import sys
from contextlib import suppress

from click import termui


def read_line(prompt: str = "") -> str:
    """Return a typed line without its end.

    Raises:
        EOFError: nothing more will be typed.
    """
    if not (sys.stdin.isatty() and sys.stdout.isatty()):
        return input(prompt)
    try:
        sys.stderr.write(prompt)  # where input() writes it on a terminal
        sys.stderr.flush()  # as soon as it is read, ^C may come
        if line := sys.stdin.readline():
            return line.removesuffix("\n")
        raise EOFError
    except (KeyboardInterrupt, EOFError):
        with suppress(OSError):  # the terminal may be gone
            sys.stderr.write("\n")  # what is said next begins a line of its own
        raise


def install() -> None:
    """Have click's questions read their answers in this way."""
    termui.visible_prompt_func = read_line
