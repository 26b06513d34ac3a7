"""Notes as SARIF 2.1.0: what tools of code review show beside lines."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any

from readerkit import __version__
from readerkit.model.language import Say, english
from readerkit.render.exchange.shared_note import SharedNote
from readerkit.render.sarif import sarif_log, sarif_place
from readerkit.upstreams import Upstream

_RULES = {
    "citation": "A design decision that these lines hold",
    "note": "How to read these lines",
    "pitfall": "A trap in these lines",
}


def sarif_notes(notes: Iterable[SharedNote], say: Say = english) -> bytes:
    """Return a log with one run for each upstream; a note is a result of no severity.

    Paths are below the checkout of the commit that the run names.
    """
    by_upstream: dict[str, list[SharedNote]] = {}
    for note in notes:
        by_upstream.setdefault(note.upstream.name, []).append(note)
    runs = [_run(those[0].upstream, those, say) for those in by_upstream.values()]
    log = sarif_log(runs, _RULES, __version__)
    return (json.dumps(log, indent=1, ensure_ascii=False) + "\n").encode()


def _run(upstream: Upstream, notes: list[SharedNote], say: Say) -> dict[str, Any]:
    run: dict[str, Any] = {
        "automationDetails": {"id": f"readerkit/notes/{upstream.name}"},
        "originalUriBaseIds": {
            "SRCROOT": {"description": {"text": f"{upstream.title} {upstream.pin}"}}
        },
        "results": [_result(note, say) for note in notes],
    }
    if upstream.url and upstream.commit:
        pinned = {"repositoryUri": upstream.url, "revisionId": upstream.commit}
        mapped = {"mappedTo": {"uriBaseId": "SRCROOT"}}
        run["versionControlProvenance"] = [pinned | mapped]
    return run


def _result(note: SharedNote, say: Say) -> dict[str, Any]:
    own, span = note.annotation, note.span
    said = note.markdown(say)
    result: dict[str, Any] = {
        "ruleId": own.kind,
        "ruleIndex": [*_RULES].index(own.kind),
        "level": "none",
        "kind": "informational",
        "message": {
            "text": "\n\n".join([own.title, *(t for _, t in note.parts(say))]),
            "markdown": f"**{own.title}**\n\n{said}",
        },
        "locations": [sarif_place(span.path, span.first, span.last, base="SRCROOT")],
        "partialFingerprints": {"readerkitNote/v1": own.id},
    }
    if link := note.upstream.permalink(span):
        result["hostedViewerUri"] = link
    return result
