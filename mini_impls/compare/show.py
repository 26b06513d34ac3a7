"""A record as text for the terminal: the verdict, then what it rests on."""

import textwrap
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from math import isfinite
from statistics import median

from mini_impls.compare.show_events import (
    LEGEND,
    MARKS,
    Give,
    as_given,
    events,
    fitted,
)
from readerkit.content.mirrors import Mirror
from readerkit.evidence.conclusion import Conclusion, say_conclusion, say_reason
from readerkit.evidence.line_ranges import line_numbers
from readerkit.evidence.purposes import purposes
from readerkit.evidence.record import PipelineRecord, RankEvents, Record, Verdict
from readerkit.model.language import Say, english
from readerkit.wording.next_command import typed

COUNTS = {
    "agree": ("1 agrees", "{count} agree"),
    "explained": (
        "1 differs for a known reason",
        "{count} differ for a known reason",
    ),
    "differ": ("1 differs", "{count} differ"),
}
LIMITS = {
    "unseen": "not seen",
    "uncovered": "not in this work",
    "counted": "counted, not derived",
}
LESS = "<"
"""Marks what agrees though the numbers differ, since no more was asked."""
LEAST = 16
"""A column narrower than this is no place for a sentence."""
LEAST_PATH = 40
"""One narrower than this makes paths look alike, which end in the same way."""


def render(
    record: Record,
    width: int = 80,
    mirror: Mirror | None = None,
    say: Say = english,
    give: Give = as_given,
) -> str:
    """Return the whole report, no line of words wider than `width`.

    By sections of a mirror, where there is one, it says what calls are for; `say` says
    what happened in the reader's language, and `give` the reasons of mirrors.
    """
    verdict = _verdict(record, width, say, give)
    parts = [
        "\n".join(_head(record, width, say)),
        _section(say("verdict"), verdict),
        _section(say("what was compared"), _quantities(record.verdicts, width, say)),
        *_jobs(record, width, mirror, say),
        *_steps(record, width, say, give),
        _section(say("sent in one step"), _totals(record, width, say)),
        _section(say("kept between steps"), _held(record, width, say)),
        _section(say("most tensor bytes alive in a step"), _peaks(record, width, say)),
        _section(say("seconds a step"), _times(record, width, say)),
    ]
    if record.pipeline is not None:
        bars = _pipeline(record.pipeline, width, say)
        parts.append(_section(say("pipeline"), bars))
    lit = _lit(record, width, say)
    parts.append(_section(say("lines that ran, in set-up and by step"), lit))
    parts.append(
        "\n".join(_conclusion(record, width, say, give))
    )  # at hand, where reading ends
    return "\n\n".join(parts)


def _section(title: str, rows: Iterable[str]) -> str:
    return "\n".join([f"--- {title} ---", *rows])


def _wrapped(text: str, width: int, hang: str = "  ") -> list[str]:
    return textwrap.wrap(text, width, subsequent_indent=hang, break_on_hyphens=False)


# --- 1. the verdict ---


def _conclusion(record: Record, width: int, say: Say, give: Give) -> Iterator[str]:
    """Yield what happened, as the site says it."""
    found = Conclusion.of(record)
    first, *more = say_conclusion(found, say)
    sides = say("{mini} beside {upstream}")
    sides = sides.format(mini=record.mini, upstream=record.upstream)
    yield from _wrapped(f"{sides} {MARKS[found.kind]} {first}", width)
    if found.trap:
        note = typed("annotate", found.trap.note)
        why = give(found.trap.mirror, found.trap.why)
        see = say("See {command}.").format(command=note)
        yield from _wrapped(f"{why} {see}", width)
    for sentence in more:
        yield from _wrapped(sentence, width)


def _verdict(record: Record, width: int, say: Say, give: Give) -> Iterator[str]:
    """Yield what happened, every reason, and what nobody can say."""
    yield from _conclusion(record, width, say, give)
    for reason in Conclusion.of(record).reasons:
        why, given = reason.why, ""
        if reason.mirror:
            why = give(reason.mirror, why)
            given = f" ({say('mirror {name}').format(name=reason.mirror)})"
        yield from _wrapped(f"- {say_reason(reason, say)}: {why}{given}", width)
    order = list(COUNTS)
    worst: dict[str, str] = {}
    for each in record.verdicts:
        known = worst.get(each.what, order[0])
        worst[each.what] = max(known, each.state, key=order.index)
    states = Counter(worst.values())
    counts = ", ".join(
        say(one if states[state] == 1 else many).format(count=states[state])
        for state, (one, many) in COUNTS.items()
    )
    yield from _wrapped(f"{len(worst)} {say('quantities')}: {counts}", width)
    for kind, word in LIMITS.items():
        told = "; ".join(
            f"{say(each.what)} ({say(each.why)})" if each.why else say(each.what)
            for each in record.limits
            if each.kind == kind
        )
        if told:
            yield from _wrapped(f"{say(word)}: {told}", width)


def _head(record: Record, width: int, say: Say) -> Iterator[str]:
    pins = ", ".join(f"{name} {pin[:12]}" for name, pin in record.pins.items())
    where = ", ".join(f"{key} {value}" for key, value in record.environment.items())
    what = ", ".join(f"{key} {value}" for key, value in record.versions.items())
    work = say("{mini} beside {upstream}, {ranks} ranks on {backend}, {steps} steps")
    work = work.format(
        mini=record.mini,
        upstream=record.upstream,
        ranks=record.world_size,
        backend=record.backend,
        steps=record.steps,
    )
    yield from _wrapped(work, width)
    made = say("made {moment} UTC with {pins}").format(moment=record.made, pins=pins)
    yield from _wrapped(f"{made}; {what}; {where}", width)
    for shim in record.shims:
        yield from _wrapped(f"shim {shim.name}: {shim.reason}", width)


# --- 2. what it rests on ---


def _quantities(verdicts: Sequence[Verdict], width: int, say: Say) -> Iterator[str]:
    """Yield each quantity once for all ranks that see the same, and its tolerance.

    Why some differ, the verdict has said.
    """
    ranks = {v.rank for v in verdicts if v.rank is not None}
    same: dict[tuple[str, ...], list[int]] = {}
    reasons: dict[str, None] = {}
    for v in verdicts:
        numbers = map(_number, (v.mini, v.upstream, v.difference, v.tolerance))
        is_less = v.state == "agree" and not v.difference and v.mini < v.upstream
        key = (LESS if is_less else MARKS[v.state], *numbers, say(v.what))
        same.setdefault(key, []).extend(() if v.rank is None else (v.rank,))
        if v.state == "agree" and v.tolerance:
            allowed = f"= {_number(v.tolerance)} {say('allowed')}"
            reasons[f"{allowed}: {say(v.reason)}"] = None
        elif is_less:
            reasons[f"{LESS} {say(v.reason)}"] = None
    heads = ("mini", "upstream", "apart", "allowed", "what")
    rows: list[tuple[str, ...]] = [("", *map(say, heads))]
    for key, of_ranks in same.items():
        on = "" if set(of_ranks) in (set(), ranks) else f"rank {_ranks(of_ranks)}: "
        rows.append((*key[:-1], on + key[-1]))
    yield from _table(rows, width, right=(1, 2, 3, 4))
    yield from _wrapped(say(LEGEND), width)
    for reason in reasons:
        yield from _wrapped(reason, width)


def _jobs(record: Record, width: int, mirror: Mirror | None, say: Say) -> Iterator[str]:
    """Yield what the calls of both sides are for, where some have no partner."""
    if mirror is None or not Conclusion.of(record).has_calls_alone:
        return
    lines: list[str] = []
    for job in purposes(record, mirror):
        title = mirror.sections[job.section - 1].title if job.section else say("other")
        as_many = job.is_as_many_bytes
        same = say("as many bytes") if as_many else say("other bytes")
        lines += _wrapped(f"{title} ({same})", width)
        rows = [
            (f"  {side}", each.phase, f"{each.count:,} x", each.op, _number(each.bytes))
            for side, calls in (("upstream", job.upstream), ("mini", job.mini))
            for each in calls
        ]
        lines += _table(rows, width, right=(2,))
    yield _section(say("what the calls are for"), lines)


def _steps(record: Record, width: int, say: Say, give: Give) -> Iterator[str]:
    """Yield the events of the traced step, once for ranks that did the same."""
    same: dict[tuple[str, ...], list[RankEvents]] = {}
    for rank in record.events:
        rows = tuple(events(rank, width, say, give))
        same.setdefault(rows, []).append(rank)
    for rows, ranks in same.items():
        title = "step {step} on rank {ranks}, events: {count}"
        if len(ranks) > 1:
            title = "step {step} on ranks {ranks}, events of each: {count}"
        told = say(title).format(
            step=record.traced_step,
            ranks=_ranks([rank.rank for rank in ranks]),
            count=f"{len(ranks[0].matches):,}",
        )
        yield _section(told, rows)


def _totals(record: Record, width: int, say: Say) -> Iterator[str]:
    head = ("ranks", "side", "operation", "calls", "payload", "formula", "algorithm")
    rows = [
        (
            t.rank,
            (
                t.side,
                t.op,
                f"{t.calls}",
                f"{t.payload_bytes:,}",
                "" if t.formula_bytes is None else f"{t.formula_bytes:,}",
                _number(t.algorithm_bytes),
            ),
        )
        for t in record.totals
    ]
    heads = [*map(say, head)]
    yield from _table([heads, *_by_ranks(rows)], width, right=(3, 4, 5, 6))
    if record.wire:
        wire = [
            (w.rank, (w.side, f"{w.bytes:,}", _number(w.expected_bytes)))
            for w in record.wire
        ]
        titles = ("ranks", "side", "bytes to sockets", "due by gloo's algorithms")
        heads = [*map(say, titles)]
        yield from _table([heads, *_by_ranks(wire)], width, right=(2,))


def _held(record: Record, width: int, say: Say) -> list[str]:
    due = say("none is due")
    rows = [
        (h.rank, (h.side, say(h.category), f"{h.bytes:,}", h.formula or due))
        for h in record.held
    ]
    head = ("ranks", "side", "", "bytes", "formula")
    return _table([[*map(say, head)], *_by_ranks(rows)], width, right=(3,))


def _peaks(record: Record, width: int, say: Say) -> list[str]:
    rows = [
        (
            p.rank,
            (
                p.side,
                f"{p.bytes:,}",
                p.phase,
                ", ".join(f"{say(name)} {n:,}" for name, n in p.categories.items()),
            ),
        )
        for p in record.peaks
    ]
    head = ("ranks", "side", "bytes", "in", "of")
    return _table([[*map(say, head)], *_by_ranks(rows)], width, right=(2,))


def _times(record: Record, width: int, say: Say) -> list[str]:
    head = ("rank", "mini", "upstream", "ratio", "of minima", "medians of")
    rows: list[Sequence[str]] = [[*map(say, head)]]
    for t in record.times:
        mini, upstream = median(t.mini), median(t.upstream)
        least = min(t.mini) / min(t.upstream)
        numbers = (f"{mini:.4f}", f"{upstream:.4f}", f"{mini / upstream:.2f}")
        rows.append(
            (f"{t.rank}", *numbers, f"{least:.2f}", f"{len(t.mini)} {say('steps')}")
        )
    return _table(rows, width, right=(1, 2, 3, 4))


def _pipeline(pipeline: PipelineRecord, width: int, say: Say) -> Iterator[str]:
    sizes = say("{stages} stages, {count} microbatches; bubble by {formula} = {bubble}")
    sizes = sizes.format(
        stages=pipeline.stages,
        count=pipeline.microbatches,
        formula=pipeline.formula,
        bubble=f"{pipeline.formula_bubble:.2%}",
    )
    yield from _wrapped(f"{pipeline.schedule}: {sizes}", width)
    told = say("bubble {bubble} on unit costs, from the order it ran in")
    for side, bubble in pipeline.bubble.items():
        yield f"{side}: {told.format(bubble=f'{bubble:.2%}')}"
    if pipeline.illustrative:
        yield say("more ranks than cores: the chart shows the order, not the time")
    room, end = max(width - 18, LEAST), max(bar.end_s for bar in pipeline.bars)
    for side, rank in dict.fromkeys((bar.side, bar.rank) for bar in pipeline.bars):
        cells = [" "] * room
        for bar in pipeline.bars:
            if (bar.side, bar.rank) == (side, rank):
                first = int(bar.start_s / end * (room - 1))
                last = max(first + 1, int(bar.end_s / end * (room - 1)))
                text = f"{bar.kind}{bar.microbatch}".ljust(last - first, "-")
                cells[first:last] = text[: last - first]
        yield f"{side:8} rank {rank} |{''.join(cells)}|"


def _lit(record: Record, width: int, say: Say) -> list[str]:
    watched = range(record.watched_steps)
    room = width - 7 - 5 * len(watched)
    rows = [(say("setup"), *map(str, watched), say("file"))]
    for lit in record.lit:
        ran = [line_numbers(lit.setup), *map(lit.in_step, watched)]
        place = fitted(lit.path, room if room >= LEAST_PATH else width - 4)
        rows.append((*(str(len(lines)) for lines in ran), place))
    return _table(rows, width, right=range(len(rows[0]) - 1), least=LEAST_PATH)


# --- 3. tables ---


def _by_ranks(
    rows: Iterable[tuple[int, tuple[str, ...]]],
) -> Iterator[tuple[str, ...]]:
    """Yield rows once, each with the ranks that have it."""
    same: dict[tuple[str, ...], list[int]] = {}
    for rank, row in rows:
        same.setdefault(row, []).append(rank)
    for row, ranks in same.items():
        yield (_ranks(ranks), *row)


def _ranks(ranks: Sequence[int]) -> str:
    return ",".join(map(str, ranks))


def _table(
    rows: Sequence[Sequence[str]],
    width: int,
    right: Iterable[int] = (),
    least: int = LEAST,
) -> list[str]:
    """Return rows in columns; the last is folded, or set below where it has no room."""
    *columns, _ = zip(*rows, strict=True)
    widths = [max(map(len, column)) for column in columns]
    right = set(right)
    indent = sum(widths) + 2 * len(widths)
    room = width - indent
    if room < least:
        indent, room = 4, max(width - 4, LEAST)
    lines = []
    for *cells, last in rows:
        line = "".join(
            (cell.rjust(size) if i in right else cell.ljust(size)) + "  "
            for i, (cell, size) in enumerate(zip(cells, widths, strict=True))
        )
        folded = textwrap.wrap(last, room, break_on_hyphens=False) or [""]
        if indent == len(line):
            lines.append((line + folded.pop(0)).rstrip())
        else:
            lines.append(line.rstrip())
        lines += [" " * indent + text for text in folded if text]
    return lines


def _number(value: float) -> str:
    if isfinite(value) and value == int(value):
        return f"{int(value):,}"
    return f"{value:.6g}"
