"""What an editor shows on source: hovers, lenses, links, and a note begun here."""

from __future__ import annotations

from pathlib import Path

from lsprotocol import types

from readerkit.anchors import SourceFile, Span, resolve
from readerkit.anchors.quotes import propose_around
from readerkit.app.library import Library
from readerkit.app.new_note import free_id, make_form, note_file, note_root
from readerkit.errors import AnchorError, ReaderkitError
from readerkit.wire.note_text import note_markdown
from readerkit.wire.open_book import OpenBook, PlacedNote

SHOW_NOTE = "readerkit.showNote"
TOUR_STOP = "readerkit.tourStop"
MAX_HINT = 200


def line_range(first: int, last: int, lines: list[str]) -> types.Range:
    """Return the range of some lines without the indent of the first."""
    row = lines[first - 1] if first <= len(lines) else ""
    end = lines[last - 1].rstrip("\r\n") if last <= len(lines) else ""
    start = types.Position(first - 1, len(row) - len(row.lstrip()))
    width = len(end.encode("utf-16-le", "surrogatepass")) // 2
    return types.Range(start, types.Position(last - 1, width))


def hover(book: OpenBook, file: Path, text: str, line: int) -> types.Hover | None:
    """Return the notes whose lines a line is among, the narrowest first."""
    placed, _ = book.notes_in(file, text)
    here = [each for each in placed if each.span.first <= line <= each.span.last]
    if not here:
        return None
    here.sort(key=lambda each: each.span.last - each.span.first)
    library = book.library()
    said = [note_markdown(library, n.annotation, n.upstream, n.span) for n in here]
    lines = text.splitlines()
    narrowest = here[0].span
    return types.Hover(
        types.MarkupContent(types.MarkupKind.Markdown, "\n\n---\n\n".join(said)),
        line_range(narrowest.first, narrowest.last, lines),
    )


def lenses(book: OpenBook, file: Path, text: str) -> list[types.CodeLens]:
    """Return a lens above each note, and one for each tour that stops there."""
    placed, _ = book.notes_in(file, text)
    lines, tours = text.splitlines(), book.library().book.tours.values()
    found = []
    for each in placed:
        at = line_range(each.span.first, each.span.first, lines)
        note = each.annotation
        shown = types.Command(
            f"{note.kind}: {note.title}", SHOW_NOTE, arguments=[note.id]
        )
        found.append(types.CodeLens(at, shown))
        for tour in tours:
            names = [stop.note for stop in tour.stops]
            if note.id in names:
                number = names.index(note.id) + 1
                title = f"{tour.title}: {number} of {len(names)}"
                to = min(number + 1, len(names))
                go = types.Command(title, TOUR_STOP, arguments=[tour.id, to])
                found.append(types.CodeLens(at, go))
    return found


def links(book: OpenBook, file: Path, text: str) -> list[types.DocumentLink]:
    """Return a link from the first line of each note to its lines at the pin.

    Of a note on a work tree, to where the note is written.
    """
    placed, _ = book.notes_in(file, text)
    lines, library = text.splitlines(), book.library()
    return [
        types.DocumentLink(
            line_range(each.span.first, each.span.first, lines),
            each.upstream.permalink(each.span) or written_at(library, each),
            f"{each.annotation.title} ({each.annotation.id})",
        )
        for each in placed
    ]


def written_at(library: Library, note: PlacedNote) -> str:
    """Return the address of the entry of a note on this disk."""
    place = note.annotation.place
    top = Path() if note.annotation.mine else library.root
    return f"{(top / place.file).as_uri()}#L{place.line}"


def hints(book: OpenBook, file: Path, text: str) -> list[types.Diagnostic]:
    """Return for each note on a file that has no lines in this text, why."""
    _, lost = book.notes_in(file, text)
    top = types.Range(types.Position(0, 0), types.Position(0, 0))
    return [
        types.Diagnostic(
            top,
            f"{note.id}: its lines are not in this text: {error.reason}"[:MAX_HINT],
            types.DiagnosticSeverity.Hint,
            source="readerkit",
        )
        for note, error in lost
    ]


def note_here(
    book: OpenBook, file: Path, text: str, first: int, last: int
) -> types.CodeAction | None:
    """Return the action that begins a note on some lines, in the book's own file.

    The anchor is proposed on the text of the editor; of a pinned upstream it must name
    one place of the pinned file too.
    """
    home = book.home_of(file)
    if home is None:
        return None
    action = types.CodeAction(
        "readerkit: note here", types.CodeActionKind.RefactorExtract
    )
    library = book.library()
    sources = library.sources(home.upstream)
    try:
        source = SourceFile(home.path, text.encode("utf-8", "surrogatepass"))
        anchor = propose_around(Span(home.path, first, last), source)
        span = resolve(anchor, sources.file(home.path))
        root = note_root(library, None)
        target = note_file(root, home.upstream, "my-notes")
        note_id = free_id(library, target)
        entry, _ = make_form(note_id, "note", library, home.upstream, span)
    except ReaderkitError as error:
        why = error.reason if isinstance(error, AnchorError) else str(error)
        action.disabled = types.CodeActionDisabled(why)
        return action
    action.edit = _append(target, entry)
    return action


def _append(target: Path, entry: str) -> types.WorkspaceEdit:
    """Return the edit that adds an entry to a file, which is made first if need be."""
    uri = target.as_uri()
    had = target.read_text("utf-8") if target.is_file() else ""
    kept = had.rstrip()
    start, end = _end_of(kept), _end_of(had)
    new = f"\n\n{entry}" if kept else entry
    edit = types.TextEdit(types.Range(start, end), new)
    document = types.OptionalVersionedTextDocumentIdentifier(uri)
    changes: list[types.CreateFile | types.TextDocumentEdit] = []
    if not target.is_file():
        options = types.CreateFileOptions(ignore_if_exists=True)
        changes.append(types.CreateFile(uri, options=options))
    changes.append(types.TextDocumentEdit(document, [edit]))
    return types.WorkspaceEdit(document_changes=changes)


def _end_of(text: str) -> types.Position:
    last = text.rpartition("\n")[2]
    width = len(last.encode("utf-16-le", "surrogatepass")) // 2
    return types.Position(text.count("\n"), width)
