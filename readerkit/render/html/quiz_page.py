"""What each quiz asks about, and how to take it."""

from __future__ import annotations

import re
from dataclasses import dataclass

_PARAMETER = re.compile(r"\{[^{}]*\}")
"""Of a question: each variant has its own value there."""


@dataclass(frozen=True, slots=True)
class TopicQuestions:
    """Questions on one topic: all of them, or those that lead to a note."""

    page: str
    name: str
    """Of its file."""
    topic: str
    """As it is shown."""
    count: int
    command: str
    questions: tuple[tuple[str, str], ...]
    """The name of each, and where it stands to answer it for oneself."""
    prompts: tuple[tuple[str, str], ...] = ()
    """What each asks, in English and Spanish."""


@dataclass(frozen=True, slots=True)
class BankView:
    """The bank of one phase."""

    phase: int
    page: str
    title: str
    pass_mark: str
    questions: int
    topics: tuple[TopicQuestions, ...]
    objectives: tuple[tuple[str, int], ...]
    own: tuple[tuple[str, int, str], ...]
    """Topics on the reader's own figures, which a page has not: how many, how asked."""


def begun(prompt: str) -> str:
    """Return what a question asks as far as a line of a list shows it.

    >>> begun("How many bytes has `{n}`?")
    'How many bytes has …?'
    """
    text = _PARAMETER.sub("…", prompt.replace("`", ""))
    return text if len(text) < 84 else text[:76].rpartition(" ")[0] + " …"
