"""The labs' cloud tasks, read by SkyPilot itself where `make sky` installed it."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest

from tests.helpers import ROOT, WAIT_S

SKY = ROOT / ".venv-sky" / "bin" / "python"
READ = """\
import json, sys, sky
task = sky.Task.from_yaml(sys.argv[1])
[resources] = task.resources
print(json.dumps([task.name, resources.accelerators, resources.use_spot]))
"""

pytestmark = pytest.mark.skipif(not SKY.exists(), reason="no .venv-sky: make sky")


def read(path: Path, home: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [str(SKY), "-c", READ, str(path)],
        capture_output=True,
        text=True,
        timeout=WAIT_S,
        env={"HOME": str(home), "PATH": "/usr/bin:/bin"},
        check=False,
    )


@pytest.mark.parametrize("lab", ["02", "04"])
def test_sky_reads_the_task(lab, tmp_path):
    done = read(ROOT / "site" / "pages" / "labs" / f"{lab}.task.yaml", tmp_path)
    assert done.returncode == 0, done.stderr
    name, accelerators, spot = json.loads(done.stdout.splitlines()[-1])
    assert (name, accelerators, spot) == (f"readerkit-lab-{lab}", {"RTX4090": 2}, True)


def test_sky_reads_the_task_of_several_machines(tmp_path):
    done = read(ROOT / "mini_impls" / "machines" / "sky.yaml", tmp_path)
    assert done.returncode == 0, done.stderr
    name, accelerators, spot = json.loads(done.stdout.splitlines()[-1])
    assert (name, accelerators, spot) == ("readerkit-minis", {"RTX4090": 2}, False)


def test_sky_refuses_a_misspelt_key(tmp_path):
    task = (ROOT / "site" / "pages" / "labs" / "02.task.yaml").read_text()
    path = tmp_path / "task.yaml"
    path.write_text(task.replace("\nrun:", "\nrnu:"))
    done = read(path, tmp_path)
    assert done.returncode != 0
    assert "rnu" in done.stderr
