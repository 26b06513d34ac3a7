"""What ``make read`` puts on the screen of somebody who has just cloned this."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.helpers import ROOT

pytestmark = [pytest.mark.network, pytest.mark.slow]
A_SCREEN = 40


@pytest.fixture
def checkout(tmp_path) -> Path:
    """The files of this checkout as they are now, and no environment."""
    names = subprocess.run(
        ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
        cwd=ROOT,
        capture_output=True,
        check=True,
    )
    for name in filter(None, names.stdout.decode().split("\0")):
        if (ROOT / name).is_file():
            place = tmp_path / "checkout" / name
            place.parent.mkdir(parents=True, exist_ok=True)
            place.write_bytes((ROOT / name).read_bytes())
    return tmp_path / "checkout"


def make(folder: Path, target: str) -> list[str]:
    # As a person types it, also where make runs these tests.
    outside = {k: v for k, v in os.environ.items() if not k.startswith("MAKE")}
    done = subprocess.run(
        ["make", f"PYTHON={sys.executable}", target],
        cwd=folder,
        env={**outside, "LINES": "24"},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=600,
        check=False,
    )
    assert done.returncode == 0, done.stdout
    return done.stdout.splitlines()


def test_first_stop_is_not_pushed_away_by_what_follows(checkout, real_cache):
    installed = make(checkout, ".venv/.toolkit")
    assert installed == [
        "== Making .venv",
        "== Installing the toolkit and the libraries it stands on (about 20 MB)",
    ]
    (checkout / ".venv" / ".torch").touch()  # a gigabyte, and no part of this
    shown = make(checkout, "read")
    first = shown.index("== The first stop")
    last = shown.index("== PyTorch and the others: fetching the pinned source")
    assert any(
        "Which collective closes the layer?" in line for line in shown[first:last]
    )
    around = installed + shown[:first] + shown[last:]
    assert len(around) <= A_SCREEN, around
    assert any(line.startswith("  readerkit start ") for line in shown[last:])
