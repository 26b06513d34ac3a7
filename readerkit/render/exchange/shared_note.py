"""A note on its way out of a book: where its lines are, and what it says of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from readerkit.content.annotations import Annotation, CitedWork
from readerkit.content.vocabulary import LABELS
from readerkit.model.anchor import Span
from readerkit.model.language import Say
from readerkit.upstreams import Upstream


@dataclass(frozen=True, slots=True)
class SharedNote:
    """A note with its place, its file and the works that it cites."""

    annotation: Annotation
    """In the language that was asked for."""
    span: Span
    upstream: Upstream
    text: str | None
    """Of the whole file; None where its upstream was not fetched."""
    works: Mapping[str, CitedWork]
    conditions: Sequence[str] = ()
    """What it presumes, in words of the same language."""

    @property
    def lines(self) -> list[str]:
        """Its own lines, each with its end; none where the file is not at hand."""
        rows = split_lines(self.text or "")
        return rows[self.span.first - 1 : self.span.last]

    @property
    def extent(self) -> tuple[int, int]:
        """From which character of the file to which: its lines without the last end."""
        rows = split_lines(self.text or "")
        start = sum(map(len, rows[: self.span.first - 1]))
        quoted = "".join(rows[self.span.first - 1 : self.span.last])
        return start, start + len(quoted.rstrip("\r\n"))

    def parts(self, say: Say) -> list[tuple[str, str]]:
        """Return what it says, part by part, each with its label."""
        note = self.annotation
        return [
            (say(label), getattr(note, name))
            for name, label in LABELS.items()
            if getattr(note, name)
        ]

    def markdown(self, say: Say) -> str:
        """Return what it says, and what it cites, as Markdown without its title."""
        parts = self.parts(say)
        alone = len(parts) == 1
        rows = [f"**{n}.** {t}" if n and not alone else t for n, t in parts]
        if self.conditions:
            rows.append(f"{say('Holds where')}: {'; '.join(self.conditions)}")
        if cited := [*map(self._cited, self.annotation.references)]:
            rows.append(f"{say('References')}: {'; '.join(cited)}")
        return "\n\n".join(rows)

    def _cited(self, citation: object) -> str:
        key, section = (getattr(citation, name) for name in ("key", "section"))
        work = self.works[key]
        place = f", {section}" if section else ""
        return f"[{work.title} ({work.year})]({work.url}){place}"

    @property
    def licence(self) -> str:
        """Whose lines they are and under which terms; empty for the book's own."""
        terms = self.upstream.licence
        return f"{terms.spdx}, {terms.holder}" if terms else ""


def split_lines(text: str) -> list[str]:
    r"""Return the lines of a text with their ends; only \n ends one, as in anchors."""
    rows = text.split("\n")
    return [f"{row}\n" for row in rows[:-1]] + ([rows[-1]] if rows[-1] else [])
