"""A run that is looked at: a table of all ranks, while it goes on and at its end."""

import re
import subprocess
import sys
from itertools import pairwise

import pytest

from mini_impls.run_watch import is_looked_at
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
