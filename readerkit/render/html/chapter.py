"""A chapter: Markdown, and between it notes with their lines, drawings.

A Spanish text shows the same between its words, so a page holds each of these once.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import zip_longest

from markupsafe import Markup

from readerkit.content.chapters import ChapterText, Part, parts_of
from readerkit.content.inline_numbers import INLINE
from readerkit.errors import ContentError, ContentFault
from readerkit.model import addresses
from readerkit.render.html.chapter_check import check_equal, check_known
from readerkit.render.html.chapter_pieces import (
    Piece,
    Written,
    check_numbers,
    drawing,
    rendered,
    schedule,
)
from readerkit.render.html.computed import Computed
from readerkit.render.html.excerpt import excerpt
from readerkit.render.html.fences import mini_card, question_card, tour_card
from readerkit.render.html.file_page import proofs_of, rights_of, view
from readerkit.render.html.markdown import line, title
from readerkit.render.html.mechanism_list import SCHEDULES, mechanism_player
from readerkit.render.html.proved import Proved, marked, passages
from readerkit.render.html.setting_card import SettingCard, setting_card
from readerkit.render.html.site_model import Context, SiteModel
from readerkit.render.html.supplies import Supplies
from readerkit.render.html.tree_page import upstreams_shown
from readerkit.render.html.words import Text


def chapter_page(model: SiteModel, script: ChapterText, supplies: Supplies) -> Context:
    """Return the page of a chapter.

    Raises:
        ContentError: something that a fence names and nothing is called.
    """
    told = chapter_text(model, script, supplies, addresses.chapter_page(script.name))
    return {
        "title": told.title,
        "name": script.name,
        "text": told,
        "phase": phase_of(script, told),
        "rights": rights_of(model, upstreams_in(model, told)),
    }


def chapter_text(
    model: SiteModel, script: ChapterText, supplies: Supplies, address: str
) -> Written:
    """Return a chapter, or a text of a lab, for the page at an address.

    Raises:
        ContentError: something that a fence names and nothing is called, or a Spanish
            text that shows something else.
    """
    numbers = supplies.numbers(script)
    proofs = tuple(_filled(each, numbers) for each in proofs_of(model, script.name))
    writer = _ChapterWriter(model, supplies, address, script.name, proofs, numbers)
    english = list(parts_of(script.text, script.file))
    spanish = []
    if script.spanish:
        spanish = list(parts_of(script.spanish, script.spanish_file))
        check_equal(english, spanish)
    told = tuple(
        piece
        for both in zip_longest(english, spanish)
        for piece in writer.pieces(*both)
    )
    shown = passages(proofs, script.name, (each.text for each in told if each.text))
    origins = tuple(numbers.origins.values())
    return Written(chapter_title(script), told, bool(script.spanish), shown, origins)


def _filled(proof: Proved, numbers: Computed) -> Proved:
    """Return a proof that says the numbers of its words."""
    says = proof.sentence.claim.says
    return replace(proof, says=numbers.filled(says, line, spanish=False))


def phase_of(script: ChapterText, *texts: Written) -> int | None:
    """Return the quiz that the questions of a page are of; None where it asks none.

    Raises:
        ContentError: several quizzes; a page keeps the answers to one.
    """
    asked = (each.question for text in texts for each in text.pieces)
    phases = sorted({each.phase for each in asked if each})
    if len(phases) > 1:
        got, expected = ", ".join(map(str, phases)), "questions of one"
        what = "questions of several quizzes on one page"
        raise ContentError([ContentFault(script.file, 1, 1, what, got, expected)])
    return phases[0] if phases else None


def upstreams_in(model: SiteModel, *texts: Written) -> Iterator[str]:
    """Yield the upstream of each excerpt, of those beside notes and of minis too.

    A question may show lines of any, behind its answer.
    """
    for piece in (piece for text in texts for piece in text.pieces):
        if piece.lines:
            yield piece.lines.upstream
        if piece.note:
            yield from (each.excerpt.upstream for each in piece.note.also)
        if piece.mini:
            yield from (each.upstream for each in piece.mini.lines)
        if piece.question:
            yield from upstreams_shown(model)


def chapter_title(script: ChapterText) -> Text:
    """Return what a chapter is called: its first line, without the mark before it."""
    english, *spanish = (
        title(text.partition("\n")[0].removeprefix("# "))
        for text in (script.text, script.spanish)
        if text
    )
    return Text(english, spanish[0] if spanish else None)


_FILE_NAMED = re.compile(r'(?<!">)<code>([\w./-]+\.py)</code>')
"""A file's path in prose, but for one that leads somewhere already."""
_HEADING = re.compile(r"<h2>")


@dataclass(frozen=True, slots=True)
class _ChapterWriter:
    model: SiteModel
    supplies: Supplies
    address: str
    name: str
    proofs: tuple[Proved, ...]
    numbers: Computed
    sections: dict[str, int] = field(default_factory=dict)
    """How many have begun, in each language."""

    def pieces(self, part: Part, other: Part | None) -> Iterator[Piece]:
        """Yield the piece of a part, ``other`` being the same in Spanish."""
        if part.kind == "let":
            return
        if part.kind:
            yield self._fenced(part, other)
        elif part.body.strip() or (other and other.body.strip()):
            spanish = self._marked(part, other) if other else None
            yield Piece(text=Text(self._marked(part, part), spanish))

    def _marked(self, english: Part, part: Part) -> Markup:
        """Return prose with a mark behind each proved sentence."""

        def render(body: str) -> Markup:
            is_spanish = part is not english
            told = rendered(replace(part, body=body), self.numbers, spanish=is_spanish)
            return self._with_files(told)

        how = (self.proofs, None, self.name, render)
        told = marked(part.body, english.body, *how)
        return self._headed(told, "" if part is english else "-es")

    def _headed(self, told: Markup, language: str) -> Markup:
        """Return prose of a chapter whose sections have addresses."""

        def heading(_: re.Match[str]) -> str:
            number = self.sections.get(language, 0) + 1
            self.sections[language] = number
            return f'<h2 id="{self.name}-{number}{language}">'

        is_chapter = self.address == addresses.chapter_page(self.name)
        return Markup(_HEADING.sub(heading, told)) if is_chapter else told

    def _with_files(self, told: Markup) -> Markup:
        """Return prose in which a file that has a page leads to it."""

        def link(found: re.Match[str]) -> str:
            those = [file for file in self.model.sheets if file[1] == found[1]]
            if len(those) != 1:
                return found[0]
            page = addresses.href(addresses.source_page(*those[0]))
            return f'<a href="{addresses.to_page(page, self.address)}">{found[0]}</a>'

        return Markup(_FILE_NAMED.sub(link, told))

    def _fenced(self, part: Part, other: Part | None) -> Piece:
        name = part.name
        if part.kind == "note":
            check_known(part, self.model.notes)
            note = self.model.notes[name]
            upstream = note.annotation.upstream
            lines = excerpt(self.model, upstream, note.span, self.address)
            return Piece(note=view(self.model, name), lines=lines)
        if part.kind == "diagram":
            check_known(part, self.supplies.diagrams)
            return Piece(drawing=drawing(self.supplies.diagrams[name]))
        if part.kind == "mechanism":
            if name != SCHEDULES:
                check_known(part, self.model.played)
            return Piece(player=mechanism_player(self.model, name))
        if part.kind == "schedule":
            return Piece(chart=schedule(self.model.words, part))
        if part.kind in ("predict", "question"):
            asked = question_card(self.model, part, self.supplies.ask, self.address)
            return Piece(question=asked)
        if part.kind == "mini":
            where = (self.supplies.minis, self.address)
            return Piece(mini=mini_card(self.model, part, *where))
        if part.kind == "setting":
            return Piece(setting=self._setting(part, other))
        check_known(part, self.model.book.tours)
        return Piece(tour=tour_card(self.model, part))

    def _setting(self, part: Part, other: Part | None) -> SettingCard:
        for each in (part, other):
            if each:
                check_numbers(replace(each, at=each.at + 1), self.numbers)

        def render(told: str, is_spanish: bool) -> Markup:
            return self.numbers.filled(told, line, spanish=is_spanish)

        phrases = self.model.words.phrases
        return setting_card(part, other, self.supplies.compute, phrases, render)


WORDS_A_MINUTE = 200
"""Of a text that one stops to think about; a note with its lines takes a minute."""
_WORD = re.compile(r"[^\W_]+(?:['.-][^\W_]+)*")


@dataclass(frozen=True, slots=True)
class ChapterLine:
    """A chapter in the list."""

    page: str
    title: Text
    words: int
    minutes: int
    notes: int
    """Whose lines it shows."""
    questions: int
    claims: int
    experiments: int
    """Programs behind its sentences, each once."""


def chapter_lines(scripts: Sequence[ChapterText]) -> list[ChapterLine]:
    """Return a line for each chapter."""
    return [_line(script) for script in scripts]


def _line(script: ChapterText) -> ChapterLine:
    parts = [*parts_of(script.text, script.file)]
    words = sum(_words(part) for part in parts if not part.kind)
    notes = sum(part.kind == "note" for part in parts)
    names = {each.experiment.name for each in script.claims if each.experiment}
    return ChapterLine(
        page=addresses.chapter_page(script.name),
        title=chapter_title(script),
        words=words,
        minutes=max(1, round(words / WORDS_A_MINUTE + notes)),
        notes=notes,
        questions=sum(part.kind in ("predict", "question") for part in parts),
        claims=len(script.claims),
        experiments=len(names),
    )


def _words(part: Part) -> int:
    """Return the words of prose; a number that is computed is one of them."""
    return len(_WORD.findall(INLINE.sub(" 0 ", part.body)))
