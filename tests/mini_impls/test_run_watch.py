"""A run that is looked at: a table of all ranks, while it goes on and at its end."""

import re
import subprocess
import sys
import time
from itertools import pairwise

import pytest
import torch
import torch.distributed as dist

from mini_impls import launch
from mini_impls.demos.expected import Estimated
from mini_impls.recorder import Rates
from mini_impls.run_metrics import RankMetrics, RankSummary, predict
from mini_impls.run_table import part_tables, screen, table
from mini_impls.run_watch import MEET_S, WatchingRecorder, is_looked_at
from tests.helpers import ROOT
from tests.terminals import Terminal

RUN = [sys.executable, "-m", "readerkit", "run", "ddp", "--steps", "6", "--watch"]


def rows(text):
    """Return the rows of the table of each rank, and of all."""
    found = re.findall(r"^ *(0|1|all) +(\d.*)$", text, re.MULTILINE)
    return {name: cells.split() for name, cells in found}


def test_ever_fewer_steps_are_looked_at():
    looked_at = [step for step in range(1000) if is_looked_at(step)]
    assert looked_at[:9] == [*range(9)]
    assert len(looked_at) < 40
    assert max(b / a for a, b in pairwise(looked_at[8:])) <= 1.25


def seen(rank):
    """Return what was seen of a rank, each cell as wide as they get."""
    of = RankMetrics(
        rank, 3, 0.07788, 0.03, 0.0, 0.04, 0.03, 411_000.0, 10, 123_456.0, 11_400_000,
        316_000_000,
    )  # fmt: skip
    rates = Rates(2, 8, 0.02, 0.001, 10**6, 0.101, 300_000_000)
    due = Estimated(sent_bytes=4e5, flops=1e8, peak_bytes=4e6)
    made = predict({"": of}, {"": due}, rates)
    return RankSummary(rank, {"": of}, {"": due}, 1e9, rates, made)


@pytest.mark.parametrize("columns", [40, 60, 80, 100])
def test_a_table_fits_its_terminal_with_every_column_in_its_place(columns):
    ranks = [seen(0), seen(1)]
    whole = table(ranks).splitlines()
    told = table(ranks, columns).splitlines()
    grid = told[: len(told) - len(whole) + 4]
    assert max(map(len, grid)) <= columns < len(whole[0])
    cells = [line.split() for line in grid]
    for i, line in enumerate(whole[:4]):
        assert [cell for row in cells[i::4] for cell in row[1:]] == line.split()[1:]
    assert {row[0] for row in cells} == {"rank", "0", "1", "all"}
    assert told[len(grid) :] == whole[4:]
    # Where the time goes stands by itself, as far as one row has room for it.
    assert columns < 60 or cells[0][1:] == whole[0].split()[1:7]


@pytest.mark.parametrize(
    ("columns", "lines"), [(40, 30), (79, 22), (79, 12), (200, 40)]
)
def test_a_screen_has_whole_sentences_as_far_as_they_fit(columns, lines):
    ranks = [seen(0), seen(1)]
    below = screen(ranks, columns, lines)
    assert len(below) <= lines and max(map(len, below)) <= columns
    told = table(ranks, columns).split("\nrank 0 beside")[0].splitlines()
    assert below[: len(told)] == told
    [part] = part_tables(ranks)
    words = " ".join(below[len(told) :]).split()
    whole = [" ".join(part.beside[:n]).split() for n in range(len(part.beside) + 1)]
    assert words in whole
    assert (words == whole[-1]) == (lines > 30)


@pytest.mark.parametrize(("columns", "lines"), [(200, 9), (200, 5), (79, 10), (40, 30)])
def test_a_screen_without_room_for_all_ranks_says_how_many_it_leaves_out(
    columns, lines
):
    below = screen([seen(rank) for rank in range(12)], columns, lines)
    assert len(below) <= lines and max(map(len, below)) <= columns
    names = [row.split()[0] for row in below[:-1]]
    heads = names.count("rank")
    left_out = re.fullmatch(r"(\d+) of 12 ranks are not shown", below[-1])
    assert left_out, below
    shown = 12 - int(left_out[1])
    ranks = [*map(str, range(shown))]
    assert names == ["rank", *ranks, "all"] * heads
    assert len(below) + heads > lines  # there is no room for one more


def test_a_screen_too_low_for_any_rank_is_filled_from_above():
    below = screen([seen(rank) for rank in range(12)], 40, 3)
    assert [row.split()[0] for row in below] == ["rank", "all", "rank"]


@pytest.mark.slow
@pytest.mark.parametrize("columns", [40, 60, 80])
def test_on_a_narrow_terminal_no_row_is_cut_or_wrapped(columns):
    with Terminal(*RUN, columns=columns, lines=40, cwd=ROOT) as terminal:
        assert terminal.close() == 0
        text = terminal.shown.replace("\r\n", "\n")
    drawn, _, last = text.partition("\nThe last step that was looked at:\n")
    for shown in (drawn, last):
        plain = re.sub(r"\x1b\[\w+|\r", "", shown)
        rows = [row for row in plain.splitlines() if "computing" in row or "%" in row]
        assert rows and max(map(len, rows)) <= columns
        assert re.search(r" tokens/s *$", plain, re.MULTILINE)
    assert "in a training step alone" in " ".join(last.split())
    assert {"0", "1", "all"} <= set(re.findall(r"^ *(\w+) ", last, re.MULTILINE))


@pytest.mark.further
def test_on_a_terminal_the_table_of_all_ranks_is_below_what_is_said():
    with Terminal(*RUN, columns=120, cwd=ROOT) as terminal:
        assert terminal.close() == 0
        shown = terminal.shown
    # Each time: the line of what is done, the table, and back to where others print.
    frame = r"\x1b\[2mstep \d of 6\x1b\[0m((?:\n.*)+)\x1b\[(\d+)A\r"
    text = shown.replace("\r\n", "\n")
    drawn = [m for each in text.split("\r\x1b[J") if (m := re.match(frame, each))]
    assert any({"0", "1", "all"} <= rows(each[1]).keys() for each in drawn)
    for each in drawn:
        assert each[1].count("\n") == int(each[2])
    _, _, last = text.partition("\nThe last step that was looked at:\n")
    assert rows(last).keys() == {"0", "1", "all"}


@pytest.mark.slow
def test_in_a_pipe_the_last_table_is_told_alone():
    done = subprocess.run(RUN, cwd=ROOT, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    before, _, last = done.stdout.partition("\nThe last step that was looked at:\n")
    assert before.count("step 5: loss") == 1 and not rows(before)
    found = rows(last)
    assert found.keys() == {"0", "1", "all"}
    for rank in "01":
        computing, _, exposed, _, other = (
            int(cell[:-1]) for cell in found[rank] if cell.endswith("%")
        )
        assert abs(computing + exposed + other - 100) <= 2
    assert len(re.findall(r"sent 4\d\d kB, 408 kB by formula", last)) == 2


def test_one_way_to_look_at_a_run_is_chosen(tmp_path):
    both = [*RUN, "--trace", str(tmp_path / "x.json")]
    done = subprocess.run(both, cwd=ROOT, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (2, "")
    assert "--trace and --watch: got both, expected one" in done.stderr
    assert not [*tmp_path.iterdir()]


def _step_behind_a_slow_table(rank):
    """Return how long the second step took of a rank; the first one draws for long."""
    recorder = WatchingRecorder(True, rank=rank)
    if rank.rank == 0:
        type(rank.status).show_below = lambda status, lines: time.sleep(1.5)
    for _ in range(2):
        with recorder.step(1):
            dist.all_reduce(torch.zeros(1), group=rank.group)
    return recorder.seen[""].step_s


@pytest.mark.further
def test_a_step_has_nothing_of_the_table_that_another_rank_still_draws():
    assert all(
        each < 1.2 for each in launch.run(_step_behind_a_slow_table, world_size=2)
    )


def _other_steps(rank):
    recorder = WatchingRecorder(True, rank=rank)
    for _ in range(3 * rank.rank):
        with recorder.step(1):
            pass
    return len(recorder.seen)


@pytest.mark.further
def test_ranks_that_take_other_steps_are_not_waited_for_twice():
    began = time.monotonic()
    assert launch.run(_other_steps, world_size=2) == [0, 1]
    assert time.monotonic() - began < 2 * MEET_S + 10
