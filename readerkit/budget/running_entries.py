"""Which entries of a ledger are running: a lock of the kernel's says so.

It ends with the last process that has it, however that ends, and no other process can
be mistaken for one.
"""

from __future__ import annotations

import fcntl
import os
from pathlib import Path

from readerkit.errors import BudgetError


def hold(ledger: Path, entry: int) -> int:
    """Return a descriptor; while any process has it, the entry is running.

    Raises:
        BudgetError: the disk refuses.
    """
    path = _mark(ledger, entry)
    try:
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        raise BudgetError(f"{path}: cannot be held: {error.strerror}") from None
    return descriptor


def release(ledger: Path, entry: int, descriptor: int) -> None:
    """Say that an entry is no longer running."""
    _mark(ledger, entry).unlink(missing_ok=True)
    os.close(descriptor)


def check_ended(ledger: Path, entry: int) -> None:
    """Raise where an entry is running.

    Raises:
        BudgetError: it is.
    """
    mark = _mark(ledger, entry)
    try:
        descriptor = os.open(mark, os.O_RDWR)
    except FileNotFoundError:
        return
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        mark.unlink(missing_ok=True)
    except BlockingIOError:
        raise BudgetError(
            f"entry {entry}: got a run that is still going, expected one that has "
            "ended; nothing is settled before. It ends by itself at its time limit"
        ) from None
    finally:
        os.close(descriptor)


def _mark(ledger: Path, entry: int) -> Path:
    return ledger.with_name(f"{ledger.name}.{entry}.running")
