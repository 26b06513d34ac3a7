"""Source made to hurt gets its page: with colours, and with names where it can."""

from __future__ import annotations

import subprocess
import sys

import pytest

from tests.readerkit.anchors.test_hostile_source import DEEP
from tests.terminals import WAIT_S

pytestmark = pytest.mark.sampled

WIDE = {
    "a sum": b"x = 1" + b" + x" * 20_000,
    "lambdas in lambdas": b"x = 1\ny = " + b"lambda: " * 400 + b"x",
    "comprehensions in comprehensions": b"x = "
    + b"[x for x in " * 90
    + b"x"
    + b"]" * 90,
    "strings in strings": b"f'{" * 300_000,
}


@pytest.mark.parametrize("data", (DEEP | WIDE).values(), ids=DEEP | WIDE)
def test_source_made_to_hurt_is_drawn(data):
    # In a child process: what is feared is a crash of the interpreter.
    program = (
        "import sys\n"
        "from readerkit.render.html.site_model import make_sheet\n"
        "sheet = make_sheet('a.py', sys.stdin.buffer.read())\n"
        "print(len(sheet.drawn.lines))\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], input=data, capture_output=True, timeout=WAIT_S
    )
    assert done.returncode == 0, done.stderr.decode()[-500:]
    assert int(done.stdout) == len(data.splitlines())
