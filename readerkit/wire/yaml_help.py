"""What an editor shows in the YAML of a book: faults, and what may be typed next."""

from __future__ import annotations

import contextlib
import json
import re
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from lsprotocol import types

from readerkit.anchors import SourceFile, Span
from readerkit.anchors.conditions import conditions_in
from readerkit.anchors.propose import propose
from readerkit.anchors.settings import names_of_defaults
from readerkit.app.library import Library
from readerkit.content.resolved_notes import Sources, resolve_each
from readerkit.errors import AnchorError, ContentFault, ReaderkitError
from readerkit.wire.open_book import OpenBook, is_file
from readerkit.wire.source_help import SHOW_NOTE, line_range
from readerkit.wire.yaml_keys import offered, place_in

MAX_ITEMS = 200
PATTERNS_S = 1.0
"""For so long patterns are looked for: whoever types waits no longer."""
_KEYS = (
    *("concepts", "conditions", "requires", "recurs", "key", "section"),
    *("note", "notes", "upstream"),
    *("file", "symbol", "code", "from", "to", "of", "in", "under", "unless"),
)
"""Those whose values are offered."""
_KEY = re.compile(rf"(?:^|[\s{{,])(?P<key>{'|'.join(_KEYS)}):\s+")
_BLOCK = re.compile(r"\s*(?:- )*code:\s+[|>][+-]?\s*")
"""What begins a pattern on lines of its own."""
_ITEM = re.compile(r"^\s*-\s+(?P<value>[\w-]*)$")
_BESIDE = re.compile(r"(?:^|[\s{,])(file|symbol|key):\s*([^\s,}]+)", re.M)
_ID = re.compile(r"[a-z0-9]+(?:-[a-z0-9]+)*")


@dataclass(frozen=True, slots=True)
class Typed:
    """What is being typed: the key whose value it is, and the text so far."""

    key: str
    value: str
    is_block: bool = False
    """Whether it stands on lines of its own, where YAML asks for no quotes."""


def diagnostics(book: OpenBook, file: Path, text: str) -> list[types.Diagnostic]:
    """Return every fault of a file of the book, its anchors' too."""
    lines = text.splitlines()
    return [_diagnostic(fault, lines) for fault in book.faults_in(file, text)]


def _diagnostic(fault: ContentFault, lines: list[str]) -> types.Diagnostic:
    row = min(max(fault.line, 1), max(len(lines), 1))
    at = line_range(row, row, lines)
    at.start.character = max(fault.column - 1, 0)
    if at.end.character <= at.start.character:
        at.end.character = at.start.character + 1
    severity = types.DiagnosticSeverity.Error
    return types.Diagnostic(at, fault.message, severity, source="readerkit")


def typed_at(text: str, line: int, character: int) -> Typed | None:
    """Return what is being typed at a place, counted from 0."""
    rows = text.splitlines()
    if line >= len(rows):
        return None
    before = rows[line][:character]
    keys = [*_KEY.finditer(before)]
    if keys:
        value = before[keys[-1].end() :]
        if value.startswith("["):
            value = re.split(r"[\[,]\s*", value)[-1]
        return Typed(keys[-1]["key"], value)
    if _BLOCK.fullmatch(_above(rows, line)):
        return Typed("code", before.lstrip(), is_block=True)
    if match := _ITEM.match(before):
        return Typed(_key_above(rows, line), match["value"])
    return None


def _above(rows: list[str], line: int) -> str:
    """Return the nearest line above that is indented less."""
    indent = len(rows[line]) - len(rows[line].lstrip())
    less = (r for r in reversed(rows[:line]) if len(r) - len(r.lstrip()) < indent)
    return next((row for row in less if row.strip()), "")


def _key_above(rows: list[str], line: int) -> str:
    """Return the key of the list that a line is an item of."""
    indent = len(rows[line]) - len(rows[line].lstrip())
    for row in reversed(rows[:line]):
        own = len(row) - len(row.lstrip())
        if row.strip() and not row.lstrip().startswith("- ") and own <= indent:
            return row.strip().rstrip(":") if row.rstrip().endswith(":") else ""
    return ""


def completions(
    book: OpenBook, file: Path, text: str, line: int, character: int
) -> list[types.CompletionItem]:
    """Return what may stand where somebody types: symbols, files, ids, patterns."""
    library = book.library()
    if fixed := _of_schema(book, file, text, line, character):
        return fixed
    typed = typed_at(text, line, character)
    if typed is None:
        return []
    start = types.Position(line, character - len(typed.value))
    at = types.Range(start, types.Position(line, character))
    found = _offered(typed, library, file, _around(text, line, character))
    wanted = typed.value.strip("\"' ")
    items = []
    for label, detail in found:
        if wanted and wanted.casefold() not in label.casefold():
            continue
        items.append(_item(label, detail, typed, at))
        if len(items) == MAX_ITEMS:
            break
    return items


def _of_schema(
    book: OpenBook, file: Path, text: str, line: int, character: int
) -> list[types.CompletionItem]:
    """Return the keys that an entry takes there, or the words a value may be."""
    place, top = place_in(text, line, character), book.part_of_book(file)
    if place is None or top is None:
        return []
    start = types.Position(line, character - len(place.typed))
    at = types.Range(start, types.Position(line, character))
    kind = types.CompletionItemKind.EnumMember
    if place.is_key:
        kind = types.CompletionItemKind.Property
    end = ": " if place.is_key else ""
    return [
        types.CompletionItem(
            name, detail=says, kind=kind, text_edit=types.TextEdit(at, name + end)
        )
        for name, says in offered(file, top, place)
        if name.startswith(place.typed)
    ]


def _item(
    label: str, detail: str, typed: Typed, at: types.Range
) -> types.CompletionItem:
    is_plain = typed.is_block or re.fullmatch(r"[\w./-]+", label)
    new = label if is_plain and typed.value[:1] != '"' else json.dumps(label)
    return types.CompletionItem(
        label,
        detail=detail,
        kind=types.CompletionItemKind.Reference,
        filter_text=typed.value + label,
        text_edit=types.TextEdit(at, new),
    )


def _offered(
    typed: Typed, library: Library, file: Path, around: dict[str, str]
) -> Iterator[tuple[str, str]]:
    """Yield what may be the value of a key, each with what it is."""
    book = library.book
    if typed.key in ("concepts", "requires", "recurs"):
        yield from ((each.id, each.title) for each in book.concepts.values())
    elif typed.key == "conditions":
        yield from ((each.id, each.title) for each in book.conditions.values())
    elif typed.key == "key":
        yield from ((each.key, each.title) for each in book.references.values())
    elif typed.key == "section" and around.get("key") in book.references:
        yield from book.references[around["key"]].sections.items()
    elif typed.key in ("note", "notes", "upstream"):
        yield from ((each.id, each.title) for each in book.annotations.values())
    else:
        yield from _of_source(typed.key, library, file, around)


def _of_source(
    key: str, library: Library, file: Path, around: dict[str, str]
) -> Iterator[tuple[str, str]]:
    own = library.book.upstreams.get(file.parent.name)
    upstreams = [own] if own else [*library.book.upstreams.values()]
    for upstream in upstreams:
        sources = library.sources(upstream)
        if key in ("file", "in"):
            yield from ((path, upstream.title) for path in sorted(sources.paths))
            continue
        if (source := _source(sources, around.get("file", ""))) is None:
            continue
        if key == "symbol":
            for name, symbols in source.symbols.items():
                yield name, f"lines {symbols[0].first}-{symbols[0].last}"
        elif key == "of":
            if source.language.is_python:
                for name, number in names_of_defaults(source):
                    yield name, f"line {number}: {source.line(number).strip()[:60]}"
        elif key in ("under", "unless"):
            with contextlib.suppress(AnchorError):  # no such definition
                found = conditions_in(source, around.get("symbol"))
                yield from {f.text: f"line {f.span.first}" for f in found}.items()
        else:
            yield from _patterns(source, around.get("symbol", ""))


def _source(sources: Sources, path: str) -> SourceFile | None:
    known = next((each for each in sources.paths if each == path), None)
    try:
        return sources.file(known) if known else None
    except ReaderkitError:
        return None


def _patterns(source: SourceFile, symbol: str) -> Iterator[tuple[str, str]]:
    """Yield patterns that name one place each, with the line of it."""
    scopes = source.symbols.get(symbol, ())
    first = scopes[0].first + 1 if scopes else 1
    last = scopes[0].last if scopes else len(source.raw_lines)
    end, seen = time.monotonic() + PATTERNS_S, set()
    for number in range(first, last + 1):
        if time.monotonic() > end:
            return
        try:
            anchor = propose(Span(source.path, number, number), source)
        except AnchorError:
            continue
        is_here = (anchor.symbol or "") == symbol and not anchor.nth
        if anchor.code and is_here and anchor.code not in seen:
            seen.add(anchor.code)
            yield anchor.code, f"line {number}: {source.line(number).strip()[:60]}"


def _around(text: str, line: int, character: int) -> dict[str, str]:
    """Return the keys beside a place: of the braces, or of the entry, that it is in.

    Of an entry with several files, as one with claims has, those right before it count.
    """
    rows = text.splitlines()
    begin = next((n for n in range(line, -1, -1) if rows[n].startswith("- ")), 0)
    end = line + 1
    while end < len(rows) and not rows[end].startswith("- "):
        end += 1
    before = "\n".join([*rows[begin:line], rows[line][:character]])
    after = "\n".join([rows[line][character:], *rows[line + 1 : end]])
    if (brace := before.rfind("{")) > before.rfind("}"):
        before, after = before[brace:], after.partition("}")[0]
    found: dict[str, str] = {}
    for key, value in _BESIDE.findall(before):
        if key == "file":  # what is named before is of another file
            found.pop("symbol", None)
        found[key] = value.strip("\"'")
    for key, value in _BESIDE.findall(after):
        if key == "file" and "file" in found:
            break
        found.setdefault(key, value.strip("\"'"))
    return found


def lenses_on_entries(book: OpenBook, file: Path) -> list[types.CodeLens]:
    """Return above each note that is written in a file the lines that it names."""
    library, found = book.library(), []
    for upstream in library.book.upstreams.values():
        notes = library.book.notes_on(upstream.name)
        here = [note for note in notes if is_file(note.place.file, file)]
        if not here:
            continue
        for note in resolve_each(library.book, library.sources(upstream), here)[0]:
            row = types.Position(note.annotation.place.line - 1, 0)
            name = note.annotation.id
            shown = types.Command(
                f"{note.span} ({note.state})", SHOW_NOTE, arguments=[name]
            )
            found.append(types.CodeLens(types.Range(row, row), shown))
    return found


def links_in_entries(book: OpenBook, file: Path, text: str) -> list[types.DocumentLink]:
    """Return a link from the id of each note in a file to its lines at the pin."""
    library, lines, found = book.library(), text.splitlines(), []
    for upstream in library.book.upstreams.values():
        notes = library.book.notes_on(upstream.name)
        here = [note for note in notes if is_file(note.place.file, file)]
        resolved = resolve_each(library.book, library.sources(upstream), here)[0]
        for note in resolved if here else ():
            link, row = upstream.permalink(note.span), note.annotation.place.line
            if link and row <= len(lines):
                at = line_range(row, row, lines)
                found.append(types.DocumentLink(at, link, f"{note.span}"))
    return found


def hover_on_name(
    book: OpenBook, text: str, line: int, character: int
) -> types.Hover | None:
    """Return what an id in the YAML of a book names."""
    rows = text.splitlines()
    row = rows[line] if line < len(rows) else ""
    found = next(
        (m for m in _ID.finditer(row) if m.start() <= character < m.end()), None
    )
    if found is None:
        return None
    name, written = found[0], book.library().book
    if note := written.annotations.get(name):
        said = f"**{note.title}**\n\n{note.kind} on `{note.anchor.file}`"
    elif concept := written.concepts.get(name):
        said = f"**{concept.title}**\n\n{concept.summary}"
    elif condition := written.conditions.get(name):
        said = f"**{condition.title}**"
    elif work := written.references.get(name):
        said = f"**{work.title}** ({work.authors}, {work.year})\n\n{work.url}"
    else:
        return None
    at = types.Range(
        types.Position(line, found.start()), types.Position(line, found.end())
    )
    return types.Hover(types.MarkupContent(types.MarkupKind.Markdown, said), at)
