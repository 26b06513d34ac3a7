"""What several test files build: git repositories, books, runs of the command."""

from __future__ import annotations

import atexit
import io
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from dataclasses import dataclass
from functools import cache
from itertools import accumulate
from pathlib import Path
from types import FrameType

import pytest
from filelock import FileLock

from readerkit.cli import main
from readerkit.render.html.search_packing import DIGITS, ENDING
from readerkit.upstreams import Lock
from readerkit.upstreams.store import blob_id
from tests.terminals import READERKIT, WAIT_S, Terminal

ROOT = Path(__file__).resolve().parent.parent


@dataclass(frozen=True)
class Result:
    code: int
    out: str
    err: str


def run(capsys: pytest.CaptureFixture[str], *arguments: str) -> Result:
    """Run the command in this process, as ``main([...])``."""
    with pytest.raises(SystemExit) as ended:
        main(list(arguments))
    out, err = capsys.readouterr()
    return Result(int(ended.value.code or 0), out, err)


def run_typed(*arguments: str, stdin: str) -> Result:
    """Run the command in this process, with what is typed before anything is asked."""
    out, err, before = io.StringIO(), io.StringIO(), sys.stdin
    sys.stdin = io.StringIO(stdin)
    try:
        with (
            redirect_stdout(out),
            redirect_stderr(err),
            pytest.raises(SystemExit) as ended,
        ):
            main(list(arguments))
    finally:
        sys.stdin = before
    return Result(int(ended.value.code or 0), out.getvalue(), err.getvalue())


def run_unread(*arguments: str) -> Result:
    """Run the command as its own process, into a pipe that nobody reads."""
    ours, theirs = os.pipe()
    os.close(ours)
    command = [*READERKIT, *arguments]
    done = subprocess.run(command, stdout=theirs, stderr=subprocess.PIPE, text=True)
    os.close(theirs)
    return Result(done.returncode, "", done.stderr)


def run_process(
    *arguments: str,
    environment: Mapping[str, str | None] | None = None,
    cwd: Path | None = None,
    python: str = sys.executable,
    stdin: str = "",
    prefix: Sequence[str] = (),
    user: int | None = None,
) -> Result:
    """Run ``python -m readerkit`` as its own process; None removes a variable."""
    env = dict(os.environ)
    for key, value in (environment or {}).items():
        env.pop(key, None)
        if value is not None:
            env[key] = value
    done = subprocess.run(
        [*prefix, python, "-m", "readerkit", *arguments],
        env=env,
        cwd=cwd,
        user=user,
        input=stdin.encode(),
        capture_output=True,
        timeout=WAIT_S,
        check=False,
    )
    out, err = (
        done.stdout.decode(errors="replace"),
        done.stderr.decode(errors="replace"),
    )
    return Result(done.returncode, out, err)


def entered(run: Callable[[], object]) -> set[str]:
    """Return the files of the toolkit in which a function is entered meanwhile."""
    home, found = ROOT / "readerkit", set[str]()

    def note(frame: FrameType, event: str, _: object) -> None:
        if event == "call":
            found.add(frame.f_code.co_filename)

    sys.setprofile(note)
    try:
        run()
    finally:
        sys.setprofile(None)
    inside = (Path(path) for path in found if Path(path).is_relative_to(home))
    return {path.relative_to(home).as_posix() for path in inside}


def run_on_terminal(columns: int, *arguments: str, lines: int = 50) -> str:
    """Run the command on a terminal of its own and return what it wrote there."""
    with Terminal(
        *READERKIT,
        *arguments,
        columns=columns,
        lines=lines,
        environment={"PAGER": "cat"},  # nobody is there to turn a page
    ) as terminal:
        terminal.close()
        return terminal.shown


def write_files(root: Path, files: Mapping[str, str | bytes]) -> Path:
    """Write files below ``root``, folders included."""
    for name, data in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data.encode() if isinstance(data, str) else data)
    return root


def git(repository: Path, *arguments: str) -> str:
    """Run git in a test repository, with nobody's configuration."""
    env = {
        key: value for key, value in os.environ.items() if not key.startswith("GIT_")
    }
    env |= {
        "GIT_CONFIG_GLOBAL": os.devnull,
        "GIT_CONFIG_NOSYSTEM": "1",
        "GIT_AUTHOR_NAME": "Test",
        "GIT_AUTHOR_EMAIL": "test@localhost",
        "GIT_COMMITTER_NAME": "Test",
        "GIT_COMMITTER_EMAIL": "test@localhost",
        # The same files make the same commit, whenever.
        "GIT_AUTHOR_DATE": "2026-01-01T00:00:00Z",
        "GIT_COMMITTER_DATE": "2026-01-01T00:00:00Z",
    }
    done = subprocess.run(
        ["git", "-C", str(repository), *arguments],
        env=env,
        capture_output=True,
        check=True,
    )
    return done.stdout.decode().strip()


def make_repository(
    root: Path, files: Mapping[str, str | bytes], tag: str = "v1"
) -> str:
    """Make a repository with one tagged commit and return the commit's id."""
    root.mkdir(parents=True, exist_ok=True)
    if any(root.iterdir()):  # a test put something there for the commit
        write_files(root, files)
        return _commit_all(root, tag)
    made = _made(tuple(files.items()), tag)
    shutil.copytree(made, root, symlinks=True, dirs_exist_ok=True)
    return git(root, "rev-parse", "HEAD")


@cache
def _made(files: tuple[tuple[str, str | bytes], ...], tag: str) -> Path:
    """Return a repository to copy: git takes ten times as long to make one."""
    folder = Path(tempfile.mkdtemp(prefix="readerkit-test-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    _commit_all(write_files(folder, dict(files)), tag)
    return folder


def _commit_all(root: Path, tag: str) -> str:
    git(root, "init", "--quiet", "--initial-branch=main", "--template=")
    for key in ("uploadpack.allowFilter", "uploadpack.allowAnySHA1InWant"):
        git(root, "config", key, "true")
    git(root, "add", "--all")
    git(root, "commit", "--quiet", "--message=first")
    git(root, "tag", "--annotate", "--message=release", tag)
    return git(root, "rev-parse", "HEAD")


def made_once(
    factory: pytest.TempPathFactory, name: str, make: Callable[[Path], object]
) -> Path:
    """Return a folder that one of all test processes makes, for all of them to read."""
    root = factory.getbasetemp()
    if "PYTEST_XDIST_WORKER" in os.environ:
        root = root.parent
    made = root / name
    with FileLock(root / f"{name}.lock"):
        if not made.exists():
            aside = root / f"{name}.part"
            aside.mkdir()
            make(aside)
            aside.rename(made)
    return made


@contextmanager
def git_daemon(parent: Path, port: int) -> Iterator[str]:
    """Serve the repositories in ``parent`` on loopback and yield the address."""
    process = subprocess.Popen(
        [
            "git",
            "daemon",
            "--reuseaddr",
            "--export-all",
            "--listen=127.0.0.1",
            f"--port={port}",
            f"--base-path={parent}",
            str(parent),
        ],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        yield f"git://127.0.0.1:{port}"
    finally:
        process.terminate()
        process.wait(WAIT_S)


SAMPLE = '''\
"""A sample module."""

import torch


class Linear:
    def __init__(self, size):
        self.size = size

    @torch.no_grad()
    def forward(self, x):
        # multiply, then sum over the ranks
        y = x @ self.weight
        if self.sequence_parallel:
            y = reduce_scatter(y, group=self.group)
        else:
            y = all_reduce(y, group=self.group)
        return y


def step(model, batch):
    loss = model(batch)
    loss.backward()
    return loss
'''

REFERENCES = """\
- key: paper
  title: A paper
  authors: A. Author
  year: 2020
  url: https://example.org/paper
  sections: {"3": Method, "4.1": Results}
"""
CONCEPTS = """\
- {id: collectives, title: Collectives, summary: What ranks exchange.,
   pressure: coordination, layer: collective}
- {id: all-reduce, title: All-reduce, summary: Everyone gets the sum.,
   pressure: coordination, layer: collective, requires: [collectives]}
"""
ANNOTATIONS = """\
- id: close
  at: {file: lib/linear.py, symbol: Linear.forward,
       code: "if self.sequence_parallel: ..."}
  kind: citation
  title: The closing collective
  decision: One switch picks it.
  alternative: Always all-reduce.
  why: Half the bytes.
  cost: A gather later.
  references: [{key: paper, section: "3"}]
  concepts: [all-reduce]
- id: whole-step
  at: {file: lib/linear.py, symbol: step}
  kind: note
  title: One step
  text: Forward, then backward.
  concepts: [collectives]
"""


@dataclass(frozen=True)
class SampleBook:
    """A small book on a small repository, and where both are."""

    root: Path
    repository: Path
    commit: str

    def path(self, name: str) -> Path:
        return self.root / "annotations" / name


def make_book(
    folder: Path,
    *,
    files: Mapping[str, str | bytes] | None = None,
    annotations: str = ANNOTATIONS,
    url: str | None = None,
    more: Mapping[str, str | bytes] | None = None,
) -> SampleBook:
    """Make a repository ``sample`` and a book that annotates its pinned commit."""
    files = {"lib/linear.py": SAMPLE, "LICENSE": "Do as you like.\n"} | dict(
        files or {}
    )
    repository = folder / "served" / "sample"
    commit = make_repository(repository, files)
    upstreams = [
        {
            "name": "sample",
            "title": "Sample",
            "url": url or repository.as_uri(),
            "tag": "v1",
            "commit": commit,
            "include": ["lib/**/*.py"],
            "licence": {"spdx": "MIT", "path": "LICENSE", "holder": "Nobody"},
        }
    ]
    blobs = {
        path: blob_id(data.encode() if isinstance(data, str) else data)
        for path, data in files.items()
        if path.startswith("lib/") and path.endswith(".py")
    }
    root = folder / "book"
    write_files(
        root / "annotations",
        {
            "upstreams.yaml": json.dumps(upstreams),
            "references.yaml": REFERENCES,
            "concepts.yaml": CONCEPTS,
            "sample/linear.yaml": annotations,
            "sample.lock": Lock(commit, blobs).to_text(),
            **(more or {}),
        },
    )
    return SampleBook(root, repository, commit)


@contextmanager
def serving(book: SampleBook, port: int = 0) -> Iterator[int]:
    """Serve the site of a book in a process of its own, and interrupt it at the end."""
    command = ["site", "serve", "--port", str(port), "--book", str(book.root)]
    process = subprocess.Popen(
        [sys.executable, "-m", "readerkit", *command],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        assert process.stdout is not None
        place = re.search(r":(\d+)/", process.stdout.readline())
        assert place, "it did not start"
        yield int(place[1])
        process.send_signal(signal.SIGINT)
        process.communicate(timeout=WAIT_S)  # closes the pipes
        assert process.returncode == 130
    finally:
        process.kill()  # whatever failed: nothing if it has ended
        process.communicate()


def read_search_index(site: Path) -> dict[str, tuple[list[str], set[str]]]:
    """Of each page that people wrote, its entry in the search index and its words.

    Words have one stem, so each comes with all that end otherwise; none of its title.
    """
    packed = (site / "search-index.js").read_text()
    data = json.loads(packed[packed.index("(") + 1 : packed.rindex(")")])
    columns = (column.split("\n") for column in data["texts"])
    texts = [list(row) for row in zip(*columns, strict=True)]
    words: list[set[str]] = [set() for _ in texts]
    for group, said in zip(data["words"].split(), data["said"].split(), strict=True):
        stem, *endings = group.split(",")
        for number in accumulate(unpack_numbers(said)):
            words[number].update(stem + end for end in endings or [""])
    return {text[3]: (text, said) for text, said in zip(texts, words, strict=True)}


def unpack_numbers(packed: str) -> Iterator[int]:
    """Yield the numbers that the search index holds in a string."""
    high = 0
    for digit in map(DIGITS.index, packed):
        if digit < ENDING:
            yield high * ENDING + digit
            high = 0
        else:
            high = high * (len(DIGITS) - ENDING) + digit - ENDING + 1
