"""Every command that asks or shows, on a real terminal: ^C, ^\\, ^Z, size, hang-up."""

from __future__ import annotations

import os
import signal
import socket
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from tests.conftest import REAL_CACHE
from tests.helpers import ANNOTATIONS, make_book, run_process, write_files
from tests.terminals import READERKIT, Terminal

pytestmark = [
    pytest.mark.skipif(sys.platform != "linux", reason="watches /proc"),
    pytest.mark.sampled,
]

EDITOR = """\
#!/bin/sh
echo the editor is open
read line
echo "it read $line"
sed -i 's/title:$/title: A title/; s/^    $/    Words./' "$1"
sed -i 's/concepts: .*/concepts: [collectives]/' "$1"
"""
REAL: dict[str, str | None] = {"READERKIT_CACHE": str(REAL_CACHE)}
FIRST_STOP = ANNOTATIONS.replace("id: close", "id: tp-row-forward")


@dataclass
class Case:
    """What is typed at the shell, and how one sees that it waits for a person."""

    arguments: tuple[str, ...]
    ready: str
    finish: str = ""
    """What is typed to end it as it should end, if that takes a key."""
    code: int = 0
    """Of that end."""
    interrupted: int = 130
    environment: dict[str, str | None] = field(default_factory=dict)
    asks: bool = True
    """Whether it waits for a key, and not for its own work."""
    then: tuple[str, str] | None = None
    """What is shown after `finish`, and what is typed then."""
    redraws: bool = False
    """Whether it is a pager, which forgets keys that come before it has drawn."""
    lends: bool = False
    """Whether a pager or an editor has the terminal: ^C and ^\\ are its own."""
    outlived: bool = False
    """Whether something may go on where the command is killed, until its own limit."""


def sample(folder: Path, annotations: str = ANNOTATIONS) -> tuple[str, str]:
    return "--book", str(make_book(folder, annotations=annotations).root)


def start(folder: Path) -> Case:
    """It asks, and shows what is decided in a pager that is left with q."""
    return Case(
        ("start", *sample(folder, FIRST_STOP)),
        "Enter",
        finish="\n",
        then=("go on", "q"),
        environment={"PAGER": None, "LESS": None},
    )


def annotate(folder: Path) -> Case:
    return Case(
        ("annotate", "close", *sample(folder)),
        "go on",
        finish="q",
        environment={"PAGER": None, "LESS": "RX-Psgo on$"},
        interrupted=0,
        redraws=True,
        lends=True,
    )


def note(folder: Path) -> Case:
    write_files(folder, {"editor": EDITOR})
    (folder / "editor").chmod(0o755)
    return Case(
        ("note", "linear.py:14-17", "--kind", "note", *sample(folder)),
        "the editor is open",
        finish="x\n",
        lends=True,
        environment={"EDITOR": str(folder / "editor"), "VISUAL": None},
    )


# Without code to search, which comes in a pager.
TWO_QUESTIONS = ("quiz", "35", "--only", "ddp-no-sync-name", "--only", "tp-volume")


def quiz(folder: Path) -> Case:
    return Case((*TWO_QUESTIONS, "--seed", "1"), "> ", "q\n", environment=REAL)


def exam(folder: Path) -> Case:
    arguments = (*TWO_QUESTIONS, "--exam", "--seed", "1")
    return Case(arguments, "> ", "q\n", 130, environment=REAL)


def resume(folder: Path) -> Case:
    """What was left is offered: a question before the questions."""
    command = (*READERKIT, *TWO_QUESTIONS)
    with Terminal(*command, environment=REAL) as left:
        left.read_until("> ")
        left.type("-\n")
        left.read_until("Enter: go on")
        left.type("\n")
        left.read_until("2/")
        left.interrupt()
        assert left.close() == 130
    return Case(("quiz", "35"), "[Y/n]", "y\nq\n", environment=REAL)


def break_(folder: Path) -> Case:
    arguments = ("break", "ddp", "no-sync")
    return Case(arguments, "go on without", "\x04", 130, environment=REAL)


def budget(folder: Path) -> Case:
    environment = {"READERKIT_DATA": str(folder / "data")}
    done = run_process("budget", "ledger", "--create", environment=environment)
    assert done.code == 0, done.err
    job = ("--gpu", "rtx-4090", "--hours", "0.1", "--lab", "02")
    price = ("--confirm-price", "0.35")
    asks = ("sh", "-c", "echo the job asks; read line; echo got $line")
    command = ("budget", "run", *job, *price, "--", *asks)
    return Case(command, "the job asks", finish="x\n", outlived=True)


def serve(folder: Path) -> Case:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        port = str(listener.getsockname()[1])
    return Case(("site", "serve", "--port", port, *sample(folder)), port, "\x03", 130)


QUICK: tuple[Callable[[Path], Case], ...] = (
    start,
    annotate,
    note,
    quiz,
    exam,
    resume,
    break_,
    budget,
    serve,
)


def working(*arguments: str, ready: str) -> Case:
    return Case(arguments, ready, "\x03", 130, asks=False, environment=REAL)


def run(folder: Path) -> Case:
    return working("run", "ddp", "--steps", "10000", ready="step 1")


def compare(folder: Path) -> Case:
    return working("compare", "ddp", "--steps", "10000", ready="step 1")


def first_build(folder: Path) -> Case:
    """Of the whole book: notes are resolved by several processes."""
    return working("site", "serve", "--port", "0", ready="names in files")


def lab(folder: Path) -> Case:
    """It asks for guesses, and measures then."""
    options = ("--rounds", "10000", "--folder", str(folder))
    return Case(
        ("lab", "01", "--run", *options),
        "times one of 256 B",
        finish="2\n\n\n",
        then=("world 1, ", "\x03"),
        code=130,
        environment=REAL,
    )


def fetch(folder: Path) -> Case:
    """A server that takes the connection and says nothing."""
    listener = socket.create_server(("127.0.0.1", 0))
    silent.append(listener)
    url = f"https://127.0.0.1:{listener.getsockname()[1]}/sample"
    book = make_book(folder, url=url)
    arguments = ("fetch", "--source", "git", "--book", str(book.root))
    proxies = ("https_proxy", "HTTPS_PROXY")
    # What git starts for itself outlives a kill for as long as a server may be silent.
    anywhere = dict.fromkeys(proxies)
    return Case(arguments, "git …", "\x03", 130, environment=anywhere, outlived=True)


silent: list[socket.socket] = []
ALL = (*QUICK, fetch, run, compare, lab, first_build)
SLOW = (run, compare, lab, first_build)
cases = pytest.mark.parametrize(
    "case",
    [
        pytest.param(make, marks=pytest.mark.slow if make in SLOW else ())
        for make in ALL
    ],
    ids=lambda make: make.__name__.strip("_"),
)


@pytest.fixture(autouse=True)
def at_home(tmp_path, monkeypatch):
    monkeypatch.setenv("READERKIT_DATA", str(tmp_path / "data"))
    monkeypatch.setenv("TMPDIR", str(tmp_path / "tmp"))
    (tmp_path / "tmp").mkdir()
    yield
    while silent:
        silent.pop().close()


@contextmanager
def opened(case: Case) -> Iterator[Terminal]:
    command = (*READERKIT, *case.arguments)
    with Terminal(*command, environment=case.environment) as terminal:
        terminal.read_until(case.ready)
        if case.asks:
            terminal.wait_until_asked()
        yield terminal


@cases
@pytest.mark.further
def test_it_is_used_after_a_stop_and_in_another_window(case, tmp_path):
    made = case(tmp_path)
    with opened(made) as terminal:
        terminal.stop()
        terminal.resume()
        if made.redraws:
            terminal.read_until(made.ready)
        terminal.resize(40, 12)
        if made.redraws:
            terminal.type("r")  # less loses a change of size while it draws
            terminal.read_until(made.ready)
        terminal.type(made.finish)
        if made.then:
            terminal.read_until(made.then[0])
            terminal.type(made.then[1])
        assert terminal.close() == made.code, terminal.shown
        assert "Traceback" not in terminal.shown


@cases
def test_interrupt_ends_it_in_one_line(case, tmp_path):
    made = case(tmp_path)
    with opened(made) as terminal:
        terminal.interrupt()
        if not made.interrupted:
            terminal.read_until(made.ready)
            terminal.type(made.finish)
        assert terminal.close() == made.interrupted, terminal.shown
        assert "Traceback" not in terminal.shown
        if made.interrupted:
            assert terminal.shown.rstrip().endswith("readerkit: interrupted")


@cases
@pytest.mark.parametrize(
    ("act", "signum"),
    [
        pytest.param(Terminal.hang_up, signal.SIGHUP, id="hung up"),
        pytest.param(
            lambda terminal: os.kill(terminal.pid, signal.SIGKILL),
            signal.SIGKILL,
            id="killed",
        ),
        pytest.param(Terminal.quit, signal.SIGQUIT, id="quit", marks=pytest.mark.slow),
        pytest.param(
            lambda terminal: os.kill(terminal.pid, signal.SIGTERM),
            signal.SIGTERM,
            id="told to end",
            marks=pytest.mark.slow,
        ),
    ],
)
def test_nothing_is_left_behind(case, act, signum, tmp_path):
    made = case(tmp_path)
    if made.lends and signum != signal.SIGHUP:
        pytest.skip("what has the terminal then is the reader's own")
    if made.outlived and signum == signal.SIGKILL:
        pytest.skip("it has a limit of its own")
    with opened(made) as terminal:
        act(terminal)
        codes = {-signum, 128 + signum}
        if made.outlived:
            codes.add(128 + signal.SIGTERM)  # of the job, which was told to end
        if signum == signal.SIGHUP:
            codes.add(1)  # the last word finds no terminal to be said on
        assert terminal.close() in codes, terminal.shown
        if act is Terminal.quit:
            assert "ended by SIGQUIT" in terminal.shown
        assert "Traceback" not in terminal.shown


FIRST_WORDS = {
    "run ddp": "run ddp: importing torch",
    "compare ddp": "compare: importing torch",
    "lab 04 --run": "lab 04 --run: importing torch",
    "site build": "site: ",
    "site serve --port 0": "site: ",
    "quiz lint": "quiz",
}


@pytest.mark.parametrize("typed", FIRST_WORDS)
def test_what_takes_long_says_so_before_anything_else(typed, tmp_path):
    command = (*READERKIT, *typed.split())
    with Terminal(*command, environment=REAL, cwd=tmp_path) as terminal:
        assert "\n" not in terminal.read_until(FIRST_WORDS[typed])
        terminal.interrupt()
        assert terminal.close() == 130
