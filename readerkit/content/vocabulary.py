"""The words that content, records and pages share, each list in its one place."""

from __future__ import annotations

from typing import Literal, get_args

AnnotationKind = Literal["citation", "note", "pitfall"]
Start = Literal["core", "trainer", "layers"]
"""What a note speaks of: the library alone, its stock trainer, the default layers."""
Relation = Literal["same", "simplified", "differs", "upstream-only"]
Pressure = Literal["memory", "time", "coordination", "reliability"]
Layer = Literal[
    "hardware",
    "wire",
    "collective",
    "parameters",
    "gradients",
    "optimizer",
    "activations",
    "schedule",
    "model",
    "job",
]
EstimateName = Literal[
    "memory",
    "tools",
    "traffic",
    "bubble",
    "ring",
    "runs",
    "more",
    "plan",
    "catalog",
    "against",
]
Phase = Literal["setup", "forward", "backward", "optimizer", "checkpoint"]
Operation = Literal[
    "all_reduce",
    "reduce",
    "all_gather",
    "reduce_scatter",
    "broadcast",
    "all_to_all",
    "gather",
    "scatter",
    "send",
    "recv",
    "barrier",
]
EventDifference = Literal[
    "only-mini",
    "only-upstream",
    "mini-waits-longer",
    "upstream-waits-longer",
    "payload",
]
"""How the sides may differ in an event; the next two, without one."""
WholeDifference = Literal["order", "values", "memory"]
DifferenceKind = Literal[EventDifference, WholeDifference]
SideName = Literal["mini", "upstream"]
Category = Literal["parameters", "gradients", "optimizer state", "other"]
"""``other`` is what steps leave behind that is none of the rest."""
DriftStatus = Literal["same", "moved", "edited", "split", "gone", "unsure"]
"""What became of the lines of a note in another revision."""

STARTS: dict[Start, str] = {
    "core": "core alone",
    "trainer": "the stock trainer",
    "layers": "the default layers",
}
"""In words."""
PHASES: tuple[Phase, ...] = get_args(Phase)
"""In the order in which a step has them."""
LAYERS: tuple[Layer, ...] = get_args(Layer)
OPERATIONS: tuple[Operation, ...] = get_args(Operation)
EVENT_DIFFERENCES: tuple[EventDifference, ...] = get_args(EventDifference)
DRIFT_STATUSES: tuple[DriftStatus, ...] = get_args(DriftStatus)
WHOLE_DIFFERENCES: tuple[WholeDifference, ...] = get_args(WholeDifference)
LABELS = {
    "decision": "Decided",
    "alternative": "Instead of",
    "why": "Why",
    "text": "",
    "cost": "Cost",
}
"""The texts of a note in their order, each with the word that stands before it."""
