"""What pages are made of: the book, its resolved notes, and every file's lines."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from readerkit.anchors import SourceFile, Span
from readerkit.anchors.highlight import stretches
from readerkit.anchors.source import is_binary
from readerkit.anchors.xref.colours import Colours
from readerkit.anchors.xref.links import File, Link, Links, Target, rivals
from readerkit.anchors.xref.names import Extent, Names, collect_names, said_words
from readerkit.claims.proof import Proof, Sentence
from readerkit.content.book import Book
from readerkit.content.mirrors import MirrorSection
from readerkit.content.resolved_notes import Note
from readerkit.errors import AnchorError
from readerkit.evidence.played import Played
from readerkit.evidence.relevance import Evidence, Files
from readerkit.model.git_names import TreePath
from readerkit.model.language import Told
from readerkit.render.html.code import Drawn, draw, draw_plain
from readerkit.render.html.notes import NoteView
from readerkit.render.html.quiz_page import TopicQuestions
from readerkit.render.html.words import Words

Context = dict[str, object]
"""What a template shows of a page or of a part of it, by name."""


@dataclass(frozen=True, slots=True)
class Sheet:
    """One file: its lines as they will be shown, and what it calls things."""

    drawn: Drawn
    names: Names
    fault: str = ""
    """Why it is shown without colours and links, or not at all: too large, no text."""


def make_sheet(path: TreePath, data: bytes) -> Sheet:
    """Return a file's sheet: of one too large to parse plain lines, of bytes none."""
    try:
        source = SourceFile(path, data)
    except AnchorError as error:
        drawn = Drawn() if is_binary(data) else draw_plain(data)
        return Sheet(drawn, Names(), str(error))
    if source.language.is_python:
        names = collect_names(source.data)
        return Sheet(draw(source.data, names), names)
    try:
        names, colours = names_by_tags(source), colours_by_marks(source)
    except AnchorError as error:  # no grammar is installed
        return Sheet(draw_plain(data), Names(), str(error))
    return Sheet(draw(source.data, names, colours), names)


@dataclass(frozen=True, slots=True)
class SiteModel:
    """Everything a build of the site knows."""

    book: Book
    sheets: Mapping[File, Sheet]
    links: Mapping[File, Mapping[tuple[str, str], Link]]
    uses: Mapping[Target, list[Target]]
    notes: Mapping[str, Note]
    """By annotation id."""
    mirrored: Mapping[tuple[str, int], tuple[Span, ...]]
    """Mirror and section to the spans of its mini lines."""
    evidence: Mapping[str, Evidence]
    """By comparison."""
    ran: Files
    strips: Mapping[str, str]
    """Comparison to the side-by-side page that shows it."""
    origins: Mapping[str, str]
    """Where the bytes of each upstream came from."""
    on_gpus: Mapping[str, Evidence] = field(default_factory=dict)
    """What comparisons saw on GPUs, by comparison: shown, and evidence of nothing."""
    other_lines: Mapping[str, Note] = field(default_factory=dict)
    """Of notes, by the name that locks give them."""
    absent: Mapping[str, Told] = field(default_factory=dict)
    """Upstream to why nothing of it can be shown: it was not fetched."""
    asked: Mapping[str, tuple[TopicQuestions, ...]] = field(default_factory=dict)
    """By annotation id, the quiz questions that lead to it."""
    played: Mapping[str, Played] = field(default_factory=dict)
    """Mechanisms by name, as they were recorded."""
    words: Words = Words()  # noqa: RUF009  a frozen value
    links_id: str = ""
    """Of the bytes of all files: what their lines and links depend on."""
    proofs: Mapping[str, Sequence[tuple[Sentence, Proof]]] = field(default_factory=dict)
    """By annotation id, its claims, each as it was held."""
    content_id: str = ""
    """Of all that people wrote and all that records say."""
    views: dict[str, NoteView] = field(default_factory=dict)
    """What pages show of each note, once a page has asked."""
    by_file: dict[File, list[Note]] = field(default_factory=dict)

    others: dict[Target, set[Target]] = field(default_factory=dict)
    """Of each definition what a use of it may mean instead, once a page has asked."""

    def rivals_of(self, target: Target) -> set[Target]:
        """Return the definitions that some use of this one may mean instead."""
        if not self.others:
            self.others.update(rivals(self.links))
        return self.others.get(target, set())

    def notes_in(self, file: File) -> list[Note]:
        """Return the notes on a file, by line."""
        if not self.by_file:
            for note in self.notes.values():
                where = (note.annotation.upstream, note.span.path)
                self.by_file.setdefault(where, []).append(note)
        return self.by_file.get(file, [])

    def asides(self, annotation: str) -> list[Note]:
        """Return the other lines that a note shows."""
        names = (a.id for a in self.notes[annotation].annotation.asides())
        return [self.other_lines[name] for name in names]

    def sections_with(self, annotation: str) -> list[tuple[str, int, MirrorSection]]:
        """Return the mirror sections that name an annotation."""
        found = self.book.sections_with(annotation)
        return [(mirror.id, index, section) for mirror, index, section in found]


def join_names(
    sheets: Mapping[File, Sheet],
) -> tuple[dict[File, dict[tuple[str, str], Link]], dict[Target, list[Target]]]:
    """Return each file's links, and every use of each definition."""
    index = Links({file: sheet.names for file, sheet in sheets.items()})
    links = {file: index.links_of(file) for file in sheets}
    return links, index.uses(links)


_KINDS = {
    "comment": "comment",
    "string": "string",
    "character": "string",
    "number": "number",
    "float": "number",
    "keyword": "keyword",
    "constant.builtin": "constant",
    "boolean": "constant",
    "variable.builtin": "constant",
}
"""What the highlights query of a grammar calls a thing, to what pages colour."""


def names_by_tags(source: SourceFile) -> Names:
    """Return what a file defines; its uses are not known.

    Raises:
        AnchorError: no grammar of its language is installed.
    """
    names = Names(words=said_words(source.data))
    for name, places in source.symbols.items():
        names.defined[name] = sorted({symbol.first for symbol in places})
        for symbol in places:
            names.outline.append(Extent(symbol.first, symbol.first, symbol.last, name))
            if label := symbol.label:
                place = (label.start_byte, label.end_byte, name)
                names.definition_places.append(place)
    names.outline.sort()
    names.definition_places.sort()
    return names


def colours_by_marks(source: SourceFile) -> Colours:
    """Return the parts of a file that have a colour, in order."""
    return {(begin, end): kind for begin, end, kind in stretches(source, _kind)}


def _kind(capture: str) -> str | None:
    return _KINDS.get(capture) or _KINDS.get(capture.partition(".")[0])
