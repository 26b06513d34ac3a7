"""``quiz 35 --json``, killed at any moment: what it acknowledged is there, once."""

from __future__ import annotations

import json
import os
import random
import signal
import sqlite3
import subprocess
import time
from pathlib import Path

import pytest

from readerkit.quiz.history import History
from tests.conftest import REAL_CACHE
from tests.helpers import ROOT
from tests.terminals import READERKIT

KILLS = int(os.environ.get("KILLS", "60"))
COUNT = 60
ARGUMENTS = f"quiz 35 --json --new --count {COUNT} --tries 1".split()
LINES = [{"hint": True}, {"answer": "1"}, {"skip": True}]
"""Said over and over; what cannot be read is refused, and the quiz goes on."""


def said_until_killed(data: Path, seed: int, lines: int, wait_s: float) -> list[dict]:
    """Return what a quiz said in whole lines, until it was killed after so many."""
    with subprocess.Popen(
        [*READERKIT, *ARGUMENTS, "--seed", str(seed)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        env=os.environ
        | {"READERKIT_CACHE": str(REAL_CACHE), "READERKIT_DATA": str(data)},
        cwd=ROOT,
    ) as process:
        typed = "".join(json.dumps(line) + "\n" for line in LINES * (COUNT + 1))
        process.stdin.write(typed.encode())
        process.stdin.flush()
        out = b"".join(process.stdout.readline() for _ in range(lines))
        time.sleep(wait_s)
        process.kill()
        out += process.stdout.read()
    assert process.returncode == -signal.SIGKILL
    return [json.loads(line) for line in out.split(b"\n")[:-1]]


@pytest.mark.slow
def test_killed_at_random_moments_nothing_acknowledged_is_lost(tmp_path):
    dice = random.Random(20261122)
    path = tmp_path / "quiz.sqlite3"
    for seed in range(1, KILLS + 1):
        lines = dice.choice((0, 1, dice.randrange(2, 2 * COUNT)))
        wait_s = dice.uniform(0, 0.02 if lines else 0.4)
        said = said_until_killed(tmp_path, seed, lines, wait_s)
        if not said:
            continue
        history = History(path)
        session = history.session(said[0]["id"])
        assert session is not None, "what began is kept"
        recorded = [each for each in said if each["type"] == "result"]
        told = [each["position"] - 1 for each in recorded]
        rows = history.answers(session.id)
        kept = [row.position for row in rows]
        # None lost, none twice; at most one was on disk and not yet said.
        assert kept == list(range(len(kept))) and told == kept[: len(told)]
        assert len(kept) - len(told) in (0, 1)
        for row, each in zip(rows, recorded, strict=False):
            assert (row.question, round(row.credit, 4)) == (each["id"], each["credit"])
        hinted = {row.position for row in history.hints(session.id)}
        hints = {each["position"] - 1 for each in said if each["type"] == "hint"}
        assert hints <= hinted and len(hinted - hints) <= 1
        history.close()
    with sqlite3.connect(path) as file:
        assert file.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
