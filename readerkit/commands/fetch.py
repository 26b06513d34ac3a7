"""``readerkit fetch``: verified source into the cache; new locks."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from readerkit.commands.options import book_option, json_option

if TYPE_CHECKING:
    from readerkit.commands.library import Library
    from readerkit.upstreams import Upstream


@click.command()
@click.argument("upstream", required=False)
@click.option(
    "--source",
    metavar="git|installed|package|PATH",
    help="Use only this source: a kind of source, or a folder or local repository.",
)
@click.option(
    "--update-lock",
    is_flag=True,
    help="Write the blob ids of the pinned commit to the committed lock.",
)
@json_option
@book_option
def fetch(
    upstream: str | None,
    source: str | None,
    update_lock: bool,
    as_json: bool,
    book: Path | None,
) -> None:
    """Fetch UPSTREAM (or all) and verify every file against the lock.

    Tried in turn: the cache, a package installed here, git, the package index.
    The output says which one served, and why the others did not.

    \b
    Example:
        readerkit fetch megatron
        readerkit fetch pytorch --source installed
        readerkit fetch megatron --source ~/src/Megatron-LM
    """
    from readerkit.commands.library import open_library
    from readerkit.errors import ReaderkitError
    from readerkit.upstreams.fetch import DEFAULT_ORDER, SOURCE_NAMES

    library = open_library(book)
    chosen = [library.upstream(upstream)] if upstream else library.pinned()
    if source and source not in SOURCE_NAMES and not Path(source).is_dir():
        raise ReaderkitError(
            f"--source: got '{source}', expected {', '.join(SOURCE_NAMES)} "
            "or the path of a folder that exists"
        )
    order = (source,) if source else DEFAULT_ORDER
    results = []
    for each in chosen:
        if not each.is_pinned:
            raise ReaderkitError(
                f"{each.name} is a folder of this book: it is read where it stands"
            )
        if update_lock:
            results.append(_update_lock(library, each, source, as_json))
        else:
            results.append(_fetch(library, each, order, as_json))
    if as_json:
        import json

        click.echo(json.dumps(results, indent=1))


def _fetch(
    library: Library, upstream: Upstream, order: Sequence[str], quiet: bool
) -> dict[str, Any]:
    from readerkit.commands.library import note_progress
    from readerkit.render.visible import visible
    from readerkit.upstreams.fetch import fetch, missing_files

    lock = library.lock(upstream)
    missing = len(missing_files(lock, library.store))
    report = note_progress if quiet else _say
    came_from = fetch(upstream, lock, library.store, sources=order, report=report)
    if not missing and not quiet:
        origin = f", first from {visible(came_from.origin)}" if came_from else ""
        click.echo(f"{upstream.name}: {len(lock.files)} files in the cache{origin}")
    if not quiet:
        click.echo(
            f"{upstream.name}: all {len(lock.files)} files are those of "
            f"{upstream.tag}, commit {upstream.commit[:12]}"
        )
    return {
        "upstream": upstream.name,
        "commit": upstream.commit,
        "files": len(lock.files),
        "fetched": missing,
        "came_from": asdict(came_from) if came_from else None,
    }


def _update_lock(
    library: Library, upstream: Upstream, source: str | None, quiet: bool
) -> dict[str, Any]:
    from readerkit.commands.library import note_progress, save_lock
    from readerkit.upstreams import Lock
    from readerkit.upstreams.fetch import list_files

    # Only git ties bytes to a commit by itself, so it is asked first.
    order = (source,) if source else ("git", "installed", "package")
    report = note_progress if quiet else _say
    files = list_files(upstream, library.store, sources=order, report=report)
    before = library.book.locks.get(upstream.name, Lock(""))
    written = save_lock(
        library, upstream.name, before.with_files(upstream.commit, files)
    )
    if not quiet:
        for path in written:
            click.echo(f"{upstream.name}: wrote {path}")
        click.echo(f"{upstream.name}: locked {len(files)} files")
    return {"upstream": upstream.name, "commit": upstream.commit, "files": len(files)}


def _say(line: str) -> None:
    """Print what came of it; what is only under way is for a terminal."""
    from readerkit.commands.library import note_progress
    from readerkit.render.visible import visible

    if line.endswith("…"):
        note_progress(line)
    else:
        click.echo(visible(line))
