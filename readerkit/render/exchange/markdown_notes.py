"""Notes as one Markdown file: to be read anywhere, or put into a wiki."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from itertools import groupby

from readerkit.model.language import Say, english
from readerkit.render.exchange.code_tour import TourStop
from readerkit.upstreams import Upstream
from readerkit.wording.numbers import counted

MAX_LINES = 40
"""Of code under one note; the link leads to the rest."""


def markdown_notes(
    title: str, about: str, stops: Iterable[TourStop], say: Say = english
) -> bytes:
    """Return notes in their order, each with its lines, what it says and cites."""
    rows = [f"# {title}", *([" ".join(about.split())] if about else [])]
    stops = [*stops]
    for name, those in groupby(stops, key=lambda stop: stop.note.upstream.name):
        group = [*those]
        rows.append(f"## {_upstream(group[0].note.upstream)}" if name else "")
        for stop in group:
            rows += _stop(stop, say)
    return ("\n\n".join(filter(None, rows)) + "\n").encode()


def _upstream(upstream: Upstream) -> str:
    terms = upstream.licence
    licence = f" ({terms.spdx}, {terms.holder})" if terms else ""
    return (
        f"{upstream.title}, {upstream.pin}{licence}"
        if upstream.pin
        else (f"{upstream.title}{licence}")
    )


def _stop(stop: TourStop, say: Say) -> Iterator[str]:
    note, span = stop.note, stop.note.span
    if stop.says:
        yield stop.says
    yield f"### {note.annotation.title}"
    link = note.upstream.permalink(span)
    place = f"`{span}`"
    yield f"[{place}]({link})" if link else place
    if rows := note.lines:
        shown = "".join(rows[:MAX_LINES]).rstrip("\r\n")
        ticks = [len(run) for run in re.findall(r"`{3,}", shown)]
        fence = "`" * (max(ticks, default=2) + 1)
        language = "python" if span.path.endswith(".py") else ""
        yield f"{fence}{language}\n{shown}\n{fence}"
        if (rest := len(rows) - MAX_LINES) > 0:
            yield f"… {counted(rest, say('more line'), say('more lines'))}"
    yield note.markdown(say)
