"""What the page of estimates shows: its sections, and the estimates that they take."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from readerkit.estimate.instrument import Shipped
from readerkit.estimate.item import Estimate
from readerkit.estimate.plan import Plan
from readerkit.estimate.planned_steps import PlannedStep
from readerkit.estimate.runs import Compared

SECTIONS = {
    "memory": (
        "What one GPU holds",
        "Weights, gradients, optimizer and activations, and what each stage of ZeRO "
        "shards of them.",
    ),
    "tools": (
        "What other tools say",
        "The figures of Megatron-LM's, EleutherAI's and DeepSpeed's calculators for "
        "one training, and where each differs from ours.",
    ),
    "traffic": (
        "What a step sends",
        "Bytes that one rank sends in one step, by the axis that sends them.",
    ),
    "bubble": (
        "The bubble of a pipeline",
        "The time that ranks wait, and the activations that they hold meanwhile.",
    ),
    "ring": (
        "Where ring and tree cross",
        "A tree starts less often, a ring sends less: which is faster depends on the "
        "size.",
    ),
    "runs": (
        "A step, a run and its checkpoints",
        "Where the time of a step goes, what a run computes, and what failures cost.",
    ),
    "more": (
        "Offload, formats, recompute, inference, collectives, buckets",
        "What leaves the GPU, what other formats save, what answering needs; what a "
        "layer keeps, how gradients are bucketed, what fits, and how long NCCL itself "
        "expects to wait.",
    ),
    "plan": (
        "A layout for 70 billion parameters on 64 GPUs",
        "Every way to cut the model over the cluster, weighed; the fastest that fit.",
    ),
    "catalog": (
        "Models, GPUs, clusters and prices",
        "What the commands know by name, each row with its source and the day on which "
        "it was read; rows of your own go before them.",
    ),
    "against": (
        "The planner beside published runs",
        "What is predicted for steps that others measured, and the place of their cut.",
    ),
}
"""By section, its heading and what it is about."""


def headings() -> tuple[tuple[str, str], ...]:
    """Return each section's name with its heading, without computing anything."""
    return tuple((name, title) for name, (title, _) in SECTIONS.items())


@dataclass(frozen=True, slots=True)
class Worked:
    """One estimate, and the command that makes it for other inputs."""

    name: str
    command: str
    estimate: Estimate
    bars: tuple[PlannedStep, ...] = ()
    """Of a schedule, to be drawn."""

    @property
    def title(self) -> str:
        """What it is of, under its name."""
        title = self.estimate.title
        return title if title.startswith(self.name) else f"{self.name}: {title}"


@dataclass(frozen=True, slots=True)
class EstimateGroup:
    """Estimates that are read beside each other."""

    title: str
    worked: tuple[Worked, ...]


@dataclass(frozen=True, slots=True)
class Examples:
    """Everything that the page shows, computed."""

    memory: tuple[EstimateGroup, ...]
    traffic: tuple[EstimateGroup, ...]
    bubbles: EstimateGroup
    ring: EstimateGroup
    tools: EstimateGroup
    runs: tuple[EstimateGroup, ...]
    more: tuple[EstimateGroup, ...]
    plan: Plan
    plan_command: str
    best: EstimateGroup
    """The layout that the plan puts first, item by item."""
    catalog: Mapping[str, Mapping[str, Mapping[str, Any]]]
    prices: Sequence[Mapping[str, Any]]
    catalog_command: str
    own_rows: Mapping[str, str]
    """What a reader may write, by the file that it stands in."""
    compared: tuple[Compared, ...]
    """Published runs beside what is predicted for them."""
    against_command: str
    known: Shipped
    """What can be asked for by name, where the page itself computes."""
    names_in_spanish: Mapping[str, str] = field(default_factory=dict)
    """Of numbers and symbols."""
    conventions_in_spanish: Mapping[str, str] = field(default_factory=dict)
    """Parts of what is said of them."""
