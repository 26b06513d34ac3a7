"""What ``annotate --check`` says to a person: held, not reviewed, to translate."""

from __future__ import annotations

from typing import Any

import click

from readerkit.app.check_claims import print_claims
from readerkit.app.check_locks import Report
from readerkit.model.freshness import Change, tell
from readerkit.render.terminal_safe import visible_line
from readerkit.wording.next_command import typed
from readerkit.wording.numbers import counted

MAX_LISTED = 5


def print_report(report: Report) -> None:
    """Say what a book was held against, and what nobody looked at yet."""
    for result in report.upstreams:
        _print_upstream(result)
    for what, found in (
        ("concepts", report.concepts),
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
