"""Processes as the kernel lists them: what is below one, and whether it has ended."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

T = TypeVar("T")

SENT_BYTES = 20_000_000
"""More than a rank writes before it trains."""


def children(pid: int) -> list[int]:
    """Return a process and everything below it."""
    try:
        listed = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    except OSError:
        return []
    return [pid, *(p for child in map(int, listed) for p in children(child))]


def is_training(pid: int) -> bool:
    """Tell whether a rank has sent more than a rank does before it trains."""
    try:
        rows = Path(f"/proc/{pid}/io").read_text().splitlines()
    except OSError:
        return False
    sent = dict(row.split(": ") for row in rows)["wchar"]
    return int(sent) > SENT_BYTES


def is_gone(pid: int) -> bool:
    """Tell whether a process has ended, whoever has to bury it."""
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return True
    return state == "Z"


def wait_for(what: Callable[[], T], seconds: float) -> T:
    """Return what a call returns, once that is something."""
    deadline = time.monotonic() + seconds
    while not (found := what()):
        assert time.monotonic() < deadline
        time.sleep(0.1)
    return found
