"""What one step sends, as an estimate: each kind, and a sum for each axis."""

from __future__ import annotations

from readerkit.estimate.defaults import PRECISION
from readerkit.estimate.fit import check_fit
from readerkit.estimate.item import Estimate, Worksheet
from readerkit.estimate.layout import Layout
from readerkit.estimate.memory import rank_weights
from readerkit.estimate.memory_estimates import add_parameters
from readerkit.estimate.offload import offload_traffic
from readerkit.estimate.quantity import divide
from readerkit.estimate.shape import Shape
from readerkit.estimate.states import Precision, precision
from readerkit.estimate.step_traffic import dp_step_traffic, model_step_traffic
from readerkit.estimate.volumes import ZERO

IN_ALL = {axis: f"{axis} in all" for axis in ("dp", "tp", "pp", "ep", "etp", "cp")}
"""By axis, what its sum is called."""


def estimate_step_traffic(
    shape: Shape, layout: Layout, *, convention: str = PRECISION, no_sync: bool = True
) -> Estimate:
    """Return the volumes of a step as an estimate, with a sum for each axis.

    Raises:
        EstimateError: a layout that the model cannot be cut into.
    """
    check_fit(shape, layout)
    sheet, kept = Worksheet("traffic of a step"), precision(convention)
    one, cut, width = shape.named(), layout.named(), kept.named()
    found = [
        *dp_step_traffic(one, cut, width, no_sync=no_sync, rank=0),
        *model_step_traffic(one, cut, width, rank=0),
    ]
    by_axis: dict[str, list[str]] = {}
    if any(each.axis == "dp" for each in found):
        held = rank_weights(one, cut, 0)
        add_parameters(sheet, *held, layout, 0)
    for each in found:
        custom = f"sent by one rank in one step: {each.why}"
        sheet.add(each.name, each.sent_bytes, "bytes", each.source, custom)
        by_axis.setdefault(each.axis, []).append(each.name)
    for axis, name in IN_ALL.items():
        if axis in by_axis:
            total, custom = sheet.total(by_axis[axis]), "per rank and step"
            sheet.add(name, total, "bytes", "a count", custom)
    for moved in offload_traffic(one, cut, width, no_sync=no_sync):
        custom = f"over {moved.link}, one GPU in one step: {moved.why}"
        name = f"offload: {moved.way}"
        sheet.add(name, moved.bytes, "bytes", moved.source, custom)
    if not found:
        sheet.notes.append("one rank sends nothing")
    if layout.pp > 1:
        sheet.notes.append(_on_first_rank(layout))
    if "dp" in by_axis:
        _times_ddp(sheet, one, cut, width, convention, no_sync)
        if kept.gradient != kept.weight:
            sheet.notes.append(
                f"{convention} sums gradients of {kept.gradient} B and gathers weights "
                f"of {kept.weight} B, so the multiples of DDP are not the paper's 1x, "
                "1x and 1.5x of ZeRO 1, 2 and 3, which hold where both have one width"
            )
    return sheet.estimate()


def _on_first_rank(layout: Layout) -> str:
    note = "the first pipeline rank: the embedding; output and loss are on the last"
    if all(layout.ends(0)):
        note = f"the first pipeline rank, which under {layout.schedule} has both ends"
    if layout.pp > 2:
        chunks = 2 if layout.schedule == "zb-v" else layout.virtual_stages
        messages = 2 * layout.microbatches * chunks
        note += f", and a rank between them sends {messages} messages"
    return note


def _times_ddp(
    sheet: Worksheet,
    shape: Shape,
    layout: Layout,
    kept: Precision,
    convention: str,
    no_sync: bool,
) -> None:
    """Write down what data parallelism sends over what DDP would, by two widths."""
    for name, widths, source, custom in (
        ("dp, times DDP", kept, "a count", convention),
        (
            "dp, times DDP, one width",
            kept._replace(gradient=kept.weight),
            ZERO,
            "gradients as wide as weights",
        ),
    ):
        now, ddp = (
            sum(
                each.sent_bytes
                for each in dp_step_traffic(shape, one, widths, no_sync=no_sync, rank=0)
            )
            for one in (layout, layout._replace(zero=0))
        )
        over = f"ZeRO {layout.zero} over DDP; {custom}"
        sheet.add(name, divide(now, ddp), "times", source, over)
