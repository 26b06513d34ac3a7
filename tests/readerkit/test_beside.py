"""``make bench BASE=COMMIT``: the benchmarks of a commit beside those of today."""

from __future__ import annotations

import shutil
import subprocess
import sys

from tests.helpers import ROOT, git, make_repository

TABLE = """print("| what | time, ms | ratio |\\n|---|---|---|")
print("| resolve {count} anchors | {time} | {ratio} |")
print("| `--help` | 1,000.0 | not measured |")
"""


def test_rows_of_a_commit_stand_beside_those_of_today(tmp_path):
    script = "benchmarks/pages/run.py"
    before = TABLE.format(count="10,000", time="200.0", ratio="2.00")
    commit = make_repository(tmp_path, {script: before})
    (tmp_path / script).write_text(TABLE.format(count="12,000", time=150, ratio=1))
    shutil.copy(ROOT / "benchmarks/beside.py", tmp_path / "benchmarks")
    command = [sys.executable, "benchmarks/beside.py", commit, "pages", "--rounds=2"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines()[2:] == [
        "| resolve # anchors | time, ms | 200 | 150 | 0.75 |",
        "| resolve # anchors | ratio | 2 | 1 | 0.50 |",
        "| `--help` | time, ms | 1,000 | 1,000 | 1.00 |",
    ]
    assert git(tmp_path, "worktree", "list").count("\n") == 0
