"""A mini is read in ten minutes beside upstream: 100 to 260 lines a file."""

from pathlib import Path

import pytest

import mini_impls

FOLDER = Path(mini_impls.__file__).parent
NO_MINI = {
    "__init__",
    "failures",
    "gpus",
    "launch",
    "limits",
    "machine",
    "model",
    "recorder",
    "run_events",
    "run_memory",
    "run_metrics",
    "run_rates",
    "run_table",
    "run_thin",
    "run_trace",
    "run_watch",
    "run_wrapped",
    "supervise",
    "traffic",
    "weights",
}
"""What all of them share, and what starts them."""
FILES = sorted(p.stem for p in FOLDER.glob("*.py") if p.stem not in NO_MINI)


@pytest.mark.parametrize("name", FILES)
def test_a_mini_is_read_in_ten_minutes(name):
    lines = len((FOLDER / f"{name}.py").read_text().splitlines())
    assert 100 <= lines <= 260
