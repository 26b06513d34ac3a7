"""One picture of a run: a trace of all ranks that a viewer opens, and a table.

The picture is in Chrome's trace format, which Perfetto reads too: a process for each
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

from mini_impls.recorder import ALONE, Expected, RankTrace
from mini_impls.run_metrics import RankMetrics, RecordedRank, Span, metrics, span_of
from readerkit.wording.numbers import format_bytes, format_seconds

# --- 1. the picture -------------------------------------------------------------------

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
    for at, size in recorded.live:
        at = round(at - zero, 3)
        yield {
            "ph": "C", "pid": pid, "name": "bytes of tensors", "ts": at,
            "args": {"live": size},
        }  # fmt: skip


def check_target(path: Path) -> None:
    """Raise ValueError where no trace can be written, before anything runs."""
    if path.is_dir():
        raise ValueError(f"--trace {path} is a folder: name a file in it")
    if not path.parent.is_dir():
        raise ValueError(f"--trace {path}: there is no folder {path.parent}")
    if not os.access(path.parent, os.W_OK):
        raise ValueError(f"--trace {path}: {path.parent} cannot be written")


def write(path: Path, traces: Sequence[RankTrace]) -> None:
    """Write the picture, whole or not at all."""
    beside = path.with_name(f".{path.name}.part")
    try:
        beside.write_text(json.dumps(merge(traces), separators=(",", ":")))
        beside.replace(path)
    finally:
        beside.unlink(missing_ok=True)


# --- 2. the table ---------------------------------------------------------------------

_HEADS = (
    "rank", "step", "computing", "hidden", "exposed", "waiting", "other",
    "sent", "calls", "peak", "tokens/s",
)  # fmt: skip


def table(traces: Sequence[RankTrace]) -> str:
    """Return a row for each rank, one for all, and what the estimates say of a step."""
    found = [metrics(trace) for trace in traces]
    if not found[0]:
        return "no step was recorded: this mini takes none"
    lines = []
    for part in found[0]:
        rows = [_HEADS, *(_row(of[part]) for of in found)]
        if len(found) > 1:
            rows.append(_row_of_all([of[part] for of in found]))
        told = [i for i in range(len(_HEADS)) if any(row[i] for row in rows[1:])]
        rows = [tuple(row[i] for i in told) for row in rows]
        widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
        lines += [f"{part}:"] if part else []
        for row in rows:
            cells = zip(row, widths, strict=True)
            lines.append("  ".join(cell.rjust(width) for cell, width in cells))
        for trace, of in zip(traces, found, strict=True):
            lines += _beside_estimate(trace, part, of[part])
    return "\n".join(lines)


def _row(of: RankMetrics) -> tuple[str, ...]:
    def share(seconds: float) -> str:
        return f"{seconds / of.step_s:.0%}"

    return (
        str(of.rank),
        format_seconds(of.step_s),
        share(of.computing_s),
        share(of.hidden_s),
        share(of.exposed_s),
        share(of.waiting_s),
        share(of.other_s),
        _size(of.sent_bytes),
        f"{of.calls:g}",
        _size(of.peak_bytes),
        "",
    )


def _row_of_all(found: Sequence[RankMetrics]) -> tuple[str, ...]:
    slowest = max(each.step_s for each in found)
    sent = [each.sent_bytes for each in found if each.sent_bytes is not None]
    peaks = [each.peak_bytes for each in found if each.peak_bytes is not None]
    return (
        "all", format_seconds(slowest), "", "", "", "", "",
        _size(sum(sent) if sent else None),
        f"{sum(each.calls for each in found):g}",
        _size(sum(peaks) if peaks else None),
        f"{min(each.tokens_per_s for each in found):,.0f}",
    )  # fmt: skip


def _beside_estimate(trace: RankTrace, part: str, of: RankMetrics) -> Iterable[str]:
    """Say what was measured beside what the estimates give, with the ratio."""
    expected = trace.expected.get(part, Expected())
    said = []
    if expected.flops:
        due = expected.flops / trace.product_flops_per_s
        speed = f"{trace.product_flops_per_s / 1e9:.3g} GFLOP/s of a product alone"
        text = f"computing {format_seconds(of.computing_s)}, {format_seconds(due)} at"
        said.append(f"{text} {speed} ({_ratio(of.computing_s, due)})")
    pairs = (
        ("sent", of.sent_bytes, expected.sent_bytes, "by formula"),
        ("peak", of.peak_bytes, expected.held_bytes, "of states alone"),
    )
    for what, measured, foreseen, how in pairs:
        if foreseen and measured is not None:
            text = f"{what} {format_bytes(measured)}, {format_bytes(foreseen)} {how}"
            said.append(f"{text} ({_ratio(measured, foreseen)})")
    if expected.idle is not None:
        share = of.waiting_s / of.step_s
        text = f"waiting {share:.0%}, bubble {expected.idle:.0%} by the schedule"
        said.append(text)
    if said:
        yield f"rank {of.rank} beside the estimate: " + "; ".join(said)


def _size(count: float | None) -> str:
    return "" if count is None else format_bytes(count)


def _ratio(measured: float, due: float) -> str:
    return f"{measured / due:.2f} times"
