"""A record as text for the terminal."""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from math import isfinite
from statistics import median

from readerkit.records import (
    Event,
    Held,
    Pipeline,
    RankEvents,
    Record,
    Site,
    Verdict,
    line_numbers,
)

WORDS = {"agree": "agree", "explained": "differ, explained", "differ": "DIFFER"}


def render(record: Record) -> str:
    """Return the whole report."""
    parts = [
        _head(record),
        _section("what was compared", _verdicts(record.verdicts)),
        *(
            _section(f"step {record.traced_step} on rank {r.rank}", _events(r))
            for r in record.events
        ),
        _section("sent in one step", _totals(record)),
        _section("kept between steps", _held(record.held)),
        _section("most tensor bytes alive in a step", _peaks(record)),
        _section("seconds a step", _times(record)),
    ]
    if record.pipeline is not None:
        parts.append(_section("pipeline", _pipeline(record.pipeline)))
    parts.append(_section("lines that ran", _lit(record)))
    parts.append(_summary(record))
    return "\n\n".join(parts)


def _section(title: str, rows: Iterable[str]) -> str:
    return "\n".join([f"--- {title} ---", *rows])


def _head(record: Record) -> str:
    pins = ", ".join(f"{name} {pin[:12]}" for name, pin in record.pins.items())
    where = ", ".join(f"{key} {value}" for key, value in record.environment.items())
    what = ", ".join(f"{key} {value}" for key, value in record.versions.items())
    rows = [
        f"{record.mini} beside {record.upstream}, {record.world_size} ranks on "
        f"{record.backend}, {record.steps} steps",
        f"made {record.made} UTC with {pins}; {what}; {where}",
        *(f"shim {shim.name}: {shim.reason}" for shim in record.shims),
    ]
    return "\n".join(rows)


def _table(rows: Sequence[Sequence[str]], right: Iterable[int] = ()) -> list[str]:
    widths = [max(len(row[i]) for row in rows) for i in range(len(rows[0]))]
    right = set(right)
    return [
        "  ".join(
            cell.rjust(width) if i in right else cell.ljust(width)
            for i, (cell, width) in enumerate(zip(row, widths, strict=True))
        ).rstrip()
        for row in rows
    ]


def _number(value: float) -> str:
    if isfinite(value) and value == int(value):
        return f"{int(value):,}"
    return f"{value:.6g}"


def _verdicts(verdicts: Sequence[Verdict]) -> list[str]:
    same: dict[tuple[str, ...], list[int]] = {}
    for v in verdicts:
        numbers = map(_number, (v.mini, v.upstream, v.difference, v.tolerance))
        ranks = same.setdefault((WORDS[v.state], *numbers, v.what, v.reason), [])
        if v.rank is not None:
            ranks.append(v.rank)
    head = ("", "mini", "upstream", "difference", "tolerance", "ranks", "what", "why")
    rows = [
        (*row[:5], ",".join(map(str, ranks)) or "all", *row[5:])
        for row, ranks in same.items()
    ]
    return _table([head, *rows], right=(1, 2, 3, 4))


def _site(site: Site | None) -> str:
    return f"{site.path}:{site.line}" if site else "C++"


def _events(rank: RankEvents) -> Iterator[str]:
    rows: list[tuple[str, ...]] = [
        (
            "",
            "phase",
            "operation",
            "group",
            "dtype",
            "bytes",
            "issue/wait",
            "ready",
            "hides",
            "call site",
        )
    ]
    notes: Counter[str] = Counter()
    for match in rank.matches:
        mark = {"matched": "=", "explained": "~", "flagged": "!"}[match.state]
        if match.state == "explained":
            notes[f"{mark} {match.why} (mirror {match.mirror})"] += 1
        elif match.state == "flagged":
            notes[f"{mark} {match.apart}"] += 1
        if match.mini is not None:
            rows.append((f"{mark} mini", *_event(rank.mini[match.mini], rank)))
        if match.upstream is not None:
            rows.append((f"{mark} up", *_event(rank.upstream[match.upstream], rank)))
    if len(rows) == 1:
        return
    yield from _table(rows, right=(5,))
    yield from (f"{note} ({n} events)" for note, n in notes.items())
    for name, events in (("mini", rank.mini), ("upstream", rank.upstream)):
        early = [
            e for e in events if e.gradients_ready is not None and e.phase == "backward"
        ]
        if early and rank.gradients:
            count = sum((e.gradients_ready or 0) < rank.gradients for e in early)
            yield (
                f"{name}: {count} of {len(early)} calls of backward were issued before "
                f"the last of {rank.gradients} gradients was ready"
            )


def _event(event: Event, rank: RankEvents) -> tuple[str, ...]:
    wait = "C++" if event.wait is None else str(event.wait)
    ready = "" if event.gradients_ready is None else str(event.gradients_ready)
    hidden = "" if event.products_hidden is None else str(event.products_hidden)
    peer = "" if event.peer is None else f" {event.peer}"
    reduction = f" {event.reduction}" if event.reduction else ""
    return (
        event.phase,
        f"{event.op}{reduction}{peer}",
        event.group,
        event.dtype,
        f"{event.payload_bytes:,}",
        f"{event.issue}/{wait}",
        ready,
        hidden,
        _site(event.site),
    )


def _totals(record: Record) -> Iterator[str]:
    rows = [("rank", "side", "operation", "calls", "payload", "formula", "algorithm")]
    for t in record.totals:
        formula = "" if t.formula_bytes is None else f"{t.formula_bytes:,}"
        sent = _number(t.algorithm_bytes)
        rows.append(
            (
                str(t.rank),
                t.side,
                t.op,
                str(t.calls),
                f"{t.payload_bytes:,}",
                formula,
                sent,
            )
        )
    yield from _table(rows, right=(3, 4, 5, 6))
    for w in record.wire:
        yield (
            f"rank {w.rank} {w.side}: {w.bytes:,} bytes written to sockets, "
            f"{_number(w.expected_bytes)} due by gloo's algorithms"
        )


def _held(held: Sequence[Held]) -> list[str]:
    rows = [("rank", "side", "", "bytes", "formula", "")]
    for h in held:
        formula = "" if h.formula_bytes is None else f"{h.formula_bytes:,}"
        rows.append(
            (str(h.rank), h.side, h.category, f"{h.bytes:,}", formula, h.formula)
        )
    return _table(rows, right=(3, 4))


def _peaks(record: Record) -> list[str]:
    return [
        f"rank {p.rank} {p.side}: {p.bytes:,} in {p.phase}: "
        + ", ".join(f"{name} {n:,}" for name, n in p.categories.items())
        for p in record.peaks
    ]


def _times(record: Record) -> list[str]:
    rows = []
    for t in record.times:
        ratio = median(t.mini) / median(t.upstream)
        least = min(t.mini) / min(t.upstream)
        rows.append(
            f"rank {t.rank}: mini {median(t.mini):.4f}, upstream "
            f"{median(t.upstream):.4f} (medians of {len(t.mini)}); "
            f"ratio {ratio:.2f}, of minima {least:.2f}"
        )
    return rows


def _pipeline(pipeline: Pipeline) -> Iterator[str]:
    yield (
        f"{pipeline.schedule}: {pipeline.stages} stages, {pipeline.microbatches} "
        f"microbatches; bubble by {pipeline.formula} = {pipeline.formula_bubble:.2%}"
    )
    for side, bubble in pipeline.bubble.items():
        yield f"{side}: bubble {bubble:.2%} on unit costs, from the order it ran in"
    if pipeline.illustrative:
        yield "more ranks than cores: the chart shows the order, not the time"
    width, end = 72, max(bar.end_s for bar in pipeline.bars)
    for side, rank in dict.fromkeys((bar.side, bar.rank) for bar in pipeline.bars):
        cells = [" "] * width
        for bar in pipeline.bars:
            if (bar.side, bar.rank) == (side, rank):
                first = int(bar.start_s / end * (width - 1))
                last = max(first + 1, int(bar.end_s / end * (width - 1)))
                text = f"{bar.kind}{bar.microbatch}".ljust(last - first, "-")
                cells[first:last] = text[: last - first]
        yield f"{side:8} rank {rank} |{''.join(cells)}|"


def _lit(record: Record) -> list[str]:
    watched = range(record.watched_steps)
    rows = [("file", "setup", *(f"step {step}" for step in watched))]
    for lit in record.lit:
        ran = [line_numbers(lit.setup), *map(lit.in_step, watched)]
        rows.append((lit.path, *(str(len(lines)) for lines in ran)))
    return _table(rows, right=range(1, len(rows[0])))


def _summary(record: Record) -> str:
    states = [verdict.state for verdict in record.verdicts]
    flagged = sum(m.state == "flagged" for r in record.events for m in r.matches)
    return (
        f"{states.count('agree')} lines agree, {states.count('explained')} differ for "
        f"a known reason, {states.count('differ')} differ; {flagged} events have "
        "neither a match nor a reason"
    )
