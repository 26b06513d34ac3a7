"""The mechanisms that play, in the order in which they are read, and what to watch."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from readerkit.render.html.player import Player, player
from readerkit.render.html.schedule_play import SchedulePlayer, schedule_player
from readerkit.render.html.site_model import SiteModel


@dataclass(frozen=True, slots=True)
class Mechanism:
    """What a page says of a mechanism; its words are the site's own phrases."""

    title: str
    watch: str
    """What to look at while it plays."""
    minis: tuple[tuple[str, str], ...]
    """File and symbol of what ran."""


SCHEDULES = "pipeline-schedules"
"""The one whose data are the generators of the schedules: nothing is recorded."""
MECHANISMS = {
    "ring-all-reduce": Mechanism(
        "All-reduce in a ring",
        "Each rank sends to one neighbour alone. Watch one chunk: it gains a colour in "
        "each round of the first half, and in the second half it is copied, whole.",
        (("collectives", "ring_all_reduce"),),
    ),
    "tree-all-reduce": Mechanism(
        "All-reduce up and down a tree",
        "In each round half of the ranks that are left send all that they have; then "
        "the sum comes down the same way. Few rounds, but whole tensors in them.",
        (("collectives_log", "tree_all_reduce"), ("collectives_log", "tree_broadcast")),
    ),
    "reduce-scatter": Mechanism(
        "Reduce-scatter",
        "At the end every rank has one chunk with all colours in it, and the sums that "
        "it passed on are of no more use.",
        (("collectives", "ring_reduce_scatter"),),
    ),
    "all-gather": Mechanism(
        "All-gather",
        "Nothing is added: a chunk keeps its colour and goes round until every rank "
        "has a copy.",
        (("collectives", "ring_all_gather"),),
    ),
    "ddp-buckets": Mechanism(
        "Buckets of gradients leave during backward",
        "Gradients become ready from the last layer to the first, numbers are layers. "
        "A full bucket leaves at once (pale), while backward goes on.",
        (("ddp", "DistributedDataParallel"), ("ddp", "ParamAndGradBucket")),
    ),
    "zero-1": Mechanism(
        "ZeRO, stage 1: the optimizer state",
        "Watch the last column: each rank keeps the state of one layer. Every gradient "
        "is everywhere all the same, and new parameters come from their owner.",
        (("zero", "ZeroStage1"),),
    ),
    "zero-2": Mechanism(
        "ZeRO, stage 2: gradients too",
        "Watch the middle column: a gradient goes to its owner as soon as it is there, "
        "and all others drop it.",
        (("zero", "ZeroStage2"),),
    ),
    "zero-3": Mechanism(
        "ZeRO, stage 3: parameters too",
        "Watch the first column: a layer is borrowed from its owner, used, and freed, "
        "once in forward and once in backward.",
        (("zero_stage3", "ZeroStage3"),),
    ),
    "fsdp": Mechanism(
        "FSDP gathers, runs, and frees",
        "Every rank keeps a slice of each layer. While one layer runs, the next is "
        "gathered (pale); what has run is freed, and gradients return as slices.",
        (("fsdp", "PrefetchingParamGroup"), ("fsdp", "FSDPParamGroup")),
    ),
    "tensor-parallel": Mechanism(
        "A block cut in tensor parallelism",
        "A is cut by columns and B by rows, so nothing is sent between them. Z is a "
        "part of a sum on each rank until g adds up; backward, f does the same for dX.",
        (
            ("tensor_parallel", "ColumnParallelLinear"),
            ("tensor_parallel", "RowParallelLinear"),
        ),
    ),
    "sequence-parallel": Mechanism(
        "Sequence parallelism's f and g",
        "The same block, with the tokens cut outside of it: f gathers X and g scatters "
        "Z. Backward they change places, and X is gathered once more.",
        (
            ("sequence_parallel", "ColumnParallelLinear"),
            ("sequence_parallel", "RowParallelLinear"),
        ),
    ),
    SCHEDULES: Mechanism(
        "Pipeline schedules on one scale",
        "Empty places are waiting. Interleaving fills them with smaller chunks, zero "
        "bubble with the weights' half of backward, which nobody waits for.",
        (
            ("schedules", "one_f_one_b"),
            ("schedules", "interleaved"),
            ("schedules", "zb_h1"),
        ),
    ),
    "expert-dispatch": Mechanism(
        "Tokens go to their experts",
        "A colour is the rank a token comes from, its name the expert it wants. An "
        "expert gets as many as chose it: the inboxes are not equally full.",
        (("collectives", "pairwise_all_to_all"),),
    ),
    "ring-attention": Mechanism(
        "Ring attention",
        "Queries stay, keys and values go round. A block that a cross marks is hidden "
        "by the mask; with an early and a late chunk, all ranks have as many to do.",
        (("ring_attention", "RingAttention"), ("ring_attention", "pairs")),
    ),
}
"""In the order in which they are read."""


def played_names(played: Iterable[str]) -> list[str]:
    """Return the mechanisms that a book with these runs can play, in order."""
    runs = {*played}
    known = {*runs, SCHEDULES} if runs else runs
    return [name for name in MECHANISMS if name in known]


def mechanism_player(model: SiteModel, name: str) -> Player | SchedulePlayer:
    """Return what plays a mechanism."""
    if name == SCHEDULES:
        return schedule_player(model.words, name)
    run = model.played[name].run
    return player(model.words, name, MECHANISMS[name].title, run)
