"""``readerkit fetch``: verified source into the cache; new locks."""

from __future__ import annotations

import contextlib
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from readerkit.commands.options import book_option, json_option
from readerkit.system.status import Status
from readerkit.terminal.as_json import print_json
from readerkit.terminal.completing import names
from readerkit.terminal.folded import tell

if TYPE_CHECKING:
    from readerkit.app.library import Library
    from readerkit.upstreams import Upstream


@click.command(short_help="Bring each UPSTREAM, or all, and verify every file.")
@click.argument(
    "upstreams", metavar="[UPSTREAM]...", nargs=-1, shell_complete=names("upstreams")
)
@click.option(
    "--source",
    metavar="git|installed|package|PATH",
    help="Use only this source: a kind of source, or a folder or local repository.",
    shell_complete=names("sources", also="dir"),
)
@click.option(
    "--update-lock",
    is_flag=True,
    help="Write the blob ids of the pinned commit to the committed lock.",
)
@json_option
@book_option
def fetch(
    upstreams: tuple[str, ...],
    source: str | None,
    update_lock: bool,
    as_json: bool,
    book: Path | None,
) -> None:
    """Fetch each UPSTREAM (all, where none is named) and verify it against its lock.

    Tried in turn: the cache, a package installed here, git, the package index.
    The output says which one served, and why the others did not. What the cache
    holds already is verified there, and no source is asked, unless --source names
    one: that is held against the lock, file by file. What a book calls optional
    comes only by this command; where no source has it, one line says so.

    \b
    Example:
        readerkit fetch
        readerkit fetch megatron pytorch
        readerkit fetch megatron --source ~/src/Megatron-LM
    """
    from readerkit.app.library import open_library
    from readerkit.errors import ReaderkitError, SourceError, WrongUseError
    from readerkit.render.terminal_safe import visible_line

    library = open_library(book)
    chosen = [library.upstream(name) for name in dict.fromkeys(upstreams)]
    for each in chosen:
        if not each.is_pinned:
            raise WrongUseError(
                f"{each.name} is {_kind(each)}: it is read where it stands"
            )
    asked = "" if source is None else _source(source)
    results, problems = [], []
    chosen = chosen or library.pinned()
    if not chosen and not as_json:
        tell("this book pins no upstream: there is nothing to fetch")
    for each in chosen:
        try:
            if update_lock:
                results.append(_update_lock(library, each, asked, as_json, book))
            else:
                results.append(_fetch(library, each, asked, as_json))
        except SourceError as error:  # the next one may be served all the same
            if upstreams or not each.optional:
                problems.append(str(error))
            elif not as_json:
                tell(visible_line(each.not_fetched))
    if as_json:
        print_json(results)
    if problems:
        raise ReaderkitError("\n".join(problems))


def _kind(upstream: Upstream) -> str:
    if upstream.is_living:
        return "the repository around this book"
    return "a folder of this book"


def _source(given: str) -> str:
    """Return the source that was asked for: its name, or a folder that exists."""
    from readerkit.errors import WrongUseError
    from readerkit.upstreams.fetch import SOURCE_NAMES

    if given in SOURCE_NAMES:
        return given
    with contextlib.suppress(RuntimeError):  # ~ of a user who has no home
        folder = Path(given).expanduser()  # a shell leaves --source=~/x as it is
        if given and folder.is_dir():
            return str(folder.absolute())  # git is started elsewhere
    raise WrongUseError(
        f"--source: got '{given}', expected {', '.join(SOURCE_NAMES)} "
        "or the path of a folder that exists"
    )


def _fetch(
    library: Library, upstream: Upstream, asked: str, quiet: bool
) -> dict[str, Any]:
    from readerkit.render.terminal_safe import visible
    from readerkit.upstreams.fetch import DEFAULT_ORDER, fetch, missing_files
    from readerkit.wording.numbers import counted

    lock = library.lock(upstream)
    missing = len(missing_files(lock, library.store))
    order = (asked,) if asked else DEFAULT_ORDER
    report = _Report()
    with Status().waiting(f"{upstream.name}: {counted(missing, 'file')} to bring"):
        came_from = fetch(
            upstream,
            lock,
            library.store,
            sources=order,
            whole=bool(asked),
            report=report,
        )
    if not quiet:
        report.print()
        files = counted(len(lock.files), "file")
        if not missing:
            origin = f", first from {came_from.origin}" if came_from else ""
            tell(visible(f"{upstream.name}: {files} in the cache{origin}"))
        elif there := len(lock.files) - missing:
            were = counted(there, "file was", "files were")
            tell(f"{upstream.name}: {were} in the cache already")
        one = len(lock.files) == 1
        those = "its one file is that" if one else f"all {files} are those"
        tell(f"{upstream.name}: {those} of {upstream.pin}")
    return {
        "upstream": upstream.name,
        "commit": upstream.commit,
        "files": len(lock.files),
        "fetched": missing,
        "came_from": asdict(came_from) if came_from else None,
    }


def _update_lock(
    library: Library, upstream: Upstream, asked: str, quiet: bool, book: Path | None
) -> dict[str, Any]:
    from readerkit.app.library import open_library, writing
    from readerkit.app.lock_update import save_lock
    from readerkit.model.git_names import NO_COMMIT
    from readerkit.upstreams import Lock
    from readerkit.upstreams.fetch import list_files
    from readerkit.wording.numbers import counted

    # Only git ties bytes to a commit by itself, so it is asked first.
    order = (asked,) if asked else ("git", "installed", "package")
    report = _Report()
    with Status().waiting(f"{upstream.name}: every file to list"):
        files = list_files(upstream, library.store, sources=order, report=report)
    with writing():  # what others locked while the files came stays locked
        now = open_library(book, quiet=True)
        before = now.book.locks.get(upstream.name, Lock(NO_COMMIT))
        named = upstream.tag or upstream.release
        lock = before.with_files(upstream.commit, files, named)
        written = save_lock(now, upstream.name, lock)
    if not quiet:
        report.print()
        for path in written:
            click.echo(f"{upstream.name}: wrote {path}")
        click.echo(f"{upstream.name}: locked {counted(len(files), 'file')}")
    return {"upstream": upstream.name, "commit": upstream.commit, "files": len(files)}


class _Report:
    """Shows what is under way, and keeps what came of it until it is sure.

    Where no source serves, the error says why each one did not, and nothing else does.
    """

    def __init__(self) -> None:
        self._lines: list[str] = []

    def __call__(self, line: str) -> None:
        from readerkit.app.library import note_progress

        if line.endswith("…"):
            note_progress(line)
        else:
            self._lines.append(line)

    def print(self) -> None:
        from readerkit.render.terminal_safe import visible

        for line in self._lines:
            tell(visible(line))
