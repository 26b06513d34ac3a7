"""A plan and the findings of a lint, as text of 80 columns."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from typing import TYPE_CHECKING

import click

from readerkit.estimate.states import precision
from readerkit.model.language import Say, english, said
from readerkit.wording.numbers import format_bytes, format_flop_rate

if TYPE_CHECKING:
    from readerkit.estimate.findings import Finding
    from readerkit.estimate.layout import Layout
    from readerkit.estimate.plan import Plan, Ranked

WIDTH = 80
HEAD = (
    *("", "dp", "tp", "pp", "cp", "ep", "ZeRO", "micro", "chunks"),
    *("memory", "comm", "bubble", "MFU", "step"),
)
"""What each cell of a layout's row is."""
_WIDTHS = (2, 4, 3, 3, 3, 3, 4, 8, 6, 8, 5, 6, 4, 8)


def plan_table(
    plan: Plan, say: Say = english, say_name: Say = english, width: int = WIDTH
) -> str:
    """Return the two reasons, the layouts in order with why, and the others.

    Narrower than a row, each layout is a block of its own.
    """
    lines = [
        click.style(say("why distribute"), bold=True),
        *_wrap(f"{say('memory')}: {said(plan.memory_reason, say)}", width),
        *_wrap(f"{say('time')}: {said(plan.time_reason, say)}", width),
        "",
    ]
    in_rows, heads = width >= WIDTH, [say(head) if head else "" for head in HEAD]
    if plan.ranked and in_rows:
        lines.append(click.style(_row(heads), bold=True))
    for cells, each in zip(layout_cells(plan), plan.ranked, strict=True):
        lines += [_row(cells)] if in_rows else _block(heads, cells, width)
        lines += [
            click.style(row, dim=True)
            for reason in each.reasons
            for row in _wrap(said(reason, say), width, "     " if in_rows else "  ")
        ]
    if not plan.ranked:
        lines.append(say("no layout fits"))
    lines += ["", click.style(say("the others"), bold=True)]
    for rejected in plan.rejected:
        why = f"{said(rejected.why, say)}; {say_name(rejected.example)}"
        lines += _wrap(f"{rejected.count:>4} {why}", width)
    return "\n".join([*lines, "", *_wrap(assumed(plan, say, say_name), width)])


def _block(heads: Sequence[str], cells: Sequence[str], width: int) -> list[str]:
    """Return a layout as a few lines, each cell after what it is."""
    place, *rest = cells
    pairs = zip(heads[1:], rest, strict=True)
    text = ", ".join(f"{head} {cell}".replace(" ", NO_BREAK) for head, cell in pairs)
    rows = _wrap(f"{place}. {text}", width)
    return [click.style(row.replace(NO_BREAK, " "), bold=True) for row in rows]


NO_BREAK = "\N{NO-BREAK SPACE}"


def assumed(plan: Plan, say: Say = english, say_name: Say = english) -> str:
    """Return the assumptions of a ranking, in one paragraph."""
    question = plan.question
    gpu, assumed = question.cluster.gpu, question.assumptions
    efficiency = assumed.kernel_efficiency or gpu.kernel_efficiency
    source = "given" if assumed.kernel_efficiency else gpu.efficiency_source
    searched = "; ".join(
        f"{name.replace('_', ' ')} {', '.join(_plainly(each, say) for each in values)}"
        for name, values in question.searched.items()
    )
    is_flash = question.flash
    flash = say("Flash attention") if is_flash else say("Attention scores in memory")
    sentences = (
        say(
            "{examined} variants weighed; layouts that fit: {fitting}. Searched, "
            "beside the sizes of groups: {searched}; nothing else."
        ).format(
            examined=f"{plan.examined:,}", fitting=plan.fitting, searched=searched
        ),
        say(
            "A step is {batch} × {sequence} tokens; micro is microbatches × sequences "
            "in each."
        ).format(batch=question.global_batch, sequence=question.sequence),
        f"{question.convention}: {say_name(precision(question.convention).says)}.",
        say("{reserve} of {memory} (as sold, in 10^9 bytes) kept free.").format(
            reserve=f"{question.reserve:.0%}", memory=format_bytes(gpu.memory_bytes)
        ),
        say(
            "Assumed: kernels at {efficiency} of {peak} ({source}), each activation "
            "through memory {passes} times, links at {links}, {hidden} of "
            "data-parallel traffic hidden."
        ).format(
            efficiency=f"{efficiency:.0%}",
            peak=format_flop_rate(gpu.flops_per_s, 1),
            source=say_name(source),
            passes=f"{assumed.memory_passes:g}",
            links=f"{assumed.link_efficiency:.0%}",
            hidden=f"{assumed.overlap:.0%}",
        ),
        say("{flash}; MFU counts {counted}.").format(
            flash=flash, counted=say_name(question.mfu_convention(is_flash))
        ),
    )
    return " ".join(sentences)


def _plainly(value: object, say: Say) -> str:
    if isinstance(value, bool):
        return say("yes") if value else say("no")
    return str(value)


def layout_cells(plan: Plan) -> list[tuple[str, ...]]:
    """Return the layouts in order, a cell for each word of ``HEAD``."""
    return [_cells(place, each) for place, each in enumerate(plan.ranked, start=1)]


def _cells(place: int, each: Ranked) -> tuple[str, ...]:
    layout, time = each.layout, each.time
    sizes = (layout.dp, layout.tp, layout.pp, layout.cp, layout.ep, layout.zero)
    return (
        str(place),
        *map(str, sizes),
        f"{layout.microbatches} × {layout.micro_batch}",
        _chunks(layout),
        format_bytes(each.memory.total, 1),
        f"{time.communication_share:.1%}",
        f"{time.bubble_share:.1%}",
        f"{time.mfu:.0%}",
        f"{time.total:.2f} s",
    )


def _row(cells: Sequence[str]) -> str:
    pairs = zip(cells, _WIDTHS, strict=True)
    return " ".join(f"{cell:>{width}}" for cell, width in pairs)


def _chunks(layout: Layout) -> str:
    return str(layout.virtual_stages) if layout.pp > 1 else "-"


def finding_table(
    findings: Sequence[Finding], say: Say = english, width: int = WIDTH
) -> str:
    """Return each finding with its number and what to do instead."""
    if not findings:
        return say("nothing found")
    blocks = []
    for finding in findings:
        rows = _wrap(f"{finding.code}: {said(finding.what, say)}", width)
        rows += _wrap(said(finding.number, say), width, "    ")
        instead = f"{say('instead')}: {said(finding.instead, say)}"
        rows += _wrap(instead, width, "    ")
        blocks.append("\n".join([click.style(rows[0], bold=True), *rows[1:]]))
    return "\n".join(blocks)


def _wrap(text: str, width: int, indent: str = "") -> list[str]:
    return textwrap.wrap(
        text, width, initial_indent=indent, subsequent_indent=indent + "  "
    )
