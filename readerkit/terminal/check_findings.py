"""Prints what a check found, in the format that was asked for."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import click

from readerkit import __version__
from readerkit.app.check_locks import Report
from readerkit.errors import ContentFault
from readerkit.render.check_formats import CheckFinding, FoundAt, as_github, as_sarif
from readerkit.terminal.as_json import print_json
from readerkit.upstreams.here import top_of


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
