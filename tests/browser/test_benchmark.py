"""The benchmark of the site looks for a browser as these tests do, and cleans up."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.browser.which import NAMES, NO_BROWSER
from tests.helpers import ROOT, WAIT_S

ROW = ROOT / "benchmarks" / "site" / "one_note.py"


def descendants_of(group: int) -> list[str]:
    """Return what still runs of a session."""
    listed = ["ps", "-o", "args=", "--sid", str(group)]
    done = subprocess.run(listed, capture_output=True, text=True, check=False)
    return done.stdout.splitlines()


@pytest.mark.parametrize(
    "browser",
    [
        pytest.param(None, id="none"),
        pytest.param("#!/bin/sh\nexit 1\n", id="bad", marks=pytest.mark.slow),
    ],
)
def test_nothing_goes_on_where_no_browser_starts(browser, tmp_path, real_cache):
    if browser:
        path = tmp_path / NAMES[0]
        path.write_text(browser)
        path.chmod(0o755)
    tools = tmp_path / "tools"
    tools.mkdir()
    for name in ("git", "sh"):
        found = next(p for p in map(Path, ("/usr/bin", "/bin")) if (p / name).exists())
        (tools / name).symlink_to(found / name)
    process = subprocess.Popen(
        [sys.executable, ROW],
        env={**os.environ, "PATH": f"{tmp_path}:{tools}"},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    out, err = process.communicate(timeout=WAIT_S)
    assert descendants_of(process.pid) == []
    if browser is None:
        assert (process.returncode, err) == (0, "")
        assert out.count("\n") == 1 and NO_BROWSER in out
    else:
        assert process.returncode != 0
