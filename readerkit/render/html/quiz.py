"""The quiz as pages show it: to check oneself, and turn by turn where it is served.

Templates read the messages of the quiz; here they get what only the site knows: the
page, the note and the code that a place leads to.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from readerkit.anchors import Span
from readerkit.model import addresses
from readerkit.quiz.messages import (
    CitedLines,
    DoneResult,
    LocatePrompt,
    MarkedAnswer,
    NextNote,
    Prompt,
    QuotedWork,
    Score,
    Share,
    Solved,
    TryResult,
)
from readerkit.quiz.variant import Variant
from readerkit.render.html.excerpt import Excerpt, excerpt
from readerkit.render.html.file_page import rights_of
from readerkit.render.html.site_model import Context, SiteModel
from readerkit.render.html.tree_page import upstreams_shown

_MAX_SHOWN_LINES = 8
"""Of the code behind a mistake; the linked page has all of it."""


@dataclass(frozen=True, slots=True)
class PlaceView:
    """Lines that a question leads to."""

    text: str
    page: str
    """Of this site; empty where it does not show the file."""
    title: str
    """Of the note on them; empty where there is none."""
    code: Excerpt | None = None


@dataclass(frozen=True, slots=True)
class QuestionView:
    """A question before it is answered."""

    asked: Prompt
    search: PlaceView | None
    """The code in which a line is to be found, without links that tell where."""


@dataclass(frozen=True, slots=True)
class SolutionView:
    """What is told once a question is done."""

    told: Solved
    places: tuple[PlaceView, ...]
    works: tuple[tuple[QuotedWork, bool], ...]
    """What it cites, and whether the site has that in its list."""


@dataclass(frozen=True, slots=True)
class Offer:
    """What may be begun, and what was left."""

    topics: tuple[str, ...]
    count: int
    exam: str
    left: str = ""
    """The session to go on with; empty where there is none."""
    answered: int = 0
    of: int = 0
    mastery: Mapping[str, Share] = field(default_factory=dict)
    """Points by topic."""


@dataclass(frozen=True, slots=True)
class Feedback:
    """What an answer earned."""

    prompt: str
    answer: str
    """Empty where the question was skipped."""
    result: TryResult
    remarks: tuple[tuple[str, PlaceView | None], ...]
    """Each with the lines that bear it out."""
    solution: SolutionView | None
    """None while there is another try."""


@dataclass(frozen=True, slots=True)
class QuizResult:
    """The end of a quiz."""

    score: Score
    read_next: tuple[tuple[str, str], ...]
    """Page of a note, and its title."""
    marked: tuple[tuple[MarkedAnswer, SolutionView], ...]
    """The questions of an exam."""


@dataclass(frozen=True, slots=True)
class Turn:
    """What the page shows now."""

    session: str = ""
    position: int = 0
    of: int = 0
    attempt: int = 0
    minutes_left: str = ""
    notice: str = ""
    given: tuple[str, ...] = ()
    """An answer that was wrong or could not be read, to be mended."""
    offer: Offer | None = None
    feedback: Feedback | None = None
    question: QuestionView | None = None
    result: QuizResult | None = None

    @property
    def is_mended(self) -> bool:
        """Whether the question is asked again: wrong, or not to be read."""
        return self.question is not None and (self.attempt > 1 or bool(self.given))


@dataclass(frozen=True, slots=True)
class QuizPage:
    """Shows questions on the page of one phase."""

    model: SiteModel
    phase: int

    @property
    def address(self) -> str:
        """Where the page stands."""
        return addresses.quiz_page(self.phase)

    def checks(self, title: str, variants: Iterable[Variant]) -> Context:
        """Return the page itself: every question, its solution behind a disclosure.

        On a served site a script puts the quiz itself in front of them.
        """
        topics: dict[str, list[tuple[QuestionView, SolutionView]]] = {}
        for each in variants:
            check = self.question(each.prompt), self.solution(each.told)
            topics.setdefault(each.prompt.topic, []).append(check)
        return {
            "title": title,
            "phase": self.phase,
            "topics": list(topics.items()),
            # A served quiz shows lines of any of them, after a wrong answer.
            "rights": rights_of(self.model, upstreams_shown(self.model)),
        }

    def question(self, asked: Prompt) -> QuestionView:
        """Return a question before it is answered."""
        if not isinstance(asked, LocatePrompt):
            return QuestionView(asked, None)
        return QuestionView(asked, self.place(asked.search, lines=None))

    def solution(self, told: Solved) -> SolutionView:
        """Return what is told of a question that is done."""
        places = tuple(self.place(each) for each in told.links)
        known = self.model.book.references
        works = tuple((each, each.key in known) for each in told.references)
        return SolutionView(told, places, works)

    def feedback(self, prompt: str, answer: str, result: TryResult) -> Feedback:
        """Return what an answer earned, a few of the lines beside each remark."""
        remarks = [(each.text, self._shown(each.place)) for each in result.remarks]
        solution = self.solution(result) if isinstance(result, DoneResult) else None
        return Feedback(prompt, answer, result, tuple(remarks), solution)

    def result(self, score: Score) -> QuizResult:
        """Return the end of a quiz; of an exam with every answer."""
        marked = score.marked or ()
        return QuizResult(
            score,
            tuple(map(self._next, score.read_next)),
            tuple((answer, self.solution(answer)) for answer in marked),
        )

    def _shown(self, place: CitedLines | None) -> PlaceView | None:
        return self.place(place, lines=_MAX_SHOWN_LINES) if place else None

    def _next(self, each: NextNote) -> tuple[str, str]:
        note = self.model.notes.get(each.note)
        if note is None:
            return "", each.title
        page = addresses.source_page(note.annotation.upstream, note.span.path)
        return f"{page}#{each.note}", each.title

    def place(self, lines_of: CitedLines, *, lines: int | None = 0) -> PlaceView:
        """Return lines that the quiz names, with so many of them; all where None."""
        upstream, note = lines_of.upstream, lines_of.note
        span = Span(lines_of.path, lines_of.first, lines_of.last)
        page, code = "", None
        if self._is_shown(lines_of):
            page = f"{addresses.source_page(upstream, span.path)}#"
            is_ours = note in self.model.notes
            page += note if is_ours else f"L{span.first}-L{span.last}"
            if lines != 0:
                code = excerpt(
                    self.model,
                    upstream,
                    span,
                    self.address,
                    limit=lines,
                    is_linked=bool(lines),
                )
        return PlaceView(str(span), page, lines_of.title, code)

    def _is_shown(self, place: CitedLines) -> bool:
        """Whether the site shows these very lines: the bytes that were locked.

        The minis have no blob: they are read as they stand.
        """
        sheet = self.model.sheets.get((place.upstream, place.path))
        lock = self.model.book.locks.get(place.upstream)
        same = not place.blob or (
            lock is not None and lock.files.get(place.path) == place.blob
        )
        return sheet is not None and same and place.last <= len(sheet.drawn.lines)
