"""Pipeline schedules, drawn, each with its bubble and what it holds."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence

from mini_impls.limits import Options, complain
from mini_impls.schedules import SCHEDULES, get_orders
from mini_impls.timeline import (
    draw,
    get_bubble,
    get_closed_bubble,
    get_peak_in_flight,
    get_timeline,
)
from readerkit.system.output import OutputError, printing
from readerkit.wording.fold import fitting
from readerkit.wording.grid_blocks import fitting_grid

MOST_FORWARDS = 100_000
"""Of all ranks together: some seconds of counting, and lines that nobody reads."""


def main(argv: Sequence[str] | None = None) -> int:
    """Print the schedules of one pipeline, with bubble and memory."""
    parser = Options(
        os.environ.get("READERKIT_COMMAND", "python -m mini_impls.schedules"),
        "Pipeline schedules, drawn: what each rank does and waits for.",
    )
    parser.add_argument("--world", type=int, default=4, help="ranks (p)")
    parser.add_argument("--microbatches", type=int, default=8, help="(m)")
    parser.add_argument("--chunks", type=int, default=2, help="model chunks a rank (v)")
    parser.add_argument("--backward-cost", type=int, default=1, help="a forward is 1")
    args = parser.parse_args(argv)
    for name in ("world", "microbatches", "chunks", "backward_cost"):
        if getattr(args, name) < 1:
            option = name.replace("_", "-")
            wrong = f"--{option} {getattr(args, name)} is not above 0"
            return complain(parser.prog, ValueError(wrong))
    if (steps := args.world * args.microbatches * args.chunks) > MOST_FORWARDS:
        wrong = f"{steps:,} forwards are more than {MOST_FORWARDS:,}: take fewer"
        return complain(parser.prog, ValueError(wrong))
    for schedule in SCHEDULES:
        v = args.chunks if schedule == "interleaved" else 1
        try:
            text = describe(
                schedule, args.world, args.microbatches, v, args.backward_cost
            )
        except ValueError as error:
            text = f"  does not fit: {error}"
        head = f"{schedule}: p={args.world} m={args.microbatches} v={v}"
        try:
            with printing():
                print(fitting(f"{head}\n{text}\n", sys.stdout))
        except OutputError as error:
            return complain(parser.prog, error)
    return 0


def describe(
    schedule: str,
    world_size: int,
    num_microbatches: int,
    num_model_chunks: int,
    backward_cost: int,
) -> str:
    """Return a schedule drawn, its bubble beside the formula, and what it holds."""
    sizes = (world_size, num_microbatches, num_model_chunks)
    orders = get_orders(schedule, *sizes)
    timeline = get_timeline(orders, backward_cost=backward_cost)
    ideal, total = get_bubble(timeline, world_size)
    closed, formula = get_closed_bubble(schedule, *sizes, backward_cost=backward_cost)
    held = " ".join(str(get_peak_in_flight(order)) for order in orders)
    grid = fitting_grid(draw(timeline, world_size), sys.stdout)
    return f"""{grid}
  bubble of ideal time {float(ideal):.2%}, {formula} = {float(closed):.2%}
  bubble of all time   {float(total):.2%}
  most activations held, each of 1/{num_model_chunks} of a rank's layers: {held}"""
