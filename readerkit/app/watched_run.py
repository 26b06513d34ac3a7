"""A run that is watched: where it leaves its table, and the table as it was left."""

from __future__ import annotations

import os
import time
from contextlib import suppress
from pathlib import Path

from msgspec import MsgspecError, Struct, json

from readerkit.app.folders import data_folder
from readerkit.errors import ReaderkitError

MAX_BYTES = 1_000_000


class PartRows(Struct, frozen=True):
    """A part of a mini that takes steps by itself: a row for each rank, heads first."""

    name: str
    rows: list[list[str]]
    beside: list[str]
    """What the estimates say."""


class WatchedRun(Struct, frozen=True):
    """What a run left when it looked at a step last."""

    command: str
    process: int
    step: int
    """Counted from 0."""
    told_at: float
    """Seconds since 1970."""
    has_ended: bool
    parts: list[PartRows]

    @property
    def is_broken_off(self) -> bool:
        """Whether its process is gone, and has not said that the run ended."""
        return not self.has_ended and not _is_alive(self.process)

    @property
    def age(self) -> str:
        """Seconds since."""
        return f"{max(0, round(time.time() - self.told_at)):,}"


def show_on_a_page() -> None:
    """Have a run that is started next leave its table where a server finds it.

    Where the reader has no folder, it is shown in the terminal alone.
    """
    with suppress(ReaderkitError):
        os.environ["READERKIT_WATCHED"] = str(_place())


def read_watched_run() -> WatchedRun | None:
    """Return the run that told last; None where none did, or nobody can read it."""
    try:
        place = _place()
        if place.stat().st_size > MAX_BYTES:
            return None
        return json.decode(place.read_bytes(), type=WatchedRun)
    except (OSError, ReaderkitError, MsgspecError):
        return None


def _place() -> Path:
    return data_folder() / "watched.json"


def _is_alive(process: int) -> bool:
    try:
        os.kill(process, 0)
    except (OSError, OverflowError):
        return False
    return True
