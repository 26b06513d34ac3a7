"""``readerkit note``: write a note on lines, with its anchor proposed and proved."""

from __future__ import annotations

import difflib
import re
import sys
from dataclasses import replace
from itertools import chain, count
from pathlib import Path
from typing import TYPE_CHECKING

import click

from readerkit.commands.options import book_option
from readerkit.wording.next_command import typed

if TYPE_CHECKING:
    from readerkit.app.library import Library
    from readerkit.content.book import Note, Sources
    from readerkit.errors import ReaderkitError
    from readerkit.model.anchor import Span
    from readerkit.terminal.note_draft import DraftEntry
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
    help="A design decision, how to read the lines, or a trap; by default citation.",
)
@click.option("--topic", help="The file it goes to: <topic>.yaml; by default my-notes.")
@click.option(
    "--into",
    type=click.Choice(["book", "mine"]),
    help="The book at hand, or your own overlay (the default outside a checkout).",
)
@click.option(
    "--from",
    "given",
    metavar="FILE",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="Take the entry from a file, such as a draft that was kept; no form is shown.",
)
@click.option(
    "--print", "only_print", is_flag=True, help="Print the entry; write nothing."
)
@book_option
def note(
    place: str,
    note_id: str | None,
    kind: str | None,
    topic: str | None,
    into: str | None,
    given: Path | None,
    only_print: bool,
    book: Path | None,
) -> None:
    """Write a note on FILE:LINES: proposes the narrowest unique anchor, opens $EDITOR.

    FILE is a path inside an upstream (or a unique end of one), LINES is 12 or 12-20.

    \b
    Example:
        readerkit note megatron/core/tensor_parallel/layers.py:1289-1292
        readerkit note tensor_parallel/layers.py:1286-1294 --kind note

    An entry with faults is offered to be edited again; without a terminal it is kept,
    and the command that takes it up again is printed.
    """
    from readerkit.app.library import open_library, writing
    from readerkit.terminal.note_draft import Draft

    if given and (note_id or kind or only_print):
        raise click.UsageError(
            "--from takes the entry as it stands: leave --id, --kind and --print out"
        )
    library = open_library(book)
    upstream, span = _find(place, library)
    target = _target(library, upstream, topic or "my-notes", into)

    def again(file: Path) -> str:
        options = {"--topic": topic, "--into": into, "--from": file}
        words = [str(w) for option in options.items() if option[1] for w in option]
        return typed("note", place, *words)

    if given:
        draft = Draft(given.absolute(), again(given.absolute()))
    else:
        note_id = _free_id(note_id, library, target)
        entry, form = _form(note_id, kind or "citation", library, upstream, span)
        if only_print:
            click.echo(entry, nl=False)
            return
        if target.is_relative_to(library.mine):  # before anyone types, not after
            open_library(book, whole=True, quiet=True)
        draft = Draft.of(form, again)

    def take(entry: DraftEntry) -> tuple[Library, Sources, list[Note]]:
        with writing():
            return _add(library, upstream, target, entry, book)

    written = draft.until_taken(take)
    click.echo(f"wrote {target}")
    _show(upstream, *written)


def _show(
    upstream: Upstream, library: Library, sources: Sources, notes: list[Note]
) -> None:
    """Show new notes as their readers will see them."""
    from readerkit.terminal.note import show_note

    if sys.stdout.isatty():
        click.echo()
    for each in notes:
        read = replace(each, state="reviewed") if upstream.is_pinned else each
        show_note(library, read, sources)


def _free_id(given: str | None, library: Library, target: Path) -> str:
    """Return the id that was asked for, or the next free one.

    A reader's own notes and those of a book are named differently: an overlay lies over
    any book, and what is free in one may be taken in the next.
    """
    from readerkit.errors import ReaderkitError
    from readerkit.model.base import ID_PATTERN

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
    files = [
        (upstream, known)
        for upstream in library.book.upstreams.values()
        for known in (
            library.sources(upstream).paths
            if upstream.folder
            else library.lock(upstream).files
        )
    ]
    found = [
        (upstream, known)
        for upstream, known in files
        if known == path or known.endswith("/" + path.lstrip("/"))
    ]
    exact = [(upstream, known) for upstream, known in found if known == path]
    if len(exact or found) == 1:
        upstream, known = (exact or found)[0]
        return upstream, Span(known, first, last)
    if not found:
        near = difflib.get_close_matches(path, {known for _, known in files}, n=3)
        meant = f": did you mean {' or '.join(near)}?" if near else ""
        raise ReaderkitError(
            f"no upstream of this book includes a file '{path}', expected one of "
            f"{', '.join(library.book.upstreams)}{meant}"
        )
    rows = "\n".join(f"    {known} ({upstream.name})" for upstream, known in found[:8])
    raise ReaderkitError(f"'{path}' fits {len(found)} files, expected one:\n{rows}")


def _form(
    note_id: str, kind: str, library: Library, upstream: Upstream, span: Span
) -> tuple[str, str]:
    """Return a new entry with its anchor filled in, and the form that it is typed into.

    Texts, citation and concepts are empty, and refused while they are: what a note
    rests on is never somebody else's source.
    """
    import textwrap

    import yaml

    from readerkit.anchors.propose import propose

    source = library.sources(upstream).file(span.path)
    anchor = propose(span, source).to_yaml()
    at = yaml.safe_dump(anchor, sort_keys=False, width=MAX_YAML_WIDTH)
    rows = [f"- id: {note_id}", "  at:", textwrap.indent(at.rstrip(), "    ")]
    rows += [f"  kind: {kind}", "  title:"]
    rows += [f"  {name}: >-\n    " for name in _FIELDS.get(kind, ("text",))]
    if kind == "citation":
        rows.append("  references: [{key: , section: }]")
    rows.append("  concepts: []")
    entry = "\n".join(rows) + "\n"
    last = min(span.last, span.first + MAX_SHOWN_LINES - 1)
    head = [
        "Fill in the note below and save. Lines above the first '- ' are not kept.",
        "What can be cited, and the concepts there are: references.yaml and",
        f"concepts.yaml in {library.root / 'annotations'}",
        *_said_nearby(library, upstream, span.path),
        f"{span}",
        *(f" {n:5} {source.line(n)}" for n in range(span.first, last + 1)),
    ]
    return entry, "".join(f"# {row}\n" for row in head) + f"\n{entry}"


def _said_nearby(library: Library, upstream: Upstream, path: str) -> list[str]:
    """Return the references and concepts of other notes on the file, to choose from."""
    near = library.book.notes_on(upstream.name)
    near = [note for note in near if note.anchor.file == path]
    cited = [f"{c.key} {c.section}".strip() for note in near for c in note.references]
    named = [concept for note in near for concept in note.concepts]
    rows = {"cite": cited, "name": named}
    return [
        f"Other notes on this file {verb}: {', '.join(dict.fromkeys(words))}"
        for verb, words in rows.items()
        if words
    ]


def _target(library: Library, upstream: Upstream, topic: str, into: str | None) -> Path:
    from readerkit.app.folders import is_checkout
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


def _add(
    library: Library,
    upstream: Upstream,
    target: Path,
    entry: DraftEntry,
    book: Path | None,
) -> tuple[Library, Sources, list[Note]]:
    """Write the entry and its lock; return what the book is then, and the new notes.

    Raises:
        ReaderkitError: the book does not hold with it; nothing is changed then.
    """
    from readerkit.app.check_locks import lock_as_read
    from readerkit.app.library import open_library
    from readerkit.content.book import resolve_notes
    from readerkit.errors import ReaderkitError
    from readerkit.upstreams.store import write_atomically

    whole = target.is_relative_to(library.mine)
    # The book as it is now: another process may have written while the editor was open.
    known = set(open_library(book, whole=whole, quiet=True).book.annotations)
    before = target.read_bytes() if target.is_file() else None
    old = before.decode().rstrip() + "\n\n" if before else ""
    write_atomically(target, (old + entry.text).encode(), private=whole)
    try:
        fresh = open_library(book, whole=whole, quiet=True)
        new = set(fresh.book.annotations) - known
        added = [fresh.book.annotations[name] for name in sorted(new)]
        sources = fresh.sources(upstream)
        notes = resolve_notes(fresh.book, sources, added)
        lock_as_read(fresh, added)  # whoever writes a note reads its lines
    except ReaderkitError as error:
        _restore(target, before)
        message = _in_draft(error, target, old, entry)
        raise ReaderkitError(message) from None
    except BaseException:
        _restore(target, before)
        raise
    return fresh, sources, notes


def _in_draft(error: ReaderkitError, target: Path, old: str, entry: DraftEntry) -> str:
    """Return the message of ``error`` with its places moved to the draft."""
    from readerkit.errors import ContentError

    if not isinstance(error, ContentError):
        return str(error)
    shift = entry.first_line - 1 - old.count("\n")
    return "\n".join(
        str(replace(fault, file=str(entry.file), line=fault.line + shift))
        if str(target).endswith(fault.file) and fault.line > old.count("\n")
        else str(fault)
        for fault in error.faults
    )


def _restore(target: Path, before: bytes | None) -> None:
    from readerkit.app.folders import is_own
    from readerkit.upstreams.store import write_atomically

    if before is None:
        target.unlink(missing_ok=True)
    else:
        write_atomically(target, before, private=is_own(target))
