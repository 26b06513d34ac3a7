"""One picture of a run: a trace of all ranks that a viewer opens.

It is in Chrome's trace format, which Perfetto reads too: a process for each
rank, with its steps, what it computes, what is under way, what it waits for, and the
bytes of tensors that live.

Follows:
- pytorch/pytorch: torch/profiler/profiler.py (whose traces of single ranks these join)

Leaves out:
- the clocks of several machines: the ranks of one read the same clock
"""

import json
import os
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from mini_impls.recorder import ALONE, RankTrace
from mini_impls.run_metrics import RecordedRank, Span, span_of

_TRACKS = ("steps", "computing", "waiting")


def merge(traces: Sequence[RankTrace]) -> dict[str, Any]:
    """Return one trace of all ranks, times from the start of the first."""
    ranks = [RecordedRank(trace) for trace in traces]
    zero = min(_begin(recorded) for recorded in ranks)
    events: list[dict[str, Any]] = []
    for recorded in ranks:
        events += _drawn(recorded, zero - recorded.trace.base_ns / 1e3)
    return {"displayTimeUnit": "ms", "traceEvents": events}


def _begin(recorded: RecordedRank) -> float:
    times = [event["ts"] for event in recorded.trace.events if event.get("ph") == "X"]
    return recorded.trace.base_ns / 1e3 + min(times, default=0.0)


def _drawn(recorded: RecordedRank, zero: float) -> Iterable[dict[str, Any]]:
    pid = recorded.trace.rank

    def named(what: str, name: str, tid: int = 0) -> dict[str, Any]:
        args = {"name": name}
        return {"ph": "M", "name": what, "pid": pid, "tid": tid, "args": args}

    def bar(tid: int, name: str, span: Span, **args: Any) -> dict[str, Any]:
        start, end = span
        times = {"ts": round(start - zero, 3), "dur": round(end - start, 3)}
        return {
            "ph": "X", "pid": pid, "tid": tid, "name": name, **times, "args": args
        }  # fmt: skip

    yield named("process_name", f"rank {pid}")
    for tid, name in enumerate(_TRACKS):
        yield named("thread_name", name, tid)
    parts = [*recorded.steps.items(), *((ALONE, span) for span in recorded.alone)]
    for name, span in parts:
        yield bar(0, name, span)
    for event in recorded.operations:
        shapes = event.get("args", {}).get("Input Dims", [])
        yield bar(
            1, event["name"].removeprefix("aten::"), span_of(event), shapes=shapes
        )
    for operation, span in recorded.calls:
        yield bar(1, f"call of {operation}", span)
    for span in recorded.waits:
        yield bar(2, "wait", span)
    free: list[float] = []  # when each row of transfers is free again
    for transfer in sorted(recorded.transfers, key=lambda each: each.span):
        start, end = transfer.span
        row = next((i for i, at in enumerate(free) if at <= start), len(free))
        free[row : row + 1] = [end]
        tid = len(_TRACKS) + row
        if row + 1 == len(free):
            yield named("thread_name", f"transfers {row + 1}", tid)
        sized = {"bytes": transfer.tensor_bytes} if transfer.tensor_bytes else {}
        yield bar(tid, transfer.operation, transfer.span, **sized)
    for name, live in recorded.live_by_name():
        for at, size in live:
            yield {
                "ph": "C", "pid": pid, "name": name, "ts": round(at - zero, 3),
                "args": {"live": size},
            }  # fmt: skip


def check_target(path: Path) -> None:
    """Raise ValueError where no trace can be written, before anything runs."""
    if path.is_dir():
        raise ValueError(f"--trace {path} is a folder: name a file in it")
    if path.exists() and not path.is_file():
        raise ValueError(f"--trace {path} is a device: name a file")
    folder = path.resolve().parent if path.is_symlink() else path.parent
    if not folder.is_dir():
        raise ValueError(f"--trace {path}: there is no folder {folder}")
    if not os.access(folder, os.W_OK):
        raise ValueError(f"--trace {path}: {folder} cannot be written")


def write(path: Path, traces: Sequence[RankTrace]) -> None:
    """Write the picture, whole or not at all; where a link leads, not in its place."""
    path = path.resolve()
    beside = path.with_name(f".{path.name}.part")
    try:
        beside.write_text(json.dumps(merge(traces), separators=(",", ":")))
        beside.replace(path)
    except OSError as error:  # of a disk that is full it names no file
        raise OSError(error.errno, error.strerror, str(path)) from error
    finally:
        beside.unlink(missing_ok=True)
