"""The quiz as pages show it: to check oneself, and turn by turn where it is served.

Templates read the messages of the quiz, and ask ``QuizPage`` for what only the site
knows: the page, the note and the code that a place leads to.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from readerkit.anchors import Span
from readerkit.model import addresses
from readerkit.model.language import InBoth
from readerkit.quiz.hints import OfferedHint, hints
from readerkit.quiz.messages import (
    NextNote,
    Remark,
    Score,
    Share,
    Solution,
    TextFinding,
    TryResult,
)
from readerkit.quiz.page_key import Asked, PageKey
from readerkit.quiz.prompts import CitedLines, PredictPrompt, Prompt, QuotedWork
from readerkit.render.html.escape import shown
from readerkit.render.html.excerpt import Excerpt, excerpt
from readerkit.render.html.file_page import proofs_of, rights_of
from readerkit.render.html.notes import note_title
from readerkit.render.html.proved import Passage, passages
from readerkit.render.html.quiz_page import BankView, TopicQuestions
from readerkit.render.html.schedule_chart import Chart, schedule_chart
from readerkit.render.html.site_model import Context, SiteModel
from readerkit.render.html.tree_page import upstreams_shown
from readerkit.render.html.words import Text


@dataclass(frozen=True, slots=True)
class PlaceView:
    """Lines that a question leads to."""

    text: str
    page: str
    """Of this site; empty where it does not show the file."""
    title: Text | None
    """Of the note on them; None where there is none."""
    code: Excerpt | None = None


@dataclass(frozen=True, slots=True)
class Check:
    """One variant of a question, to answer on a page without a server."""

    seed: int
    prompt: Prompt
    told: Solution
    key: str
    """By which the page marks it; empty where it cannot."""
    remarks: Sequence[Remark]
    """What may be said to an answer, to any variant."""
    hints: Sequence[OfferedHint]
    """None where the page cannot mark it."""

    @property
    def is_translated(self) -> bool:
        """Whether its texts are in the other language too, and of this English."""
        own = (self.prompt.prompt, self.told.explanation)
        return all(isinstance(text, InBoth) for text in own)


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
    """A question, the answer to it, and what that earned."""

    prompt: str
    answer: str
    """Empty where the question was skipped."""
    result: TryResult


@dataclass(frozen=True, slots=True)
class Turn:
    """What the page shows now."""

    show: QuizPage | None = None
    session: str = ""
    position: int = 0
    of: int = 0
    attempt: int = 0
    minutes_left: str = ""
    notice: str = ""
    rules: tuple[str, ...] = ()
    """Of an exam that begins."""
    given: tuple[str, ...] = ()
    """An answer that was wrong or could not be read, to be mended."""
    offer: Offer | None = None
    feedback: Feedback | None = None
    question: Prompt | None = None
    finding: TextFinding | None = None
    """In a text to write: before it is kept, its reader may correct it."""
    score: Score | None = None

    @property
    def is_mended(self) -> bool:
        """Whether the question is asked again: wrong, or not to be read."""
        return self.question is not None and (self.attempt > 1 or bool(self.given))


@dataclass(frozen=True, slots=True)
class QuizPage:
    """What the page of one phase knows of the site around it."""

    model: SiteModel
    phase: int

    address: str = ""
    """Where it stands; the page of the phase where it says none."""

    def __post_init__(self) -> None:
        """Fill in the page of the phase."""
        if not self.address:
            object.__setattr__(self, "address", addresses.quiz_page(self.phase))

    def topic(self, name: str) -> str:
        """Return what a topic is called, in both languages where it has both."""
        leading = (each for row in self.model.asked.values() for each in row)
        titles = (each.topic for each in leading if each.name == name)
        return next(titles, name.replace("_", " "))

    def overview(self, bank: BankView) -> Context:
        """Return the page of the phase: its topics, and on a served site the quiz."""
        return {
            "title": bank.title,
            "bank": bank,
            "phase": self.phase,
            # A served quiz shows lines of any of them, after a wrong answer.
            "rights": rights_of(self.model, upstreams_shown(self.model)),
        }

    def questions(
        self, topic: TopicQuestions, asked: Sequence[Sequence[Asked]]
    ) -> Context:
        """Return the page of a topic: variants of each question, marked on the page."""
        return {
            "title": topic.topic,
            "topic": topic,
            "phase": self.phase,
            "back": addresses.quiz_page(self.phase),
            "show": self,
            "is_own": any(each.figures for row in asked for each in row),
            "questions": [self.checks(row) for row in asked],
            "proofs": {name: self.proofs(name) for name, _ in topic.questions},
            "rights": rights_of(self.model, upstreams_shown(self.model)),
        }

    def checks(self, variants: Sequence[Asked]) -> list[Check]:
        """Return the variants of a question, each with what marks it on the page."""
        remarks: list[Remark] = []
        found = []
        for asked in variants:
            key, variant = PageKey.of(asked, remarks), asked.variant
            folded = key.folded(self.model.words.in_spanish) if key.table else ""
            seed, prompt, told = asked.seed, variant.prompt, variant.told
            offered = tuple(hints(variant)) if folded else ()
            found.append(Check(seed, prompt, told, folded, remarks, offered))
        return found

    def proofs(self, question: str) -> tuple[Passage, ...]:
        """Return what proves a question's key, without code: the way to it."""
        found = proofs_of(self.model, question, max_lines=0)
        return passages([replace(each, program="") for each in found], question, ())

    def drawn(self, asked: Prompt, name: str) -> Chart | None:
        """Return the whole schedule of whose row a question asks."""
        if not isinstance(asked, PredictPrompt) or not asked.schedule:
            return None
        of = asked.schedule
        sizes = (of.ranks, of.microbatches, of.chunks)
        return schedule_chart(self.model.words, of.name, *sizes, prefix=name)

    def is_listed(self, work: QuotedWork) -> bool:
        """Tell whether the site has a work in its list."""
        return work.key in self.model.book.references

    def page_of(self, each: NextNote) -> str:
        """Return where a note stands; empty where the site does not have it."""
        note = self.model.notes.get(each.note)
        if note is None:
            return ""
        page = addresses.source_page(note.annotation.upstream, note.span.path)
        return f"{page}#{each.note}"

    def place(
        self, cited: CitedLines, *, lines: int | None = 0, is_linked: bool = True
    ) -> PlaceView:
        """Return lines that the quiz names, with so many of them; all where None."""
        span = Span(cited.path, cited.first, cited.last)
        page, code = "", None
        title = Text(shown(cited.title)) if cited.title else None
        if (note := self.model.notes.get(cited.note)) and title:
            title = note_title(note.annotation, self.model.book)
        if self._is_shown(cited):
            page = f"{addresses.source_page(cited.upstream, span.path)}#"
            is_ours = cited.note in self.model.notes
            page += cited.note if is_ours else f"L{span.first}-L{span.last}"
            if lines != 0:
                where = (self.model, cited.upstream, span, self.address)
                code = excerpt(*where, limit=lines, is_linked=is_linked)
        return PlaceView(str(span), page, title, code)

    def _is_shown(self, place: CitedLines) -> bool:
        """Whether the site shows these very lines: the bytes that were locked.

        The minis have no blob: they are read as they stand.
        """
        sheet = self.model.sheets.get((place.upstream, place.path))
        lock = self.model.book.locks.get(place.upstream)
        same = not place.blob or (
            lock is not None and lock.files.get(place.path) == place.blob
        )
        return sheet is not None and same and place.last <= sheet.drawn.count
