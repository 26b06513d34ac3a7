"""A bank: the questions of one phase, its objectives and its rules."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from readerkit.content.kind import Document
from readerkit.errors import ContentError, Fault
from readerkit.expression import Functions
from readerkit.quiz.question import Question, Variant, make_variant
from readerkit.quiz.scene import Keys

BANK_FILE = "bank.yaml"


@dataclass(frozen=True, slots=True)
class Objective:
    """Something a reader can do by the end, and which document asks for it."""

    id: str
    title: str
    source: str


@dataclass(frozen=True, slots=True)
class Bank:
    """Questions by id, with what is needed to ask them."""

    phase: int
    version: int
    """Part of every variant's seed."""
    title: str
    pass_mark: float
    count: int
    """Questions of a quiz where nobody says how many."""
    exam_count: int
    exam_minutes: int | None
    objectives: Mapping[str, Objective]
    questions: Mapping[str, Question]
    file: str
    """The bank's own file, for messages."""
    functions: Functions = field(default_factory=dict)
    keys: Keys = field(default_factory=Keys)

    def variant(self, question: str, seed: int) -> Variant:
        """Return one variant of a question.

        Raises:
            ReaderkitError: a key that does not compute or is not in the lock.
        """
        return make_variant(
            self.questions[question],
            version=self.version,
            seed=seed,
            functions=self.functions,
            keys=self.keys,
        )

    def topics(self) -> list[str]:
        """Return the topics in the order of their files."""
        return list(dict.fromkeys(q.topic for q in self.questions.values()))


def parse_bank(
    documents: Iterable[tuple[str, Document[Any]]], functions: Functions, keys: Keys
) -> Bank:
    """Return the bank of a folder's documents, each with its file's name.

    Raises:
        ContentError: every fault of every file, and of one against another.
    """
    faults: list[Fault] = []
    head: Document[Any] | None = None
    questions: list[Question] = []
    for name, document in documents:
        faults += document.faults
        if name == BANK_FILE:
            head = document
            continue
        for path in document.entries:
            try:
                topic = name.removesuffix(".yaml")
                questions.append(Question.parse(document, path, topic))
            except ContentError as error:
                faults += error.faults
    if head is None:
        raise ContentError([Fault(BANK_FILE, 1, 1, "missing", "", "a bank's own file")])
    faults += _duplicates(questions)
    if faults:
        raise ContentError(faults)
    return _bank(head, questions, functions, keys)


def _bank(
    head: Document[Any], questions: list[Question], functions: Functions, keys: Keys
) -> Bank:
    value = head.value
    objectives = {each["id"]: Objective(**each) for each in value["objectives"]}
    unknown = [
        question.where.fault(
            f"{question.id}: unknown objective",
            f"'{question.objective}'",
            f"one of {', '.join(objectives)}",
        )
        for question in questions
        if question.objective not in objectives
    ]
    if unknown:
        raise ContentError(unknown)
    return Bank(
        phase=value["phase"],
        version=value["version"],
        title=value["title"],
        pass_mark=value["pass"],
        count=value["count"],
        exam_count=value["exam"]["count"],
        exam_minutes=value["exam"].get("minutes"),
        objectives=objectives,
        questions={question.id: question for question in questions},
        file=head.file,
        functions=functions,
        keys=keys,
    )


def _duplicates(questions: list[Question]) -> list[Fault]:
    seen: dict[str, Question] = {}
    faults = []
    for question in questions:
        first = seen.setdefault(question.id, question)
        if first is not question:
            got = f"'{question.id}', first at {first.where.line}"
            faults.append(question.where.fault("a duplicate id", got, "each id once"))
    return faults
