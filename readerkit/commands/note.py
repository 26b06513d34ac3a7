"""``readerkit note``: write a note on lines, with its anchor proposed and proved."""

from __future__ import annotations

import re
import sys
from dataclasses import dataclass, replace
from itertools import chain, count
from pathlib import Path
from typing import TYPE_CHECKING

import click

from readerkit.commands.options import book_option

if TYPE_CHECKING:
    from readerkit.anchors import Anchor, SourceFile, Span
    from readerkit.book import Note, Sources
    from readerkit.commands.library import Library
    from readerkit.errors import ReaderkitError
    from readerkit.upstreams import Upstream

_LINES = re.compile(r"(?P<path>.+):(?P<first>\d{1,7})(?:-(?P<last>\d{1,7}))?")
_FIELDS = {"citation": ("decision", "alternative", "why", "cost")}
MAX_SHOWN_LINES = 60
MAX_YAML_WIDTH = 1_000_000  # no line is folded


@click.command(short_help="Write a note of your own on FILE:LINES.")
@click.argument("place", metavar="FILE:LINES")
@click.option(
    "--id",
    "note_id",
    help="The id of the new note; by default new-note, or my-note in your overlay.",
)
@click.option(
    "--kind",
    type=click.Choice(["citation", "note", "pitfall"]),
    default="citation",
    help="A design decision, how to read the lines, or a trap; by default citation.",
)
@click.option("--topic", help="The file it goes to: <topic>.yaml; by default my-notes.")
@click.option(
    "--into",
    type=click.Choice(["book", "mine"]),
    help="The book at hand, or your own overlay (the default outside a checkout).",
)
@click.option(
    "--print", "only_print", is_flag=True, help="Print the entry; write nothing."
)
@book_option
def note(
    place: str,
    note_id: str | None,
    kind: str,
    topic: str | None,
    into: str | None,
    only_print: bool,
    book: Path | None,
) -> None:
    """Write a note on FILE:LINES: proposes the narrowest unique anchor, opens $EDITOR.

    FILE is a path inside an upstream (or a unique end of one), LINES is 12 or 12-20.

    \b
    Example:
        readerkit note megatron/core/tensor_parallel/layers.py:1289-1292
        readerkit note tensor_parallel/layers.py:1286-1294 --kind note
    """
    from readerkit.anchors.propose import propose
    from readerkit.commands.library import open_library

    library = open_library(book)
    upstream, span = _find(place, library)
    target = _target(library, upstream, topic or "my-notes", into)
    note_id = _free_id(note_id, library, target)
    source = library.sources(upstream).file(span.path)
    entry = _entry(note_id, kind, propose(span, source), library, upstream)
    if only_print:
        click.echo(entry, nl=False)
        return
    if target.is_relative_to(library.mine):  # before anyone types, not after
        open_library(book, whole=True, quiet=True)
    draft = _edit(entry, span, source, library)
    _write(library, upstream, target, draft, book)


def _free_id(given: str | None, library: Library, target: Path) -> str:
    """Return the id that was asked for, or the next free one.

    A reader's own notes and those of a book are named differently: an overlay lies over
    any book, and what is free in one may be taken in the next.
    """
    from readerkit.errors import ReaderkitError
    from readerkit.shapes import ID_PATTERN

    taken = library.book.annotations
    if given is None:
        is_mine = target.is_relative_to(library.mine)
        name = "my-note" if is_mine else "new-note"
        # Also of notes that were left out here.
        own = library.mine.glob("annotations/*/*.yaml") if is_mine else ()
        texts = [file.read_bytes() for file in own if file.is_file()]
        numbered = (f"{name}-{number}" for number in count(2))
        return next(
            free
            for free in chain([name], numbered)
            if free not in taken
            and not any(re.search(rb"\b%b\b(?!-)" % free.encode(), t) for t in texts)
        )
    if not re.fullmatch(ID_PATTERN, given):
        raise click.UsageError(
            f"--id: got '{given}', expected small letters, digits and hyphens, "
            "such as tp-my-close"
        )
    if given in taken:
        place = taken[given].place
        raise ReaderkitError(
            f"the id '{given}' is taken ({place.file}:{place.line}): choose another"
        )
    return given


def _find(place: str, library: Library) -> tuple[Upstream, Span]:
    """Return the upstream and the lines that ``FILE:LINES`` names."""
    from readerkit.anchors import Span
    from readerkit.errors import ReaderkitError

    match = _LINES.fullmatch(place)
    if match is None:
        raise click.UsageError(
            f"FILE:LINES: got '{place}', expected path:12 or path:12-20"
        )
    path, first = match["path"], int(match["first"])
    last = int(match["last"] or first)
    found = [
        (upstream, known)
        for upstream in library.pinned()
        for known in library.lock(upstream).files
        if known == path or known.endswith("/" + path.lstrip("/"))
    ]
    exact = [(upstream, known) for upstream, known in found if known == path]
    if len(exact or found) == 1:
        upstream, known = (exact or found)[0]
        return upstream, Span(known, first, last)
    if not found:
        raise ReaderkitError(
            f"no upstream includes a file '{path}': expected a path as "
            "readerkit annotate shows it, such as megatron/core/parallel_state.py"
        )
    rows = "\n".join(f"    {known} ({upstream.name})" for upstream, known in found[:8])
    raise ReaderkitError(f"'{path}' fits {len(found)} files, expected one:\n{rows}")


def _entry(
    note_id: str, kind: str, anchor: Anchor, library: Library, upstream: Upstream
) -> str:
    """Return the YAML of a note with its anchor filled in and its texts still empty.

    Reference and concept are those of another note nearby, to be replaced.
    """
    import textwrap

    import yaml

    at = yaml.safe_dump(anchor.to_yaml(), sort_keys=False, width=MAX_YAML_WIDTH)
    rows = [f"- id: {note_id}", "  at:", textwrap.indent(at.rstrip(), "    ")]
    rows += [f"  kind: {kind}", "  title:"]
    rows += [f"  {name}: >-\n    " for name in _FIELDS.get(kind, ("text",))]
    near = library.book.notes_on(upstream.name) or [*library.book.annotations.values()]
    near.sort(key=lambda other: other.anchor.file != anchor.file)
    cited = [citation for other in near for citation in other.references]
    concepts = [name for other in near for name in other.concepts]
    if kind == "citation" and cited:
        section = f', section: "{cited[0].section}"' if cited[0].section else ""
        rows.append(f"  references: [{{key: {cited[0].key}{section}}}]")
    rows.append(f"  concepts: [{', '.join(concepts[:1] or library.book.concepts)}]")
    return "\n".join(rows) + "\n"


def _target(library: Library, upstream: Upstream, topic: str, into: str | None) -> Path:
    from readerkit.commands.folders import is_checkout
    from readerkit.errors import ReaderkitError

    if not re.fullmatch(r"[a-z][a-z0-9_-]*", topic):
        raise ReaderkitError(
            f"--topic: got '{topic}', expected a name such as my-notes"
        )
    writable = is_checkout(library.root)
    if into == "book" and not writable:
        raise ReaderkitError(
            f"{library.root} is the copy inside the installed package: use --into mine"
        )
    root = library.root if writable and into != "mine" else library.mine
    return root / "annotations" / upstream.name / f"{topic}.yaml"


@dataclass(frozen=True, slots=True)
class _Draft:
    """What the reader saved, in a file that stays until the note is taken."""

    file: Path
    entry: str
    first_line: int
    """Of the entry in the file."""

    def discard(self) -> None:
        import shutil

        shutil.rmtree(self.file.parent, ignore_errors=True)


def _edit(entry: str, span: Span, source: SourceFile, library: Library) -> _Draft:
    """Let the reader fill the entry in; return what they saved.

    Raises:
        ReaderkitError: no editor, nothing changed, or no entry left.
    """
    import tempfile

    from readerkit.upstreams.store import write_atomically

    last = min(span.last, span.first + MAX_SHOWN_LINES - 1)
    lines = [f"#  {n:5} {source.line(n)}" for n in range(span.first, last + 1)]
    head = [
        "# Fill in the note below and save. Lines above the first '- ' are not kept.",
        "# What can be cited, and the concepts there are: references.yaml and",
        f"# concepts.yaml in {library.root / 'annotations'}",
        f"# {span}",
        *lines,
        "",
    ]
    # A path that is not UTF-8 is shown as well as it can be.
    text = ("\n".join(head) + "\n" + entry).encode("utf-8", "replace").decode()
    file = Path(tempfile.mkdtemp(prefix="readerkit-")) / "note.yaml"
    draft = _Draft(file, text, 1)
    write_atomically(file, text.encode())
    try:
        click.edit(filename=str(file))
    except click.ClickException as error:
        raise _refused(
            draft,
            f"{error.message}; set EDITOR to an editor that runs, or use --print and "
            "write the file yourself",
            text,
        ) from None
    try:
        saved = file.read_bytes().decode("utf-8-sig").replace("\r\n", "\n")
    except FileNotFoundError:
        raise _refused(draft, "the entry was removed") from None
    except UnicodeDecodeError as error:
        raise _refused(draft, f"{file}: not UTF-8 text: {error}", text) from None
    if saved.strip() == text.strip():
        draft.discard()
        raise _refused(draft, "the entry was closed unchanged")
    start = re.search(r"^- ", saved, re.MULTILINE)
    if start is None:
        raise _refused(draft, "there is no entry left that begins with '- '", text)
    first_line = saved.count("\n", 0, start.start()) + 1
    return _Draft(file, saved[start.start() :].rstrip() + "\n", first_line)


def _refused(draft: _Draft, problem: str, offered: str = "") -> Exception:
    """Return the error for a note that is not taken; what was typed is kept."""
    from readerkit.errors import ReaderkitError

    saved = draft.file.read_bytes() if draft.file.is_file() else b""
    if saved.strip() and saved != offered.encode():
        kept = f"; your text is in {draft.file}"
    else:
        draft.discard()
        kept = ""
    return ReaderkitError(f"{problem}\nnothing was written{kept}")


def _write(
    library: Library, upstream: Upstream, target: Path, draft: _Draft, book: Path | None
) -> None:
    """Append the entry if the whole book stays valid with it, lock it, show it."""
    from readerkit.commands.library import writing
    from readerkit.commands.shown_note import show_note
    from readerkit.errors import ReaderkitError

    try:
        with writing():
            fresh, sources, notes = _add(library, upstream, target, draft, book)
    except ReaderkitError as error:
        raise _refused(draft, str(error)) from None
    draft.discard()
    click.echo(f"wrote {target}")
    if sys.stdout.isatty():
        click.echo()
    for each in notes:
        show_note(fresh, replace(each, state="reviewed"), sources)


def _add(
    library: Library, upstream: Upstream, target: Path, draft: _Draft, book: Path | None
) -> tuple[Library, Sources, list[Note]]:
    """Write the entry and its lock; return what the book is then, and the new notes.

    Raises:
        ReaderkitError: the book does not hold with it; nothing is changed then.
    """
    from readerkit.book import lock_notes, resolve_notes
    from readerkit.commands.library import open_library, save_lock
    from readerkit.errors import ReaderkitError
    from readerkit.upstreams.store import write_atomically

    whole = target.is_relative_to(library.mine)
    # The book as it is now: another process may have written while the editor was open.
    known = set(open_library(book, whole=whole, quiet=True).book.annotations)
    before = target.read_bytes() if target.is_file() else None
    old = before.decode().rstrip() + "\n\n" if before else ""
    write_atomically(target, (old + draft.entry).encode())
    try:
        fresh = open_library(book, whole=whole, quiet=True)
        new = set(fresh.book.annotations) - known
        added = [fresh.book.annotations[name] for name in sorted(new)]
        sources = fresh.sources(upstream)
        notes = resolve_notes(fresh.book, sources, added)
        lock = fresh.book.locks[upstream.name]
        locked = lock_notes(lock, notes, sources).anchors
        # Whoever writes a note reads the lines it stands on.
        read = {k: replace(a, reviewed=a.fingerprint.code) for k, a in locked.items()}
        save_lock(fresh, upstream.name, lock.with_anchors({**lock.anchors, **read}))
    except ReaderkitError as error:
        _restore(target, before)
        message = _in_draft(error, target, old, draft)
        raise ReaderkitError(message) from None
    except BaseException:
        _restore(target, before)
        raise
    return fresh, sources, notes


def _in_draft(error: ReaderkitError, target: Path, old: str, draft: _Draft) -> str:
    """Return the message of ``error`` with its places moved to the draft."""
    from readerkit.errors import ContentError

    if not isinstance(error, ContentError):
        return str(error)
    shift = draft.first_line - 1 - old.count("\n")
    return "\n".join(
        str(replace(fault, file=str(draft.file), line=fault.line + shift))
        if str(target).endswith(fault.file) and fault.line > old.count("\n")
        else str(fault)
        for fault in error.faults
    )


def _restore(target: Path, before: bytes | None) -> None:
    from readerkit.upstreams.store import write_atomically

    if before is None:
        target.unlink(missing_ok=True)
    else:
        write_atomically(target, before)
