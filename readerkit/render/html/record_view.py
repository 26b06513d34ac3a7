"""A record on a side-by-side page: its step, plots, tables, what it was made with."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from functools import partial

from markupsafe import Markup

from readerkit.anchors import Span
from readerkit.content.mirrors import Mirror
from readerkit.content.vocabulary import SideName
from readerkit.evidence.conclusion import parameters_apart
from readerkit.evidence.executed_lines import op_name
from readerkit.evidence.record import (
    PARAMETER_LINES,
    ExecutedLine,
    Record,
    Verdict,
)
from readerkit.evidence.relevance import Evidence
from readerkit.model import addresses
from readerkit.model.language import Say
from readerkit.render.html.charts import (
    Cell,
    gantt,
    loss_chart,
    memory_chart,
    phrase_of,
)
from readerkit.render.html.conclusion_view import conclusion_view, reason_of, work_view
from readerkit.render.html.escape import shown
from readerkit.render.html.event_strip import OPERATIONS, rank_view, unplaced
from readerkit.render.html.excerpt import excerpt
from readerkit.render.html.prediction import prediction, say_set_up
from readerkit.render.html.site_model import Context, SiteModel
from readerkit.render.html.words import Text, Words
from readerkit.wording.numbers import format_number

Row = tuple[str, tuple[Text, ...]]
"""What a row of a table says of its numbers, and its cells."""


def record_view(model: SiteModel, evidence: Evidence, mirror: Mirror) -> Context:
    """Return what the page of a mirror shows of a record."""
    record, address = evidence.record, addresses.mirror_page(mirror.id)
    used = {
        event.op for rank in record.events for event in (*rank.mini, *rank.upstream)
    }
    return {
        "evidence": evidence,
        "conclusion": conclusion_view(model, record),
        "work": work_view(model, record, mirror),
        "on_gpu": gpu_view(model, record.comparison),
        "stale": [model.words.text(each.said) for each in evidence.stale],
        "ranks": [rank_view(model, evidence, rank) for rank in record.events],
        "operations": [each for each in OPERATIONS if each[0] in used],
        "set_up": model.words.text(partial(say_set_up, record)),
        "title": model.words.of_record(model.book.comparisons[record.comparison].title),
        "prediction": prediction(model.words, record),
        "issuers_upstream": issuers(model, evidence, "upstream", address),
        "issuers_mini": issuers(model, evidence, "mini", address),
        "losses": losses(record, model.words),
        "memory": memory(record, model.words),
        "chart": bars(record, model.words),
        "totals": list(totals(record, model.words)),
        "verdicts": [verdict_row(model, each) for each in record.verdicts],
        "differences": [
            verdict_row(model, each)
            for each in record.verdicts
            if each.what in PARAMETER_LINES
        ],
        "shims": [
            ("", (_english(each.name), model.words.of_record(each.reason)))
            for each in record.shims
        ],
        "limits": list(limits(record, model.words)),
        "facts": list(facts(record, model.words)),
        "raw": addresses.record_file(record.comparison),
    }


def gpu_view(model: SiteModel, comparison: str) -> Context | None:
    """Return what the same comparison came to on GPUs; None where it has not run."""
    evidence = model.on_gpus.get(comparison)
    if evidence is None:
        return None
    record = evidence.record
    where = record.environment
    return {
        "record": record,
        "gpu": where.get("gpu", ""),
        "nccl": where.get("nccl", ""),
        "shared": "ranks on one gpu" in where,
        "apart": format_number(parameters_apart(record)),
        "stale": [model.words.text(each.said) for each in evidence.stale],
        "conclusion": conclusion_view(model, record),
    }


def losses(record: Record, words: Words) -> Markup:
    """Return the losses of both sides, of the first rank that computes them."""
    series: dict[str, Sequence[float]] = {}
    for side, ranks in record.losses.items():
        told = [line for line in ranks if line]
        if told:
            series[side] = told[0]
    name = f"loss-{record.comparison}"
    return loss_chart(name, series, words) if series else Markup("")


def memory(record: Record, words: Words) -> Markup:
    """Return what rank 0 holds between steps."""
    left = {h.category for h in record.held if h.bytes}
    rows = [
        (h.category, h.side, h.bytes)
        for h in record.held
        if h.rank == 0 and h.category in left
    ]
    rows.sort(key=lambda row: row[0])
    name = f"memory-{record.comparison}"
    return memory_chart(name, rows, words) if rows else Markup("")


def bars(record: Record, words: Words) -> Markup:
    """Return the step of a pipeline as both sides ran it, on one scale of time."""
    pipeline = record.pipeline
    if not pipeline or not pipeline.bars:
        return Markup("")
    stages = pipeline.stages // pipeline.chunks if pipeline.chunks else 1
    begin: dict[SideName, float] = {}
    for bar in pipeline.bars:
        begin[bar.side] = min(bar.start_s, begin.get(bar.side, bar.start_s))
    sides = [side for side in ("upstream", "mini") if side in begin]
    cells = [
        Cell(
            sides.index(bar.side) * record.world_size + bar.rank,
            bar.start_s - begin[bar.side],
            bar.end_s - begin[bar.side],
            f"{bar.kind}{bar.microbatch}",
            bar.kind,
            bar.stage // max(stages, 1),
        )
        for bar in sorted(pipeline.bars, key=lambda bar: bar.start_s)
    ]
    rows = [f"{side} {rank}" for side in sides for rank in range(record.world_size)]

    def title(say: Say) -> str:
        did = say("what the ranks of both sides did in the traced step")
        return f"{pipeline.schedule}: {did}"

    return gantt(f"bars-{record.comparison}", title, rows, cells, words)


def _english(text: str) -> Text:
    return Text(shown(text))


def totals(record: Record, words: Words) -> Iterator[Row]:
    """Yield the collectives of rank 0 by operation and side, beside the formula."""
    for total in record.totals:
        if total.rank == 0:
            formula = "" if total.formula_bytes is None else f"{total.formula_bytes:,}"
            same = total.formula_bytes in (None, total.payload_bytes)
            cells = (
                op_name(total.op),
                f"{total.calls}",
                f"{total.payload_bytes:,}",
                formula,
            )
            op, *numbers = map(_english, cells)
            side = words.text(partial(phrase_of, total.side))
            told = words.of_record(total.formula) if total.formula else _english("")
            yield "agree" if same else "differ", (op, side, *numbers, told)


def verdict_row(model: SiteModel, verdict: Verdict) -> Row:
    """Return one line of the verdict."""
    rank = "" if verdict.rank is None else f", rank {verdict.rank}"
    numbers = verdict.mini, verdict.upstream, verdict.difference, verdict.tolerance
    what = model.words.of_record(verdict.what + rank)
    said = map(_english, map(format_number, numbers))
    state = model.words.text(partial(phrase_of, verdict.state))
    if verdict.mirror:
        reason = reason_of(model, verdict.mirror, verdict.reason)
    else:
        reason = model.words.of_record(verdict.reason)
    return verdict.state, (what, *said, state, reason)


_LIMITS = {
    "unseen": "Not seen",
    "uncovered": "Not in this work",
    "counted": "Counted, not derived",
}


def limits(record: Record, words: Words) -> Iterator[tuple[str, list[Text]]]:
    """Yield what the verdict does not say, by why it does not."""
    for kind, name in _LIMITS.items():
        told = [
            words.of_record(each.what, each.why, form="{} ({})")
            if each.why
            else words.of_record(each.what)
            for each in record.limits
            if each.kind == kind
        ]
        if told:
            yield name, told


def facts(record: Record, words: Words) -> Iterator[tuple[Text, Text]]:
    """Yield what a record was made with."""
    steps = f"{record.steps}, the first {record.warm_up_steps} warm up"
    yield words.of_record("steps"), words.of_record(steps)
    yield words.of_record("traced step"), _english(str(record.traced_step))
    made_with = {**record.versions, **record.environment}
    for name, value in made_with.items():
        yield words.of_record(name), words.of_record(str(value))
    work = ", ".join(f"{key} {value}" for key, value in record.work.items())
    yield words.of_record("work"), _english(work)


AROUND = 2
"""Lines shown on each side of a line that issues something."""
APART = 3
"""Lines between two such pieces, up to which they are shown as one."""


def issuers(
    model: SiteModel, evidence: Evidence, side: SideName, address: str
) -> Context:
    """Return the lines that issued the events of a side, near ones together."""
    events = [
        event
        for rank in evidence.record.events
        for event in (rank.mini if side == "mini" else rank.upstream)
    ]
    reasons: dict[str, dict[str, None]] = {}
    sites: dict[tuple[str, str, int], ExecutedLine] = {}
    for event in events:
        why = unplaced(evidence, event)
        if why:
            reasons.setdefault(why, {})[op_name(event.op)] = None
        elif event.site and (event.site.upstream, event.site.path) in model.sheets:
            site = event.site
            sites.setdefault((site.upstream, site.path, site.line), site)
    pieces = _pieces(model, list(sites.values()))
    return {
        "excerpts": [excerpt(model, *piece, address) for piece in pieces],
        "unplaced": [(", ".join(names), why) for why, names in reasons.items()],
    }


def _pieces(
    model: SiteModel, sites: Sequence[ExecutedLine]
) -> Iterator[tuple[str, Span]]:
    """Yield the lines around each site, pieces in the order of their first event."""
    for group in sorted(_near(sites), key=lambda near: min(map(sites.index, near))):
        upstream, path = group[0].upstream, group[0].path
        count = model.sheets[upstream, path].drawn.count
        first = max(1, group[0].line - AROUND)
        last = min(count, group[-1].line + AROUND)
        if first <= last:
            yield upstream, Span(path, first, last)


def _near(sites: Iterable[ExecutedLine]) -> list[list[ExecutedLine]]:
    """Return sites in groups, each of lines of one file that stand close together."""
    groups: list[list[ExecutedLine]] = []
    for site in sorted(sites, key=lambda site: (site.upstream, site.path, site.line)):
        before = groups[-1][-1] if groups else None
        if (
            before
            and (before.upstream, before.path) == (site.upstream, site.path)
            and site.line - before.line <= 2 * AROUND + APART
        ):
            groups[-1].append(site)
        else:
            groups.append([site])
    return groups
