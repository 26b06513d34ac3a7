"""Prints what ``annotate --check`` found: for a person, or in a format for programs."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import click

from readerkit import __version__
from readerkit.app.check_claims import print_claims, print_unproved
from readerkit.app.check_locks import Report, check
from readerkit.app.folders import shipped_book
from readerkit.app.library import open_library
from readerkit.errors import ContentFault, ReaderkitError
from readerkit.model.freshness import Change, tell
from readerkit.render.check_formats import CheckFinding, FoundAt, as_github, as_sarif
from readerkit.render.terminal_safe import visible_line
from readerkit.system.output import printing
from readerkit.terminal.as_json import print_json
from readerkit.upstreams.book_repository import top_of
from readerkit.wording.next_command import typed
from readerkit.wording.numbers import counted


def check_and_print(
    upstream: str | None,
    book: Path | None,
    *,
    strict: bool,
    claims: bool,
    form: str,
) -> None:
    """Hold a book, or one upstream of it; whatever is wrong is told at once.

    Raises:
        ContentError: something is wrong.
    """
    report = Report()
    try:
        library = open_library(book, whole=True)
        if upstream and (upstream in library.book.annotations):
            raise click.UsageError("--check is for a whole upstream: leave out the ID")
        chosen = library.upstream(upstream) if upstream else None
        lacking = claims or form == "json"
        check(library, chosen, report, strict=strict, claims=claims, lacking=lacking)
    except ReaderkitError as error:  # a book that cannot be opened has faults too
        report.add(error)
    with printing():
        print_findings(report, form, book or shipped_book())
        if claims and form == "text":
            print_unproved(report.claims)
    report.refuse()
    if form == "text":
        print_report(report)


def print_findings(report: Report, form: str, root: Path) -> None:
    """Print a report on stdout, all of it in one format for programs."""
    if form == "json":
        print_json(report.to_plain())
    elif form == "sarif":
        print_json(as_sarif(findings(report, root), __version__))
    elif form == "github" and (commands := as_github(findings(report, root))):
        click.echo(commands)


def findings(report: Report, root: Path) -> Iterator[CheckFinding]:
    """Yield what a check found; files by their path in the repository of the book."""
    base = root.resolve().relative_to(top_of(root)).as_posix()
    before = "" if base == "." else f"{base}/"
    for each in report.edited:
        shown = [*each.lines] or [each.span.first, each.span.last]
        at = FoundAt(each.span.path, shown[0], _run_end(shown))
        yield CheckFinding(
            "edited-code",
            each.message,
            at,
            _placed(each.fault, before),
            each.note.id,
        )
    groups = {
        "fault": sorted({*report.faults}),
        "lock": report.differences,
        "still-true": report.still_true,
        "not-reviewed": report.unreviewed,
    }
    for rule, faults in groups.items():
        for fault in faults:
            yield CheckFinding(rule, fault.message, _placed(fault, before))


def _placed(fault: ContentFault, before: str) -> FoundAt:
    """Return where a fault is; one of the reader's own notes has its whole path."""
    file = fault.file
    if not file:
        return FoundAt()
    file = file if Path(file).is_absolute() else f"{before}{file}"
    return FoundAt(file, fault.line, fault.line)


def _run_end(lines: list[int]) -> int:
    """Return the last of the lines that follow the first without a gap."""
    last = lines[0]
    for line in lines[1:]:
        if line != last + 1:
            break
        last = line
    return last


MAX_LISTED = 5


def print_report(report: Report) -> None:
    """Say what a book was held against, and what nobody looked at yet."""
    for result in report.upstreams:
        _print_upstream(result)
    for what, found in (
        ("concepts", report.concepts),
        ("conditions", report.conditions),
        ("mirrors", report.mirrors),
        ("tours", report.tours),
    ):
        if found and (behind := found["translations_to_check"]):
            click.echo(f"{what}: {counted(len(behind), 'translation')} to check")
            _print_behind(behind)
    held = [counted(count, what) for what, count in report.beside.items() if count]
    if held:
        click.echo(f"held too: {', '.join(held)}")
    print_claims(report.claims)


def _print_upstream(result: dict[str, Any]) -> None:
    name, unread = result["upstream"], result["not_reviewed"]
    anchors = counted(result["anchors"], "anchor")
    if result["absent"]:
        click.echo(f"{name}: {anchors} not held. {visible_line(result['absent'])}")
        return
    if not result["locked"]:
        mirrored = counted(result["mirrored"], "anchor")
        click.echo(
            f"{name}: {anchors} of notes, {mirrored} of mirrors, each found; "
            "a folder has no lock, so that nothing tells when its code changes"
        )
        return
    held = "each found, its code as" if result["living"] else "all as"
    click.echo(f"{name}: {anchors}, {held} the lock says")
    if unread:
        first = ", ".join(unread[:MAX_LISTED])
        more = len(unread) - MAX_LISTED
        rest = f" and {more} more: {typed('annotate', name)}" if more > 0 else ""
        click.echo(f"  not reviewed against this code yet: {first}{rest}")
    behind = result["translations_to_check"]
    _print_behind(behind[:MAX_LISTED])
    if len(behind) > MAX_LISTED:
        others = counted(len(behind) - MAX_LISTED, "more translation")
        click.echo(f"  {others}: {typed('annotate', name, '--check', '--json')}")


def _print_behind(behind: list[dict[str, Any]]) -> None:
    for each in behind:
        what = tell([Change(**part) for part in each["changed"]]) or "of which English?"
        mend = f"once it says the same, write of: {each['now']}"
        click.echo(f"  {each['id']} ({each['language']}): {what}: {mend}")
