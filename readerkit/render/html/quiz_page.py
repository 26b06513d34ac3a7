"""What each quiz asks about, and how to take it."""

from __future__ import annotations

from dataclasses import dataclass

from markupsafe import Markup


@dataclass(frozen=True, slots=True)
class TopicQuestions:
    """Questions on one topic: all of them, or those that lead to a note."""

    topic: Markup
    count: int
    command: Markup
    questions: tuple[tuple[Markup, str], ...]
    """The name of each, and where it stands to answer it for oneself."""


@dataclass(frozen=True, slots=True)
class BankView:
    """The bank of one phase."""

    phase: int
    page: str
    title: Markup
    pass_mark: Markup
    questions: int
    topics: tuple[TopicQuestions, ...]
    objectives: tuple[tuple[Markup, int], ...]


@dataclass(frozen=True, slots=True)
class QuizPage:
    """All banks of the book."""

    address: str
    title: Markup
    phases: tuple[BankView, ...]
