"""Reads what torch's profiler recorded in a process: spans, and what was allocated."""

import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, TypedDict

import msgspec

from readerkit.system.garbage import uncollected
from readerkit.system.temporary import temporary_folder

Event = Mapping[str, Any]
"""One that the profiler saw, as a trace of Chrome's has it."""

_ARGS = ("Addr", "Bytes", "Device Type", "Total Allocated", "Input type", "Input Dims")
_Args: Any = TypedDict("_Args", dict.fromkeys(_ARGS, Any), total=False)  # type: ignore[misc]


class _Event(TypedDict, total=False):
    """What is read of one, a third: there may be half a million."""

    ph: str
    cat: str
    name: str
    tid: Any
    ts: float
    dur: float
    args: _Args


class _File(TypedDict):
    baseTimeNanoseconds: int
    traceEvents: list[_Event]


@uncollected()
def read_events(profiled: Any) -> tuple[int, Sequence[Event]]:
    """Return all that was recorded, by way of torch's file, and its times' zero."""
    with temporary_folder("mini-impls-trace-") as folder:
        path = Path(folder) / "trace.json"
        profiled.export_chrome_trace(str(path))
        found = msgspec.json.decode(path.read_bytes(), type=_File)
    for event in found["traceEvents"]:
        event["name"] = sys.intern(event["name"])
    return int(found["baseTimeNanoseconds"]), found["traceEvents"]
