"""What a run may ask for, and how its parser says what is wrong."""

import re
import sys

import pytest

from mini_impls import launch
from tests.helpers import run_on_terminal
from tests.terminals import Terminal


def never(rank, args):
    raise AssertionError("no process may start")


@pytest.mark.parametrize(
    ("typed", "what"),
    [
        *((f"--steps {n}", "above 10000") for n in (10_001, 10**9, 10**30)),
        *((f"--world {n}", "below 1") for n in (0, -3)),
    ],
)
def test_sizes_that_no_run_could_have_are_refused(typed, what, capfd):
    def divide(args):
        raise AssertionError(6 % args.world)

    with pytest.raises(SystemExit) as ended:
        launch.main(never, description="never", argv=typed.split(), check=divide)
    assert ended.value.code == 2
    assert capfd.readouterr().err.endswith(f": {typed} is {what}\n")


def test_help_says_how_it_is_called_and_what_may_be_asked(capsys):
    with pytest.raises(SystemExit) as ended:
        launch.main(never, description="Nothing at all.", argv=["-h"])
    assert ended.value.code == 0
    said = capsys.readouterr().out
    assert re.match(r"Usage: .+ \[OPTIONS\]\n\n  Nothing at all.\n\nOptions:\n", said)


@pytest.mark.slow
def test_a_comparison_takes_no_more_either():
    command = (sys.executable, "-m", "mini_impls.compare", "ddp", "--steps", "10001")
    with Terminal(*command) as terminal:
        assert terminal.close() == 2
        assert "--steps 10001 is above 10000" in terminal.shown


@pytest.mark.parametrize("columns", [30, 50])
@pytest.mark.parametrize("asked", [(), ("--bogus", "--more-of-what-is-none")])
def test_schedules_and_complaints_fit_a_narrow_terminal(columns, asked):
    shown = run_on_terminal(columns, "run", "schedules", *asked)
    rows = shown.splitlines()
    assert [row for row in rows if len(row) > columns and " " in row.strip()] == []
    if not asked:  # ranks stand below one another, in each block of columns
        grid = [row.partition(" | ")[0] for row in rows if " | " in row]
        assert grid == [f"rank {n % 4}" for n in range(len(grid))]


@pytest.mark.parametrize("asked", ["--bogus --more-of-what-is-none", "--world 0"])
def test_a_complaint_fits_its_own_terminal_wherever_the_output_goes(asked):
    command = f"{sys.executable} -m readerkit run schedules {asked} >/dev/null"
    with Terminal("sh", "-c", command, columns=30) as terminal:
        assert terminal.close() == 2
        rows = terminal.shown.splitlines()
    assert len(rows) > 1 and max(map(len, rows)) <= 30
