"""A new note: the lines it stands on, the form it is typed into, and its way in."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Mapping
from itertools import chain, count
from pathlib import Path
from typing import Any

from readerkit.anchors import Span
from readerkit.app.folders import is_checkout, is_own
from readerkit.app.library import Library, open_library
from readerkit.app.lock_update import lock_as_read
from readerkit.content.resolved_notes import Note, Sources, resolve_notes
from readerkit.errors import ReaderkitError, SeveralFilesError, WrongUseError
from readerkit.model.git_names import TreePath
from readerkit.upstreams import Upstream
from readerkit.upstreams.book_repository import top_of
from readerkit.upstreams.folder_source import read_file
from readerkit.upstreams.store import write_atomically
from readerkit.upstreams.upstream import matching
from readerkit.wording.meant_name import hint

_FIELDS = {"citation": ("decision", "alternative", "why", "cost")}
MAX_SHOWN_LINES = 60
MAX_YAML_WIDTH = 1_000_000  # no line is folded


def free_id(library: Library, target: Path) -> str:
    """Return the next id that is free for a new note.

    A reader's own notes and those of a book are named differently: an overlay lies over
    any book, and what is free in one may be taken in the next.
    """
    taken = library.book.annotations
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


def find_lines(
    path: str, first: int, last: int, library: Library, only: Upstream | None = None
) -> tuple[Upstream, Span]:
    """Return the upstream and the lines that a path, or its end, and numbers name.

    With ``only`` it is looked for in that upstream.

    Raises:
        ReaderkitError: no such file, or several, or lines the wrong way round.
    """
    if last < first:
        typed = f"{path}:{first}-{last}"
        raise WrongUseError(f"got '{typed}', expected the first line before the last")
    files = [
        (upstream, known)
        for upstream in ([only] if only else library.book.upstreams.values())
        for known in (
            library.lock(upstream).files
            if upstream.is_pinned
            else library.sources(upstream).paths
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
        for upstream in [only] if only else library.book.upstreams.values():
            if any(matching(glob).fullmatch(path) for glob in upstream.exclude):
                raise WrongUseError(
                    f"'{path}': got a file that {upstream.name} leaves out, expected "
                    "one that it reads: see exclude in annotations/upstreams.yaml"
                )
            top = top_of(library.root)
            if upstream.includes(path) and upstream.worktree and (top / path).is_file():
                read_file(top, TreePath(path))  # says what is wrong with it
        meant = hint(path, (known for _, known in files))
        raise WrongUseError(
            f"no upstream of this book includes a file '{path}', expected one of "
            f"{', '.join(library.book.upstreams)}{meant}"
        )
    raise SeveralFilesError(
        f"'{path}' fits {len(found)} files, expected one:",
        [f"{known} ({upstream.name})" for upstream, known in found[:8]],
    )


def make_form(
    note_id: str, kind: str, library: Library, upstream: Upstream, span: Span
) -> tuple[str, str]:
    """Return a new entry with its anchor filled in, and the form that it is typed into.

    Texts, citation and concepts are empty, and refused while they are: what a note
    rests on is never somebody else's source.
    """
    source = library.sources(upstream).file(span.path)
    at = _yaml(_proposed(library, upstream, span))
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


def filled_entry(
    note_id: str,
    kind: str,
    library: Library,
    upstream: Upstream,
    span: Span,
    typed: Mapping[str, str],
) -> str:
    """Return a new entry with its anchor and what was typed into a form of its fields.

    What was left empty is as empty as in :func:`make_form`, and refused like there.
    """
    entry: dict[str, Any] = {
        "id": note_id,
        "at": _proposed(library, upstream, span),
        "kind": kind,
        "title": typed.get("title") or None,
        **{name: typed.get(name, "") for name in _FIELDS.get(kind, ("text",))},
    }
    if kind == "citation":
        cited = {name: typed.get(name) or None for name in ("key", "section")}
        entry["references"] = [cited]
    entry["concepts"] = typed.get("concepts", "").replace(",", " ").split()
    return _yaml([entry])


def _proposed(library: Library, upstream: Upstream, span: Span) -> dict[str, Any]:
    from readerkit.anchors.propose import propose

    return propose(span, library.sources(upstream).file(span.path)).to_yaml()


def _yaml(value: Any) -> str:
    import yaml

    text: str = yaml.safe_dump(
        value, sort_keys=False, width=MAX_YAML_WIDTH, allow_unicode=True
    )
    return text


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


def note_root(library: Library, into: str | None) -> Path:
    """Return the folder that new notes go to: of the book, or the reader's overlay.

    Raises:
        ReaderkitError: the book was asked for, and cannot be written to.
    """
    writable = is_checkout(library.root)
    if into == "book" and not writable:
        raise ReaderkitError(
            f"{library.root} is the copy inside the installed package: use --into mine"
        )
    return library.root if writable and into != "mine" else library.mine


def note_file(root: Path, upstream: Upstream, topic: str) -> Path:
    """Return the file of a book, or of an overlay, that a note on a topic goes to."""
    return root / "annotations" / upstream.name / f"{topic}.yaml"


def text_before(target: Path) -> str:
    """Return what stands in a file before an entry that is added to it."""
    before = target.read_bytes().decode() if target.is_file() else ""
    return before.rstrip() + "\n\n" if before else ""


def add_note(
    library: Library,
    upstream: Upstream,
    target: Path,
    text: str,
    book: Path | None,
) -> tuple[Library, Sources, list[Note]]:
    """Write the entry and its lock; return what the book is then, and the new notes.

    It is held to the book before it is written: whatever ends this, nothing faulty
    and nothing half stays.

    Raises:
        ReaderkitError: the book does not hold with it; nothing is changed then.
    """
    whole = target.is_relative_to(library.mine)
    # The book as it is now: another process may have written while the editor was open.
    known = set(open_library(book, whole=whole, quiet=True).book.annotations)
    before = target.read_bytes() if target.is_file() else None
    data = (text_before(target) + text).encode()
    fresh = open_library(book, whole=whole, quiet=True, as_if=(target, data))
    new = set(fresh.book.annotations) - known
    added = [fresh.book.annotations[name] for name in sorted(new)]
    sources = fresh.sources(upstream)
    notes = resolve_notes(fresh.book, sources, added)
    write_atomically(target, data, private=whole)
    try:
        lock_as_read(fresh, added)  # whoever writes a note reads its lines
    except BaseException:
        _restore(target, before)
        raise
    return fresh, sources, notes


def _restore(target: Path, before: bytes | None) -> None:
    if before is None:
        target.unlink(missing_ok=True)
    else:
        write_atomically(target, before, private=is_own(target))
