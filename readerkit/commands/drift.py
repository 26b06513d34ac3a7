"""``readerkit drift``: where things stand in another revision of their code."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

import click

from readerkit.commands.options import book_option, json_option
from readerkit.errors import ReaderkitError, WrongUseError
from readerkit.terminal.as_json import print_json
from readerkit.terminal.completing import names

if TYPE_CHECKING:
    from readerkit.app.drift import Drift
    from readerkit.app.library import Library
    from readerkit.upstreams import Upstream


@click.command(short_help="Where everything stands in another revision of the code.")
@click.argument("upstream", required=False, shell_complete=names("upstreams"))
@click.option(
    "--to",
    "new",
    metavar="REVISION|RELEASE|PATH",
    help="The other revision: a folder, DIR@REV (a commit of a git directory), a "
    "release, a tag; by default the newest release, or a work tree as it is.",
    shell_complete=names("revisions", also="dir"),
)
@click.option(
    "--apply",
    is_flag=True,
    help="Move what is sure: anchors, pin and lock. The rest is listed.",
)
@click.option(
    "--commit",
    metavar="ID",
    help="With --apply: the commit of a release, where nothing else tells it.",
)
@click.option(
    "--keep",
    is_flag=True,
    help="Keep what was found in the book: the site has a page and a feed of it.",
)
@click.option("--all", "everything", is_flag=True, help="List what is the same, too.")
@click.option(
    "--spans",
    metavar="FILE",
    type=click.Path(path_type=Path),
    help='Carry these lines: a JSON object each, {"id", "path", "start", "end"}.',
)
@click.option(
    "--from",
    "old",
    metavar="PATH",
    help="With --spans: where the lines are, a folder or DIR@REV.",
    shell_complete=names("", also="dir"),
)
@json_option
@book_option
def drift(
    upstream: str | None,
    new: str | None,
    apply: bool,
    commit: str | None,
    keep: bool,
    everything: bool,
    spans: Path | None,
    old: str | None,
    as_json: bool,
    book: Path | None,
) -> None:
    """Find every anchor and claim of UPSTREAM in another revision of its code.

    Where a book has one upstream, its name may be left out.

    Each note is same, moved (the code is the same), edited, split, gone or unsure, with
    a confidence, the reason, and what to do; then the sentences that are no longer
    true. With --apply the anchors that are sure are written anew, those of questions
    and diagrams too, and what claims name: files, definitions, patterns whose names
    are others now. Pin and lock move with them, as one change to commit; a review stays
    where the code is the same, or has other names alone.

    With --spans, any lines of any language: each row, {"id", "path", "start", "end"}
    (lines from 1, both included), is answered by a row of JSON: id, status, path,
    start, end, confidence, reason. With unsure, the place is the best guess, or null;
    the confidence is the chance that exactly these lines are the right ones. A row
    that asks for nothing is named on stderr, and the exit code is 1, or 2 where none
    asks for anything.

    \b
    Example:
        readerkit drift megatron
        readerkit drift megatron --to 0.15.3
        readerkit drift megatron --to ~/src/Megatron-LM@core_v0.17.0 --apply
        readerkit drift megatron --to ~/src/Megatron-LM@main
        readerkit drift --spans lines.jsonl --from v1/ --to v2/
    """
    if new is not None and not new.strip():
        expected = "got nothing, expected a revision, a release or a folder"
        raise click.BadParameter(expected, param_hint="--to")
    if spans is not None:
        if upstream:
            raise click.UsageError("--spans is for any code: leave out the UPSTREAM")
        of_notes = {"--apply": apply, "--commit": commit is not None, "--keep": keep}
        of_notes |= {"--all": everything, "--json": as_json}
        if given := [option for option, is_given in of_notes.items() if is_given]:
            raise click.UsageError(
                f"{given[0]} is for notes: leave it out with --spans"
            )
        if old is None or new is None:
            raise click.UsageError("--spans, --from and --to go together")
        _carry(spans, old, new)
        return
    if old is not None:
        raise click.UsageError("--from is for --spans: an upstream is at its pin")
    if commit is not None and not apply:
        raise click.UsageError("--commit is for --apply: add it")
    how = {"keep": keep, "as_json": as_json}
    if apply:
        _apply(upstream, new, commit, book, **how)
    else:
        _drift(upstream, new, book, everything=everything, **how)


def _carry(spans: Path, old: str, new: str) -> None:
    from readerkit.app.spans import carry_rows
    from readerkit.system.output import printing

    rows, problems = carry_rows(spans, old, new)
    with printing():
        for row in rows:
            click.echo(row)
    if problems:
        refusal = ReaderkitError if rows else WrongUseError
        raise refusal("\n".join(problems))


def _drift(
    name: str | None,
    to: str | None,
    book: Path | None,
    *,
    everything: bool,
    keep: bool,
    as_json: bool,
) -> None:
    from readerkit.app.drift import find_drift
    from readerkit.app.drift_target import find_target
    from readerkit.app.library import open_library
    from readerkit.terminal.drift_report import print_drift

    library = open_library(book)
    upstream = _chosen(library, name)
    found = find_drift(library, upstream, find_target(library, upstream, to))
    if as_json:
        print_json(found.to_plain())
    else:
        print_drift(found, everything=everything)
    if keep:
        _keep(library, found, quiet=as_json)


def _chosen(library: Library, name: str | None) -> Upstream:
    """Return the upstream of a name, or the one that a book has."""
    known = [*library.book.upstreams.values()]
    if name is None and len(known) == 1:
        return known[0]
    if name is None:
        names = ", ".join(each.name for each in known) or "none in this book"
        raise click.UsageError(
            f"name an UPSTREAM ({names}), or lines to carry by --spans"
        )
    return library.upstream(name)


def _keep(library: Library, found: Drift, *, quiet: bool) -> None:
    from readerkit.app.kept_drifts import keep_drift

    path = keep_drift(library, found)
    if not quiet:
        click.echo(f"wrote {path}")


def _apply(
    name: str | None,
    to: str | None,
    commit: str | None,
    book: Path | None,
    *,
    keep: bool,
    as_json: bool,
) -> None:
    from readerkit.app.drift import find_drift
    from readerkit.app.drift_apply import apply_drift, next_step, relock_questions
    from readerkit.app.drift_target import find_target
    from readerkit.app.library import open_library, writing
    from readerkit.model.git_names import NO_COMMIT, parse_commit
    from readerkit.terminal.drift_report import print_drift
    from readerkit.terminal.folded import tell

    try:
        known = NO_COMMIT if commit is None else parse_commit(commit)
    except ValueError as error:
        raise click.UsageError(f"--commit: {error}") from None
    with writing():
        library = open_library(book, whole=True)
        upstream = _chosen(library, name)
        found = find_drift(library, upstream, find_target(library, upstream, to))
        applied = apply_drift(library, found, known)
        if keep:
            _keep(library, found, quiet=True)
        with suppress(ReaderkitError):  # what a person has to mend first
            applied.wrote.extend(relock_questions(open_library(book)))
    if as_json:
        wrote, left = [*map(str, applied.wrote)], [row.note.id for row in applied.left]
        print_json({**found.to_plain(), "wrote": wrote, "left": left})
        return
    print_drift(found, applied=True)
    for path in applied.wrote:
        tell(f"wrote {path}")
    if applied.left:
        tell(f"left for you: {', '.join(row.note.id for row in applied.left)}")
    tell(f"then: {next_step(found)}")
