"""A bank: the questions of one phase, its objectives and its rules."""

from __future__ import annotations

from collections.abc import Container, Mapping
from dataclasses import dataclass, field
from dataclasses import replace as replace_fields
from functools import partial
from typing import Annotated, TypeVar

from msgspec import Meta
from msgspec.structs import replace

from readerkit.content.kind import Document, Kind
from readerkit.content.translations import (
    TranslatedBank,
    TranslatedQuestion,
    TranslatedTitle,
    english_stamp,
)
from readerkit.errors import ContentError, ContentFault
from readerkit.model.base import SOME, Count, Id, Model, Text
from readerkit.model.expression import Functions, Number
from readerkit.model.language import InBoth
from readerkit.quiz.kinds import Question
from readerkit.quiz.kinds.question import MARK
from readerkit.quiz.lockfile import QuizLock, ResolvedPlace
from readerkit.quiz.seeded_draw import SeededDraw
from readerkit.quiz.variant import Scene, Variant

BANK_FILE = "bank.yaml"


class Objective(Model, frozen=True):
    """Something a reader can do by the end, and which document asks for it."""

    id: Id
    title: Text
    source: Text


class Exam(Model, frozen=True):
    """How long an exam is."""

    count: Count
    minutes: Count | None = None


class BankRules(Model, frozen=True, rename={"pass_mark": "pass"}):
    """What a bank's own file says of it."""

    phase: Annotated[int, Meta(ge=1, le=999)]
    version: Annotated[
        Count, Meta(description="Raised when a change would alter variants.")
    ]
    """Part of every variant's seed."""
    title: Text
    pass_mark: Annotated[float, Meta(ge=0, le=1)]
    count: Count
    """Questions of a quiz where nobody says how many."""
    exam: Exam
    objectives: Annotated[tuple[Objective, ...], SOME]


T = TypeVar("T", BankRules, Objective)

BANK: Kind[BankRules] = Kind("bank", BankRules, "one")


@dataclass(frozen=True, slots=True)
class Bank:
    """Questions by id, with what is needed to ask them."""

    rules: BankRules
    objectives: Mapping[str, Objective]
    questions: Mapping[str, Question]
    file: str
    """The bank's own file, for messages."""
    functions: Functions = field(default_factory=dict)
    lock: QuizLock = field(default_factory=QuizLock)
    words: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    """By question, what to say instead of its English texts."""
    in_both: bool = False
    """Whether that is said beside them, as pages say it."""
    spanish_topics: Mapping[str, str] = field(default_factory=dict)

    def variant(
        self, question: str, seed: int, figures: Mapping[str, Number] | None = None
    ) -> Variant:
        """Return the variant that the bank's version, a question and a seed name.

        ``figures`` are the reader's own; without them others stand in.

        Raises:
            ReaderkitError: a key that does not compute or is not in the lock.
        """
        scene, draw = self.scene(question, seed, figures)
        return self.questions[question].ask(scene, draw)

    def scene(
        self, question: str, seed: int, figures: Mapping[str, Number] | None = None
    ) -> tuple[Scene, SeededDraw]:
        """Return what a variant is made from: its numbers, and what is drawn next."""
        written = self.questions[question]
        draw = SeededDraw(self.rules.version, question, seed)
        values: dict[str, Number] = {}
        for name, parameter in written.parameters.items():
            values[name] = parameter.value(draw, values, self.functions, figures)
        objective = self.objectives[written.objective].title
        words = self.words.get(question, {})
        named = (values, self.functions, self.lock, words, self.in_both)
        return Scene(written, objective, *named), draw

    def shared(self, own: Container[str] = ()) -> Bank:
        """Return it with the questions that are the same for every reader.

        Of the others those stay that ``own`` names.
        """
        asked = {
            name: question
            for name, question in self.questions.items()
            if not question.own_figures or name in own
        }
        return replace_fields(self, questions=asked)

    def in_spanish(
        self,
        questions: Mapping[str, TranslatedQuestion],
        titles: TranslatedBank,
        *,
        in_both: bool,
    ) -> Bank:
        """Return it with questions in Spanish, or in both languages.

        Titles are in both: what a title gives away is asked of each language. What has
        no Spanish is marked, or in both languages stays English.
        """
        told = partial(_told, in_both=in_both)

        def titled(of: T, spanish: TranslatedTitle) -> T:
            is_old = spanish.is_outdated(english_stamp(of, ["title"]))
            return replace(of, title=told(of.title, "" if is_old else spanish.title))

        def place(of: ResolvedPlace) -> ResolvedPlace:
            if not of.note:
                return of
            spanish = self.lock.spanish.get(of.note)
            return replace(of, title=told(of.title, spanish.title if spanish else ""))

        none = TranslatedTitle()
        return replace_fields(
            self,
            rules=titled(self.rules, titles.bank),
            objectives={
                name: titled(objective, titles.objectives.get(name, none))
                for name, objective in self.objectives.items()
            },
            lock=replace(
                self.lock,
                places={name: place(of) for name, of in self.lock.places.items()},
            ),
            words={
                name: question.spoken(questions.get(name), is_marked=not in_both)
                for name, question in self.questions.items()
            },
            in_both=in_both,
            spanish_topics=titles.topics,
        )

    def topic_title(self, topic: str) -> str:
        """Return what pages call a topic, in both languages where it has both."""
        title = topic.replace("_", " ")
        return _told(title, self.spanish_topics.get(topic, ""), in_both=True)

    def topics(self) -> list[str]:
        """Return the topics in the order of their files."""
        return list(dict.fromkeys(q.topic for q in self.questions.values()))


def _told(text: str, spanish: str, *, in_both: bool) -> str:
    if not spanish and in_both:
        return text
    return InBoth(text, spanish or MARK + text)


def parse_bank(
    head: Document[BankRules],
    topics: Mapping[str, Document[Question]],
    functions: Functions,
    lock: QuizLock,
) -> Bank:
    """Return the bank of its own file and of the files of its topics.

    Raises:
        ContentError: every fault of every file, and of one against another.
    """
    faults = [*head.faults]
    questions = [
        replace(question, topic=topic)
        for topic, document in topics.items()
        for question in document.entries.values()
    ]
    faults += [fault for each in topics.values() for fault in each.faults]
    faults += _duplicates(questions)
    if faults:
        raise ContentError(faults)
    rules = head.value
    objectives = {each.id: each for each in rules.objectives}
    unknown = [
        question.fault(
            "unknown objective",
            f"'{question.objective}'",
            f"one of {', '.join(objectives)}",
        )
        for question in questions
        if question.objective not in objectives
    ]
    if unknown:
        raise ContentError(unknown)
    by_id = {question.id: question for question in questions}
    return Bank(rules, objectives, by_id, head.file, functions, lock)


def _duplicates(questions: list[Question]) -> list[ContentFault]:
    seen: dict[str, Question] = {}
    faults = []
    for question in questions:
        first = seen.setdefault(question.id, question)
        if first is not question:
            where = f"{first.place.file}:{first.place.line}"
            got = f"'{question.id}', first at {where}"
            faults.append(question.place.fault("a duplicate id", got, "each id once"))
    return faults
