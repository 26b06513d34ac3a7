"""The reader's way through the site: what comes before and after, and what is akin.

Nothing here is written for one page: the order is that of the concepts, and what is
akin follows from mirrors, notes, questions, and the words of chapters and labs.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from functools import lru_cache, partial
from itertools import pairwise
from typing import TYPE_CHECKING, Any

from readerkit.anchors.xref.links import File
from readerkit.content.annotations import Concept
from readerkit.content.book import MINIS
from readerkit.content.chapters import ChapterText, LabScript, Part, parts_of
from readerkit.content.concept_order import by_need, mirrors_in_turn
from readerkit.content.mirrors import Mirror
from readerkit.model import addresses
from readerkit.model.language import said
from readerkit.render.html.chapter import chapter_title
from readerkit.render.html.escape import shown
from readerkit.render.html.estimate_examples import SECTIONS
from readerkit.render.html.mechanism_list import MECHANISMS, Mechanism
from readerkit.render.html.mechanisms import names as mechanism_names
from readerkit.render.html.notes import mirror_title
from readerkit.render.html.quiz_page import TopicQuestions
from readerkit.render.html.related_pages import Around, Kin, Kinship, Readable, Way
from readerkit.render.html.site_model import SiteModel
from readerkit.render.html.tour_page import tour_stops
from readerkit.render.html.words import Text

if TYPE_CHECKING:  # whose pages ask for the way
    from readerkit.render.html.pages import Writing

_FILE = re.compile(r"(?:\w+/)+\w+\.py")
_DASHES = re.compile(r"[-\s]+")


def make_way(model: SiteModel, writing: Writing, before: Way | None = None) -> Way:
    """Return the way through the pages of a book.

    ``before`` is the way that was made last: what is akin costs most, and is taken from
    there while all that it follows from is the same.
    """
    stops = _Stops(model, writing)
    parts = [*stops.parts()]
    made_of = stops.titles, stops.all, stops.tours, [*stops.symptoms()]
    is_same = before is not None and before.kin.made_of == made_of
    kin = before.kin if before and is_same else _kin(stops, model, made_of)
    row = [None, *(stop for _, those in parts for stop in those), None]
    around = {
        stop.page: (last, after)
        for (last, stop), (_, after) in pairwise(pairwise(row))
        if stop
    }
    places = {
        stop.page: Around(
            part, number, len(those), *around[stop.page], kin.pages.get(stop.page, ())
        )
        for part, those in parts
        for number, stop in enumerate(those, 1)
    }
    for page, first in stops.lists():
        of = places[first.page]
        places[page] = Around(of.part, 0, of.count, None, first)
    return Way(places, kin)


def _kin(stops: _Stops, model: SiteModel, made_of: Any) -> Kin:
    kinship = Kinship(stops.all)
    pages = {stop.page: kinship.of(stop, model) for stop in (*stops.all, *stops.tours)}
    return Kin(
        made_of,
        pages,
        {
            stop.page.partition("#")[2]: pages[stop.page]
            for stop in stops.all
            if stop.kind == "estimate"
        },
        {name: tuple(kinship.of_concept(name)) for name in model.book.concepts},
        {each.page: kinship.of(each, model) for each in stops.symptoms()},
    )


class _Stops:
    """The pages of a site, each with what it is about."""

    def __init__(self, model: SiteModel, writing: Writing) -> None:
        self._model, self._writing = model, writing
        book = model.book
        self.titles = tuple(
            (concept.id, _titles_of(concept)) for concept in book.concepts.values()
        )
        self._mirrors = mirrors_in_turn(book.mirrors.values(), book.concepts)
        self._chapters = [self._chapter(script) for script in writing.scripts]
        self._files = {file: self._file(file) for file in self._shown_files()}
        self._beside = {each.id: self._mirror(each) for each in self._mirrors}
        self._plays = {
            name: self._mechanism(name, MECHANISMS[name])
            for name in mechanism_names(model)
        }
        self.tours = tour_stops(model)
        self._labs = [self._lab(lab) for lab in writing.labs]
        self._topics = [
            self._topic(topic) for phase in writing.phases for topic in phase.topics
        ]
        estimates = [*self._estimates()] if writing.examples else []
        self.all = [
            *self._chapters,
            *self._beside.values(),
            *self._plays.values(),
            *self._files.values(),
            *estimates,
            *self._labs,
            *self._topics,
        ]

    # --- the way ---

    def parts(self) -> Iterator[tuple[Text, list[Readable]]]:
        """Yield the parts of the way that have pages."""
        for part, stops in self._parts():
            if stops:
                yield part, stops

    def _parts(self) -> Iterator[tuple[Text, list[Readable]]]:
        paths = Readable(addresses.PATHS, self.say("Reading paths"))
        concepts = Readable(addresses.CONCEPTS, self.say("Concepts"))
        yield self.say("Start"), [Readable(addresses.START, self.say("Start"))]
        yield self.say("Chapters"), self._chapters
        yield self.say("Ideas"), [paths, concepts]
        yield self.say("Tours"), self.tours
        left, plays = dict(self._files), dict(self._plays)
        for mirror in self._mirrors:
            page = self._beside[mirror.id]
            files = [left.pop(file) for file in self._files_of(mirror) if file in left]
            minis = {file[1] for file in self._minis_of(mirror)}
            ran = [name for name in plays if minis & _files_of(MECHANISMS[name])]
            played = [plays.pop(name) for name in ran]
            yield page.title, [page, *played, *files]
        yield self.say("Mechanisms"), [*plays.values()]
        needed = by_need(
            self._model.book.concepts,
            [note.annotation for note in self._model.notes.values()],
        )
        notes = [self._model.notes[name] for _, names in needed for name in names]
        where = [(n.annotation.upstream, n.span.path) for n in notes]
        in_turn = [left.pop(file) for file in dict.fromkeys(where) if file in left]
        yield self.say("More of the code"), in_turn
        yield self.say("The other minis"), [*left.values()]
        if self._writing.examples:
            one = Readable(addresses.ESTIMATES, self.say("Estimates"))
            yield self.say("Estimates"), [one]
        yield self.say("Labs"), self._labs
        for phase in self._writing.phases:
            title = self._model.words.text(partial(said, phase.title))
            head = Readable(phase.page, title)
            own = {topic.page for topic in phase.topics}
            topics = [stop for stop in self._topics if stop.page in own]
            yield self.say("Quiz"), [head, *topics]
        holds = Readable(addresses.CONDITIONS, self.say("Where notes hold"))
        yield holds.title, [holds] if self._model.book.conditions else []
        last = Readable(addresses.REFERENCES, self.say("References"))
        yield self.say("References"), [last] if self._model.book.references else []

    def lists(self) -> Iterator[tuple[str, Readable]]:
        """Yield the pages that only list others, and the first of those."""
        found = {
            addresses.CHAPTERS: self._chapters,
            addresses.BESIDE: [*self._beside.values()],
            addresses.MECHANISMS: [*self._plays.values()],
            addresses.LABS: self._labs,
            addresses.QUIZ: self._topics,
        }
        for page, stops in found.items():
            if stops:
                yield page, stops[0]

    def say(self, phrase: str) -> Text:
        """Return a phrase in both languages."""
        return self._model.words.text(lambda say: say(phrase))

    def _shown_files(self) -> Iterator[File]:
        """Yield the files that somebody wrote of, and the minis."""
        noted = {
            (n.annotation.upstream, n.span.path) for n in self._model.notes.values()
        }
        for file in self._model.sheets:
            is_mini = file[0] == MINIS and file[1].count("/") == 1
            if file in noted or (is_mini and not file[1].endswith("__init__.py")):
                yield file

    def _files_of(self, mirror: Mirror) -> list[File]:
        """Return the upstream files of a mirror, then its minis, as it shows them."""
        notes = [
            self._model.notes[name]
            for section in mirror.sections
            for name in section.upstream
        ]
        files = [(n.annotation.upstream, n.span.path) for n in notes]
        return [*dict.fromkeys([*files, *self._minis_of(mirror)])]

    def _minis_of(self, mirror: Mirror) -> list[File]:
        home = self._model.book.home_of
        return [
            (home(anchor.file), anchor.file)
            for section in mirror.sections
            for anchor in section.mini
        ]

    # --- what each page is about ---

    def _chapter(self, script: ChapterText) -> Readable:
        about = Counter(self._mentioned(script.text))
        named = set[str]()
        for part in parts_of(script.text, script.file):
            if part.kind == "note" and part.name in self._model.notes:
                about.update(self._model.notes[part.name].annotation.concepts)
            named.update(self._shown_in(part))
        page = addresses.chapter_page(script.name)
        return Readable(page, chapter_title(script), "chapter", about, frozenset(named))

    def _shown_in(self, part: Part) -> Iterator[str]:
        """Yield the pages of what a fence shows."""
        name, *_ = part.name.split() or [""]
        if part.kind == "note" and name in self._model.notes:
            note = self._model.notes[name]
            yield addresses.source_page(note.annotation.upstream, note.span.path)
        elif part.kind == "mechanism":
            yield addresses.mechanism_page(name)
        elif part.kind == "mini":
            file = MINIS, f"mini_impls/{name}.py"
            yield addresses.source_page(*file)
            beside = (each for each in self._mirrors if file in self._minis_of(each))
            yield from (addresses.mirror_page(each.id) for each in beside)
        elif part.kind in ("question", "predict"):
            topics = (topic for phase in self._writing.phases for topic in phase.topics)
            yield from (each.page for each in topics if name in dict(each.questions))

    def _mirror(self, mirror: Mirror) -> Readable:
        about = Counter({name: 1 for name in mirror.concepts})
        about.update(mirror.concepts[:1])  # its subject
        named = frozenset(addresses.source_page(*f) for f in self._files_of(mirror))
        page = addresses.mirror_page(mirror.id)
        title = mirror_title(mirror, self._model.book)
        return Readable(page, title, "mirror", about, named)

    def _mechanism(self, name: str, mechanism: Mechanism) -> Readable:
        about = Counter(self._mentioned(f"{name} {mechanism.title} {mechanism.watch}"))
        about.update(about.keys() & {name})  # its subject
        named = {
            file.page
            for (_, path), file in self._files.items()
            if path in _files_of(mechanism)
        }
        page, title = addresses.mechanism_page(name), self._model.words.text
        return Readable(
            page,
            title(lambda say: say(mechanism.title)),
            "mechanism",
            about,
            frozenset(named),
        )

    def _file(self, file: File) -> Readable:
        notes = [note.annotation for note in self._model.notes_in(file)]
        about = Counter(name for note in notes for name in note.concepts)
        for mirror in self._mirrors:
            for section in mirror.sections:
                if any(anchor.file == file[1] for anchor in section.mini):
                    for name in section.upstream:
                        about.update(self._model.notes[name].annotation.concepts)
        kind = "mini" if file[0] == MINIS else "code"
        name = shown(file[1].rpartition("/")[2])
        return Readable(addresses.source_page(*file), Text(name), kind, about)

    def _lab(self, lab: LabScript) -> Readable:
        texts = [each.text for each in lab.texts]
        about: Counter[str] = Counter(
            name for text in texts for name in self._mentioned(text)
        )
        asked = set(_FILE.findall(lab.problem.text))
        files = {file: stop for file, stop in self._files.items() if file[1] in asked}
        for stop in files.values():
            about.update({name: 1 for name in stop.about})
        named = {stop.page for stop in files.values()}
        named.update(
            self._beside[mirror.id].page
            for mirror in self._mirrors
            if {file for file in files if file[0] == MINIS} & {*self._minis_of(mirror)}
        )
        page = addresses.lab_page(lab.name)
        title = chapter_title(lab.problem)
        return Readable(page, title, "lab", about, frozenset(named))

    def _topic(self, topic: TopicQuestions) -> Readable:
        asked = {name for name, _ in topic.questions}
        about: Counter[str] = Counter()
        for note, topics in self._model.asked.items():
            names = {name for each in topics for name, _ in each.questions}
            if count := len(names & asked):
                annotation = self._model.notes[note].annotation
                about.update(dict.fromkeys(annotation.concepts, count))
        title = self._model.words.text(partial(said, topic.topic))
        return Readable(topic.page, title, "topic", about)

    def _estimates(self) -> Iterator[Readable]:
        for name, (title, _) in SECTIONS.items():
            concepts = self._model.book.concepts.values()
            about = {each.id: 1.0 for each in concepts if name in each.estimates}
            page = f"{addresses.ESTIMATES}#{name}"
            yield Readable(page, self.say(title), "estimate", about)

    def symptoms(self) -> Iterator[Readable]:
        """Yield what shows of failures, each about what its notes are about."""
        for failure in self._writing.routes.failures:
            notes = [self._model.notes[name].annotation for name in failure.notes]
            about = Counter(concept for note in notes for concept in note.concepts)
            yield Readable(failure.id, Text(shown(failure.symptom)), "symptom", about)

    def _mentioned(self, text: str) -> tuple[str, ...]:
        return _mentioned(text, self.titles)


@lru_cache(maxsize=64)  # a server makes the way anew after each change
def _mentioned(
    text: str, concepts: tuple[tuple[str, tuple[str, ...]], ...]
) -> tuple[str, ...]:
    """Return the ids of concepts that a text names by one of their titles."""
    words = f" {_DASHES.sub(' ', text.casefold())} "
    return tuple(
        name
        for name, titles in concepts
        if any(re.search(rf"\b{re.escape(title)}s?\b", words) for title in titles)
    )


def _files_of(mechanism: Mechanism) -> set[str]:
    """Return the files of the minis that ran."""
    return {f"mini_impls/{stem}.py" for stem, _ in mechanism.minis}


def _titles_of(concept: Concept) -> tuple[str, ...]:
    """Return what a text calls a concept."""
    return tuple(_DASHES.sub(" ", e.casefold()) for e in (concept.id, concept.title))
