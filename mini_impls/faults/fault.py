"""What a fault is, and the faulty copy of a mini that it makes."""

from __future__ import annotations

import importlib.util
import sys
import textwrap
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from difflib import unified_diff
from pathlib import Path
from typing import Annotated

import mini_impls
from mini_impls.faults.works import get_module
from readerkit.anchors import Anchor, SourceFile, Span, resolve
from readerkit.content.kind import Kind
from readerkit.content.validation import read_document
from readerkit.errors import ContentError
from readerkit.model.base import SOME, Id, Model, Name, Problem, Text, UpstreamName
from readerkit.model.freshness import digest
from readerkit.wording.meant_name import choose

MINIS_ROOT = Path(mini_impls.__file__).resolve().parent.parent

HARNESS = (
    "model",
    "faults/run",
    "faults/symptoms",
    "faults/works/data_parallel",
    "faults/works/measures",
)
"""What runs every fault, and tells what it showed; beside its mini's own works."""
WORLDS = (2, 4)
"""What the models of `works` can be cut for."""


USUAL = {
    "drift": "No error, the loss falls; but the ranks' weights become different.",
    "error": "A rank raises an error in the first step.",
    "factor": "Gradients are too large by the number of ranks.",
    "first loss": "The very first loss is already another one.",
    "hang": "It hangs: some rank waits for what never comes.",
    "no descent": "The loss does not fall any more.",
    "nothing": "Nothing that can be measured changes.",
}
"""What an answer says of its symptom where the fault has no words of its own."""


class PredictedSymptom(Model, frozen=True, rename={"own_text": "text"}):
    """One answer to the question what will happen, and how a run shows it."""

    symptom: Text
    """A key of `symptoms.SYMPTOMS`: the answer is right where a run shows that."""
    own_text: Text | None = None

    @property
    def text(self) -> str:
        """Return what the answer says."""
        return self.own_text or USUAL[self.symptom]

    def problems(self) -> Iterator[Problem]:
        """Yield that it says nothing."""
        if self.own_text is None and self.symptom not in USUAL:
            yield "no text for the symptom", f"'{self.symptom}'", f"one of {[*USUAL]}"


class Guard(Model, frozen=True):
    """Upstream lines that do right what a fault does wrong."""

    upstream: UpstreamName
    at: Anchor
    note: Id | None = None
    """The annotation that says more of them."""


class Fault(Model, frozen=True):
    """Some whole lines of a mini, put wrong on purpose."""

    mini: Name
    name: Id
    title: Text
    at: Anchor
    wrong: str
    """The lines that take the place of those at the anchor."""
    work: Text
    """One of `works`: what is run with and without the fault."""
    choices: Annotated[tuple[PredictedSymptom, ...], SOME]
    why: Text
    guards: Annotated[tuple[Guard, ...], SOME]

    @property
    def key(self) -> str:
        """Return the name that no other fault has."""
        return f"{self.mini}/{self.name}"

    def made_from(self) -> dict[str, str]:
        """Return the parts that decide what a run of it shows."""
        answers = [choice.symptom for choice in self.choices]
        itself = repr((self.at, textwrap.dedent(self.wrong), self.work, answers))
        harness = *HARNESS, f"faults/works/{get_module(self.work)}"
        files = {self.at.file, *(f"mini_impls/{name}.py" for name in harness)}
        return {f"the fault {self.key}": digest(itself)} | {
            file: digest((MINIS_ROOT / file).read_bytes()) for file in sorted(files)
        }


FAULTS_FILE: Kind[Fault] = Kind("faults", Fault)


def read_faults() -> tuple[Fault, ...]:
    """Return the faults there are, mini by mini.

    Raises:
        ContentError: everything in `faults.yaml` that does not fit.
    """
    path = Path(__file__).with_name("faults.yaml")
    document = read_document(path.read_bytes(), str(path), FAULTS_FILE)
    if document.faults:
        raise ContentError(document.faults)
    return tuple(document.entries.values())


@dataclass(frozen=True, slots=True)
class Mutant:
    """A mini's source with a fault in it."""

    fault: Fault
    right: SourceFile
    span: Span
    """The lines of the right source that the fault replaces."""
    wrong_lines: tuple[str, ...]

    @classmethod
    def make(cls, fault: Fault) -> Mutant:
        """Return the mutant of the mini as it is on disk.

        Raises:
            AnchorError: the fault's anchor no longer names one place.
        """
        right = SourceFile(fault.at.file, (MINIS_ROOT / fault.at.file).read_bytes())
        span = resolve(fault.at, right)
        first = right.line(span.first)
        indent = first[: len(first) - len(first.lstrip())]
        lines = textwrap.dedent(fault.wrong).strip("\n")
        return cls(
            fault, right, span, tuple(textwrap.indent(lines, indent).splitlines())
        )

    def source(self) -> str:
        """Return the faulty file."""
        lines = self.lines()
        lines[self.span.first - 1 : self.span.last] = self.wrong_lines
        return "\n".join([*lines, ""])

    def lines(self) -> list[str]:
        """Return the lines of the right file."""
        return [self.right.line(i + 1) for i in range(len(self.right.raw_lines))]

    def diff(self) -> list[str]:
        """Return the changed lines, right and wrong, with two around them."""
        both = unified_diff(self.lines(), self.source().splitlines(), lineterm="", n=2)
        lines = list(both)[3:]  # without the two file names and the first place
        while not lines[0].strip():
            del lines[0]
        while not lines[-1].strip():
            del lines[-1]
        return lines

    def write(self, directory: Path) -> Path:
        """Write the faulty file below `directory`; return its path."""
        path = directory / self.right.path
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(self.source(), "utf-8")
        return path


def check(world_size: int) -> None:
    """Raise ValueError where the work does not fit, before any process starts."""
    if world_size not in WORLDS:
        raise ValueError(f"faults are shown on 2 or 4 ranks, not on {world_size}")


def is_imported(path: Path) -> bool:
    """Tell whether this process has the mini already that `path` is a copy of."""
    return f"mini_impls.{path.stem}" in sys.modules


def install(path: Path) -> None:
    """Let this process import a mini from `path` instead of from its own file.

    Must come before anything that imports the mini: who has the right one keeps it.
    """
    name = f"mini_impls.{path.stem}"
    if is_imported(path):
        raise RuntimeError(f"{name} is imported already: the fault would not be in use")
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    setattr(mini_impls, path.stem, module)


def find(faults: Sequence[Fault], mini: str, name: str) -> Fault:
    """Return one fault, by its name or by how it alone begins.

    Raises:
        ReaderkitError: no such fault; the message names those there are.
    """
    of_mini = {fault.name: fault for fault in faults if fault.mini == mini}
    if not of_mini:
        minis = ", ".join(dict.fromkeys(fault.mini for fault in faults))
        raise ValueError(f"{mini} has no faults: got {mini!r}, expected one of {minis}")
    return of_mini[choose(f"fault of {mini}", name, of_mini)]
