"""Every command where a caller has closed its streams, or its working folder is gone.

No command may take such a caller for a bug of its own, or leave it to a library.
"""

from __future__ import annotations

import shlex
import subprocess
import sys

import pytest

from readerkit.cli import _COMMANDS
from tests.conftest import REAL_CACHE
from tests.helpers import make_book
from tests.quick import quick_third

pytestmark = pytest.mark.sampled

ARGUMENTS = {
    "annotate": "close --book BOOK",
    "break": "ddp no-sync --predict 1",
    "budget": "ledger",
    "cache": "",
    "compare": "ddp",
    "completion": "show",
    "doctor": "--book BOOK",
    "drift": "--spans BOOK/annotations/concepts.yaml --from BOOK --to BOOK",
    "estimate": "memory --model llama-2-7b",
    "export": "--markdown FOLDER/notes.md --book BOOK",
    "fetch": "--book BOOK",
    "import": "--quotes BOOK/annotations/upstreams.yaml --book BOOK",
    "init": "FOLDER/served/sample --no-site",
    "lab": "",
    "lsp": "--book BOOK",
    "mcp": "--book BOOK",
    "note": "linear.py:14-17 --book BOOK",
    "path": "",
    "progress": "35",
    "prove": "",
    "quiz": "35",
    "rebuild": "",
    "review": "close --book BOOK",
    "run": "ddp",
    "site": "build --book BOOK --output FOLDER/site",
    "start": "--book BOOK",
}
HEAVY = ("break", "compare", "run")
"""What starts ranks: what it writes, it writes as any other."""
LIGHT = sorted(ARGUMENTS.keys() - {*HEAVY})
GONE = "mkdir gone && cd gone && rmdir ../gone && "


@pytest.fixture(autouse=True)
def at_home(tmp_path, monkeypatch):
    monkeypatch.setenv("READERKIT_DATA", str(tmp_path / "data"))
    monkeypatch.setenv("READERKIT_CACHE", str(REAL_CACHE))
    monkeypatch.setenv("EDITOR", "true")
    monkeypatch.chdir(tmp_path)


def shell(name, tmp_path, before="", after=""):
    book = make_book(tmp_path).root
    given = ARGUMENTS[name].replace("BOOK", shlex.quote(str(book)))
    given = given.replace("FOLDER", shlex.quote(str(tmp_path)))
    command = f"{shlex.quote(sys.executable)} -P -m readerkit {name} {given}"
    return subprocess.run(
        ["sh", "-c", f"{before}{command} {after}"],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )


def test_the_table_has_every_command():
    assert ARGUMENTS.keys() == _COMMANDS.keys()


@pytest.mark.parametrize("name", [*HEAVY, *quick_third(LIGHT)])
def test_a_working_folder_that_is_gone_is_one_message_at_most(name, tmp_path):
    done = shell(name, tmp_path, before=GONE)
    assert done.returncode in (0, 1, 2), done.stderr
    assert "Traceback" not in done.stderr
    assert done.stderr.count("readerkit: ") <= 1
    if name in HEAVY:
        assert "the working folder is gone" in done.stderr


@pytest.mark.parametrize("name", quick_third(LIGHT))
@pytest.mark.parametrize(
    "closed",
    [
        pytest.param("<&-", marks=pytest.mark.slow),
        pytest.param(">&-", marks=pytest.mark.slow),
        "<&- >&- 2>&-",
    ],
)
def test_a_stream_that_is_closed_is_no_bug(name, closed, tmp_path):
    done = shell(name, tmp_path, after=closed)
    assert done.returncode in (0, 1, 2), done.stderr
    assert "Traceback" not in done.stderr
