"""Mechanisms that play: each is of today's minis, and shows what must hold."""

from __future__ import annotations

import pytest

from readerkit.evidence.played import FORMAT, Mechanisms, frames, sent_bytes
from readerkit.model import stored
from readerkit.model.freshness import digest
from readerkit.render.html.mechanism_list import MECHANISMS
from readerkit.render.html.player import player
from readerkit.render.html.words import Words
from tests.helpers import ROOT

FILE = ROOT / "annotations" / "mechanisms.json"
MAKE = "python -m tools.make_mechanisms"
RUNS = stored.parse(
    FILE.read_text("utf-8"),
    Mechanisms,
    FILE.name,
    what="file of mechanisms",
    expected=MAKE,
    version=FORMAT,
).runs


def last(name):
    """Return what each rank holds in the end: by rank and slot, whose terms."""
    *_, frame = frames(RUNS[name])
    return {at: [piece.ranks for piece in cell] for at, cell in frame.cells.items()}


def test_every_mechanism_is_recorded_and_has_words():
    assert list(RUNS) == list(MECHANISMS)


@pytest.mark.parametrize("name", RUNS)
def test_a_mechanism_is_of_the_minis_of_today(name):
    made_from = RUNS[name].made_from
    today = {path: digest((ROOT / path).read_bytes()) for path in made_from}
    assert dict(made_from) == today, f"make it again: {MAKE}"


def test_an_all_reduce_ends_with_every_sum_on_every_rank():
    assert set(map(tuple, last("ring-all-reduce").values())) == {((0, 1, 2, 3),)}


def test_the_halves_send_what_their_formula_says():
    for name, halves in (("ring-all-reduce", 2), ("reduce-scatter", 1)):
        run = RUNS[name]
        whole, w = sum(slot.bytes for slot in run.slots), run.world_size
        assert sent_bytes(run) == [halves * whole * (w - 1) // w] * w


def test_a_reduce_scatter_leaves_a_rank_its_chunk():
    held = last("reduce-scatter")
    assert [held[rank, rank] for rank in range(4)] == [[(0, 1, 2, 3)]] * 4


@pytest.mark.parametrize("name", RUNS)
def test_a_player_shows_its_last_frame_and_a_row_for_each_step(name):
    run = RUNS[name]
    made = player(Words(), name, name, run)
    assert len(made.rows) == len(run.steps)
    assert made.image.count('class="frame') == len(run.steps)
    assert made.image.count('class="frame on"') == 1
    assert made.image.rindex('class="frame on"') > made.image.rindex('class="frame"')
