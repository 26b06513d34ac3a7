"""Where the time of a step goes, as a table: a row for each rank, and one for all."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace

from mini_impls.recorder import Expected
from mini_impls.run_metrics import RankMetrics, RankSummary
from readerkit.wording.fold import fold
from readerkit.wording.numbers import counted, format_bytes, format_seconds

_HEADS = (
    "rank", "step", "computing", "hidden", "exposed", "waiting", "other",
    "sent", "calls", "peak", "resident", "tokens/s",
)  # fmt: skip
_LAST_OF_TIME = "other"
"""Where a table breaks that is wider than the screen: bytes and rates follow."""

CLEARLY_MORE = 1.05
"""Times of what is due."""
CLEARLY_LATE = 0.05
"""Of a step, in waits for nothing that is under way."""
LATE = (
    "of the step with nothing under way: a thread of the backend begins, or Python "
    "wakes up, late"
)
NOTHING = (
    "no step to show: the first warms up, and no other was taken: --steps 3 shows one"
)
CALL_BYTES = 1024
"""What gloo may add to one call for each other rank: 48 bytes a message."""


@dataclass(frozen=True, slots=True)
class PartTable:
    """One part of a mini that takes steps by itself; most minis have one, unnamed."""

    name: str
    rows: list[tuple[str, ...]]
    """The heads first; columns of which no rank knows anything are left out."""
    beside: list[str]
    """What the estimates say of a step, a sentence for each rank."""


def part_tables(ranks: Sequence[RankSummary]) -> list[PartTable]:
    """Return for each part a row for each rank, one for all, and the estimates."""
    found = [summary.parts for summary in ranks]
    tables = []
    for part in found[0]:
        rows = [_HEADS, *(_row(of[part], len(found)) for of in found)]
        if len(found) > 1:
            rows.append(_row_of_all([of[part] for of in found]))
        told = [i for i in range(len(_HEADS)) if any(row[i] for row in rows[1:])]
        others = len(ranks) - 1
        beside = [row for each in ranks for row in _beside_estimate(each, part, others)]
        beside += _beside_model(ranks, part)
        columns = [tuple(row[i] for i in told) for row in rows]
        tables.append(PartTable(part, columns, beside))
    return tables


def table(ranks: Sequence[RankSummary], columns: int | None = None) -> str:
    """Return the same as text; with a width, rows of fewer columns, one set below."""
    lines = [line for part in part_tables(ranks) for line in _told(part, columns)]
    return "\n".join(lines) or NOTHING


def screen(ranks: Sequence[RankSummary], columns: int, lines: int) -> list[str]:
    """Return rows of such a screen: the tables, then the sentences that fit whole.

    Where not all ranks fit, the row of all stays, and it is said how many are missing.
    """
    parts = part_tables(ranks)
    grids = (_grids(parts, columns, n, len(ranks)) for n in range(len(ranks), -1, -1))
    found: list[str] = next((g for g in grids if len(g) <= lines), [])
    found = found or _grids(parts, columns, 0, len(ranks))[:lines]
    for sentence in (each for part in parts for each in part.beside):
        folded = fold(sentence, columns).split("\n")
        if len(found) + len(folded) > lines:
            break
        found += folded
    return found


def _grids(
    parts: Sequence[PartTable], columns: int, shown: int, ranks: int
) -> list[str]:
    """Return the tables with the first ranks alone, and of how many they are."""
    cut = [
        replace(part, rows=part.rows[: 1 + shown] + part.rows[1 + ranks :], beside=[])
        for part in parts
    ]
    rows = [row for part in cut for row in _told(part, columns)]
    missing = f"{ranks - shown} of {counted(ranks, 'rank')} are not shown"
    return rows if shown == ranks else [*rows, missing]


def _told(part: PartTable, columns: int | None) -> Iterable[str]:
    if part.name:
        yield f"{part.name}:"
    widths = [max(map(len, column)) for column in zip(*part.rows, strict=True)]
    for block in _blocks(part.rows[0], widths, columns):
        for row in part.rows:
            yield "  ".join(row[i].rjust(widths[i]) for i in block)
    yield from part.beside


def _blocks(
    heads: Sequence[str], widths: Sequence[int], columns: int | None
) -> list[list[int]]:
    """Return which columns stand beside each other; each block begins with the rank."""
    if columns is None or sum(widths) + 2 * (len(widths) - 1) <= columns:
        return [[*range(len(heads))]]
    blocks = [[0]]
    for i in range(1, len(heads)):
        taken = sum(widths[each] + 2 for each in blocks[-1])
        is_full = taken + widths[i] > columns and len(blocks[-1]) > 1
        if is_full or heads[i - 1] == _LAST_OF_TIME:
            blocks.append([0])
        blocks[-1].append(i)
    return blocks


def _row(of: RankMetrics, ranks: int) -> tuple[str, ...]:
    return (
        str(of.rank),
        format_seconds(of.step_s),
        *_shares([of]),
        _size(of.sent_bytes),
        f"{of.calls:g}",
        _size(of.peak_bytes),
        _size(of.resident_bytes),
        f"{of.tokens_per_s / ranks:,.0f}",  # its part of what all take together
    )


def _shares(found: Sequence[RankMetrics]) -> Iterable[str]:
    """Yield what part of their steps went into each of five things."""
    whole = sum(each.step_s for each in found)
    for where in ("computing_s", "hidden_s", "exposed_s", "waiting_s", "other_s"):
        yield f"{sum(getattr(each, where) for each in found) / whole:.0%}"


def _row_of_all(found: Sequence[RankMetrics]) -> tuple[str, ...]:
    slowest = max(each.step_s for each in found)
    sent = [each.sent_bytes for each in found if each.sent_bytes is not None]
    peaks = [each.peak_bytes for each in found if each.peak_bytes is not None]
    resident = [e.resident_bytes for e in found if e.resident_bytes is not None]
    return (
        "all", format_seconds(slowest), *_shares(found),
        _size(sum(sent) if sent else None),
        f"{sum(each.calls for each in found):g}",
        _size(sum(peaks) if peaks else None),
        _size(sum(resident) if resident else None),
        f"{min(each.tokens_per_s for each in found):,.0f}",
    )  # fmt: skip


def _beside_estimate(summary: RankSummary, part: str, others: int) -> Iterable[str]:
    """Say what was measured beside what the estimates give, with the ratio."""
    of, expected = summary.parts[part], summary.expected.get(part, Expected())
    said = []
    if expected.flops:
        due = expected.flops / summary.product_flops_per_s
        speed = f"{summary.product_flops_per_s / 1e9:.3g} GFLOP/s of a product alone"
        text = f"computing {format_seconds(of.computing_s)}, {format_seconds(due)} at"
        said.append(f"{text} {speed} ({_ratio(of.computing_s, due)})")
    peak = (expected.peak_bytes, "of states and activations")
    if expected.peak_bytes is None:
        peak = (expected.held_bytes, "of states alone")
    why = _why_more(of, expected.sent_bytes, others)
    pairs = (
        ("sent", of.sent_bytes, expected.sent_bytes, "by formula", why),
        ("peak", of.peak_bytes, *peak, ""),
    )
    for what, measured, foreseen, how, why in pairs:
        if foreseen and measured is not None:
            text = f"{what} {format_bytes(measured)}, {format_bytes(foreseen)} {how}"
            said.append(f"{text} ({_ratio(measured, foreseen)}){why}")
    if expected.idle is not None:
        share = of.waiting_s / of.step_s
        text = f"waiting {share:.0%}, bubble {expected.idle:.0%} by the schedule"
        ratio = f" ({_ratio(share, expected.idle)})" if expected.idle else ""
        said.append(text + ratio)
    if said:
        yield f"rank {of.rank} beside the estimate: " + "; ".join(said)
    if of.late_s >= CLEARLY_LATE * of.step_s:
        text = (
            f"waiting {of.waiting_s / of.step_s:.0%}, for {of.late_s / of.step_s:.0%}"
        )
        yield f"rank {of.rank}: {text} {LATE}"


def _why_more(of: RankMetrics, due: float | None, others: int) -> str:
    """Return why clearly more was sent than by formula, where what was recorded says.

    On gloo alone: of other backends nobody counts what is sent.
    """
    if not due or of.sent_bytes is None or of.sent_bytes / due < CLEARLY_MORE:
        return ""
    if of.as_all_reduces and of.sent_bytes <= 2 * due * CLEARLY_MORE:
        return (
            ", as gloo makes all-reduces of reduce-scatters, and sends twice as much "
            "for them"
        )
    each = (of.sent_bytes - due) / of.calls if of.calls else 0.0
    if 0 < each <= CALL_BYTES * others:
        return f", with {each:.0f} bytes a call besides the tensors"
    return ""


def _beside_model(ranks: Sequence[RankSummary], part: str) -> Iterable[str]:
    """Say what was measured beside the estimates' sum at this machine's rates."""
    if not all(part in each.predicted for each in ranks):
        return
    for each in ranks:
        said = _of_model([each], part, len(ranks))
        yield f"rank {each.rank} beside the model: {said}"
    if len(ranks) > 1:
        yield f"all ranks beside the model: {_of_model(ranks, part, 1)}"
    yield (
        "the model: the sum of estimate step, with rates measured on this "
        f"machine before the run: {ranks[0].predicted[part].rates}, by rank 0"
    )


def _of_model(ranks: Sequence[RankSummary], part: str, share: int) -> str:
    """Say it of one rank, which has a share of the tokens, or of all together."""
    found = [each.parts[part] for each in ranks]
    made = [each.predicted[part] for each in ranks]
    said = []
    steps = [each.step_s for each in made if each.step_s is not None]
    if len(steps) == len(made):
        tokens = found[0].tokens_per_s * found[0].step_s / share
        step, due = max(of.step_s for of in found), max(steps)
        said += [
            _times("step", format_seconds, step, due),
            _times("tokens/s", "{:,.0f}".format, tokens / step, tokens / due),
        ]
    exposed = sum(of.exposed_s for of in found), sum(each.exposed_s for each in made)
    if exposed[1]:
        said.append(_times("exposed", format_seconds, *exposed))
    peaks = [each.expected[part].peak_bytes for each in ranks]
    if None in peaks:
        return "; ".join(said)
    due_bytes = sum(peak for peak in peaks if peak is not None)
    measured = [of.peak_bytes for of in found if of.peak_bytes is not None]
    if len(measured) == len(found):
        said.append(_times("peak", format_bytes, sum(measured), due_bytes))
    held = [of.resident_bytes for of in found if of.resident_bytes is not None]
    before = [each.rates.resident_bytes for each in ranks if each.rates is not None]
    if len(held) == len(found) and None not in before:
        due_bytes += sum(size for size in before if size is not None)
        said.append(_times("resident", format_bytes, sum(held), due_bytes))
    return "; ".join(said)


def _times(
    what: str, shown: Callable[[float], str], measured: float, due: float
) -> str:
    return f"{what} {shown(measured)}, {shown(due)} ({_ratio(measured, due)})"


def _size(count: float | None) -> str:
    return "" if count is None else format_bytes(count)


def _ratio(measured: float, due: float) -> str:
    return f"{measured / due:.2f} times"
