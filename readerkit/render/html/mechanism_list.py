"""The mechanisms that play, in the order in which they are read, and what to watch."""

from __future__ import annotations

from dataclasses import dataclass

from readerkit.render.html.player import Player, player
from readerkit.render.html.site_model import SiteModel


@dataclass(frozen=True, slots=True)
class Mechanism:
    """What a page says of a mechanism; its words are the site's own phrases."""

    title: str
    watch: str
    """What to look at while it plays."""
    minis: tuple[tuple[str, str], ...]
    """File and symbol of what ran."""


MECHANISMS = {
    "ring-all-reduce": Mechanism(
        "All-reduce in a ring",
        "Each rank sends to one neighbour alone. Watch one chunk: it gains a colour in "
        "each round of the first half, and in the second half it is copied, whole.",
        (("collectives", "ring_all_reduce"),),
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
}
"""In the order in which they are read."""


def mechanism_player(model: SiteModel, name: str) -> Player:
    """Return what plays a mechanism."""
    run = model.played[name].run
    return player(model.words, name, MECHANISMS[name].title, run)
