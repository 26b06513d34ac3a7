"""Every page of the site: its address, and its text when somebody asks."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

from markupsafe import Markup

from readerkit.anchors.xref.links import File
from readerkit.content.chapters import ChapterText, LabScript
from readerkit.content.diagrams import Diagram
from readerkit.content.kept_drift import KeptDrift
from readerkit.content.paths_file import ReadingPaths
from readerkit.content.search_words import SearchWords
from readerkit.model import addresses
from readerkit.quiz.page_key import Asked
from readerkit.render.html.chapter import chapter_lines, chapter_page, chapter_title
from readerkit.render.html.code_with_notes import CUT, code_with_notes
from readerkit.render.html.drift_page import drift_page
from readerkit.render.html.environment import Templates
from readerkit.render.html.estimate_examples import Examples, headings
from readerkit.render.html.estimate_page import estimate_page
from readerkit.render.html.file_page import file_page
from readerkit.render.html.lab_page import lab_lines, lab_page
from readerkit.render.html.mechanisms import lines, mechanism_page, names
from readerkit.render.html.mirror_page import mirror_index, mirror_page
from readerkit.render.html.outline import outline, peek_script
from readerkit.render.html.quiz import QuizPage
from readerkit.render.html.quiz_page import BankView, TopicQuestions
from readerkit.render.html.related_pages import Way
from readerkit.render.html.site_model import Context, SiteModel
from readerkit.render.html.study import (
    concept_page,
    condition_page,
    first_question,
    path_page,
    reference_page,
    start_page,
    symptoms,
)
from readerkit.render.html.supplies import Supplies
from readerkit.render.html.tour_page import tour_page
from readerkit.render.html.tree_page import tree_page, trees, upstreams_shown
from readerkit.render.html.uses_page import uses_page

MOST_IN_BAR = 3
"""Upstreams that the bar names one by one; of more, each page of files names all."""


@dataclass(frozen=True, slots=True)
class MenuItem:
    """An entry of the bar at the top."""

    label: str
    page: str
    folder: str = ""
    """Pages below it belong to the entry too."""


@dataclass(frozen=True, slots=True)
class Site:
    """What every page shows."""

    menu: tuple[MenuItem, ...]
    untranslated: str
    outdated: str
    is_shipped: bool = False


@dataclass(frozen=True, slots=True)
class Writing:
    """What people wrote for the site beside the book."""

    scripts: tuple[ChapterText, ...] = ()
    labs: tuple[LabScript, ...] = ()
    examples: Callable[[], Examples] | None = None
    """Computes the estimates that the site shows."""
    supplies: Supplies = Supplies()  # noqa: RUF009  a frozen value
    routes: ReadingPaths = ReadingPaths()  # noqa: RUF009  a frozen value
    search_words: SearchWords = SearchWords()  # noqa: RUF009  a frozen value
    is_shipped: bool = False
    """Whether it is the book that ships, and its first page says of what it is."""
    first_stop: str = ""
    first_question: str = ""
    drifts: tuple[KeptDrift, ...] = ()
    """Of the upstreams that somebody held against another revision."""
    phases: tuple[BankView, ...] = ()
    """Of the quiz."""
    checks: Callable[[int, str], Sequence[Sequence[Asked]]] = field(
        default=lambda *_: [],
        compare=False,  # the content's digest stands for it
    )
    """From a phase and a topic to variants of each of its questions."""

    @property
    def diagrams(self) -> Mapping[str, Diagram]:
        """The drawings, by name."""
        return self.supplies.diagrams


@dataclass(frozen=True, slots=True)
class Page:
    """One page, not yet rendered."""

    address: str
    made_of: Any
    """A value: while it stays equal, so does the page."""
    render: Callable[[], bytes]


def frame(model: SiteModel, writing: Writing) -> Site:
    """Return what every page shows."""
    return Site(
        tuple(menu(model, writing)),
        model.words.in_spanish("Not translated yet: the English text."),
        model.words.in_spanish("The English text changed after this one."),
        writing.is_shipped,
    )


def pages(
    model: SiteModel, templates: Templates, writing: Writing, way: Way, site: Site
) -> Iterator[Page]:
    """Yield every page of the site, none of them rendered yet."""

    def page(
        address: str, made_of: Any, template: str, values: Callable[[], Any]
    ) -> Page:
        def render() -> bytes:
            place = way.places.get(address)
            at = {"site": site, "way": way, "place": place}
            text = templates.render(template, address, values(), **at)
            return text.encode("utf-8", "replace")

        return Page(address, (templates.digest, site, made_of), render)

    # Nearly all of these mention notes: they are made anew whenever one changed.
    content = (model.content_id, model.links_id, writing)
    for address, (template, values) in _written_pages(model, writing).items():
        yield page(address, content, template, values)
    used = {(target.upstream, target.path) for target in model.uses}
    for file in model.sheets:
        yield _source_page(model, templates, site, way, file)
        if file in used:
            uses = addresses.uses_page(*file), partial(uses_page, model, file)
            yield page(uses[0], model.links_id, "uses.html", uses[1])
            noted = model.content_id if model.notes_in(file) else ""
            look = partial(peek_script, model, file)
            yield Page(addresses.peek_file(*file), (model.links_id, noted), look)


Made = dict[str, tuple[str, Callable[[], Any]]]
"""By address, a page's template and what gives its values."""


def _written_pages(model: SiteModel, writing: Writing) -> Made:
    """Return all pages but those of source."""
    book = model.book
    found: Made = {
        addresses.START: ("start.html", partial(_start_page, model, writing)),
        addresses.PATHS: ("paths.html", partial(path_page, model, writing.routes)),
        addresses.CONCEPTS: ("concepts.html", partial(concept_page, model)),
    }
    if book.conditions:
        presumed = partial(condition_page, model)
        found[addresses.CONDITIONS] = ("conditions.html", presumed)
    if book.references:
        works = partial(reference_page, model)
        found[addresses.REFERENCES] = ("references.html", works)
    if book.mirrors:
        found[addresses.BESIDE] = ("mirrors.html", partial(mirror_index, model))
    found |= _quiz_pages(model, writing)
    found |= _text_pages(model, writing)
    if work_out := writing.examples:
        found[addresses.ESTIMATES] = (
            "estimates.html",
            lambda: estimate_page(work_out(), model.words),
        )
    found |= _mechanism_pages(model, writing)
    for mirror in book.mirrors.values():
        beside = partial(mirror_page, model, mirror)
        found[addresses.mirror_page(mirror.id)] = ("mirror.html", beside)
    for tour in book.tours.values():
        shown = partial(tour_page, model, tour)
        found[addresses.tour_page(tour.id)] = ("tour.html", shown)
    for kept in writing.drifts:
        drifted = partial(drift_page, model, kept)
        found[addresses.drift_page(kept.upstream)] = ("drift.html", drifted)
    for upstream in upstreams_shown(model):
        tree = partial(tree_page, model, upstream, writing.drifts)
        found[addresses.tree_page(upstream)] = ("tree.html", tree)
    return found


def _quiz_pages(model: SiteModel, writing: Writing) -> Made:
    found: Made = {}
    if writing.phases:
        quiz = {"title": "Quiz", "phases": writing.phases}
        found[addresses.QUIZ] = ("quiz.html", lambda: quiz)
    for phase in writing.phases:
        quizzes = QuizPage(model, phase.phase)
        found[phase.page] = ("quiz_check.html", partial(quizzes.overview, phase))
        for topic in phase.topics:
            check = partial(_topic_page, writing, quizzes, topic)
            found[topic.page] = ("quiz_topic.html", check)
    return found


def _text_pages(model: SiteModel, writing: Writing) -> Made:
    found: Made = {}
    if writing.scripts:
        index = {"title": "Chapters", "chapters": chapter_lines(writing.scripts)}
        found[addresses.CHAPTERS] = ("chapters.html", lambda: index)
    for script in writing.scripts:
        chapter = partial(chapter_page, model, script, writing.supplies)
        found[addresses.chapter_page(script.name)] = ("chapter.html", chapter)
    if labs := lab_lines(writing.labs):
        counts = [sum(len(text.claims) for text in lab.texts) for lab in writing.labs]
        lab_index = {"title": "Labs", "labs": [*zip(labs, counts, strict=True)]}
        found[addresses.LABS] = ("labs.html", lambda: lab_index)
    for lab, (page, _) in zip(writing.labs, labs, strict=True):
        found[page] = ("lab.html", partial(lab_page, model, lab, writing.supplies))
    return found


def _mechanism_pages(model: SiteModel, writing: Writing) -> Made:
    """Return the pages of mechanisms that play, in the order of their list."""
    shown = lines(model)
    if not shown:
        return {}
    index = {"title": "Mechanisms", "mechanisms": shown}
    found: Made = {addresses.MECHANISMS: ("mechanisms.html", lambda: index)}
    for name, (page, _) in zip(names(model), shown, strict=True):
        told = partial(mechanism_page, model, name, writing.scripts)
        found[page] = ("mechanism.html", told)
    return found


def _start_page(model: SiteModel, writing: Writing) -> Context:
    scripts = writing.scripts
    lists = {
        "chapters": [
            (addresses.chapter_page(s.name), chapter_title(s)) for s in scripts
        ],
        "labs": lab_lines(writing.labs),
        "estimates": headings() if writing.examples else (),
    }
    name = writing.first_question
    asked = next(
        (
            (variants[0].variant, f"{topic.page}#q-{name}")
            for phase in writing.phases
            for topic in phase.topics
            if name in dict(topic.questions)
            for variants in writing.checks(phase.phase, topic.name)
            if variants[0].question.id == name
        ),
        None,
    )
    first = first_question(*asked) if asked else None
    title = "Read the code that trains large models" if writing.is_shipped else ""
    return start_page(model, writing.first_stop, lists, title) | {
        "question": first,
        "routes": writing.routes,
        "symptoms": symptoms(writing.routes),
    }


def _topic_page(writing: Writing, quiz: QuizPage, topic: TopicQuestions) -> Context:
    asked = writing.checks(quiz.phase, topic.name)
    return replace(quiz, address=topic.page).questions(topic, asked)


def menu(model: SiteModel, writing: Writing) -> Iterator[MenuItem]:
    """Yield the entries of the bar at the top."""
    yield MenuItem("Start", addresses.START)
    if writing.scripts:
        yield MenuItem("Chapters", addresses.CHAPTERS, "chapters/")
    yield MenuItem("Paths", addresses.PATHS)
    if model.book.mirrors:
        yield MenuItem("Side by side", addresses.BESIDE, "beside/")
    if model.played:
        yield MenuItem("Mechanisms", addresses.MECHANISMS, "mechanisms/")
    yield MenuItem("Concepts", addresses.CONCEPTS)
    if writing.phases:
        yield MenuItem("Quiz", addresses.QUIZ, "quiz/")
    if writing.labs:
        yield MenuItem("Labs", addresses.LABS, "labs/")
    if writing.examples:
        yield MenuItem("Estimates", addresses.ESTIMATES)
    if model.book.references:
        yield MenuItem("References", addresses.REFERENCES)
    trees = [*tree_items(model)]
    if len(trees) > MOST_IN_BAR:
        trees = [replace(trees[0], label="Code", folder="read/")]
    yield from trees


def tree_items(model: SiteModel) -> Iterator[MenuItem]:
    """Yield an entry for the files of each upstream."""
    for title, tree in trees(model):
        yield MenuItem(title, tree, tree.removesuffix("index.html"))


def _source_page(
    model: SiteModel, templates: Templates, site: Site, way: Way, file: File
) -> Page:
    place = way.places.get(addresses.source_page(*file))

    def render() -> bytes:
        values = file_page(model, file)
        body = code_with_notes(model, templates, site, file, values)
        text = templates.render(
            "file.html",
            values.address,
            values,
            site=site,
            place=place,
            outline=outline(model, file),
            body=Markup(CUT),
        )
        head, _, tail = text.encode("utf-8", "replace").partition(CUT.encode())
        return head + body + tail

    around = model.content_id if model.notes_in(file) else ""
    ran = model.ran.get(file)
    made_of = (templates.digest, site, model.links_id, around, ran, place)
    return Page(addresses.source_page(*file), made_of, render)
