"""``readerkit init``: from a repository to a book with a note, a check and a site."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import click

from readerkit.commands.options import begun_book_option, json_option
from readerkit.render.terminal_safe import visible_line
from readerkit.terminal.as_json import print_json
from readerkit.terminal.folded import tell
from readerkit.wording import next_command
from readerkit.wording.next_command import typed
from readerkit.wording.numbers import counted

if TYPE_CHECKING:
    from readerkit.app.new_upstream import NewUpstream

_NEXT = {
    ("note", "FILE:LINES"): "write one of your own",
    ("annotate", "--check"): "red once the code under a note is edited",
    ("review", "first-note"): "you read it against the code as it is now",
    ("site", "serve"): "read and write in a browser",
}
"""What to type once there is a book, and what it does."""


@click.command(short_help="Begin a book of your own on a repository or a package.")
@click.argument("subject", metavar="[PATH]", default=".")
@click.option(
    "--name", default="", help="What the code is called; by default as its folder is."
)
@click.option(
    "--include",
    multiple=True,
    metavar="GLOB",
    help="Read only these files, as 'src/**/*.py'; may be given again.",
)
@click.option("--no-site", is_flag=True, help="Build no site yet.")
@json_option
@begun_book_option
def init(
    subject: str,
    name: str,
    include: tuple[str, ...],
    no_site: bool,
    as_json: bool,
    book: Path | None,
) -> None:
    """Write a book on PATH: a folder (by default this one), an address, or a package.

    On a repository of yours it reads the files as they are now, and stands in its
    folder book; on an address or a package (`requests`, `requests==2.32.0`) it is
    pinned, and stands in NAME-book. It has one note with a claim, on a much-named
    definition; a check that holds it; and a site. Nothing is asked, and nothing that is
    there is overwritten.

    \b
    Example:
        readerkit init
        readerkit init ~/src/thing --include 'src/**/*.py'
        readerkit init https://example.org/thing.git
        readerkit init requests --book reading
    """
    from readerkit.app.new_book import make_book

    root, make = _planned(subject, name, include, book)
    paths, new, first = make_book(root, make)
    others = _submodules(subject)
    large = [visible_line(path) for path in new.upstream.exclude]
    next_command.remember("book", _shown(root))
    if not as_json:
        # Before the site: whatever ends that leaves a book, and it is known.
        for path in paths:
            click.echo(f"wrote {_shown(path)}")
    site = None if no_site else _build_site(root)
    if as_json:
        on = {"path": first.path, "symbol": first.symbol, "says": first.says}
        print_json(
            {
                "book": str(root),
                "wrote": [str(path) for path in paths],
                "note": on,
                "site": str(site) if site else None,
                "not_read": [*others, *large],
            }
        )
        return
    _tell_what_is_not_read(others, large)
    tell(f"the first note is on {first.symbol}, in {first.path}: {first.says}")
    if site:
        click.echo(f"site: open {_shown(site / 'index.html')}")
    click.echo("Next:")
    for words, says in _NEXT.items():
        tell(f"  {typed(*words)}\n      {says}")


def _tell_what_is_not_read(others: list[str], large: list[str]) -> None:
    from readerkit.upstreams.source_protocol import MAX_MEMBER_BYTES

    if others:
        tell(
            f"not read: {counted(len(others), 'submodule')} ({_some(others)}): a "
            "repository of its own each, for a book of its own, or an upstream with "
            "its url"
        )
    if large:
        tell(
            f"not read: {counted(len(large), 'file')} of more than "
            f"{MAX_MEMBER_BYTES:,} bytes ({_some(large)}): under exclude in "
            "upstreams.yaml"
        )


def _planned(
    subject: str, given: str, include: tuple[str, ...], book: Path | None
) -> tuple[Path, Callable[[Path], NewUpstream]]:
    """Return where a book goes, and what makes its upstream."""
    from readerkit.app.folders import cache_folder
    from readerkit.app.new_upstream import (
        from_address,
        from_package,
        here,
        is_address,
        name_for,
    )
    from readerkit.errors import WrongUseError
    from readerkit.upstreams import BlobStore
    from readerkit.upstreams.book_repository import top_of

    _check_name(given)
    if not subject.strip():
        expected = "got nothing, expected a folder, an address or a package"
        raise click.BadParameter(expected, param_hint="PATH")
    folder = Path(subject).expanduser()
    if folder.is_file():
        raise WrongUseError(f"{subject}: got a file, expected the folder of some code")
    if folder.is_dir():
        # The repository around a book that would be in it.
        top = top_of(folder.absolute() / "book")
        root = (book or top / "book").absolute()
        if top_of(root) != top:
            raise WrongUseError(
                f"{root}: got a place outside of {top}, expected one in it: a book "
                "reads the work tree that it stands in"
            )
        name = given or name_for(top.name)
        return root, lambda aside: here(name, aside, include)
    store = BlobStore(cache_folder())
    name = given or name_for(subject)
    root = (book or Path(f"{name}-book")).absolute()
    if is_address(subject):
        return root, lambda _: from_address(subject, name, include, store)
    if "/" in subject or subject.startswith("."):
        raise WrongUseError(f"{subject}: got no folder there, expected a repository")
    return root, lambda _: from_package(subject, name, include, store)


def _some(names: list[str]) -> str:
    return ", ".join(names[:3]) + (", …" if names[3:] else "")


def _submodules(subject: str) -> list[str]:
    """Return the submodules of a repository here."""
    from readerkit.upstreams.book_repository import submodules_of, top_of

    folder = Path(subject).expanduser()
    if not folder.is_dir():
        return []
    return [visible_line(each) for each in submodules_of(top_of(folder.absolute()))]


def _check_name(given: str) -> None:
    import re

    if given and not re.fullmatch("[a-z][a-z0-9-]{0,59}", given):
        raise click.UsageError(
            f"--name: got '{given}', expected small letters, digits and hyphens"
        )


def _build_site(root: Path) -> Path:
    from readerkit.app.folders import BUILT_SITE
    from readerkit.app.library import open_library
    from readerkit.errors import ReaderkitError
    from readerkit.site.build import BuildCache, make_site
    from readerkit.site.inputs import find_inputs
    from readerkit.site.publish import Rendered, check_place, publish
    from readerkit.system.garbage import uncollected
    from readerkit.system.status import Status

    place, status, inputs = root / BUILT_SITE, Status(), find_inputs(root)
    left = f"{_shown(root)} is whole, and has no site yet: {typed('site', 'build')}"
    try:
        check_place(place)
        today = inputs.made_from()
        with uncollected():
            cache = BuildCache(is_last=True)
            made = make_site(open_library(root), inputs, cache, status=status)
            publish(place, Rendered(made, status), {**today, **inputs.served()})
    except ReaderkitError as error:
        raise ReaderkitError(f"{left}\n    {error}") from None
    except KeyboardInterrupt:
        status.clear()
        click.echo(left, err=True)
        raise
    status.clear()
    return place


def _shown(path: Path) -> str:
    """Return a path as short as it can be typed from here."""
    try:
        return str(path.relative_to(Path.cwd()))
    except (ValueError, OSError):
        return str(path)
