"""What ``drift UPSTREAM`` prints: counts, then what asks for somebody to look."""

from __future__ import annotations

import click

from readerkit.app.drift_anchors import MovedAnchor
from readerkit.app.drifted import Drift, DriftedNote, said, side_by_side
from readerkit.render.terminal_safe import visible, visible_line
from readerkit.wording.numbers import counted

_WIDTH = 56


def print_drift(
    found: Drift, *, everything: bool = False, applied: bool = False
) -> None:
    """Print where the notes stand; those that are the same only as a number."""
    name, target = found.upstream.name, found.target
    counts = ", ".join(f"{count} {status}" for status, count in found.counts.items())
    click.echo(visible_line(f"{name}: from {found.upstream.pin} to {target.origin}"))
    click.echo(f"{counted(len(found.notes), 'anchor')}: {counts or 'none'}")
    for row in found.notes:
        if row.status != "same" or everything:
            _print_note(row)
    wrong = [each for each in found.claims.wrong if each.proof.state == "false"]
    lost = [each for each in found.claims.wrong if each.proof.state == "lost"]
    click.echo(
        f"of the claimed sentences {found.claims.held} hold there, {len(wrong)} are no "
        f"longer true, {len(lost)} cannot be held there"
    )
    if moved := len(found.claims.moved):
        to_do = "" if applied else ": --apply writes what they name now"
        click.echo(f"{counted(moved, 'claim')} moved with the code{to_do}")
    _print_anchors(found.anchors)
    for each in (*wrong, *lost):
        what = "no longer true" if each in wrong else "cannot be held"
        says = f"{each.sentence.entry}: '{each.sentence.claim.says}' is {what}"
        if each not in wrong:
            says = says.replace(" is cannot", " cannot")
        click.echo(visible_line(f"{each.sentence.claim.place.file}: {says}"))
        for line in (each.proof.found, *each.proof.near[:3]):
            click.echo(f"    {visible_line(line)}")


def _print_note(row: DriftedNote) -> None:
    where = f"{row.was} -> {row.to}" if row.to else f"{row.was}"
    if row.parts:
        where += " and " + ", ".join(map(str, row.parts))
    sure = f"{row.confidence:.0%}"
    click.echo(visible_line(f"{row.status:7} {row.note.id}: {where} ({sure})"))
    if row.status == "moved" and not row.anchor:
        return
    click.echo(f"    {visible_line(row.reason)}")
    for mark, left, right in side_by_side(row):
        left, right = visible(left)[:_WIDTH], visible(right)[:_WIDTH]
        click.echo(f"    {mark} {left:{_WIDTH}} | {right}".rstrip())
    if row.to_do:
        click.echo(f"    to do: {visible_line(row.to_do)}")


def _print_anchors(anchors: list[MovedAnchor]) -> None:
    for each in anchors:
        place = f"{each.path.parent.name}/{each.path.name}:{each.line}"
        if each.anchor is None:
            click.echo(visible_line(f"unsure  {place}: {each.problem}"))
        else:
            click.echo(visible_line(f"moved   {place}: {said(each.anchor)}"))
