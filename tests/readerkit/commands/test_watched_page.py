"""A run that is watched, as a page of the served site."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import closing
from http.client import HTTPConnection
from pathlib import Path

import pytest

from tests.helpers import WAIT_S
from tests.readerkit.commands.test_site_http import serve

RUN = [sys.executable, "-m", "readerkit", "run", "ddp", "--watch", "--steps"]


@pytest.fixture
def page(tmp_path, monkeypatch) -> Iterator[Callable[..., str]]:
    monkeypatch.setenv("READERKIT_SCHEMES", "file")
    with serve(tmp_path) as server:

        def ask(path: str = "/-/run") -> str:
            connection = HTTPConnection("127.0.0.1", server.port, timeout=WAIT_S)
            with closing(connection):
                connection.request("GET", path)
                return connection.getresponse().read().decode()

        yield ask
        assert "Traceback" not in server.said()


def table(html: str) -> list[list[str]]:
    rows = re.findall(r"<tr>(.*?)</tr>", html)
    return [
        [re.sub("<[^>]*>", "", cell) for cell in re.findall(r"<t[hd].*?</t[hd]>", row)]
        for row in rows
    ]


def test_a_run_is_shown_while_it_goes_on_when_it_ends_and_when_it_is_killed(page):
    assert "No run has been watched yet" in page()

    done = subprocess.run([*RUN, "5"], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    shown = page("/-/run/now")
    assert "readerkit run ddp" in shown and "the run has ended" in shown
    english, *ranks = table(re.sub(r"<span[^>]*lang=.?es.*?</span>", "", shown))
    assert [row[0] for row in ranks] == ["0", "1", "all"]
    # The page says what the terminal says.
    told = done.stdout.partition("The last step that was looked at:\n")[2]
    rows = [row.split() for row in told.splitlines()[: len(ranks) + 1]]
    assert rows == [" ".join(filter(None, row)).split() for row in (english, *ranks)]
    beside = re.findall(r'<p lang="?en"?>(rank .*?)</p>', shown)
    assert beside == [line for line in told.splitlines() if re.match(r"rank \d", line)]
    marked = r'<p class="?only-es"? lang="?es"?>[^<]+</p>\s*<p lang="?en"?>rank 0 '
    assert re.search(marked, shown)

    # One process takes all steps first.
    process = subprocess.Popen([*RUN, "300"], stdout=subprocess.DEVNULL)
    try:
        _wait_until(lambda: "and it goes on" in page("/-/run/now"))
        assert page().count("<table") == 1
    finally:
        process.send_signal(signal.SIGTERM)
        process.wait(WAIT_S)
    assert "the run was broken off" in page("/-/run/now")


def test_what_is_no_table_is_none(page):
    for left in (b"", b"{", b"[]", b'{"step": "x"}', b"\0" * 2_000_000):
        Path(os.environ["READERKIT_DATA"], "watched.json").write_bytes(left)
        assert "No run has been watched yet" in page()


def _wait_until(is_so: Callable[[], bool]) -> None:
    end = time.monotonic() + WAIT_S
    while not is_so():
        assert time.monotonic() < end
        time.sleep(0.1)
