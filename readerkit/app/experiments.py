"""Runs the programs behind sentences, on verified upstream code, rank by rank."""

from __future__ import annotations

import ast
import contextlib
import json
import os
import select
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from readerkit.app.folders import read_at_most
from readerkit.app.kept_outputs import KeptOutputs
from readerkit.app.library import Library, note_progress
from readerkit.claims.experiment import line_that_prints, program_fault, settings_of
from readerkit.claims.proof import Sentence
from readerkit.content.book import MINIS
from readerkit.errors import ReaderkitError, SourceError
from readerkit.evidence.experiment_output import Output, PrintedTwice
from readerkit.model.language import Told, unpacked
from readerkit.system.children import python
from readerkit.system.temporary import temporary_folder
from readerkit.upstreams.installed_source import installed_root
from readerkit.upstreams.on_disk import check_files, write_files

_LEFT_OUT = ("RANK", "WORLD_SIZE", "LOCAL_RANK", "MASTER_", "TORCHELASTIC", "PYTHON")
"""Of the environment: what another launcher, or the reader's Python, was told."""
_LOOPBACK = {"GLOO_SOCKET_IFNAME": "lo"} if sys.platform == "linux" else {}
HEED_S = 1.0
"""An interrupt just before a read begins is answered when the read ends: at the latest
so long after."""


@dataclass(frozen=True, slots=True)
class Experiment:
    """A program of a book."""

    name: str
    path: Path
    text: str
    ranks: int
    upstreams: tuple[str, ...]

    @property
    def file(self) -> str:
        """Where it stands in the book."""
        return f"annotations/experiments/{self.name}.py"


@dataclass(slots=True)
class Ran:
    """What one run of a program gave."""

    seconds: float = 0.0
    output: Output | None = None
    """What was printed; of a program that failed nothing."""
    figures: dict[str, Any] = field(default_factory=dict)
    error: str = ""
    """What went wrong, with its place; empty where nothing did."""
    skipped: str = ""
    """Why it cannot be run here."""


def read_experiment(library: Library, sentence: Sentence) -> Experiment:
    """Return the program of a claim.

    Raises:
        ReaderkitError: no such program, or one of another shape.
    """
    check = sentence.claim.experiment
    assert check is not None
    path = library.root / "annotations" / "experiments" / f"{check.name}.py"
    file = f"annotations/experiments/{check.name}.py"
    if not path.is_file():
        raise ReaderkitError(_at(file, Told("no such program")))
    text = read_at_most(path, library.root).decode()
    if wrong := program_fault(text, check.prints):
        raise ReaderkitError(_at(file, wrong))
    settings = settings_of(ast.parse(text))
    ranks, upstreams = settings["RANKS"], tuple(settings["UPSTREAMS"])
    return Experiment(check.name, path, text, ranks, upstreams)


class Laboratory:
    """Runs programs of one book, each among the upstreams that it names and no other.

    Megatron, for one, asks whether Transformer Engine can be imported, and goes wrong
    where its source lies in reach for another program.
    """

    def __init__(self, library: Library, folder: Path) -> None:
        self._library = library
        self._folder = folder
        self.kept = KeptOutputs(library)
        self._ready: dict[tuple[str, Path], str] = {}
        """By upstream and tree: why it cannot be run; empty where it can."""
        self._ran: dict[str, Ran] = {}
        self._runner: subprocess.Popen[str] | None = None

    def run(self, experiment: Experiment, timeout_s: float) -> Ran:
        """Return what a program prints; of two claims on one it is run once."""
        if experiment.name not in self._ran:
            self._ran[experiment.name] = self._run(experiment, timeout_s)
        return self._ran[experiment.name]

    def _run(self, experiment: Experiment, timeout_s: float) -> Ran:
        needed = ("pytorch", *experiment.upstreams)
        for name in needed if "pytorch" in self._library.book.upstreams else needed[1:]:
            if why := self._make_ready(name, self._tree(experiment)):
                return Ran(skipped=why)
        note_progress(f"running {experiment.file}")
        began = time.monotonic()
        with tempfile.TemporaryDirectory(dir=self._folder) as name:
            ended = self._ask(experiment, name, timeout_s)
        seconds = time.monotonic() - began
        if ended["fault"]:
            return Ran(seconds, error=_placed(experiment, ended))
        made_from = self.kept.made_from(experiment.name, needed, ended["minis"])
        lines = tuple(tuple(text.splitlines()) for text in ended["printed"])
        try:
            output = Output(ended["torch"], made_from, lines)
        except PrintedTwice as error:
            line = line_that_prints(experiment.text, error.figure)
            place = f"{experiment.file}:{line}"
            return Ran(seconds, error=_at(place, error.args[0]))
        if not (figures := output.figures()):
            place = f"{experiment.file}:{line_that_prints(experiment.text)}"
            none = Told("prints no figure: expected lines 'name = value'")
            return Ran(seconds, error=_at(place, none))
        return Ran(seconds, output, figures)

    def _make_ready(self, name: str, tree: Path) -> str:
        if (name, tree) not in self._ready:
            self._ready[name, tree] = self._write(name, tree)
        return self._ready[name, tree]

    def _write(self, name: str, tree: Path) -> str:
        """Write the verified files of an upstream; return why that cannot be."""
        upstream = self._library.upstream(name)
        if upstream.installed == "torch":
            root = installed_root(upstream)
            try:
                check_files(name, root, self._library.lock(upstream).files)
            except SourceError as error:
                return str(error)
            return ""
        sources = self._library.sources(upstream)
        if sources.is_absent:
            return str(upstream.not_fetched)
        write_files(tree, sources.paths, sources.read)
        return ""

    def _tree(self, experiment: Experiment) -> Path:
        """Return the folder of just those upstreams that a program names."""
        return self._folder / "upstreams" / "+".join(sorted(experiment.upstreams))

    def _ask(
        self, experiment: Experiment, folder: str, timeout_s: float
    ) -> dict[str, Any]:
        """Return how a program ended, as `mini_impls.compare.experiment` tells it."""
        known = self._library.book.upstreams
        asked = {
            "path": str(experiment.path),
            "ranks": experiment.ranks,
            "tree": str(self._tree(experiment)) if experiment.upstreams else "",
            "minis": self._own_minis(),
            "shims": any(known[name].is_pinned for name in experiment.upstreams),
            "timeout_s": timeout_s,
            "folder": folder,
        }
        if self._runner is None:
            self._runner = _start_runner(self._folder)
        stdin, stdout = self._runner.stdin, self._runner.stdout
        assert stdin is not None
        assert stdout is not None
        with contextlib.suppress(BrokenPipeError):
            print(json.dumps(asked), file=stdin, flush=True)
        while not select.select([stdout], [], [], HEED_S)[0]:
            pass
        if not (line := stdout.readline()):
            said = (self._folder / "runner.err").read_text("utf-8", "replace")
            last = said.strip().rpartition("\n")[2] or "nothing was said"
            raise ReaderkitError(
                Told("the process that runs experiments ended: {said}", said=last)
            )
        ended: dict[str, Any] = json.loads(line)
        return ended

    def _own_minis(self) -> str:
        """Return the folder of the book's minis, which its programs import."""
        known = self._library.book.upstreams.get(MINIS)
        folder = self._library.root / known.folder if known and known.folder else None
        return str(folder) if folder and folder.is_dir() else ""

    def close(self) -> None:
        """End the process that runs programs, and what they have started."""
        if self._runner is not None:
            self._runner.terminate()
            self._runner.communicate()


def _start_runner(folder: Path) -> subprocess.Popen[str]:
    around = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith(_LEFT_OUT) or name == "PYTHONPATH"
    }
    alone = {"CUDA_VISIBLE_DEVICES": "", "OMP_NUM_THREADS": "1", **_LOOPBACK}
    alone["TORCHDYNAMO_DISABLE"] = "1"  # a compiler takes longer than the program
    with (folder / "runner.err").open("wb") as errors:
        return subprocess.Popen(
            python("-m", "mini_impls.compare.experiment"),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=errors,
            text=True,
            env={**around, **alone},
        )


@contextmanager
def open_laboratory(library: Library) -> Iterator[Laboratory]:
    """Yield what runs the programs of a book; behind it no file is left."""
    with (
        temporary_folder("readerkit-prove-") as name,
        contextlib.closing(Laboratory(library, Path(name))) as laboratory,
    ):
        yield laboratory


def _placed(experiment: Experiment, ended: Mapping[str, Any]) -> str:
    place = f"{experiment.file}:{ended['line']}" if ended["line"] else experiment.file
    fault = unpacked(ended["fault"])
    if experiment.ranks == 1:
        return _at(place, fault)
    rank = ended["rank"]
    return Told("{place}: {fault} (rank {rank})", place=place, fault=fault, rank=rank)


def _at(place: str, fault: str) -> Told:
    return Told("{place}: {fault}", place=place, fault=fault)
