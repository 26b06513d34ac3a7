"""A new book: written aside as a whole, held to account, and put in its place."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from readerkit.app.check_locks import Report, check
from readerkit.app.first_note import FirstNote, choose_first
from readerkit.app.folders import refuse_nowhere
from readerkit.app.library import open_library, writing
from readerkit.app.lock_update import lock_as_read, update_locks
from readerkit.app.new_upstream import NewUpstream
from readerkit.errors import ContentError, ReaderkitError, TakenError
from readerkit.upstreams.store import write_atomically
from readerkit.wording.next_command import written

NOTE, CONCEPT = "first-note", "an-idea"
_KEPT_OUT = "build/\n"

_CONCEPTS = """\
# The ideas that notes are about; `requires: [another]` says what to know first.
- id: {concept}
  title: An idea to begin with
  summary: What the note in first.yaml is about. Give it a name of yours.
"""
_REFERENCES = """\
# The works that notes of the kind `citation` cite:
# - {{key: paper, title: Its title, authors: A. Author, year: 2024,
#    url: "https://...", sections: {{"3": Method}}}}
[]
"""
_NOTE = """\
- id: {note}
  at:
    file: {file}
    symbol: {symbol}
  kind: note
  title: {title}
  text: >-
    {says}. Say here what these lines decide, and why.
  concepts: [{concept}]
  claims:
    - says: {says}
      {claim}
"""
_README = """\
# Notes on {name}

`annotations/upstreams.yaml` says which code is read, `annotations/{name}/` holds the
notes, `annotations/{name}.lock` what they were read against (hashes, no source text).

    {start}
    {note}
    {check}
    {review}
    {site}
"""


def make_book(
    root: Path, make_new: Callable[[Path], NewUpstream]
) -> tuple[list[Path], NewUpstream, FirstNote]:
    """Write a book that check finds nothing in.

    Returns its files, what it is about, and its first note.

    Whatever ends this before it is whole leaves nothing behind.

    Raises:
        TakenError: something is there already.
        ReaderkitError: there is nothing to read.
    """
    if root.exists() and (not root.is_dir() or any(root.iterdir())):
        raise TakenError(
            f"{root}: got a place where something is, expected none: nothing is "
            f"overwritten; name another one: {written('init', '--book', 'DIR')}"
        )
    refuse_nowhere(root)
    try:
        aside = Path(tempfile.mkdtemp(prefix=f".{root.name}-", dir=root.parent))
    except OSError as error:
        raise ReaderkitError(f"{root}: cannot be written: {error.strerror}") from None
    try:
        new = make_new(aside)
        first = _fill(aside, new, root)
        aside.chmod(0o755)
        with suppress(OSError):
            root.rmdir()  # an empty one
        aside.rename(root)
    except BaseException:
        shutil.rmtree(aside, ignore_errors=True)
        raise
    paths = sorted(path for path in root.rglob("*") if path.is_file())
    return paths, new, first


def _fill(aside: Path, new: NewUpstream, root: Path) -> FirstNote:
    name, below = new.upstream.name, aside / "annotations"
    files = {
        ".gitignore": _KEPT_OUT,
        "README.md": _readme(name, root),
        "annotations/upstreams.yaml": _yaml([new.written]),
        "annotations/concepts.yaml": _CONCEPTS.format(concept=CONCEPT),
        "annotations/references.yaml": _REFERENCES.format(),
    }
    for path, text in files.items():
        write_atomically(aside / path, text.encode())
    if new.lock:
        lock = below / f"{name}.lock"
        write_atomically(lock, new.lock.to_text().encode())
    note = below / name / "first.yaml"
    with writing():
        for first in choose_first(new):
            write_atomically(note, _entry(first).encode())
            with suppress(ContentError):  # not what the claim makes of it: the next
                _hold(aside)
                return first
    raise ReaderkitError(
        f"{name}: no definition to begin a note on: name other files with --include"
    )


def _hold(root: Path) -> None:
    """Lock the note as read, and hold all of the book.

    Raises:
        ContentError: the note, or its claim, does not hold.
    """
    library = open_library(root, quiet=True)
    lock_as_read(library, [library.book.annotations[NOTE]])
    library = open_library(root, quiet=True)
    update_locks(library, [*library.book.upstreams.values()], say=False)
    library, report = open_library(root, quiet=True), Report()
    check(library, None, report, strict=True)
    report.refuse()


def _entry(first: FirstNote) -> str:
    [(kind, claim)] = first.claim.items()
    name = first.symbol.rpartition(".")[2]
    return _NOTE.format(
        note=NOTE,
        concept=CONCEPT,
        file=_quoted(first.path),
        symbol=_quoted(first.symbol),
        title=_quoted(f"What {name} is for"[:80]),
        says=first.says,
        claim=f"{kind}: {_flow(claim)}",
    )


def _readme(name: str, root: Path) -> str:
    at = ("--book", root.name)
    lines = {
        "start": written("start", *at),
        "note": written("note", "FILE:LINES", *at),
        "check": written("annotate", "--check", *at),
        "review": written("review", NOTE, *at),
        "site": written("site", "serve", *at),
    }
    return _README.format(name=name, **lines)


def _quoted(text: str) -> str:
    import json

    return json.dumps(text, ensure_ascii=False)


def _flow(value: Mapping[str, Any]) -> str:
    return "{" + ", ".join(f"{key}: {_json(each)}" for key, each in value.items()) + "}"


def _json(value: object) -> str:
    import json

    return json.dumps(value, ensure_ascii=False)


def _yaml(value: Any) -> str:
    import yaml

    text: str = yaml.safe_dump(value, sort_keys=False, width=1000, allow_unicode=True)
    return "# The code that is read.\n" + text
