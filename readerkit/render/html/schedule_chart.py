"""A pipeline schedule, drawn: the order of its steps if each took one unit of time."""

from __future__ import annotations

from dataclasses import dataclass

from markupsafe import Markup

from mini_impls.schedules import get_orders
from mini_impls.timeline import get_bubble, get_timeline
from readerkit.model.language import Say
from readerkit.render.html.charts import Cell, gantt
from readerkit.render.html.words import Text, Words


@dataclass(frozen=True, slots=True)
class Chart:
    """A drawn schedule, and what stands under it."""

    image: Markup
    caption: Text


def schedule_chart(
    words: Words,
    name: str,
    ranks: int,
    microbatches: int,
    chunks: int = 1,
    *,
    prefix: str = "",
) -> Chart:
    """Return a schedule as a Gantt chart, with its bubble.

    The prefix keeps two of the same sizes apart on one page.

    Raises:
        ValueError: a schedule that is unknown or does not fit these sizes.
    """
    orders = get_orders(name, ranks, microbatches, chunks)
    timeline = get_timeline(orders)
    cells = []
    for step, (start, end) in sorted(timeline.items(), key=lambda item: item[1]):
        chunk, rank = divmod(step.stage, ranks)
        text = f"{step.kind}{step.microbatch_id}"
        cells.append(Cell(rank, start, end, text, step.kind, chunk))
    ideal, total = (float(share) for share in get_bubble(timeline, ranks))

    def caption(say: Say) -> str:
        told = say(
            "{name}: {ranks} ranks, {microbatches} microbatches, {chunks} a rank; "
            "bubble {ideal} of ideal, {total} of total"
        )
        each = say("one chunk") if chunks == 1 else say("{count} chunks")
        return told.format(
            name=name,
            ranks=ranks,
            microbatches=microbatches,
            chunks=each.format(count=chunks),
            ideal=f"{ideal:.2%}",
            total=f"{total:.2%}",
        )

    rows = [f"rank {rank}" for rank in range(ranks)]
    sizes = f"{prefix}schedule-{name}-{ranks}-{microbatches}-{chunks}"
    chart = gantt(sizes, caption, rows, cells, words)
    return Chart(chart, words.text(caption))
