"""The controls of the estimates' page: what can be set, and what each is called."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from markupsafe import Markup

from readerkit.estimate.activations import RECOMPUTE
from readerkit.estimate.instrument import Dials, Shipped
from readerkit.estimate.schedules import SOURCES
from readerkit.estimate.sizes import LAYOUT
from readerkit.estimate.states import PRECISIONS, STAGES
from readerkit.render.html.escape import shown
from readerkit.render.html.words import Text, both

START = Dials(dp=8, microbatches=8)
"""What the page asks before anybody set anything."""
NUMBERS = (
    *("dp", "tp", "pp", "cp", "ep", "micro_batch", "microbatches"),
    *("virtual_stages", "sequence"),
)

QUESTIONS = {
    "memory": "What one GPU holds",
    "bubble": "The bubble of a pipeline",
    "comm": "What a step sends",
    "step": "The time of a step",
}
"""Each command, and what it is asked."""


@dataclass(frozen=True, slots=True)
class Listed:
    """A control with a list: its field, what it is called, and its words."""

    name: str
    called: str
    options: tuple[tuple[str, str], ...]
    """Each word, and what belongs to it besides: of a cluster its GPU."""
    value: str


def controls(
    known: Shipped, names_in_spanish: Mapping[str, str], at: Dials = START
) -> Mapping[str, Any]:
    """Return the controls of a setting, as a page begins."""
    values = {name: "" if v is None else str(v) for name, v in at._asdict().items()}

    def choice(name: str, called: str, options: Any) -> Listed:
        words = tuple((each, "") for each in options)
        return Listed(name, called, words, values[name])

    def means(name: str) -> Markup:
        text = LAYOUT[name].means
        spanish = names_in_spanish.get(text)
        return both(Text(shown(text), shown(spanish) if spanish else None))

    clusters = [(name, str(each["gpu"])) for name, each in known.clusters.items()]
    return {
        "choices": (
            choice("model", "model", known.models),
            choice("gpu", "GPU", known.gpus),
            Listed("cluster", "cluster", (*clusters, ("", "")), at.cluster),
            choice("zero", "ZeRO stage", map(str, STAGES)),
            choice("recompute", "recompute", RECOMPUTE),
            choice("schedule", "schedule", SOURCES),
            choice("precision", "bytes per parameter", PRECISIONS),
        ),
        "numbers": [(name, means(name), values[name]) for name in NUMBERS],
        "questions": QUESTIONS.items(),
        "flags": (
            ("sequence_parallel", "sequence parallel", at.sequence_parallel),
            ("flash", "flash attention", at.flash),
        ),
    }
