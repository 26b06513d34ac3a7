"""The pages of mechanisms that play: what to watch, the player, where to read on."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from readerkit.content.book import MINIS
from readerkit.content.chapters import ChapterText, parts_of
from readerkit.evidence.played import sent_bytes
from readerkit.model import addresses
from readerkit.model.git_names import TreePath
from readerkit.render.html.chapter import chapter_title
from readerkit.render.html.file_page import view
from readerkit.render.html.mechanism_list import (
    MECHANISMS,
    Mechanism,
    mechanism_player,
    played_names,
)
from readerkit.render.html.notes import section_title, text
from readerkit.render.html.quiz_page import begun
from readerkit.render.html.site_model import Context, SiteModel
from readerkit.render.html.words import Text
from readerkit.wording.numbers import format_bytes


def page_of(name: str) -> str:
    """Return the address of a mechanism."""
    return addresses.mechanism_page(name)


def lines(model: SiteModel) -> list[tuple[str, Mechanism]]:
    """Return address and words of each mechanism that this book has a run of."""
    return [(page_of(name), MECHANISMS[name]) for name in names(model)]


def names(model: SiteModel) -> list[str]:
    """Return the mechanisms that this book can play, in order."""
    return played_names(model.played)


def mechanism_page(
    model: SiteModel, name: str, scripts: Sequence[ChapterText]
) -> Context:
    """Return the page of a mechanism."""
    played, about = model.played.get(name), MECHANISMS[name]
    sections = [*_sections(model, about)]
    notes = dict.fromkeys(n for *_, notes in sections for n in notes)
    totals = sent_bytes(played.run) if played else []
    return {
        "title": about.title,
        "about": about,
        "name": name,
        "player": mechanism_player(model, name),
        "played": played,
        "totals": [format_bytes(n) for n in totals] if any(totals) else [],
        "minis": [*_minis(model, about)],
        "mirrors": [(page, title) for page, title, _ in sections],
        "notes": [view(model, note) for note in notes],
        "chapters": [*_chapters(scripts, name)],
        "questions": [*_questions(model, notes)],
    }


def _questions(model: SiteModel, notes: Iterable[str]) -> Iterator[tuple[Text, str]]:
    """Yield each question that leads to some notes once: what it asks, and where."""
    found = {
        page: prompt
        for note in notes
        for topic in model.asked.get(note, ())
        for (_, page), prompt in zip(topic.questions, topic.prompts, strict=True)
    }
    for page, (english, spanish) in found.items():
        yield text(begun(english), begun(spanish) if spanish else None), page


def _minis(model: SiteModel, about: Mechanism) -> Iterator[tuple[str, str]]:
    """Yield the lines of each mini that ran: what they are called, and where."""
    for stem, symbol in about.minis:
        path = TreePath(f"mini_impls/{stem}.py")
        sheet = model.sheets.get((MINIS, path))
        if sheet is not None:
            line = next(iter(sheet.names.defined.get(symbol, ())), 0)
            page = addresses.source_page(MINIS, path)
            yield f"{stem}.py: {symbol}", f"{page}#L{line}" if line else page


def _sections(
    model: SiteModel, about: Mechanism
) -> Iterator[tuple[str, Text, tuple[str, ...]]]:
    """Yield the sections that set what ran beside upstream: place, title, notes."""
    wanted = {(f"mini_impls/{stem}.py", symbol) for stem, symbol in about.minis}
    for mirror in model.book.mirrors.values():
        for index, section in enumerate(mirror.sections):
            tops = {(a.file, (a.symbol or "").split(".")[0]) for a in section.mini}
            if tops & wanted:
                page = f"{addresses.mirror_page(mirror.id)}#s{index + 1}"
                title = section_title(mirror.id, index, model.book)
                yield page, title, section.upstream


def _chapters(scripts: Sequence[ChapterText], name: str) -> Iterator[tuple[str, Text]]:
    """Yield the chapters that show a mechanism."""
    for script in scripts:
        fences = parts_of(script.text, script.file)
        if any((f.kind, f.name) == ("mechanism", name) for f in fences):
            yield addresses.chapter_page(script.name), chapter_title(script)
