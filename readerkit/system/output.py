"""What a process prints: nobody need read it to the end, and a disk may be full."""

from __future__ import annotations

import errno
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TextIO


class OutputError(Exception):
    """The output cannot be written."""


@contextmanager
def printing() -> Iterator[None]:
    """Print inside; where nobody reads on, as after ``| head``, go on all the same.

    Raises:
        OutputError: the disk is full, or the terminal is gone.
    """
    try:
        yield
        sys.stdout.flush()
    except OSError as error:
        if error.errno not in (errno.EPIPE, errno.ENOSPC, errno.EIO) or error.filename:
            raise
        let_go(sys.stdout)
        if error.errno != errno.EPIPE:
            text = f"cannot write the output: {error.strerror}"
            raise OutputError(text) from None


def let_go(stream: TextIO) -> None:
    """Let what a stream still holds go nowhere: it would fail once more at exit."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())
