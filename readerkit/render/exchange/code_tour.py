"""Notes and tours as files of the CodeTour extension, one workspace a file."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from readerkit.model.language import Say, english
from readerkit.render.exchange.shared_note import SharedNote
from readerkit.upstreams import Upstream

MADE_BY = "madeBy"
"""A key that the extension passes over: which files may be written again."""


@dataclass(frozen=True, slots=True)
class TourStop:
    """A note, and what is said on the way to it."""

    note: SharedNote
    says: str = ""


def code_tour(
    title: str,
    about: str,
    upstream: Upstream,
    stops: Iterable[TourStop],
    say: Say = english,
) -> bytes:
    """Return a tour of the checkout of an upstream, at the commit that is pinned.

    A stop in another upstream is a step without a file, which links to its lines.
    """
    tour: dict[str, Any] = {
        "$schema": "https://aka.ms/codetour-schema",
        MADE_BY: "readerkit",
        "title": title,
    }
    if about:
        tour["description"] = " ".join(about.split())
    if upstream.commit:
        tour["ref"] = upstream.commit
    tour["steps"] = [_step(stop, upstream, say) for stop in stops]
    return (json.dumps(tour, indent=2, ensure_ascii=False) + "\n").encode()


def _step(stop: TourStop, upstream: Upstream, say: Say) -> Mapping[str, Any]:
    note, span = stop.note, stop.note.span
    said = [stop.says] if stop.says else []
    said += [f"### {note.annotation.title}", note.markdown(say)]
    link = note.upstream.permalink(span)
    if note.upstream.name != upstream.name:
        said.append(f"[{note.upstream.title}: {span}]({link})" if link else f"{span}")
        return {"title": note.annotation.title, "description": "\n\n".join(said)}
    step: dict[str, Any] = {
        "file": span.path,
        "line": span.last,  # the comment stands below it, and below the selection
        "title": note.annotation.title,
        "description": "\n\n".join(said),
    }
    if rows := note.lines:
        end = len(rows[-1].rstrip("\r\n"))
        step["selection"] = {
            "start": {"line": span.first, "character": 1},
            "end": {"line": span.last, "character": _utf16(rows[-1][:end]) + 1},
        }
    return step


def _utf16(text: str) -> int:
    """Return the length of a text as the editor counts it."""
    return len(text.encode("utf-16-le", "surrogatepass")) // 2
