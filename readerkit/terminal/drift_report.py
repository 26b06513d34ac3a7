"""What ``drift UPSTREAM`` prints: counts, then what asks for somebody to look."""

from __future__ import annotations

from collections.abc import Iterator
from difflib import SequenceMatcher

import click

from readerkit.app.drift import Drift, DriftedNote, said
from readerkit.app.drift_other_anchors import MovedAnchor
from readerkit.render.terminal_safe import visible, visible_line
from readerkit.terminal.folded import columns, tell
from readerkit.wording.numbers import counted

MAX_LINES = 40
"""Lines of a text that are shown side by side."""
_WIDTH = 56
_LEAST = 30
"""Columns that a line of code needs to be known by; with fewer, one stands under the
other."""


def print_drift(
    found: Drift, *, everything: bool = False, applied: bool = False
) -> None:
    """Print where the notes stand; those that are the same only as a number."""
    name, target = found.upstream.name, found.target
    counts = ", ".join(f"{count} {status}" for status, count in found.counts.items())
    tell(visible_line(f"{name}: from {found.upstream.pin} to {target.origin}"))
    tell(f"{counted(len(found.notes), 'anchor')}: {counts or 'none'}")
    for row in found.notes:
        if row.status != "same" or everything:
            _print_note(row)
    wrong = [each for each in found.claims.wrong if each.proof.state == "false"]
    lost = [each for each in found.claims.wrong if each.proof.state == "lost"]
    tell(
        f"claimed sentences: {found.claims.held} true there, {len(wrong)} no longer "
        f"true, {len(lost)} that cannot be held there"
    )
    if moved := len(found.claims.moved):
        to_do = "" if applied else ": --apply writes what they name now"
        tell(f"{counted(moved, 'claim')} moved with the code{to_do}")
    _print_anchors(found.anchors)
    for each in (*wrong, *lost):
        what = "no longer true" if each in wrong else "cannot be held"
        says = f"{each.sentence.entry}: '{each.sentence.claim.says}' is {what}"
        if each not in wrong:
            says = says.replace(" is cannot", " cannot")
        tell(visible_line(f"{each.sentence.claim.place.file}: {says}"))
        for line in (each.proof.found, *each.proof.near[:3]):
            tell(f"    {visible_line(line)}")


def _print_note(row: DriftedNote) -> None:
    where = f"{row.was} -> {row.to}" if row.to else f"{row.was}"
    if row.parts:
        where += " and " + ", ".join(map(str, row.parts))
    sure = f"{row.confidence:.0%}"
    tell(visible_line(f"{row.status:7} {row.note.id}: {where} ({sure})"))
    if row.status == "moved" and not row.anchor:
        return
    tell(f"    {visible_line(row.reason)}")
    for mark, left, right in _side_by_side(row):
        _print_beside(mark, visible(left), visible(right))
    if row.to_do:
        tell(f"    to do: {visible_line(row.to_do)}")


def _print_beside(mark: str, left: str, right: str) -> None:
    """Print a line before and after, on one row where there is room for both."""
    width = columns(2 * _WIDTH + 9)
    half = min(_WIDTH, (width - 9) // 2)
    if half >= _LEAST:
        click.echo(f"    {mark} {left[:half]:{half}} | {right[:half]}".rstrip())
        return
    rows = {"-": left, "+": right} if mark != " " else {" ": right}
    for sign, line in rows.items():
        if line:
            click.echo(f"    {sign} {line[: width - 6]}".rstrip())


def _print_anchors(anchors: list[MovedAnchor]) -> None:
    for each in anchors:
        place = f"{each.path.parent.name}/{each.path.name}:{each.line}"
        if each.anchor is None:
            tell(visible_line(f"unsure  {place}: {each.problem}"))
        else:
            tell(visible_line(f"moved   {place}: {said(each.anchor)}"))


def _side_by_side(row: DriftedNote) -> Iterator[tuple[str, str, str]]:
    """Yield a mark, a line before and a line after, of a few around each change."""
    old, new = row.texts
    matcher = SequenceMatcher(None, old, new, autojunk=False)
    marks = {"replace": "~", "delete": "-", "insert": "+"}
    count = 0
    for group in matcher.get_grouped_opcodes(1):
        for kind, a, b, c, d in group:
            for n in range(max(b - a, d - c)):
                if count >= MAX_LINES:
                    return
                count += 1
                left = old[a + n] if a + n < b else ""
                right = new[c + n] if c + n < d else ""
                yield marks.get(kind, " "), left, right
