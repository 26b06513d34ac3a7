"""A small bank with a question of each type, and what its anchors would resolve to."""

from __future__ import annotations

from readerkit.content.validation import read_document
from readerkit.model.statement import Statement
from readerkit.quiz.bank import BANK as BANK_KIND
from readerkit.quiz.bank import Bank, parse_bank
from readerkit.quiz.kinds import QUESTIONS as QUESTION_KIND
from readerkit.quiz.lockfile import QuizLock, ResolvedPlace, Work

BANK = """\
phase: 7
version: 1
title: A sample
pass: 0.7
count: 4
exam: {count: 3, minutes: 10}
objectives:
  - {id: one, title: The first, source: Nowhere}
  - {id: two, title: The second, source: Nowhere}
"""
QUESTIONS = """\
- id: pick
  type: single
  objective: one
  concepts: [c]
  difficulty: 1
  prompt: "Which of these for {n} ranks?"
  parameters: {n: {choose: [2, 4]}}
  options:
    - text: "a reduction over {n}"
      right: true
      claims: [{says: a reduction, PROVED}]
    - {text: a copy, why: Nothing is summed., note: close}
    - text: a barrier
      why: It sends nothing.
      at: {upstream: minis, file: m.py, symbol: f}
  explanation: Because of {n}.
  notes: [close]
- id: several
  type: multiple
  objective: one
  concepts: [c]
  difficulty: 2
  prompt: Which two send something?
  options:
    - {text: send, right: true, why: One sends., note: close,
       claims: [{says: send, PROVED}]}
    - {text: broadcast, right: true, why: All get it., note: close,
       claims: [{says: broadcast, PROVED}]}
    - {text: view, why: A view is local., note: close}
    - {text: reshape, why: Local too., note: close}
  explanation: Two do.
  notes: [close]
- id: bytes
  type: numeric
  objective: two
  concepts: [c]
  difficulty: 1
  prompt: "{p} billion parameters at 16 bytes: how many GB?"
  parameters: {p: {choose: [7, 7]}}
  answer: {value: 16 * p, unit: GB}
  misconceptions:
    - {value: 12 * p, says: "The master copy of {4 * p} GB is missing."}
  explanation: "{16 * p} GB."
  references: [{key: paper, section: "3"}]
- id: steps
  type: order
  objective: two
  concepts: [c]
  difficulty: 1
  prompt: Put them in order.
  items: [forward, loss, backward, step]
  because:
    - {why: Of outputs., note: close, claims: [{says: forward → loss, PROVED}]}
    - {why: It starts there., note: close, claims: [{says: loss → backward, PROVED}]}
    - {why: It reads them., note: close, claims: [{says: backward → step, PROVED}]}
  explanation: So it goes.
  notes: [close]
- id: pairs
  type: match
  objective: two
  concepts: [c]
  difficulty: 1
  prompt: Match them.
  pairs:
    - {left: sum for all, right: all-reduce, why: It adds., note: close,
       claims: [{says: for all — all-reduce, PROVED}]}
    - {left: slices for all, right: all-gather, why: It joins., note: close,
       claims: [{says: for all — all-gather, PROVED}]}
    - {left: one to all, right: broadcast, why: It copies., note: close,
       claims: [{says: to all — broadcast, PROVED}]}
  spare: [{text: send, why: It has one receiver., note: close}]
  explanation: By their names.
  notes: [close]
- id: gap
  type: fill
  objective: one
  concepts: [c]
  difficulty: 1
  prompt: "with ddp.____():"
  accept: [no_sync]
  mistakes: [{text: no_grad, says: That drops gradients.}]
  explanation: It is.
  claims: [{says: "ddp.no_sync():", PROVED}]
  notes: [close]
- id: line
  type: locate
  objective: two
  concepts: [c]
  difficulty: 2
  prompt: Where is it?
  at: {upstream: sample, file: a.py, symbol: f, code: "g(...)"}
  mistakes:
    - at: {upstream: sample, file: a.py, symbol: f, code: "h(...)"}
      why: It calls another.
    - at: {upstream: sample, file: a.py, symbol: f, code: "k(...)"}
      why: It comes after.
  explanation: There.
  notes: [close]
- id: row
  type: predict
  objective: one
  concepts: [c]
  difficulty: 3
  prompt: "{p} stages, {m} microbatches, rank 0: the first three steps?"
  parameters: {p: {choose: [2, 2]}, m: {choose: [4, 4]}}
  from: {schedule: 1f1b, ranks: p, microbatches: m, rank: 0, give: row, take: 3}
  mistakes:
    - from: {schedule: gpipe, ranks: p, microbatches: m, rank: 0, give: row, take: 3}
      why: That is another schedule.
      note: close
  explanation: Warm-up first.
  notes: [close]
- id: grid
  type: sketch
  objective: one
  concepts: [c]
  difficulty: 2
  prompt: "Hidden {h}, {t} ranks?"
  parameters: {h: {choose: [8, 8]}, t: {choose: [2, 2]}}
  columns: [cut, shape]
  words: [column, row]
  rows:
    - {label: up, cells: [{word: column}, {shape: [4 * h / t, h]}],
       why: Its outputs are cut., note: close,
       claims: [{says: "up: column", PROVED}]}
    - {label: down, cells: [{word: row}, {shape: [h, 4 * h / t]}],
       why: Its inputs are cut., note: close,
       claims: [{says: "down: row", PROVED}]}
  explanation: In pairs.
  notes: [close]
- id: essay
  type: short
  objective: two
  concepts: [c]
  difficulty: 2
  prompt: Why?
  rubric:
    - {says: one reason, found: [bounded|constant bytes !not]}
    - {says: another reason, found: [latency grow*], denied: [latency constant]}
  model: Bytes are bounded. The latency grows.
  traps:
    - {text: Because it is fast.}
    - {text: "The latency is constant, as bytes are bounded.", makes: [1]}
  explanation: Both.
  notes: [close]
""".replace("PROVED", "default: {file: a.py, of: F, is: 1}")
LOCK = QuizLock(
    {
        "note:close": ResolvedPlace(
            "sample", "a.py", 3, 5, "b" * 40, "close", "It closes"
        ),
        "pick/option/3": ResolvedPlace("minis", "m.py", 1, 2),
        "line/mistake/1": ResolvedPlace("sample", "a.py", 11, 11, "b" * 40),
        "line/mistake/2": ResolvedPlace("sample", "a.py", 15, 15, "b" * 40),
        "line/key": ResolvedPlace("sample", "a.py", 12, 13, "b" * 40),
        "line/within": ResolvedPlace("sample", "a.py", 10, 20, "b" * 40),
    },
    {},
    {"paper": Work("A paper", "A. Author", 2020, "https://example.org/paper")},
    {
        "line": (
            Statement(10, 10, "defines", "f"),
            Statement(11, 11, "calls", by="h"),
            Statement(12, 13, "calls", by="g"),
            Statement(14, 14, "comment"),
            Statement(15, 16, "assigns", "x", "k"),
            Statement(17, 20, "returns"),
        )
    },
)


def documents(questions: str = QUESTIONS, bank: str = BANK, name: str = "all.yaml"):
    head = read_document(bank.encode(), "quizzes/7/bank.yaml", BANK_KIND)
    topic = read_document(questions.encode(), f"quizzes/7/{name}", QUESTION_KIND)
    return head, {name.removesuffix(".yaml"): topic}


def sample_bank(questions: str = QUESTIONS, lock: QuizLock = LOCK, **functions) -> Bank:
    return parse_bank(*documents(questions), functions, lock)


def asked(name: str, seed: int = 0, questions: str = QUESTIONS):
    """Return a question of the sample as it is asked."""
    return sample_bank(questions).variant(name, seed)


def only(name: str) -> str:
    """Return the question of this name alone, as it is written."""
    each = QUESTIONS.split("- id: ")
    [text] = [text for text in each if text.startswith(f"{name}\n")]
    return f"- id: {text}"
