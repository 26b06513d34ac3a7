"""One picture of a run: a trace of all ranks that a viewer opens.

It is in Chrome's trace format, which Perfetto reads too: a process for each
rank, with its steps, what it computes, what is under way, what it waits for, and the
bytes of tensors that live.

Follows:
- pytorch/pytorch: torch/profiler/profiler.py (whose traces of single ranks these join)

Leaves out:
- the clocks of several machines: the ranks of one read the same clock
- what `run_thin` leaves out: views, allocations, what is short inside something else.
  The table that is told with a trace has all of it in its times
"""

import json
import os
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, fields
from pathlib import Path
from tempfile import TemporaryFile
from typing import Any
from uuid import uuid4

from mini_impls.recorder import ALONE, RankTrace
from mini_impls.run_events import Event
from mini_impls.run_metrics import (
    RankSummary,
    RecordedRank,
    Span,
    TransferSpan,
    sum_up,
)
from mini_impls.run_thin import live_tracks, shown_operations
from readerkit.system.garbage import uncollected
from readerkit.system.output import OutputError

_TRACKS = ("steps", "computing", "waiting")
LONGEST_NAME = 255
"""Bytes that file systems take."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DrawnTrace(RankTrace):
    """What is left of a trace when it goes to the first rank: no event of torch's."""

    summary: RankSummary
    """Of all that was recorded."""
    picture: list[Event]
    """As a viewer reads them, times from the trace's own zero."""


@uncollected()
def drawn(trace: RankTrace) -> DrawnTrace:
    """Sum up and draw what a rank recorded, where it did."""
    if isinstance(trace, DrawnTrace):
        return trace
    recorded = RecordedRank(trace)
    known = {each.name: getattr(trace, each.name) for each in fields(trace)}
    known |= {"events": [], "counted": {}}
    return DrawnTrace(**known, summary=sum_up(recorded), picture=[*_drawn(recorded)])


def merge(traces: Sequence[RankTrace]) -> dict[str, Any]:
    """Return one trace of all ranks, times from the start of the first."""
    ranks = [*map(drawn, traces)]
    zero_ns = min(map(_begin_ns, ranks))
    events: list[Event] = []
    for rank in ranks:
        later = (rank.base_ns - zero_ns) / 1e3
        events += (
            {**each, "ts": round(each["ts"] + later, 3)} if "ts" in each else each
            for each in rank.picture
        )
    return {"displayTimeUnit": "ms", "traceEvents": events}


def _begin_ns(rank: DrawnTrace) -> int:
    times = [each["ts"] for each in rank.picture if each["ph"] == "X"]
    return rank.base_ns + int(min(times, default=0.0) * 1e3)


def _drawn(recorded: RecordedRank) -> Iterator[Event]:
    pid = recorded.trace.rank

    def named(what: str, name: str, tid: int = 0) -> Event:
        args = {"name": name}
        return {"ph": "M", "name": what, "pid": pid, "tid": tid, "args": args}

    def bar(tid: int, name: str, span: Span, **args: Any) -> Event:
        start, end = span
        times = {"ts": start, "dur": round(end - start, 3)}
        told = {"args": args} if args else {}
        return {"ph": "X", "pid": pid, "tid": tid, "name": name, **times, **told}

    rows = [*_rows(recorded.transfers)]
    transfers = [f"transfers {row + 1}" for row in sorted({row for row, _ in rows})]
    yield named("process_name", f"rank {pid}")
    for tid, name in enumerate([*_TRACKS, *transfers]):
        yield named("thread_name", name, tid)
    parts = [*recorded.steps.items(), *((ALONE, span) for span in recorded.alone)]
    for name, span in parts:
        yield bar(0, name, span)
    for each in shown_operations(recorded.operations):
        yield bar(1, each.name, each.span, **each.told())
    for operation, span in recorded.calls:
        yield bar(1, f"call of {operation}", span)
    for span in recorded.waits:
        yield bar(2, "wait", span)
    for row, transfer in rows:
        sized = {"bytes": transfer.tensor_bytes} if transfer.tensor_bytes else {}
        yield bar(len(_TRACKS) + row, transfer.operation, transfer.span, **sized)
    for name, live in live_tracks(recorded):
        for at, size in live:
            args = {"live": size}
            yield {"ph": "C", "pid": pid, "name": name, "ts": at, "args": args}


def _rows(transfers: Iterable[TransferSpan]) -> Iterator[tuple[int, TransferSpan]]:
    """Yield each transfer, and in which row it is beside no other."""
    free: list[float] = []  # when each row is free again
    for transfer in sorted(transfers, key=lambda each: each.span):
        start, end = transfer.span
        row = next((i for i, at in enumerate(free) if at <= start), len(free))
        free[row : row + 1] = [end]
        yield row, transfer


def check_target(path: Path) -> None:
    """Raise ValueError where no trace can be written, before anything runs."""
    if len(os.fsencode(path.name)) > LONGEST_NAME:
        raise ValueError(f"--trace: a name of {len(path.name)} characters is too long")
    if path.is_dir():
        raise ValueError(f"--trace {path} is a folder: name a file in it")
    if path.exists() and not path.is_file():
        raise ValueError(f"--trace {path} is a device: name a file")
    folder = path.resolve().parent if path.is_symlink() else path.parent
    if not folder.is_dir():
        raise ValueError(f"--trace {path}: there is no folder {folder}")
    try:
        with TemporaryFile(dir=folder):
            pass
    except OSError as error:
        why = f"{folder} cannot be written ({error.strerror})"
        raise ValueError(f"--trace {path}: {why}") from error


def write(path: Path, traces: Sequence[RankTrace]) -> None:
    """Write the picture, whole or not at all; where a link leads, not in its place.

    Raises:
        OutputError: a disk that is full, or a folder that is gone since it was checked.
    """
    path = path.resolve()
    beside = path.with_name(f".{uuid4().hex}.part")  # others may write the same one
    try:
        beside.write_text(json.dumps(merge(traces), separators=(",", ":")))
        beside.replace(path)
    except OSError as error:  # of a disk that is full it names no file
        raise OutputError(f"cannot write {path}: {error.strerror}") from None
    finally:
        with suppress(OSError):
            beside.unlink()
