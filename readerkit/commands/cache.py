"""``readerkit cache``: where it is, how large, whether it is whole; removing it."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from readerkit.commands.options import book_option, json_option
from readerkit.terminal.as_json import print_json
from readerkit.terminal.completing import names
from readerkit.wording.next_command import typed

if TYPE_CHECKING:
    from readerkit.app.library import Library
    from readerkit.upstreams import Upstream
    from readerkit.upstreams.provenance import Provenance


@click.command(short_help="The fetched source: where, how large, verify, remove.")
@click.argument(
    "upstreams", metavar="[UPSTREAM]...", nargs=-1, shell_complete=names("upstreams")
)
@click.option("--verify", is_flag=True, help="Hold every cached byte against the lock.")
@click.option(
    "--remove", is_flag=True, help="Remove them from the cache; all, if none."
)
@click.option("--yes", is_flag=True, help="Remove without asking.")
@json_option
@book_option
def cache(
    upstreams: tuple[str, ...],
    verify: bool,
    remove: bool,
    yes: bool,
    as_json: bool,
    book: Path | None,
) -> None:
    """Show where fetched source is kept, and how much of each UPSTREAM is there.

    What is removed, after you were asked, comes back with a fetch: only where a source
    can be reached then. To remove one, type its whole name. Your own notes, answers and
    ledger are elsewhere, in the folder that is named last, and are never removed.

    \b
    Example:
        readerkit cache
        readerkit cache --verify
        readerkit cache deepspeed --remove
    """
    from readerkit.app.library import open_library
    from readerkit.errors import ReaderkitError, WrongUseError

    if verify and remove:
        raise click.UsageError("--verify and --remove exclude each other")
    if yes and not remove:
        raise click.UsageError("--yes is for --remove")
    library = open_library(book)
    chosen = [library.upstream(name) for name in dict.fromkeys(upstreams)]
    for each in chosen:
        if not each.is_pinned:
            where = f"folder {each.folder} of this book" if each.folder else each.pin
            raise WrongUseError(
                f"{each.name} is {where}: nothing of it is in the cache"
            )
    if remove:
        for name in upstreams:
            if name not in library.book.upstreams:
                raise WrongUseError(
                    f"--remove: got '{name}', expected a whole name: "
                    f"{library.upstream(name).name}"
                )
        _remove(library, chosen, yes, as_json)
        return
    pinned = chosen or library.pinned()
    wrong = {each.name: _altered(library, each) for each in pinned if verify}
    kept = [_kept(library, each) for each in pinned]
    if as_json:
        _print_plain(library, kept, wrong if verify else None)
    else:
        _print(library, kept, wrong if verify else None)
    if problems := [name for name, files in wrong.items() if files]:
        raise ReaderkitError(
            "altered files were removed from the cache; they come back with "
            + typed("fetch", *problems)
        )


@dataclass(frozen=True, slots=True)
class _CacheRow:
    """One row: an upstream, and what is there of it."""

    name: str
    files: int
    present: int
    size_bytes: int
    came_from: Provenance | None


def _kept(library: Library, upstream: Upstream) -> _CacheRow:
    from readerkit.upstreams.cache_contents import holding

    found = holding(library.lock(upstream), library.store)
    came_from = library.came_from(upstream) if found.present else None
    sizes = (found.wanted, found.present, found.size_bytes)
    return _CacheRow(upstream.name, *sizes, came_from)


def _altered(library: Library, upstream: Upstream) -> list[str]:
    from readerkit.upstreams.cache_contents import altered

    return altered(library.lock(upstream), library.store)


def _sizes(library: Library) -> dict[str, int]:
    """Return the sizes of all that is kept, and of what is none of this book's."""
    from readerkit.app.folders import data_folder
    from readerkit.upstreams.cache_contents import FETCHED, MADE, bytes_below

    root = library.store.root
    fetched, made = bytes_below(root, FETCHED), bytes_below(root, MADE)
    ours = sum(_kept(library, each).size_bytes for each in library.pinned())
    return {
        "bytes": fetched + made,
        "made_bytes": made,
        "other_bytes": max(0, fetched - ours),
        "own_bytes": bytes_below(data_folder(), (".",)),
    }


def _print_plain(
    library: Library, kept: list[_CacheRow], wrong: dict[str, list[str]] | None
) -> None:
    from readerkit.app.folders import data_folder

    rows: list[dict[str, Any]] = [asdict(row) for row in kept]
    for row in rows if wrong is not None else ():
        row["altered"] = (wrong or {})[row["name"]]
    folders = {"cache": str(library.store.root), "own": str(data_folder())}
    told = {**folders, **_sizes(library), "upstreams": rows}
    print_json(told)


def _print(
    library: Library, kept: list[_CacheRow], wrong: dict[str, list[str]] | None
) -> None:
    from readerkit.app.folders import data_folder
    from readerkit.wording.numbers import counted, format_bytes

    sizes = _sizes(library)
    _say(f"{library.store.root}  {format_bytes(sizes['bytes'])}")
    for row in kept:
        there = f"{row.present} of {counted(row.files, 'file')}"
        if not row.present:
            _say(f"{row.name}: not fetched: {typed('fetch', row.name)}", 2)
            continue
        origin = ""
        if row.came_from:
            origin = f"; from {row.came_from.origin}, {row.came_from.when[:10]}"
        _say(f"{row.name}: {there}, {format_bytes(row.size_bytes)}{origin}", 2)
        if wrong is not None:
            bad = wrong[row.name]
            verdict = "every byte is as the lock says"
            if bad:
                files = counted(len(bad), "file")
                verdict = f"{files} altered, and removed: {', '.join(bad[:3])}"
            _say(verdict, 4)
    _say(f"made from them, and made anew: {format_bytes(sizes['made_bytes'])}", 2)
    if sizes["other_bytes"]:
        _say(f"of other books or pins: {format_bytes(sizes['other_bytes'])}", 2)
    _say(f"{data_folder()}  {format_bytes(sizes['own_bytes'])}")
    _say("yours: notes, drafts, answers, ledger; never removed here", 2)


def _remove(library: Library, chosen: list[Upstream], yes: bool, as_json: bool) -> None:
    from readerkit.upstreams.cache_contents import (
        FETCHED,
        MADE,
        bytes_below,
        bytes_of,
        remove,
        remove_all,
    )
    from readerkit.wording.numbers import format_bytes

    store, names = library.store, {each.name for each in chosen}
    others = (lock for name, lock in library.book.locks.items() if name not in names)
    kept = {blob for lock in others for blob in lock.files.values()}
    blobs = {b for each in chosen for b in library.lock(each).files.values()} - kept
    if not yes:
        size = bytes_of(blobs, store)
        if not chosen:
            size = bytes_below(store.root, (*FETCHED, *MADE))
        what = ", ".join(each.name for each in chosen) or "all fetched source"
        _ask(f"Remove {what}, {format_bytes(size)}, from {store.root}?")
    freed = remove(chosen, blobs, store) if chosen else remove_all(store)
    if as_json:
        print_json({"cache": str(library.store.root), "removed_bytes": freed})
    else:
        _say(f"removed {format_bytes(freed)} from {library.store.root}")


def _ask(question: str) -> None:
    """Go on only where a person at the terminal agrees."""
    from readerkit.render.terminal_safe import visible
    from readerkit.terminal.asking import agree

    agree(visible(question), "nothing was removed")


def _say(text: str, indent: int = 0) -> None:
    from readerkit.render.terminal_safe import visible
    from readerkit.terminal.folded import tell

    tell(" " * indent + visible(text))
