"""SARIF 2.1.0, as far as all logs of readerkit share it: the log, its tool, a place."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any
from urllib.parse import quote

_SCHEMA = "https://json.schemastore.org/sarif-2.1.0.json"
_VERSION = "2.1.0"


def sarif_log(
    runs: Iterable[Mapping[str, Any]], rules: Mapping[str, str], version: str
) -> dict[str, Any]:
    """Return a log of runs, each with this version of readerkit as its tool.

    A run is given without its tool; the rules say what a result may be, and what that
    means.
    """
    described = [
        {"id": rule, "shortDescription": {"text": text}} for rule, text in rules.items()
    ]
    driver = {"name": "readerkit", "version": version, "rules": described}
    # Columns are counted as Python counts the letters of a line.
    shared = {"tool": {"driver": driver}, "columnKind": "unicodeCodePoints"}
    return {
        "$schema": _SCHEMA,
        "version": _VERSION,
        "runs": [{**shared, **run} for run in runs],
    }


def sarif_place(file: str, first: int, last: int, *, base: str = "") -> dict[str, Any]:
    """Return the place of lines; of a file alone where the first is 0.

    ``base`` is what the run calls the folder that the file is below.
    """
    at = {"uri": quote(file)} | ({"uriBaseId": base} if base else {})
    where: dict[str, Any] = {"artifactLocation": at}
    if first:
        where["region"] = {"startLine": first, "endLine": last}
    return {"physicalLocation": where}
