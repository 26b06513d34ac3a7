"""What works on this machine, and what is missing for the rest: looked at, not tried.

Nothing heavy is imported, nothing is fetched, and no byte of the cache is verified:
``readerkit cache --verify`` does that.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path
from typing import Literal

from readerkit import __version__
from readerkit.app.folders import cache_folder, data_folder, shipped_book
from readerkit.app.library import Library, open_library
from readerkit.errors import GrammarError, ReaderkitError, WrongUseError
from readerkit.model.code_languages import LANGUAGES, titles_here
from readerkit.upstreams import Upstream
from readerkit.upstreams.cache_contents import holding
from readerkit.wording.next_command import typed, written
from readerkit.wording.numbers import counted, format_bytes

Health = Literal["works", "missing", "broken"]
"""``missing`` is what something optional wants; ``broken`` stops the rest."""

LEAST_FREE_BYTES = 1_000_000
"""Of a disk that is to take an answer, a note or a fetched file."""


@dataclass(frozen=True, slots=True)
class Ailment:
    """One row: a thing, how it is, and what mends it."""

    what: str
    state: Health
    detail: str
    mend: str = ""


def examine(book: Path | None) -> Iterator[Ailment]:
    """Yield a row for everything that readerkit rests on, the needed ones first."""
    yield _python()
    yield _git()
    yield from _folders()
    yield from _of_book(book)
    yield _grammars()
    yield _torch()
    yield _extra("genanki", "decks for Anki", "anki")
    yield from _surroundings()


def _python() -> Ailment:
    version = ".".join(map(str, sys.version_info[:3]))
    return Ailment("readerkit", "works", f"{__version__}, Python {version}")


def _git() -> Ailment:
    mend = "install git; without it, sources are packages and folders"
    program = shutil.which("git")
    if program is None:
        return Ailment("git", "missing", "not on PATH", mend)
    try:
        done = subprocess.run(
            [program, "--version"], capture_output=True, text=True, timeout=10
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        return Ailment("git", "missing", f"does not run: {error}", mend)
    said = done.stdout.strip().removeprefix("git version ")
    if done.returncode:
        return Ailment("git", "missing", done.stderr.strip()[:80], mend)
    return Ailment("git", "works", said)


def _folders() -> Iterator[Ailment]:
    places: dict[str, Callable[[], Path]] = {
        "cache": cache_folder,
        "your data": data_folder,
    }
    for what, find in places.items():
        variable = "READERKIT_CACHE" if what == "cache" else "READERKIT_DATA"
        mend = f"set {variable} to a folder that can be written"
        try:
            place = find()
        except ReaderkitError as error:
            yield Ailment(what, "broken", str(error), mend)
            continue
        there = next(each for each in (place, *place.parents) if each.exists())
        if there.is_dir() and os.access(there, os.W_OK | os.X_OK):
            free = shutil.disk_usage(there).free
            detail = f"{place}, {format_bytes(free)} free"
            if free < LEAST_FREE_BYTES:
                room = f"make room there, or {mend}, on another disk"
                can_read = what == "cache" and (place / "blobs").is_dir()
                yield Ailment(what, "missing" if can_read else "broken", detail, room)
            else:
                yield Ailment(what, "works", detail)
        elif what == "cache" and (place / "blobs").is_dir():
            works = "what is there can be read; fetch brings nothing more"
            detail = f"{place} cannot be written: {works}"
            yield Ailment(what, "missing", detail, mend)
        else:
            yield Ailment(what, "broken", f"{place} cannot be written", mend)


def _of_book(book: Path | None) -> Iterator[Ailment]:
    try:
        library = open_library(book, quiet=True)
    except ReaderkitError as error:
        faults = str(error).splitlines()
        more = f" (and {len(faults) - 1} more)" if len(faults) > 1 else ""
        is_none = isinstance(error, WrongUseError)
        mend = written("init") if is_none else typed("annotate", "--check")
        yield Ailment("book", "broken", f"{faults[0][:160]}{more}", mend)
        return
    is_own = library.root != shipped_book()
    where = str(library.root) if is_own else "the one that ships"
    notes = counted(len(library.book.annotations), "note")
    detail = f"{where}, {notes}"
    if library.left_out:
        mend = typed("annotate", "--check")
        yield Ailment("book", "missing", library.left_out.partition("\n")[0], mend)
    else:
        yield Ailment("book", "works", detail)
    for upstream in library.book.upstreams.values():
        yield _upstream(library, upstream)


def _upstream(library: Library, upstream: Upstream) -> Ailment:
    name = upstream.name
    try:
        if not upstream.is_pinned:
            files = counted(len(library.sources(upstream).paths), "file")
            kind = upstream.pin if upstream.is_living else f"folder {upstream.folder}"
            return Ailment(name, "works", f"{files} of {kind}")
        held = holding(library.lock(upstream), library.store)
    except ReaderkitError as error:
        return Ailment(name, "broken", str(error).partition("\n")[0][:160])
    of = f"{held.present} of {counted(held.wanted, 'file')} of {upstream.pin}"
    if held.present == held.wanted:
        return Ailment(name, "works", f"{of} in the cache")
    return Ailment(name, "missing", f"{of} in the cache", typed("fetch", name))


def _grammars() -> Ailment:
    mends: dict[str, str] = {}
    state: Health = "missing"
    here = [each for each in LANGUAGES if each.is_here]
    for language in {each.package: each for each in reversed(here)}.values():
        try:
            # Python's is loaded as this is imported: no pattern is read without it.
            from readerkit.anchors.grammars import grammar

            grammar(language)
        except GrammarError as error:
            mends[error.what] = error.mend
            state = "broken" if language.is_python else state
    if not mends:
        return Ailment("grammars", "works", titles_here())
    return Ailment("grammars", state, "; ".join(mends), "; ".join(mends.values()))


def _torch() -> Ailment:
    wanted = _pinned_by("torch")
    what = "run, compare, prove, break, rebuild, labs"
    found = _version("torch")
    mend = f"pip install torch=={wanted}" if wanted else "pip install torch"
    if not found:
        return Ailment("torch", "missing", f"not installed: {what} want it", mend)
    if wanted and found.split("+")[0] != wanted:
        detail = f"{found}, and what is read is {wanted}"
        return Ailment("torch", "missing", detail, mend)
    return Ailment("torch", "works", f"{found}: {what}")


def _pinned_by(package: str) -> str:
    """Return the version of a package that the extras of this one name."""
    try:
        wanted = metadata.requires("readerkit-distributed") or []
    except metadata.PackageNotFoundError:
        return ""
    pins = (row.partition(";")[0].replace(" ", "") for row in wanted)
    return next(
        (p.partition("==")[2] for p in pins if p.startswith(f"{package}==")), ""
    )


def _extra(package: str, what: str, extra: str) -> Ailment:
    if found := _version(package):
        return Ailment(extra, "works", f"{package} {found}: {what}")
    return Ailment(
        extra,
        "missing",
        f"{package} is not installed: {what}",
        f"pip install {package}",
    )


def _version(package: str) -> str:
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return ""


def _surroundings() -> Iterator[Ailment]:
    editor = os.environ.get("VISUAL") or os.environ.get("EDITOR") or ""
    program = editor.split()[0] if editor.split() else ""
    if program and shutil.which(program):
        yield Ailment("editor", "works", editor)
    else:
        said = f"'{editor}' is not on PATH" if editor else "EDITOR is not set"
        yield Ailment("editor", "missing", f"{said}: note opens it", "set EDITOR")
    encoding = (sys.stdout.encoding or "ascii").lower()
    if encoding.replace("-", "").startswith("utf"):
        yield Ailment("terminal", "works", encoding)
    else:
        mend = "export PYTHONIOENCODING=utf-8, or a locale of UTF-8"
        detail = f"{encoding}: other letters are shown as the nearest"
        yield Ailment("terminal", "missing", detail, mend)


def is_well(rows: Iterable[Ailment]) -> bool:
    """Tell whether nothing is broken."""
    return all(row.state != "broken" for row in rows)
