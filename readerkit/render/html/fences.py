"""What a chapter shows of the quiz, of the minis and of tours: cards, made of the book.

A question is the quiz's own page's, with its key folded in the same way; a mini's card
leads to its file, to its side-by-side pages, and to what a comparison saw.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass

from markupsafe import Markup

from readerkit.content.book import MINIS
from readerkit.content.chapters import Part
from readerkit.content.mirrors import Mirror
from readerkit.errors import ReaderkitError
from readerkit.evidence.relevance import Evidence, main_mini
from readerkit.model import addresses
from readerkit.model.language import SPANISH
from readerkit.quiz.page_key import Asked
from readerkit.quiz.prompts import SinglePrompt
from readerkit.render.html.conclusion_view import conclusion_view
from readerkit.render.html.escape import shown
from readerkit.render.html.excerpt import Excerpt, excerpt
from readerkit.render.html.markdown import prose
from readerkit.render.html.notes import mirror_title, text
from readerkit.render.html.proved import Passage
from readerkit.render.html.quiz import Check, QuizPage
from readerkit.render.html.site_model import Context, SiteModel
from readerkit.render.html.tour_page import tour_title
from readerkit.render.html.words import Text
from readerkit.wording.meant_name import choose
from readerkit.wording.next_command import written


@dataclass(frozen=True, slots=True)
class InlineQuestion:
    """A question of a bank, in its variants, and where the quiz asks it."""

    phase: int
    page: str
    """Of its topic."""
    variants: Sequence[Asked]


Ask = Callable[[str], InlineQuestion]
"""From the name of a question to the question.

Raises:
    ReaderkitError: no such question, or none that a page may ask.
"""
Minis = Mapping[str, str]
"""Each mini, and what it is in a few words; of one that no command runs none."""


@dataclass(frozen=True, slots=True)
class QuestionCard:
    """A question in a chapter, marked on the page."""

    show: QuizPage
    question: Sequence[Check]
    proofs: tuple[Passage, ...]
    predicts: bool
    """Whether each choice is a button that answers."""
    page: str

    @property
    def phase(self) -> int:
        """The quiz that it is of."""
        return self.show.phase


@dataclass(frozen=True, slots=True)
class MiniCard:
    """A mini in a chapter: what it is, where it is read, how it is run."""

    name: str
    about: Text
    file: str
    page: str
    """Of its file; empty where the site does not show it."""
    beside: tuple[tuple[str, Text], ...]
    """Pages side by side, that of this mini first, each with its title."""
    verdicts: tuple[Context, ...]
    """What each comparison came to."""
    lines: tuple[Excerpt, ...]
    """Of the section that was asked for."""
    commands: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class TourCard:
    """A tour in a chapter: where it leads."""

    page: str
    title: Text
    about: Text
    stops: int
    command: str


def ask(part: Part, asks: Ask) -> InlineQuestion:
    """Return the question that a fence names.

    Raises:
        ContentError: there is none, or of a prediction none with one choice.
    """
    try:
        found = asks(part.name)
    except ReaderkitError as error:
        raise part.fault(str(error)) from None
    prompt = found.variants[0].variant.prompt
    if part.kind == "predict" and not isinstance(prompt, SinglePrompt):
        expected = "a question of which one choice is right, kind 'single'"
        raise part.fault(f"no prediction: {part.name}", prompt.kind, expected)
    return found


def question_card(
    model: SiteModel, part: Part, asks: Ask, address: str
) -> QuestionCard:
    """Return a question for the page at an address.

    Raises:
        ContentError: no such question.
    """
    found = ask(part, asks)
    show = QuizPage(model, found.phase, address)
    predicts = part.kind == "predict"
    checks = show.checks(found.variants[:1] if predicts else found.variants)
    page = f"{found.page}#q-{part.name}"
    return QuestionCard(show, checks, show.proofs(part.name), predicts, page)


def mini_of(part: Part, minis: Minis) -> str:
    """Return the mini that a fence names.

    Raises:
        ContentError: there is none, or this book has no minis.
    """
    if not minis:
        raise part.fault("this book has no minis")
    try:
        return choose("mini", part.name.partition(" ")[0], minis)
    except ReaderkitError as error:
        raise part.fault(str(error)) from None


def mini_card(model: SiteModel, part: Part, minis: Minis, address: str) -> MiniCard:
    """Return the card of a mini, with the lines of one section where it is named.

    Raises:
        ContentError: no such mini, or no such section.
    """
    name = mini_of(part, minis)
    file = f"mini_impls/{name}.py"
    mirrors = [each for each in model.book.mirrors.values() if file in _files(each)]
    mirrors.sort(key=lambda each: main_mini(each) != file)
    found = [each for each in model.evidence.values() if each.record.mini == name]
    run = [written("run", name)] if minis[name] else []
    compare = [written("compare", name)] if found else []
    return MiniCard(
        name,
        _about(model, mirrors, minis[name]),
        file,
        addresses.source_page(MINIS, file) if (MINIS, file) in model.sheets else "",
        tuple(
            (addresses.mirror_page(each.id), mirror_title(each, model.book))
            for each in mirrors
        ),
        tuple(_verdict(model, each) for each in found),
        tuple(_lines(model, part, mirrors, address)),
        (*run, *compare),
    )


def _about(model: SiteModel, mirrors: Sequence[Mirror], says: str) -> Text:
    """Return what a mini is: the idea of its mirror, else a few words."""
    if not mirrors:
        return Text(Markup("<p>{}</p>").format(shown(says)))
    [own, *_] = mirrors
    other = model.book.mirror_in(own.id, SPANISH).idea
    return text(own.idea, other if other != own.idea else None, prose)


def _files(mirror: Mirror) -> Set[str]:
    return {str(each.file) for section in mirror.sections for each in section.mini}


def _verdict(model: SiteModel, evidence: Evidence) -> Context:
    """Return what a comparison came to, and where all of it is shown."""
    record = evidence.record
    page = model.strips.get(record.comparison, "")
    return {
        "record": record,
        "page": page and f"{page}#r-{record.comparison}",
        "stale": evidence.stale,
        "conclusion": conclusion_view(model, record),
    }


def _lines(
    model: SiteModel, part: Part, mirrors: Sequence[Mirror], address: str
) -> Iterator[Excerpt]:
    """Yield the lines of the section that a fence names, by its number or title.

    Raises:
        ContentError: no such section.
    """
    wanted = part.name.partition(" ")[2].strip()
    if not wanted:
        return
    sections = [(each, n) for each in mirrors for n in range(len(each.sections))]
    for mirror, number in sections:
        if wanted in (mirror.sections[number].title, str(number + 1)):
            for span in model.mirrored[mirror.id, number]:
                home = model.book.home_of(span.path)
                yield excerpt(model, home, span, address)
            return
    titles = (each.sections[n].title for each, n in sections)
    expected = f"a number, or one of {'; '.join(titles) or '-'}"
    raise part.fault("no such section of the mini", wanted, expected)


def tour_card(model: SiteModel, part: Part) -> TourCard:
    """Return the card of a tour."""
    tour = model.book.tours[part.name]
    other = model.book.tour_in(tour.id, SPANISH).about
    about = text(tour.about, other if other != tour.about else None, prose)
    page, title = addresses.tour_page(tour.id), tour_title(model, tour)
    command = written("annotate", "--tour", tour.id)
    return TourCard(page, title, about, len(tour.stops), command)
