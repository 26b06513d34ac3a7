"""The search index: a script with all that people wrote, and the path of every file.

The names in the files are in another, for who seeks one (``search_names.py``). It
holds words as they are written; what belongs together, and what counts how much, is
for ``site/theme/search.js`` to say, once for what is sought and what is found.
"""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, NamedTuple

from msgspec import to_builtins

from readerkit.content.annotations import TEXT_FIELDS
from readerkit.content.chapters import ChapterText, LabScript
from readerkit.content.inline_numbers import INLINE
from readerkit.content.paths_file import ReadingPaths
from readerkit.evidence.executed_lines import op_name
from readerkit.model import addresses
from readerkit.model.language import SPANISH, in_each
from readerkit.render.html import mechanisms, search_names
from readerkit.render.html import search_packing as packing
from readerkit.render.html.estimate_examples import SECTIONS
from readerkit.render.html.pages import Writing, menu, tree_items
from readerkit.render.html.quiz_page import BankView, begun
from readerkit.render.html.search_stems import Stems
from readerkit.render.html.site_model import SiteModel
from readerkit.render.terminal_safe import visible

FILE = "search-index.js"
_ESTIMATE = "estimate calculator cálculo calculadora"
"""What a reader calls one, whatever it is about."""


class Indexed(NamedTuple):
    """Something that people wrote, and where it stands."""

    kind: str
    title: str
    where: str
    page: str
    body: str = ""
    spanish: str = ""
    """Its title in Spanish."""


def search_index(model: SiteModel, writing: Writing) -> bytes:
    """Return the script; it works from a file as well as from a server."""
    texts = [*_notes(model), *_ideas(model), *_chapters(writing.scripts)]
    texts += [
        *_records(model),
        *_tours(model),
        *_labs(writing.labs),
        *_mechanisms(model),
    ]
    texts += _estimates(model) if writing.examples else ()
    texts += [*_quiz(writing.phases), *_symptoms(writing.routes)]
    texts += [*_works(model), *_pages(model, writing)]
    files = _files(model)
    data = {
        **to_builtins(writing.search_words),
        "texts": _texts(texts, model, files["paths"]),
        **_said(texts, Stems(writing.search_words)),
        "files": {**files, "paths": packing.paths(files["paths"])},
        "names": sum(search_names.count(each.names) for each in model.sheets.values()),
    }
    # ASCII, so that no character of a name can end a string or hide in it.
    packed = json.dumps(data, separators=(",", ":"))
    return f"readerkitIndex({packed});\n".encode()


def _texts(
    texts: Sequence[Indexed], model: SiteModel, paths: Sequence[str]
) -> list[str]:
    """Return the entries by columns: kind, title, where, page, title in Spanish.

    What stands on the page of a file names the file, and where in it.
    """
    pages = (addresses.href(addresses.source_page(*file)) for file in model.sheets)
    numbers = {page: number for number, page in enumerate(pages)}
    rows = []
    for each in texts:
        where, (page, mark, fragment) = each.where, each.page.partition("#")
        path = paths[numbers[page]] if page in numbers else None
        if path is not None and where.startswith(path):
            page = f"{packing.OF_FILE}{numbers[page]}"
            where = where.removeprefix(path)
        rows.append(
            (each.kind, each.title, where, page + mark + fragment, each.spanish)
        )
    return [packing.column(map(visible, column)) for column in zip(*rows, strict=True)]


def _said(texts: Iterable[Indexed], stems: Stems) -> dict[str, str]:
    """Return the words of the texts by stem, and the steps between who says each.

    What an entry says in its title is known from there, and counts more.
    """
    said: dict[str, set[int]] = defaultdict(set)
    forms: dict[str, set[str]] = defaultdict(set)
    for number, entry in enumerate(texts):
        titles = f"{visible(entry.title)} . {visible(entry.spanish)}"
        body = visible(entry.body)
        titled = {*map(stems.cut, stems.told(titles))}
        for word in stems.told(body) | stems.ideas(f"{titles} . {body}"):
            key = stems.cut(word)
            forms[key].add(word.removeprefix(key))
            if key not in titled:
                said[key].add(number)
    in_turn = sorted(said)
    words = (_forms(key, sorted(forms[key])) for key in in_turn)
    steps = (packing.numbers(packing.steps(sorted(said[key]))) for key in in_turn)
    return {"words": " ".join(words), "said": " ".join(steps)}


def _forms(stem: str, endings: list[str]) -> str:
    """Return a stem and its endings; a word that is a stem has none.

    >>> _forms("scal", ["e", "ing"]), _forms("rank", ["", "s"]), _forms("wire", [""])
    ('scal,e,ing', 'rank,,s', 'wire')
    """
    return stem if endings == [""] else ",".join([stem, *endings])


def _notes(model: SiteModel) -> Iterator[Indexed]:
    for name, note in model.notes.items():
        annotation = note.annotation
        page = addresses.source_page(annotation.upstream, note.span.path)
        body = " ".join(getattr(annotation, field) for field in TEXT_FIELDS)
        for language in model.book.translations:
            translated = model.book.translated(annotation, language)
            body += " " + " ".join(translated.texts.values())
        spanish = model.book.translated(annotation, SPANISH)
        folder = note.span.path.rpartition("/")[0]
        lines = addresses.lines_text(note.span.path, note.span.first, note.span.last)
        yield Indexed(
            annotation.kind,
            annotation.title.replace("`", ""),
            f"{folder}/{lines}".removeprefix("/"),
            f"{addresses.href(page)}#{name}",
            f"{name} {body}",
            spanish.texts.get("title", "").replace("`", ""),
        )


def _ideas(model: SiteModel) -> Iterator[Indexed]:
    for concept in model.book.concepts.values():
        page = f"{addresses.CONCEPTS}#{concept.id}"
        text = f"{concept.id} {concept.summary}"
        for language in model.book.concept_translations:
            translated = model.book.translated(concept, language)
            text += " " + " ".join(translated.texts.values())
        spanish = model.book.translated(concept, SPANISH).texts.get("title", "")
        yield Indexed(
            "concept", concept.title, concept.layer or "", page, text, spanish
        )
    for mirror in model.book.mirrors.values():
        page = addresses.mirror_page(mirror.id)
        other = model.book.mirror_in(mirror.id, SPANISH)
        about = f"{mirror.id} {mirror.idea} {other.idea}"
        title = other.title if other.title != mirror.title else ""
        yield Indexed("beside", mirror.title, "side by side", page, about, title)
        for number, section in enumerate(mirror.sections, 1):
            told = other.sections[number - 1]
            # Its Spanish prose would make the index too large.
            place, text = f"{page}#s{number}", section.why
            title = told.title if told.title != section.title else ""
            yield Indexed("beside", section.title, mirror.title, place, text, title)


def _records(model: SiteModel) -> Iterator[Indexed]:
    """Yield the recorded steps, each with the calls that its events are.

    An entry for each event would make the index too large: there are thousands.
    """
    for name, page in model.strips.items():
        ranks = model.evidence[name].record.events
        events = (each for rank in ranks for each in (*rank.upstream, *rank.mini))
        calls = ", ".join(dict.fromkeys(op_name(each.op) for each in events))
        yield Indexed("record", name, calls, f"{page}#r-{name}", calls)


def _tours(model: SiteModel) -> Iterator[Indexed]:
    for tour in model.book.tours.values():
        other = model.book.tour_in(tour.id, SPANISH)
        title = other.title if other.title != tour.title else ""
        page, text = addresses.tour_page(tour.id), f"{tour.id} {tour.about}"
        yield Indexed("tour", tour.title, "reading paths", page, text, title)


def _chapters(scripts: Iterable[ChapterText]) -> Iterator[Indexed]:
    for script in scripts:
        yield _text("chapter", script, addresses.chapter_page(script.name))


def _labs(labs: Iterable[LabScript]) -> Iterator[Indexed]:
    for lab in labs:  # what its solution says is for after an attempt
        yield _text("lab", lab.problem, addresses.lab_page(lab.name))


def _mechanisms(model: SiteModel) -> Iterator[Indexed]:
    spanish = model.words.in_spanish
    for page, each in mechanisms.lines(model):
        text = f"{page} {each.watch} {spanish(each.watch)}"
        where, title = "mechanisms", spanish(each.title)
        yield Indexed("mechanism", each.title, where, page, text, title)


def _estimates(model: SiteModel) -> Iterator[Indexed]:
    for name, (title, about) in SECTIONS.items():
        page = f"{addresses.ESTIMATES}#{name}"
        spanish = model.words.phrases
        text = f"{_ESTIMATE} {name} {about} {spanish.get(about, '')}"
        told = spanish.get(title, "")
        yield Indexed("estimate", title, "estimates", page, text, told)


def _quiz(phases: Iterable[BankView]) -> Iterator[Indexed]:
    for phase in phases:
        goals = " ".join(text for goal, _ in phase.objectives for text in in_each(goal))
        of_phase, *other = in_each(phase.title)
        yield Indexed("quiz", of_phase, "quiz", phase.page, goals, "".join(other))
        for each in phase.topics:
            topic, *other = in_each(each.topic)
            yield Indexed(
                "quiz", topic, of_phase, each.page, each.command, "".join(other)
            )
            asked = zip(each.questions, each.prompts, strict=True)
            for (_, place), (prompt, spanish) in asked:
                title, told = begun(prompt), begun(spanish)
                # Its Spanish is sought in its beginning alone: all of it is too large.
                yield Indexed("question", title, topic, place, prompt, told)


def _symptoms(routes: ReadingPaths) -> Iterator[Indexed]:
    for each in routes.failures:
        page = f"{addresses.PATHS}#{each.id}"
        texts = routes.spanish[each.id].texts if each.id in routes.spanish else {}
        body = f"{each.told} {texts.get('cause', '')} {texts.get('check', '')}"
        spanish = texts.get("symptom", "")
        yield Indexed("symptom", each.symptom, "paths", page, body, spanish)


def _works(model: SiteModel) -> Iterator[Indexed]:
    for work in model.book.references.values():
        page = f"{addresses.REFERENCES}#{work.key}"
        where = f"{work.authors}, {work.year}"
        text = " ".join([work.key, work.authors, *work.sections.values()])
        yield Indexed("reference", work.title, where, page, text)


def _pages(model: SiteModel, writing: Writing) -> Iterator[Indexed]:
    items = {item.page: item for item in (*menu(model, writing), *tree_items(model))}
    for item in items.values():
        spanish = model.words.phrases.get(item.label, "")
        page = addresses.href(item.page)
        yield Indexed("page", item.label, item.page, page, "", spanish)


def _text(kind: str, script: ChapterText, page: str) -> Indexed:
    title = script.text.partition("\n")[0].removeprefix("# ")
    spanish = script.spanish.partition("\n")[0].removeprefix("# ")
    text = INLINE.sub(" ", f"{script.text} {script.spanish}")
    return Indexed(kind, title, kind, page, text, spanish)


def _files(model: SiteModel) -> dict[str, Any]:
    """Return the files by columns: upstream, path, page, lines."""
    return {
        "upstreams": list(Counter(upstream for upstream, _ in model.sheets).items()),
        "paths": [visible(path) for _, path in model.sheets],
        "pages": packing.column(map(_unlike_path, model.sheets)),
        "lines": packing.numbers(sheet.drawn.count for sheet in model.sheets.values()),
    }


def _unlike_path(file: tuple[str, str]) -> str:
    """Return the page of a file where upstream and path do not say it."""
    upstream, path = file
    page = addresses.href(addresses.source_page(upstream, path))
    return "" if page == f"read/{upstream}/{visible(path)}.html" else page
