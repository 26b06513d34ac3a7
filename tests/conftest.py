"""What holds for every test: own cache and data folders, no network but loopback."""

from __future__ import annotations

import gc
import os
import signal
import socket
from collections import Counter
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from hypothesis import settings

from readerkit.app import page_estimates_script, published_runs
from readerkit.app.folders import cache_folder
from readerkit.content import validation
from readerkit.content.kind import Document, E, Kind
from readerkit.upstreams import git_commands, package_source

# Where ``make test`` put the real upstreams before pytest started.
REAL_CACHE = cache_folder()
# What may be set where the tests are started. Output that no buffer holds would hide
# what becomes of the rest of it when a process ends.
CONFIGURATION = ("READERKIT_BOOK", "PYTHONUNBUFFERED")
# Servers and repositories of tests are on this machine; for fixtures of a session, too.
os.environ["READERKIT_SCHEMES"] = "file git http"
_connect = socket.socket.connect
_read_document = validation.read_document
_READ: dict[tuple[Kind[Any], str, bytes], dict[Any, Any]] = {}
SAMPLED = 4
"""Of as many cases of a test that is marked so, `make test` runs the first."""
WORTH_KEEPING = 2_000
"""Bytes of a file: the shipped book's are larger, those that a test writes smaller."""

# The same cases in every run, and no promise of how soon on a crowded machine.
settings.register_profile("suite", deadline=None, derandomize=True)
settings.load_profile("suite")

# A suite that was started with signals ignored (nohup, `make test &` in a script) would
# hand that on to every process it starts. A handler is not inherited; the suite itself
# goes on without heeding them, but for SIGINT: a script has it ignored by all that it
# starts behind itself, and who sends it means to stop the suite.
for _signum in (signal.SIGINT, signal.SIGQUIT, signal.SIGHUP, signal.SIGTERM):
    if signal.getsignal(_signum) is signal.SIG_IGN:
        stops = _signum == signal.SIGINT
        signal.signal(_signum, signal.default_int_handler if stops else lambda *_: None)


def _read_once(data: bytes, file: str, kind: Kind[E]) -> Document[E]:
    """Return a document as one that was parsed before: the same bytes, name and kind.

    Each test has a cache of its own, so nearly each would parse the shipped book anew.
    Entries are frozen; what has faults is read again.
    """
    key = kind, file, data
    if key in _READ:
        return Document(file, data, dict(_READ[key]))
    document = _read_document(data, file, kind)
    if len(data) > WORTH_KEEPING and not document.faults:
        _READ[key] = dict(document.entries)
    return document


@cache
def _translated_once(translate: Any = page_estimates_script.translate) -> str:
    """Return the script of the estimates' page, which no test's cache has yet."""
    text: str = translate(
        page_estimates_script.ENTRIES,
        page_estimates_script._source,
        page_estimates_script.METHODS,
    )
    return text


# Before any module takes it by its name.
validation.read_document = _read_once
page_estimates_script.translate = lambda *_: _translated_once()
published_runs.compare = cache(published_runs.compare)  # two searches for each run
# To run anything between fork and exec, the kernel copies the page tables of a process
# of tests, which holds a gigabyte. That git ends with whoever waits for it is tested on
# processes of the command, which this leaves alone.
for _room in (git_commands, package_source):
    pytest.MonkeyPatch().setattr(_room, "end_with_parent", None)


@pytest.hookimpl(tryfirst=True)  # before -m chooses
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Leave three of four cases of a sampled test to ``make further``; set the order.

    One process builds the site first, others run meanwhile what needs none.
    """
    cases: Counter[str] = Counter()
    for each in items:
        test = each.nodeid.partition("[")[0]
        if each.get_closest_marker("sampled") and not each.get_closest_marker("slow"):
            if cases[test] % SAMPLED:
                each.add_marker(pytest.mark.further)
            cases[test] += 1
    here = Path(__file__).parent
    first, ranks = here / "browser" / "test_beside.py", here / "mini_impls"
    items.sort(
        key=lambda each: (each.path != first, not each.path.is_relative_to(ranks))
    )


def pytest_collection_finish() -> None:
    """Let Python look for garbage seldom, and never among all the tests: they stay.

    A tenth of a worker's time went into it.
    """
    gc.collect()
    gc.freeze()
    gc.set_threshold(100_000, 50, 100)


def _loopback_only(self: socket.socket, address: object) -> None:
    host = address[0] if isinstance(address, tuple) else ""
    if self.family in (socket.AF_INET, socket.AF_INET6) and not (
        str(host).startswith("127.") or host in ("::1", "localhost")
    ):
        raise AssertionError(f"a test reached out to {address}")
    _connect(self, address)


@pytest.fixture(autouse=True)
def own_folders(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest
) -> None:
    """Give each test empty folders, and nobody's configuration."""
    monkeypatch.setenv("READERKIT_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("READERKIT_DATA", str(tmp_path / "data"))
    for name in list(os.environ):
        if name.startswith("GIT_") or name in CONFIGURATION:
            monkeypatch.delenv(name)
    monkeypatch.setenv("COLUMNS", "120")
    if request.node.get_closest_marker("network") is None:
        monkeypatch.setattr(socket.socket, "connect", _loopback_only)
        # Child processes (pip, git over https) fail at once instead of reaching out.
        for name in ("http_proxy", "https_proxy", "HTTP_PROXY", "HTTPS_PROXY"):
            monkeypatch.setenv(name, "http://127.0.0.1:9")
        # pip would ask five times more and wait eight seconds; its first pause is none.
        monkeypatch.setenv("PIP_RETRIES", "1")


@pytest.fixture
def real_cache(monkeypatch: pytest.MonkeyPatch) -> Path:
    """The cache with the real upstreams; for tests of content and of the whole."""
    monkeypatch.setenv("READERKIT_CACHE", str(REAL_CACHE))
    return REAL_CACHE


@pytest.fixture
def own_memory(
    real_cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The real upstreams, and what was parsed of a book remembered for this test alone.

    What is remembered of a book is what its latest command read, in any process.
    """
    cache = tmp_path / "cache"
    cache.mkdir()
    for name in ("blobs", "served"):
        (cache / name).symlink_to(real_cache / name)
    monkeypatch.setenv("READERKIT_CACHE", str(cache))


@pytest.fixture
def free_port() -> int:
    """A port on loopback that nobody listens on."""
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return int(listener.getsockname()[1])
