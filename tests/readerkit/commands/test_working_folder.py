"""Where one stands: a folder that somebody filled is not run, one that is gone is said.

Every command that starts a process, or that imports late, is run in a folder in which
each module of a table is planted, and leaves a trace if it is imported.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.conftest import REAL_CACHE
from tests.helpers import write_files

pytestmark = pytest.mark.sampled

PLANTED = """
import os
os.close(os.open(os.environ["TRACES"] + "/{name}", os.O_CREAT | os.O_WRONLY))
raise SystemExit("imported from the working folder: {name}")
"""
MODULES = [
    *("click", "git", "jinja2", "numpy", "pip", "rich", "torch", "yaml", "filelock"),
    *("argparse", "ast", "ctypes", "json", "logging", "multiprocessing", "pickle"),
    *("random", "shutil", "signal", "socket", "sqlite3", "ssl", "subprocess"),
    *("tempfile", "threading", "traceback", "sitecustomize", "usercustomize"),
]
PACKAGES = ["mini_impls", "readerkit", "torch/distributed", "encodings"]
SCRIPT = (str(Path(sys.executable).with_name("readerkit")),)
LAB = ("--rounds", "3", "--folder", "out")
JOB = ("--gpu", "rtx-4090", "--hours", "0.01", "--lab", "02", "--confirm-price", "0.35")
HERE = {
    "start": (),
    "annotate": ("megatron", "tp-row-forward"),
    "annotate --check": (),
    "fetch": ("--source", "package"),
    "note": ("tensor_parallel/layers.py:1274-1283", "--print"),
    "run schedules": (),
    "run ddp": ("--steps", "1"),
    "compare": ("ddp", "--steps", "6"),
    "break": ("ddp", "no-sync", "--predict", "1"),
    "lab 01": ("--run", *LAB),
    "budget run": (*JOB, "--", "true"),
    "quiz lint": ("35",),
    "site build": ("--output", "out"),
    "estimate": ("memory", "--model", "llama-2-7b"),
    "progress": ("35",),
}
SLOW = {
    *("annotate --check", "compare", "break", "lab 01", "quiz lint", "site build"),
    "run ddp",
}
commands = pytest.mark.parametrize(
    "command",
    [
        pytest.param(
            (*name.split(), *rest),
            id=name,
            marks=pytest.mark.slow if name in SLOW else (),
        )
        for name, rest in HERE.items()
    ],
)


@pytest.fixture
def environment(tmp_path: Path) -> dict[str, str]:
    """A cache that holds the real upstreams, which `fetch` alone does without."""
    (tmp_path / "traces").mkdir()
    env = {k: v for k, v in os.environ.items() if k != "PYTHONPATH"}
    more = {"READERKIT_CACHE": str(REAL_CACHE), "TRACES": str(tmp_path / "traces")}
    return env | more | {"READERKIT_DATA": str(tmp_path / "data"), "PAGER": "cat"}


@pytest.fixture
def hostile(tmp_path: Path) -> Path:
    """A folder with a module of every name that somebody may want to import."""
    names = {f"{name}.py": name for name in MODULES}
    names |= {f"{name}/__init__.py": name for name in PACKAGES}
    files = {
        path: PLANTED.format(name=n.replace("/", ".")) for path, n in names.items()
    }
    files |= {"readerkit/__main__.py": PLANTED.format(name="readerkit.__main__")}
    return write_files(tmp_path / "hostile", files)


def traces(tmp_path):
    return [path.name for path in (tmp_path / "traces").iterdir()]


def run(command, environment, cwd, *, how=SCRIPT, **more):
    done = subprocess.run(
        [*how, *command],
        cwd=cwd,
        env=environment,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
        **more,
    )
    return done


def prepared(command, environment, tmp_path):
    """Return the command, with the ledger or the empty cache that it needs."""
    if command[:2] == ("budget", "run"):
        assert not run(("budget", "ledger", "--create"), environment, "/").returncode
    if command[0] == "fetch":
        environment["READERKIT_CACHE"] = str(tmp_path / "empty")
        # From a folder of wheels: none, so that pip fails at once, and offline.
        environment |= {"PIP_NO_INDEX": "1", "PIP_FIND_LINKS": str(tmp_path)}
        return (*command, "pytorch")
    return command


@commands
def test_nothing_planted_where_one_stands_is_imported(
    command, hostile, environment, tmp_path
):
    done = run(prepared(command, environment, tmp_path), environment, hostile)
    assert traces(tmp_path) == []
    assert "imported from the working folder" not in done.stdout + done.stderr
    assert done.returncode == (1 if command[0] in ("fetch", "progress") else 0)


def test_python_m_readerkit_imports_nothing_planted_either(
    hostile, environment, tmp_path
):
    for name in ("readerkit", "encodings"):  # found before a line of ours runs
        for file in (hostile / name).iterdir():
            file.unlink()
        (hostile / name).rmdir()
    how = (sys.executable, "-m", "readerkit")
    done = run(("run", "schedules"), environment, hostile, how=how)
    assert (done.returncode, done.stderr) == (0, "")
    assert traces(tmp_path) == []


def test_what_the_user_puts_on_the_path_is_there(tmp_path, environment):
    write_files(tmp_path / "mine", {"sitecustomize.py": PLANTED.format(name="mine")})
    environment["PYTHONPATH"] = str(tmp_path / "mine")
    run(("run", "schedules"), environment, "/")
    assert traces(tmp_path) == ["mine"]
