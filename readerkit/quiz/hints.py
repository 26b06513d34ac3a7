"""What may be said before an answer: what to read, then one step; never the key."""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import islice
from typing import NamedTuple

from readerkit.model.language import Told, in_each, made_of
from readerkit.quiz.prompts import CitedLines, LocatePrompt
from readerkit.quiz.variant import Variant

READ_COST, STEP_COST = 0.1, 0.4
"""Parts of the points: what to read is a tenth of them, a step four."""
MIN_STEP = 12
"""Characters; less of a sentence says nothing."""
_SENTENCE_END = re.compile(r"(?<=[.!?])\s+")


class OfferedHint(NamedTuple):
    """A hint that may be taken, and what it costs."""

    text: str
    cost: float
    place: CitedLines | None = None
    """What to read, where it is lines of code or a note on them."""


def hints(variant: Variant) -> Iterator[OfferedHint]:
    """Yield the hints of a question, in the order in which they are given."""
    yield from islice(_reading(variant), 1)
    step = variant.step()
    if not step or variant.shows_key(step):
        explained = [variant.told.explanation]
        step = made_of(explained, lambda said: next(_computed(variant, next(said)), ""))
    if step:
        yield OfferedHint(step, STEP_COST)


def _reading(variant: Variant) -> Iterator[OfferedHint]:
    """Yield what to read, the nearest first: a note, lines of code, a work."""
    told = variant.told
    offered: list[tuple[str, CitedLines | None]] = [
        (Told("Note: {title}", title=each.title), each)
        for each in told.links
        if each.note
    ]
    # Of a line to find, code that it leads to may be that line.
    is_searched = isinstance(variant.prompt, LocatePrompt)
    code = [] if is_searched else [each for each in told.links if not each.note]
    offered += [(Told("Code: {place}", place=str(each)), each) for each in code]
    for work in told.references:
        section = f", {work.section}" if work.section else ""
        whole = f"{work.authors} {work.year}, {work.title}{section}"
        offered.append((Told("Read: {work}", work=whole), None))
    for text, place in offered:
        if not any(map(variant.shows_key, in_each(text))):
            yield OfferedHint(text, READ_COST, place)


def _computed(variant: Variant, explained: str) -> Iterator[str]:
    """Yield sentences of the explanation that reckon, each up to where the key is."""
    if not variant.is_computed:
        return
    for sentence in _SENTENCE_END.split(explained):
        words = sentence.split()
        end = variant.before_key(words)
        text = " ".join(words if end == len(words) else [*words[:end], "…"])
        if re.search(r"\d", text) and len(text) >= MIN_STEP:
            yield text
