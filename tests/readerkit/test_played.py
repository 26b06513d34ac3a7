"""Mechanisms that play: each is of today's minis, and shows what must hold."""

from __future__ import annotations

import re

import pytest

from readerkit.evidence.played import FORMAT, Mechanisms, frames, sent_bytes
from readerkit.model import stored
from readerkit.model.freshness import digest
from readerkit.render.html.mechanism_list import MECHANISMS, SCHEDULES
from readerkit.render.html.player import player
from readerkit.render.html.schedule_play import SCHEDULES as DRAWN
from readerkit.render.html.schedule_play import idle_of, pipeline, schedule_player
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
    assert {*RUNS, SCHEDULES} == {*MECHANISMS}


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


def here(name, rank, slot):
    """Return which pieces a rank has in a slot in the end."""
    *_, frame = frames(RUNS[name])
    return [piece.is_here for piece in frame.cells[rank, slot]]


def test_a_tree_sends_whole_tensors_in_few_rounds():
    run = RUNS["tree-all-reduce"]
    assert set(map(tuple, last("tree-all-reduce").values())) == {((0, 1, 2, 3),)}
    messages = [message for step in run.steps for message in step.sent]
    assert len(messages) == 2 * (run.world_size - 1)
    assert {message.bytes for message in messages} == {run.slots[0].bytes}
    assert sum(bool(step.sent) for step in run.steps) == 2 * 2


def test_what_a_rank_keeps_shrinks_with_the_stage():
    one, whole = [True], [True] * 4
    owned = {rank: here("zero-1", rank, 2) for rank in range(4)}
    assert sorted(sum(row) for row in owned.values()) == [1] * 4
    for rank, row in owned.items():
        assert here("zero-1", rank, 1) == whole == here("zero-1", rank, 0)
        assert here("zero-2", rank, 1) == row and here("zero-2", rank, 0) == whole
        assert here("zero-3", rank, 0) == row == here("zero-3", rank, 1)
        assert sum(row) == sum(one)


def test_buckets_leave_before_the_last_gradient_is_ready():
    does = [(step.does, step.of) for step in RUNS["ddp-buckets"].steps]
    sent = [i for i, (what, _) in enumerate(does) if what == "all_reduce"]
    ready = [i for i, (what, _) in enumerate(does) if what == "ready"]
    assert sent[0] < ready[-1] < sent[-1]


def test_a_next_layer_is_gathered_while_one_runs():
    steps = [(step.does, step.of) for step in RUNS["fsdp"].steps]
    gathers = steps.index(("all_gather", "layers.1"))
    assert gathers < steps.index(("free", "layers.0"))
    assert all(
        here("fsdp", rank, 0) == [r == rank for r in range(4)] for rank in range(4)
    )
    assert last("fsdp")[2, 1][2] == (0, 1, 2, 3)


def test_nothing_is_sent_between_the_two_layers_of_a_block():
    for name, forward in (
        ("tensor-parallel", ["all_reduce"]),
        ("sequence-parallel", ["all_gather", "reduce_scatter"]),
    ):
        steps = [s for s in RUNS[name].steps if s.phase == "forward"]
        assert [s.does for s in steps if s.bytes] == forward
        of = [s.of for s in steps]
        assert of.index("Z = Y B") == of.index("Y = GELU(X A)") + 1


def test_tokens_come_back_where_they_were():
    *_, frame = frames(RUNS["expert-dispatch"])
    for rank in range(4):
        assert frame.cells[rank, 3] == frame.cells[rank, 0]
        assert {piece.name for piece in frame.cells[rank, 2] if piece.is_here} <= {
            str(rank)
        }


def test_blocks_of_ring_attention_are_done_once_and_balanced():
    *_, frame = frames(RUNS["ring-attention"])
    done = [
        sum(p.is_here for slot in (1, 2) for p in frame.cells[rank, slot])
        for rank in range(4)
    ]
    assert done == [2 * 4 + 1] * 4


def test_schedules_are_on_one_scale_and_zb_h2_waits_for_nothing():
    made = schedule_player(Words(), "schedules")
    assert [one.name for one in made.schedules] == list(DRAWN)
    assert (
        len({re.search(r'width="[\d.]+"', one.image)[0] for one in made.schedules}) == 1
    )
    for name in DRAWN:
        steps = pipeline(name).bars()
        work = {
            rank: sum(s.end - s.start for s in steps if s.rank == rank)
            for rank in range(4)
        }
        assert set(work.values()) == {8 * 6}
        share = idle_of(steps) / 48
        assert share == pytest.approx(float(pipeline(name).bubble)), name
    assert idle_of(pipeline("zb-h2").bars()) == 0


@pytest.mark.parametrize("name", RUNS)
def test_a_player_shows_its_last_frame_and_a_row_for_each_step(name):
    run = RUNS[name]
    made = player(Words(), name, name, run)
    assert len(made.rows) == len(run.steps)
    assert made.image.count('class="frame') == len(run.steps)
    assert made.image.count('class="frame on"') == 1
    assert made.image.rindex('class="frame on"') > made.image.rindex('class="frame"')
