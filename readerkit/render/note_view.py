"""One note in the terminal: the real lines, the note, and where both can be checked."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from rich.console import Console, Group, RenderableType
from rich.padding import Padding
from rich.rule import Rule
from rich.table import Table
from rich.text import Text

from readerkit.anchors import SourceFile, Span
from readerkit.anchors.highlight import highlight
from readerkit.annotations import Annotation, Citation, Reference
from readerkit.book import Note
from readerkit.upstreams import Upstream

SIDE_BY_SIDE_WIDTH = 150
NOTE_WIDTH = 62
_STYLES = {
    "comment": "italic dim",
    "string": "green",
    "escape": "green",
    "number": "cyan",
    "constant": "cyan",
    "keyword": "magenta",
    "operator": "",
    "function": "blue",
    "constructor": "yellow",
    "type": "yellow",
}
_KIND_STYLES = {"citation": "cyan", "note": "green", "pitfall": "yellow"}
# Characters that change how the rest of a line reads without being seen themselves.
_HIDDEN = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u200b-\u200f\u202a-\u202e\u2060-\u2069\ufeff]"
)


def visible(text: str) -> str:
    """Return ``text`` with control, zero-width and direction characters spelt out."""
    return _HIDDEN.sub(lambda match: f"<U+{ord(match[0]):04X}>", text)


def code_lines(source: SourceFile, span: Span) -> Table:
    """Return the numbered, highlighted lines of a span."""
    marks: dict[int, list[tuple[int, int, str]]] = {}
    for mark in highlight(source, span.first, span.last):
        style = _STYLES.get(mark.kind.split(".")[0])
        if style:
            marks.setdefault(mark.line, []).append((mark.start, mark.end, style))
    grid = Table.grid(padding=(0, 2, 0, 0))
    grid.add_column(justify="right", style="dim", no_wrap=True)
    grid.add_column(overflow="fold")
    for number in range(span.first, span.last + 1):
        grid.add_row(str(number), _line(source, number, marks.get(number, [])))
    return grid


def _line(source: SourceFile, number: int, marks: list[tuple[int, int, str]]) -> Text:
    raw = source.raw_lines[number - 1].removesuffix(b"\r")

    def column(offset: int) -> int:
        before = raw[:offset].decode("utf-8", "replace")
        return len(visible(before).expandtabs(4))

    line = Text(visible(source.line(number)).expandtabs(4), style="default")
    for start, end, style in marks:
        line.stylize(style, column(start), column(end))
    return line


def note_view(
    note: Note,
    source: SourceFile,
    references: Mapping[str, Reference],
    *,
    width: int,
    beside: list[tuple[str, SourceFile, Span]],
) -> RenderableType:
    """Return the page of one note.

    ``beside`` holds what mirrors put next to it: a heading, the mini's file, lines.
    """
    annotation = note.annotation
    title = Text.assemble(
        (annotation.kind, _KIND_STYLES[annotation.kind]),
        "  ",
        (visible(annotation.title), "bold"),
        ("  " + annotation.id, "dim"),
    )
    code = code_lines(source, note.span)
    text = Group(*_paragraphs(annotation, references))
    parts: list[RenderableType] = [
        title,
        Text(f"{note.span}  {note.symbol}", style="dim"),
        Text(),
    ]
    if width >= SIDE_BY_SIDE_WIDTH:
        grid = Table.grid(padding=(0, 3), expand=True)
        grid.add_column(ratio=1)
        grid.add_column(width=NOTE_WIDTH)
        grid.add_row(code, text)
        parts.append(grid)
    else:
        parts += [code, Text(), Padding(text, (0, 0, 0, 2))]
    for heading, mini, span in beside:
        parts += [
            Text(),
            Rule(Text(heading, style="magenta"), align="left", style="dim"),
        ]
        parts.append(Text(str(span), style="dim"))
        parts.append(code_lines(mini, span))
    return Group(*parts)


def _paragraphs(
    annotation: Annotation, references: Mapping[str, Reference]
) -> Iterator[RenderableType]:
    labels = {
        "decision": "Decided",
        "alternative": "Instead of",
        "why": "Why",
        "cost": "Cost",
        "text": "",
    }
    for name, label in labels.items():
        value: str = getattr(annotation, name)
        if value:
            head = Text(f"{label}  ", style="bold") if label else Text()
            yield Text.assemble(head, prose(value))
            yield Text()
    for citation in annotation.references:
        yield Text.assemble(("Source  ", "bold"), cite(citation, references))
    yield Text.assemble(("Concepts  ", "bold"), ", ".join(annotation.concepts))


def prose(text: str) -> Text:
    """Return a note's text with its inline code marked."""
    parts = re.split(r"`([^`\n]+)`", visible(text))
    spans = [(part, "cyan" if index % 2 else "") for index, part in enumerate(parts)]
    return Text.assemble(*spans)


def cite(citation: Citation, references: Mapping[str, Reference]) -> str:
    """Return a citation in words: authors, year, title, section, address."""
    work = references[citation.key]
    section = ""
    if citation.section:
        heading = work.sections.get(citation.section, "")
        number = citation.section
        name = f"section {number}" if number[:1].isdigit() else number
        section = f", {name}" + (f" “{heading}”" if heading else "")
    return visible(f"{work.authors} {work.year}, {work.title}{section}. {work.url}")


def proof(note: Note, upstream: Upstream, *, blob: str, came_from: str) -> list[Text]:
    """Return what a reader can check the page by: link, pin, blob, review."""
    state = {
        "reviewed": "the note was reviewed against exactly these lines",
        "unreviewed": f"not reviewed yet: readerkit review {note.annotation.id}",
        "changed": "these lines changed since the note was reviewed",
        "unlocked": "the lock says other lines: readerkit annotate --update-lock",
    }[note.state]
    rows = [
        ("link", upstream.permalink(note.span)),
        ("pinned", f"{upstream.title} {upstream.tag}, commit {upstream.commit}"),
        ("blob", f"{blob}, verified on this read; from {came_from}"),
        ("state", state),
    ]
    if upstream.licence:
        licence = upstream.licence
        terms = f"{upstream.url}/blob/{upstream.commit}/{licence.path}"
        rows.append(("rights", f"© {licence.holder}, {licence.spdx}: {terms}"))
    return [
        Text.assemble((f"{label:7} ", "dim"), visible(value)) for label, value in rows
    ]


def console(width: int | None = None) -> Console:
    """Return a console that never guesses at markup, emoji or links in our text."""
    return Console(
        width=width, markup=False, emoji=False, highlight=False, soft_wrap=False
    )
