"""The line that says what is done: on a terminal alone, cleared, or plain text."""

from __future__ import annotations

import re
import sys

import pytest

from tests.terminals import Terminal

SCRIPT = """
import sys, time
from readerkit.system.status import Status
status = Status()
for done in range(3):
    status.show("counting", done, 3)
    time.sleep(0.2)
with status.waiting("waiting"):
    time.sleep(2.5)
status.show("x" * 200)
status.clear()
print("done")
"""


def shown(**how: object) -> str:
    with Terminal(sys.executable, "-c", SCRIPT, **how) as terminal:
        assert terminal.close() == 0
        return terminal.shown


def on_screen(text: str) -> list[str]:
    """Return the lines as they stand at the end: what was drawn over is gone."""
    lines = []
    for line in text.split("\n"):
        _, _, last = line.rpartition("\r\x1b[J")
        lines.append(last)
    return lines


def test_line_counts_waits_and_is_gone_in_the_end():
    text = shown()
    for said in ("counting 0 of 3", "counting 2 of 3", "waiting", r"waiting: \d s"):
        assert re.search(rf"\r\x1b\[J\x1b\[2m{said}\x1b\[0m\r", text)
    assert on_screen(text) == ["done", ""]


SPEAKS_LATE = """
from readerkit.system.status import take_over
input()
take_over()
input("it speaks")
"""
STARTS = f"""
import sys
from readerkit.terminal.processes import run_to_its_end
code = run_to_its_end([sys.executable, "-c", {SPEAKS_LATE!r}], "x", "starting")
raise SystemExit(code)
"""


def test_a_process_that_cannot_speak_yet_is_spoken_for_until_it_can():
    with Terminal(sys.executable, "-c", STARTS) as terminal:
        terminal.read_until("starting: 2 s")
        terminal.type("\n")
        terminal.read_until("it speaks")
        terminal.wait_until_asked()
        terminal.type("\n")
        assert terminal.close() == 0
        assert on_screen(terminal.shown)[-2] == "it speaks"


@pytest.mark.further
def test_line_is_cut_to_the_terminal():
    text = shown(columns=40)
    assert "x" * 39 in text
    assert "x" * 40 not in text


@pytest.mark.parametrize("term", ["dumb", None])
@pytest.mark.further
def test_terminal_that_cannot_go_back_gets_a_line_for_each_thing(term):
    lines = shown(environment={"TERM": term}).split("\n")
    assert lines == ["counting 0 of 3", "waiting", "x" * 200, "done", ""]


@pytest.mark.further
def test_background_keeps_quiet(tmp_path):
    command = f'"{sys.executable}" -c "$0" & wait'
    with Terminal("bash", "-mc", command, SCRIPT) as terminal:
        assert terminal.close() == 0
        assert terminal.shown.startswith("done\n")
        assert "counting" not in terminal.shown


@pytest.mark.further
def test_pipe_gets_nothing(tmp_path):
    with open(tmp_path / "err", "w") as err:  # noqa: PTH123
        import subprocess

        subprocess.run([sys.executable, "-c", SCRIPT], stderr=err, check=True)
    assert (tmp_path / "err").read_text() == ""
