"""A pipeline schedule, drawn: the order of its steps if each took one unit of time."""

from __future__ import annotations

from dataclasses import dataclass

from markupsafe import Markup

from mini_impls.schedules import get_orders
from mini_impls.timeline import get_bubble, get_timeline
from readerkit.render.html.charts import Cell, gantt
from readerkit.render.html.escape import shown
from readerkit.render.html.words import Text


@dataclass(frozen=True, slots=True)
class Chart:
    """A drawn schedule, and what stands under it."""

    image: Markup
    caption: Text


def schedule_chart(name: str, ranks: int, microbatches: int, chunks: int = 1) -> Chart:
    """Return a schedule as a Gantt chart, with its bubble.

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
    title = (
        f"{name}: {ranks} ranks, {microbatches} microbatches, "
        f"{f'{chunks} chunks' if chunks > 1 else 'one chunk'} a rank; "
        f"bubble {ideal:.2%} of ideal, {total:.2%} of total"
    )
    spanish = (
        f"{name}: {ranks} ranks, {microbatches} microbatches, "
        f"{f'{chunks} chunks' if chunks > 1 else 'un chunk'} por rank; "
        f"burbuja: {ideal:.2%} del ideal, {total:.2%} del total"
    )
    rows = [f"rank {rank}" for rank in range(ranks)]
    chart = gantt(
        f"schedule-{name}-{ranks}-{microbatches}-{chunks}", title, rows, cells
    )
    return Chart(chart, Text(shown(title), shown(spanish)))
