"""The bubble of a pipeline and what its ranks hold, as the rows of an estimate."""

from __future__ import annotations

from readerkit.estimate.bubble import Pipeline
from readerkit.estimate.item import Estimate, Worksheet
from readerkit.estimate.schedules import SOURCES, STAGGERED, UNSYNCHRONIZED
from readerkit.model.language import Told


def estimate_bubble(pipeline: Pipeline) -> Estimate:
    """Return the bubble both ways, and the activations in flight on every rank."""
    p, m, v = pipeline.stages, pipeline.microbatches, pipeline.virtual_stages
    sheet = Worksheet(f"{pipeline.schedule}, p = {p}, m = {m}, v = {v}")
    source, one = SOURCES[pipeline.schedule], pipeline.named()
    sheet.write(
        f"""
        bubble of ideal time [fraction] = ideal | {source} | idle / busy time
        bubble of total time [fraction] = total | {source} | idle / all of the step
        """,
        ideal=one.bubble,
        total=one.bubble_of_total,
    )
    for rank in sorted({0, p - 1}):
        name = Told("in flight on rank {rank}", rank=rank)
        whole = "activations of all the rank's layers"
        if pipeline.stages_of_rank > 1:
            whole = "activations of one stage each, half of the rank's layers"
        sheet.add(name, one.in_flight(rank), "microbatches", source, whole)
    if pipeline.stages_of_rank > 1:
        means = "stages of a rank, one of each direction"
        stages = sheet.given("k", pipeline.stages_of_rank, means)
        row = f"parameters of a rank [times] = stages | {source} | of a stage's"
        sheet.write(row, stages=stages)
    if pipeline.schedule in STAGGERED and p > 1:
        sheet.notes.append(UNSYNCHRONIZED)
    return sheet.estimate()
