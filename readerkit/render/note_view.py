"""One note in the terminal: the real lines, the note, and where both can be checked."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from rich.console import Console, Group, RenderableType
from rich.constrain import Constrain
from rich.padding import Padding
from rich.rule import Rule
from rich.table import Table
from rich.text import Text

from readerkit.anchors import Span
from readerkit.claims.proof_marks import MARK
from readerkit.content.annotations import Annotation, Citation, CitedWork
from readerkit.content.resolved_notes import Note
from readerkit.content.vocabulary import LABELS, STARTS
from readerkit.model.language import Say, english
from readerkit.render.terminal_code import Shown, code_lines
from readerkit.render.terminal_safe import visible, visible_line
from readerkit.upstreams import Upstream
from readerkit.wording.next_command import typed


class Beside(NamedTuple):
    """Lines of another place, with what records show of them."""

    heading: str
    says: str
    """What they say to the note; empty where a mirror put them there."""
    source: Shown
    span: Span
    ran: Sequence[str]


PROVED = "✓"
"""Behind a sentence that is proved."""
SIDE_BY_SIDE_WIDTH = 150
NOTE_WIDTH = 62
_KIND_STYLES = {"citation": "cyan", "note": "green", "pitfall": "yellow"}
UNFOLDED = 10_000
"""Columns that no line which is shown comes near."""


def note_lines(
    note: Note, source: Shown, *, width: int | None, say: Say = english
) -> Group:
    """Return what a note is on: its title, its place, and the real lines."""
    return Group(*_heading(note, say), code_lines(source, note.span, width))


def _heading(note: Note, say: Say) -> list[RenderableType]:
    annotation = note.annotation
    title = Text.assemble(
        (say(annotation.kind), _KIND_STYLES[annotation.kind]),
        "  ",
        (visible_line(annotation.title), "bold"),
        ("  " + annotation.id, "dim"),
    )
    place = f"{visible_line(str(note.span))}  {visible_line(note.symbol)}"
    return [title, Text(place, "dim"), Text()]


def note_view(
    note: Note,
    source: Shown,
    references: Mapping[str, CitedWork],
    *,
    width: int,
    beside: Iterable[Beside],
    conditions: Sequence[str] = (),
    ran: Sequence[str] = (),
    folds: bool = True,
    below: bool = False,
    say: Say = english,
) -> Group:
    """Return the page of one note.

    ``beside`` holds what it shows of other places, and what mirrors put next to it;
    ``conditions`` are the words of those that it names;
    ``ran`` is what records show of the note's own lines.
    Unless it ``folds``, lines of code are wider than ``width`` where they are; with
    ``below`` the note's own lines are left out, which stand above already.
    """
    text = Group(*_paragraphs(note.annotation, references, conditions, say))
    parts: list[RenderableType] = []
    if below:
        parts.append(_indented(text, width))
    elif width >= SIDE_BY_SIDE_WIDTH and folds:
        code = code_lines(source, note.span, width - NOTE_WIDTH - 6)
        grid = Table.grid(padding=(0, 3), expand=True)
        grid.add_column(ratio=1)
        grid.add_column(width=NOTE_WIDTH)
        grid.add_row(code, text)
        parts += [*_heading(note, say), grid]
    else:
        lines = note_lines(note, source, width=width if folds else None, say=say)
        parts += [lines, Text(), _indented(text, width)]
    parts += _evidence(ran, width, say)
    for each in beside:
        heading = Text(visible_line(each.heading), style="magenta")
        parts += [Text(), Constrain(Rule(heading, align="left", style="dim"), width)]
        parts += [Constrain(prose(each.says), width)] if each.says else []
        parts.append(Text(visible_line(str(each.span)), style="dim"))
        parts.append(code_lines(each.source, each.span, width if folds else None))
        parts += _evidence(each.ran, width, say)
    return Group(*parts)


def _indented(text: Group, width: int) -> Constrain:
    return Constrain(Padding(text, (0, 0, 0, 2)), width)


def _evidence(ran: Sequence[str], width: int, say: Say) -> list[RenderableType]:
    label = f"{say('Record')}  "
    rows = [Text.assemble((label, "bold"), visible(row)) for row in ran]
    return [Text(), *(Constrain(row, width) for row in rows)] if rows else []


def _paragraphs(
    annotation: Annotation,
    references: Mapping[str, CitedWork],
    conditions: Sequence[str],
    say: Say,
) -> Iterator[RenderableType]:
    for name, label in LABELS.items():
        value: str = getattr(annotation, name)
        if value:
            head = Text(f"{say(label)}  ", style="bold") if label else Text()
            yield Text.assemble(head, prose(value))
            yield Text()
    if annotation.starts:
        starts = ", ".join(say(STARTS[each]) for each in annotation.starts)
        yield Text.assemble((f"{say('Holds for')}  ", "bold"), starts)
    if conditions:
        where = prose("; ".join(conditions))
        yield Text.assemble((f"{say('Holds where')}  ", "bold"), where)
    for citation in annotation.references:
        source = cite(citation, references, say)
        yield Text.assemble((f"{say('Source')}  ", "bold"), source)
    concepts = ", ".join(annotation.concepts)
    yield Text.assemble((f"{say('Concepts')}  ", "bold"), concepts)
    if annotation.claims:
        count = len({claim.says for claim in annotation.claims})
        shown = typed("annotate", annotation.id, "--claims")
        told = say("{count} passages, shown by {command}")
        if count == 1:
            told = say("one passage, shown by {command}")
        words = told.format(count=count, command=shown)
        if any(map(MARK.search, annotation.texts.values())):
            words = f"{PROVED} {words}"
        yield Text.assemble((f"{say('Proved')}  ", "bold"), (words, "dim"))


def prose(text: str) -> Text:
    """Return a note's text with its inline code marked, and what is proved in it."""
    parts = re.split(r"(`[^`\n]+`|⟦\d+⟧)", visible(text))
    return Text.assemble(*map(_styled, parts))


def _styled(part: str) -> tuple[str, str]:
    if MARK.fullmatch(part):
        return PROVED, "dim"
    return (part.strip("`"), "cyan") if part[:1] == part[-1:] == "`" else (part, "")


def cite(
    citation: Citation, references: Mapping[str, CitedWork], say: Say = english
) -> str:
    """Return a citation in words: authors, year, title, section, address."""
    work = references[citation.key]
    section = ""
    if citation.section:
        heading = work.sections.get(citation.section, "")
        number = citation.section
        named = say("section {number}").format(number=number)
        name = named if number[:1].isdigit() else number
        section = f", {name}" + (f" “{heading}”" if heading not in ("", number) else "")
    return visible(f"{work.authors} {work.year}, {work.title}{section}. {work.url}")


_STATES = {
    "reviewed": "the note was reviewed against exactly these lines",
    "unreviewed": "not reviewed yet",
    "changed": "these lines, or those around them, changed since the note was reviewed",
    "unlocked": "the lock does not hold these lines",
    "floating": "read where it stands: a folder has no lock to be held against",
    "absent": "not fetched: the place is the one that was locked",
}


def proof(
    note: Note,
    upstream: Upstream,
    *,
    blob: str,
    came_from: str,
    others: Iterable[Upstream] = (),
    say: Say = english,
) -> list[Text]:
    """Return what a reader can check the page by: link, pin, blob, review, rights.

    ``others`` are upstreams of which it shows lines too.
    """
    mend = {
        "unreviewed": f": {typed('review', note.annotation.id)}",
        "unlocked": f": {typed('annotate', '--update-lock')}",
    }
    state = say(_STATES[note.state]) + mend.get(note.state, "")
    verified = say("{blob}, verified on this read; from {origin}")
    if note.state == "absent":
        verified = "{blob}"
    if upstream.is_pinned:
        title = f"{upstream.title} {upstream.tag}".strip()
        link = upstream.permalink(note.span)
        rows = [
            *([("link", link)] if link else []),
            ("pinned", f"{title}, {upstream.pin_whole}"),
            ("blob", verified.format(blob=blob, origin=came_from)),
        ]
    elif upstream.is_living:
        rows = [("as it is", f"{upstream.title}, {upstream.pin}"), ("blob", blob)]
    else:
        rows = [("folder", f"{upstream.title}, {upstream.folder}"), ("blob", blob)]
    rows.append(("state", state))
    for each in (upstream, *others):
        if licence := each.licence:
            terms = f"{each.url}/blob/{each.commit}/{licence.path}"
            row = ("rights", f"© {licence.holder}, {licence.spdx}: {terms}")
            rows += [row] if row not in rows else []
    return [
        Text.assemble((f"{say(label):7} ", "dim"), visible(value))
        for label, value in rows
    ]


def on_page(screen: Console, view: RenderableType, rows: Sequence[Text] = ()) -> str:
    """Return what a screen shows, ``rows`` under a line at its foot.

    In a pipe no line of code is folded, and none ends in blanks.
    """
    # Rich falls back to ASCII only in rules that have a title.
    rule = ("-" if screen.options.ascii_only else "─") * screen.width
    folds, width = screen.is_terminal, screen.width
    with screen.capture() as page:
        screen.width = width if folds else UNFOLDED
        screen.print(view)
        screen.width = width
        for row in [Text(rule, "dim"), *rows] if rows else ():
            screen.print(row, soft_wrap=True)
    lines = page.get().split("\n")
    return "\n".join(lines if folds else map(str.rstrip, lines))


def console(width: int | None = None) -> Console:
    """Return a console that never guesses at markup, emoji or links in our text.

    ``NO_COLOR`` leaves rich its bold and dim; here it leaves nothing but the text.
    """
    asked: dict[str, Any] = {"markup": False, "emoji": False, "highlight": False}
    made = Console(width=width, soft_wrap=False, **asked)
    if made.no_color:
        made = Console(width=width, soft_wrap=False, color_system=None, **asked)
    return made
