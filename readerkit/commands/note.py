"""``readerkit note``: write a note on lines, with its anchor proposed and proved."""

from __future__ import annotations

import re
import sys
import tempfile
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import click

from readerkit.commands.options import book_option

if TYPE_CHECKING:
    from readerkit.anchors import Anchor, SourceFile, Span
    from readerkit.commands.library import Library
    from readerkit.upstreams import Upstream

_LINES = re.compile(r"(?P<path>.+):(?P<first>\d{1,7})(?:-(?P<last>\d{1,7}))?")
_FIELDS = {"citation": ("decision", "alternative", "why", "cost")}
MAX_SHOWN_LINES = 60


@click.command()
@click.argument("place", metavar="FILE:LINES")
@click.option("--id", "note_id", default="my-note", help="The id of the new note.")
@click.option(
    "--kind", type=click.Choice(["citation", "note", "pitfall"]), default="citation"
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
    note_id: str,
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
        readerkit note layers.py:1286-1294 --id tp-my-close --kind note
    """
    from readerkit.anchors.propose import propose
    from readerkit.commands.library import open_library
    from readerkit.errors import ReaderkitError

    library = open_library(book)
    upstream, span = _find(place, library)
    source = library.sources(upstream).file(span.path)
    anchor = propose(span, source)
    entry = _entry(note_id, kind, anchor)
    if only_print:
        click.echo(entry, nl=False)
        return
    target = _target(library, upstream, topic or "my-notes", into)
    if note_id != "my-note" and note_id in library.book.annotations:
        raise ReaderkitError(f"the id '{note_id}' is taken: choose another with --id")
    text = _edit(entry, span, source)
    _write(library, upstream, target, text, book)


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


def _entry(note_id: str, kind: str, anchor: Anchor) -> str:
    """Return the YAML of a note with its anchor filled in and its texts still empty."""
    rows = [f"- id: {note_id}", "  at:"]
    rows += [f"    {key}: {_quote(value)}" for key, value in anchor.to_yaml().items()]
    rows += [f"  kind: {kind}", "  title:"]
    rows += [f"  {name}: >-\n    " for name in _FIELDS.get(kind, ("text",))]
    if kind == "citation":
        rows.append('  references: [{key: megatron-lm, section: "3"}]')
    rows.append("  concepts: [tensor-parallel]")
    return "\n".join(rows) + "\n"


def _quote(value: str | int) -> str:
    if isinstance(value, int) or re.fullmatch(r"[\w./]+", value):
        return str(value)
    escaped = value.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
    return f'"{escaped}"'


def _target(library: Library, upstream: Upstream, topic: str, into: str | None) -> Path:
    from readerkit.commands.library import is_checkout
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


def _edit(entry: str, span: Span, source: SourceFile) -> str:
    """Let the reader fill the entry in; return what they saved.

    Raises:
        ReaderkitError: no editor, or nothing was changed.
    """
    from readerkit.errors import ReaderkitError

    last = min(span.last, span.first + MAX_SHOWN_LINES - 1)
    lines = [f"#  {n:5} {source.line(n)}" for n in range(span.first, last + 1)]
    head = [
        "# Fill in the note below and save. Lines above the first '- ' are not kept.",
        f"# {span}",
        *lines,
        "",
    ]
    text = "\n".join(head) + "\n" + entry
    try:
        saved = click.edit(text, extension=".yaml")
    except click.ClickException as error:
        raise ReaderkitError(
            f"no editor: {error.message}; set EDITOR, or use --print and write the file"
        ) from None
    if saved is None or saved.strip() == text.strip():
        raise ReaderkitError("nothing was written: the entry was closed unchanged")
    start = re.search(r"^- ", saved, re.MULTILINE)
    if start is None:
        raise _kept(saved, "there is no entry left that begins with '- '")
    return saved[start.start() :].rstrip() + "\n"


def _kept(text: str, problem: str) -> Exception:
    """Return the error for an entry that cannot be taken, with its text put aside."""
    from readerkit.errors import ReaderkitError

    with tempfile.NamedTemporaryFile(
        "w", prefix="readerkit-note-", suffix=".yaml", delete=False, encoding="utf-8"
    ) as file:
        file.write(text)
    return ReaderkitError(
        f"{problem}\nnothing was written; your text is in {file.name}"
    )


def _write(
    library: Library, upstream: Upstream, target: Path, text: str, book: Path | None
) -> None:
    """Append the entry if the whole book stays valid with it, lock it, show it."""
    from readerkit.book import lock_notes, resolve_notes
    from readerkit.commands.annotate import show_note
    from readerkit.commands.library import open_library, save_lock
    from readerkit.errors import ReaderkitError
    from readerkit.upstreams.store import write_atomically

    before = target.read_bytes() if target.is_file() else None
    old = before.decode().rstrip() + "\n\n" if before else ""
    write_atomically(target, (old + text).encode())
    try:
        fresh = open_library(book)
        new = set(fresh.book.annotations) - set(library.book.annotations)
        added = [fresh.book.annotations[name] for name in sorted(new)]
        sources = fresh.sources(upstream)
        notes = resolve_notes(fresh.book, sources, added)
    except ReaderkitError as error:
        _restore(target, before)
        raise _kept(text, str(error)) from None
    except BaseException:
        _restore(target, before)
        raise
    lock = fresh.book.locks[upstream.name]
    locked = lock_notes(lock, notes, sources).anchors
    # Whoever writes a note reads the lines it stands on.
    read = {k: replace(a, reviewed=a.fingerprint.code) for k, a in locked.items()}
    save_lock(fresh, upstream.name, lock.with_anchors({**lock.anchors, **read}))
    click.echo(f"wrote {target}")
    if sys.stdout.isatty():
        click.echo()
    for each in resolve_notes(fresh.book, sources, added):
        show_note(fresh, each, sources)


def _restore(target: Path, before: bytes | None) -> None:
    from readerkit.upstreams.store import write_atomically

    if before is None:
        target.unlink(missing_ok=True)
    else:
        write_atomically(target, before)
