"""A bank to begin with: an example of several kinds, which lint finds nothing in."""

from __future__ import annotations

import shutil
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from readerkit.app.quiz_banks import QuizBanks
from readerkit.errors import ReaderkitError, TakenError
from readerkit.quiz.bank import BANK_FILE
from readerkit.wording.next_command import typed, written

if TYPE_CHECKING:
    from readerkit.content.annotations import CitedWork
    from readerkit.content.book import Book

TOPIC_FILE = "examples.yaml"

BANK = """\
# What the quiz of phase {phase} is: its questions stand in the other files, by topic.
phase: {phase}
# Part of every variant's seed: raise it when a change would alter variants.
version: 1
title: "Phase {phase}"
pass: 0.7
count: 10
exam: {{count: 10, minutes: 20}}
objectives:
  - {{id: example-compute, title: Compute the size of a model, source: An example}}
  - {{id: example-explain, title: Say what a step of training does, source: An example}}
"""

QUESTIONS = """\
# Examples to be replaced. What each key means: quizzes/README.md of readerkit; for an
# editor: {schema}. An id never changes.

- id: example-size
  type: numeric
  objective: example-compute
  concepts: [{concept}]
  difficulty: 1
  prompt: How many GB (1e9 bytes) are {{n}} billion parameters of 2 bytes each?
  parameters: {{n: {{choose: [7, 13, 70]}}}}
  answer: {{value: 2 * n, unit: GB}}
  misconceptions:
    - {{value: 4 * n, says: Those are the 4 bytes of fp32.}}
  explanation: "{{n}} billion x 2 bytes = {{n + n}} GB."
  {link}

- id: example-parts
  type: sketch
  objective: example-compute
  concepts: [{concept}]
  difficulty: 2
  prompt: A matrix of {{h}} x {{w}} is cut over {{t}} ranks. Which shape is each part?
  parameters:
    h: {{choose: [16, 32]}}
    w: {{choose: [64, 128]}}
    t: {{choose: [2, 4]}}
  columns: [shape]
  rows:
    - {{label: by rows, cells: [{{shape: [h / t, w]}}]}}
    - {{label: by columns, cells: [{{shape: [h, w / t]}}]}}
  explanation: One dimension is divided by {{t}}, the other one stays.
  {link}

- id: example-words
  type: short
  objective: example-explain
  concepts: [{concept}]
  difficulty: 2
  prompt: What does a step of training do after its forward pass, and in which order?
  rubric:
    - says: The backward pass makes the gradients
      found: [backward|backpropagat* gradient*|grads]
    - says: The optimizer changes the weights by them
      found: [optimizer|adam|sgd weight*|parameter*]
  model: The backward pass makes the gradients. Then the optimizer changes the weights.
  traps:
    - {{text: The loss is printed.}}
    - {{text: The optimizer makes the loss and the samples are read again.}}
  explanation: The optimizer needs the gradients.
  {link}
"""

CITED = """
- id: example-gap
  type: fill
  objective: example-explain
  concepts: [{concept}]
  difficulty: 1
  prompt: "Before the next backward pass, optimizer.____() clears what was summed up."
  accept: [zero_grad]
  mistakes:
    - {{text: step, says: That changes the weights.}}
  explanation: Gradients are added to those that are there already.
  claims:
    - {{says: optimizer.zero_grad, undecided: An example without code to hold it.}}
  {link}
"""
"""What no program decides wants a work that tells it."""

WITH_NOTE = """
- id: example-order
  type: order
  objective: example-explain
  concepts: [{concept}]
  difficulty: 1
  prompt: In which order does a step of training go?
  items: [forward, backward, optimizer]
  explanation: Gradients come of the forward pass, and the optimizer needs them.
  because:
    - why: There is nothing to go back through before.
      note: {note}
      claims:
        - says: forward → backward
          undecided: An example without code to hold it.
    - why: The optimizer reads the gradients.
      note: {note}
      claims:
        - says: backward → optimizer
          undecided: An example without code to hold it.
  notes: [{note}]
  {link}

- id: example-choice
  type: single
  objective: example-explain
  concepts: [{concept}]
  difficulty: 1
  prompt: Which of these is divided among ranks that each take a part of the batch?
  options:
    - text: the samples
      right: true
      claims:
        - {{says: the samples, undecided: An example without code to hold it.}}
    - {{text: the weights, why: Each rank has all of them., note: {note}}}
    - {{text: the layers, why: That is a pipeline., note: {note}}}
  explanation: Each rank sees other samples.
  notes: [{note}]
  {link}
"""

ANNOTATIONS = {
    "upstreams.yaml": "[]  # the code bases that notes are about\n",
    "concepts.yaml": """\
- id: example-concept
  title: An example
  summary: What the questions of this book are about.
  pressure: memory
  layer: parameters
""",
    "references.yaml": """\
- key: example-work
  title: An example
  authors: A. Author
  year: 2020
  url: https://example.org/work
  sections: {}
""",
}
"""What a book needs before it may have questions; what is there is left as it is."""


def begin_bank(banks: QuizBanks, phase: int) -> list[Path]:
    """Write a bank that lint finds nothing in; return its files.

    Raises:
        TakenError: there is one.
        ReaderkitError: the book cannot be read; nothing was written.
    """
    from readerkit.app.check_quiz import lint_phase
    from readerkit.app.library import open_library
    from readerkit.upstreams.store import write_atomically

    folder = banks.folder(phase)
    if folder.exists():
        listed = typed("quiz", "list", str(phase))
        raise TakenError(f"{folder}: got a bank that is there, expected none: {listed}")
    made: list[Path] = []

    def write(path: Path, text: str) -> None:
        write_atomically(path, text.encode())
        made.append(path)

    try:
        for name, text in ANNOTATIONS.items():
            if not (path := banks.root / "annotations" / name).exists():
                write(path, text)
        examples = _examples(open_library(banks.root, quiet=True).book)
        write(folder / TOPIC_FILE, examples)
        write(folder / BANK_FILE, BANK.format(phase=phase))
        lint_phase(banks, open_library(banks.root, quiet=True), phase, update=True)
    except BaseException:
        shutil.rmtree(folder, ignore_errors=True)
        for path in made:
            path.unlink(missing_ok=True)
            with suppress(OSError):  # not empty: it was there before
                path.parent.rmdir()
        raise
    return [*made, banks.lock_path(phase)]


def _examples(book: Book) -> str:
    """Return questions about what a book has: its first concept, work and note."""
    work = next(iter(book.references.values()), None)
    note = next(iter(book.annotations), "")
    if not book.concepts or not (work or note):
        lacking = "references" if book.concepts else "concepts"
        raise ReaderkitError(
            f"annotations/{lacking}.yaml: got none, expected one for questions to name"
        )
    parts = {
        "schema": written("quiz", "lint", "--schema"),
        "concept": next(iter(book.concepts)),
        "link": _cited(work) if work else f"notes: [{note}]",
    }
    told = [
        QUESTIONS,
        *([CITED] if work else []),
        *([WITH_NOTE] if work and note else []),
    ]
    return "".join(text.format(**parts, note=note) for text in told)


def _cited(work: CitedWork) -> str:
    section = next(iter(work.sections), "")
    where = f', section: "{section}"' if section else ""
    return f"references: [{{key: {work.key}{where}}}]"
