"""The page of estimates: what was computed, each number with where it comes from."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial

from markupsafe import Markup

from readerkit.estimate.item import Item
from readerkit.estimate.memory_estimates import HELD
from readerkit.estimate.plan import Ranked, Rejected
from readerkit.estimate.planned_steps import PlannedStep
from readerkit.estimate.reports import COMPARISON, TOTALS
from readerkit.estimate.runs import tally
from readerkit.estimate.traffic_estimate import IN_ALL
from readerkit.model.language import Say, english
from readerkit.render.catalog_table import HEADS, listed_cells, price_cells
from readerkit.render.estimate_table import number_texts, plain_number
from readerkit.render.html.charts import Cell, MemoryStack, gantt, stack_chart
from readerkit.render.html.estimate_examples import (
    SECTIONS,
    EstimateGroup,
    Examples,
    Worked,
)
from readerkit.render.html.estimate_words import EstimateWords
from readerkit.render.html.instrument_view import controls
from readerkit.render.html.site_model import Context
from readerkit.render.html.words import Text, Words
from readerkit.render.plan_table import HEAD, assumed, layout_cells
from readerkit.render.runs_table import HEAD as RUNS_HEAD
from readerkit.render.runs_table import READING, half_texts, run_cells

UNITS = (
    "b is a bit and B a byte: --bandwidth 400Gb/s is 50GB/s. kB, MB, GB count in "
    "thousands, KiB, MiB, GiB in 1,024; 400gb, which may be either, is refused."
)


Row = tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Grid:
    """Numbers of several estimates in one table."""

    head: Row
    rows: tuple[Row, ...]


@dataclass(frozen=True, slots=True)
class Case:
    """One question: its numbers side by side, drawn, and each with its origin."""

    title: str
    grid: Grid | None
    worked: tuple[Worked, ...]
    command: str = ""
    charts: tuple[tuple[Markup, str], ...] = ()
    """Each with what stands below it."""
    notes: tuple[tuple[str, Sequence[str | Text]], ...] = ()
    """Sentences under a heading."""
    files: Mapping[str, str] = field(default_factory=dict)
    """What stands in files, by their names."""
    kind: str = "grid"
    """``rows`` of words, which are read when they are looked for."""


def estimate_page(examples: Examples, words: Words) -> Context:
    """Return the page of estimates."""
    # Names of numbers have words of their own, where one may mean something else.
    names, conventions = examples.names_in_spanish, examples.conventions_in_spanish
    told = EstimateWords(words.phrases, names, conventions)
    words = Words({**words.phrases, **names})
    cases = {
        "memory": [_memory_case(words, *each) for each in enumerate(examples.memory)],
        "tools": [_tools_case(examples.tools)],
        "traffic": [_traffic_case(group) for group in examples.traffic],
        "bubble": [_bubble_case(words, told, examples.bubbles)],
        "ring": [_ring_case(examples.ring)],
        "runs": [_run_case(group) for group in examples.runs],
        "more": [_run_case(group) for group in examples.more],
        "plan": [_plan_case(examples, told)],
        "catalog": _catalog_cases(examples),
        "against": [_against_case(examples)],
    }
    sections = [(name, *SECTIONS[name], each) for name, each in cases.items()]
    return {
        "title": "Estimates",
        "sections": sections,
        "words": told,
        "controls": controls(examples.known, examples.names_in_spanish),
    }


def _memory_case(words: Words, number: int, group: EstimateGroup) -> Case:
    stacks = []
    for each in group.worked:
        items = each.estimate.items
        parts = tuple((i.name, float(i.value)) for i in items if i.name in HELD)
        stacks.append(MemoryStack(each.name, parts))
    usable = float(group.worked[0].estimate["usable"])
    chart = stack_chart(f"memory-{number}", group.title, stacks, usable, words)
    fits = [f"{each.name}: {each.estimate.notes[0]}" for each in group.worked]
    names = ("bytes per parameter", *HELD, "total", "left")
    return Case(
        group.title,
        _grid(group, names),
        group.worked,
        charts=((chart, ""),),
        notes=(("What fits", fits),),
    )


def _tools_case(group: EstimateGroup) -> Case:
    """Return each tool's figure, and what leads from it to ours."""
    names = dict.fromkeys(
        item.name
        for each in group.worked
        for item in each.estimate.items
        if item.source == COMPARISON or item.name in TOTALS
    )
    return Case(group.title, _grid(group, [*names]), group.worked)


def _traffic_case(group: EstimateGroup) -> Case:
    names = [*IN_ALL.values()]
    names += [f"offload: {way}" for way in ("to the CPU", "from the CPU")]
    return Case(group.title, _grid(group, names), group.worked)


def _bubble_case(words: Words, told: EstimateWords, group: EstimateGroup) -> Case:
    charts = []
    for each in group.worked:
        if each.bars:
            ranks = 1 + max(bar.rank for bar in each.bars)
            rows = [f"rank {rank}" for rank in range(ranks)]
            cells = [_cell(bar) for bar in each.bars]
            title = partial(_title, told, each.estimate.title)
            drawn = gantt(f"bubble-{each.name}", title, rows, cells, words)
            charts.append((drawn, each.estimate.title))
    return Case(
        group.title,
        _turned(_grid(group, _names(group))),
        group.worked,
        charts=tuple(charts),
    )


def _title(told: EstimateWords, title: str, say: Say) -> str:
    return title if say is english else told.say(title)


def _cell(bar: PlannedStep) -> Cell:
    text = f"{bar.kind}{bar.microbatch}"
    return Cell(bar.rank, bar.start, bar.end, text, bar.kind, bar.chunk)


def _ring_case(group: EstimateGroup) -> Case:
    names = ["sent by each rank", "steps", "time", "busbw"]
    crossing = "tree and ring cross at"
    items = group.worked[0].estimate.items
    said = [
        f"{item.name} {number_texts(item)[0]} = {item.formula} = {item.substitution}"
        for item in items
        if item.name == crossing
    ]
    return Case(
        group.title,
        _turned(_grid(group, names)),
        group.worked,
        notes=(("The crossing", said), ("Units", [UNITS])),
    )


def _run_case(group: EstimateGroup) -> Case:
    return Case(group.title, _grid(group, _names(group)), group.worked)


def _plan_case(examples: Examples, told: EstimateWords) -> Case:
    plan = examples.plan
    reasons = [
        told.both(partial(_say_reasons, place, each))
        for place, each in enumerate(plan.ranked, start=1)
    ]
    others = [told.both(partial(_say_rejected, each)) for each in plan.rejected]
    return Case(
        examples.best.title,
        Grid(HEAD, tuple(map(tuple, layout_cells(plan)))),
        examples.best.worked,
        examples.plan_command,
        notes=(
            ("Why distribute", [plan.memory_reason, plan.time_reason]),
            ("Why these", reasons),
            ("The others", others),
            ("Assumed", [told.both(lambda say: assumed(plan, say, say))]),
        ),
    )


def _say_reasons(place: int, each: Ranked, say: Say) -> str:
    return f"{place}: {'; '.join(map(say, each.reasons))}"


def _say_rejected(each: Rejected, say: Say) -> str:
    return f"{each.count} {say(each.why)}; {say(each.example)}"


def _catalog_cases(examples: Examples) -> list[Case]:
    """Return what is known by name, and how a reader's own rows go before it."""
    rows = {name: listed_cells(name, each) for name, each in examples.catalog.items()}
    rows["prices"] = price_cells(examples.prices)
    command = examples.catalog_command
    cases = [
        Case(
            f"{len(each)} {'GPUs' if name == 'gpus' else name}",
            Grid((*HEADS[name], "source", "read on"), tuple(each)),
            (),
            f"{command} list" + " --prices" * (name == "prices"),
            kind="rows",
        )
        for name, each in rows.items()
    ]
    said = [
        "A file of one of these names, in ~/.local/share/readerkit/catalog or in the "
        "DIR of --catalog, has rows that go before those that ship: of the same name "
        "instead of them (of a price: vendor, GPU, kind and cloud), of another beside "
        "them. What an answer took from them is said below it.",
        "--model, --gpu and --cluster take a FILE.yaml with one such row as well.",
        "A price that is older than 30 days, or that one source alone has, is used "
        "only with --confirm-price; list --prices says how old each is today.",
    ]
    own = "Rows of your own"
    asked = f"{command} --catalog DIR list"
    files, notes = examples.own_rows, (("How", said),)
    return [*cases, Case(own, None, (), asked, files=files, notes=notes)]


def _against_case(examples: Examples) -> Case:
    return Case(
        f"{len(examples.compared)} published steps",
        Grid(RUNS_HEAD, tuple(map(run_cells, examples.compared))),
        (),
        examples.against_command,
        notes=(
            ("How near", half_texts(tally(examples.compared))),
            ("Assumed", [READING]),
        ),
    )


def _names(group: EstimateGroup) -> list[str]:
    """Return the names of all its items, each once."""
    items = (item for each in group.worked for item in each.estimate.items)
    return list(dict.fromkeys(item.name for item in items))


def _grid(group: EstimateGroup, names: Sequence[str]) -> Grid:
    """Return the items of these names in rows, a column for each estimate."""
    found = [{i.name: i for i in each.estimate.items} for each in group.worked]
    rows = tuple(
        (name, *(_brief(items.get(name)) for items in found))
        for name in names
        if any(name in items for items in found)
    )
    return Grid(("", *(each.name for each in group.worked)), rows)


def _turned(grid: Grid) -> Grid:
    """Return the same numbers, a row for each estimate."""
    head, *rows = zip(grid.head, *grid.rows, strict=True)
    return Grid(head, tuple(rows))


def _brief(item: Item | None) -> str:
    """Return a number for a table; its row has said that it is of bytes a parameter."""
    if item is None:
        return "-"
    is_said = item.unit == "bytes/parameter"
    return plain_number(item.value) if is_said else number_texts(item)[0]
