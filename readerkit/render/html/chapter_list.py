"""The list of chapters: what each has, counted, and how long it takes to read."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from readerkit.content.inline_numbers import INLINE
from readerkit.content.scripts import Part, Script, parts_of
from readerkit.model import addresses
from readerkit.render.html.chapter import chapter_title
from readerkit.render.html.words import Text

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


def chapter_lines(scripts: Sequence[Script]) -> list[ChapterLine]:
    """Return a line for each chapter."""
    return [_line(script) for script in scripts]


def _line(script: Script) -> ChapterLine:
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
