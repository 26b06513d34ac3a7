"""What a check found, as other programs take it: GitHub's annotations, SARIF 2.1.0."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from readerkit.model.freshness import digest
from readerkit.render.sarif import sarif_log, sarif_place

RULES = {
    "edited-code": "The code under a note was edited since it was reviewed",
    "lock": "What an anchor resolves to is not what the lock says",
    "still-true": "A sentence still holds, on other grounds than the lock knows",
    "fault": "Something in the book is wrong: an anchor, a claim, an entry",
    "not-reviewed": "A note that nobody reviewed, or a sentence without a proof",
}
"""What a finding may be, and what that means."""


@dataclass(frozen=True, slots=True)
class FoundAt:
    """Lines of a file of the repository; no file, where a finding has none."""

    file: str = ""
    first: int = 0
    last: int = 0


@dataclass(frozen=True, slots=True)
class CheckFinding:
    """One thing that a check found."""

    rule: str
    message: str
    at: FoundAt
    """Where it shows: the code of a note, else the file of the book."""
    note: FoundAt = FoundAt()
    """Where the note is written, if it shows elsewhere."""
    name: str = ""
    """The id of the note."""


def as_github(findings: Iterable[CheckFinding]) -> str:
    """Return a workflow command for each finding: a review shows it at its lines."""
    return "\n".join(_command(each) for each in findings)


def _command(found: CheckFinding) -> str:
    title = f"readerkit: {found.name or found.rule}"
    parts = {"file": found.at.file, "title": title}
    if found.at.first:
        parts |= {"line": str(found.at.first), "endLine": str(found.at.last)}
    named = ",".join(f"{k}={_escaped(v, ':,')}" for k, v in parts.items() if v)
    return f"::error {named}::{_escaped(found.message)}"


def _escaped(text: str, more: str = "") -> str:
    for letter in "%\r\n" + more:
        text = text.replace(letter, f"%{ord(letter):02X}")
    return text


def as_sarif(findings: Iterable[CheckFinding], version: str) -> dict[str, Any]:
    """Return the findings as a SARIF log of one run."""
    return sarif_log(
        [{"results": [_result(each) for each in findings]}], RULES, version
    )


def _result(found: CheckFinding) -> dict[str, Any]:
    said = found.name or re.sub(r"\d+", "", f"{found.at.file} {found.message}")
    result: dict[str, Any] = {
        "ruleId": found.rule,
        "ruleIndex": [*RULES].index(found.rule),
        "level": "error",
        "message": {"text": found.message},
        # The same finding on other lines is the same finding.
        "partialFingerprints": {"readerkit/v1": digest(f"{found.rule} {said}")},
    }
    if found.at.file:
        result["locations"] = [_location(found.at)]
    if found.note.file:
        written = {**_location(found.note), "message": {"text": "the note"}}
        result["relatedLocations"] = [written]
    return result


def _location(place: FoundAt) -> dict[str, Any]:
    return sarif_place(place.file, place.first, place.last)
