"""Published runs beside their predictions, kept while neither code nor catalog changed.

Each is two searches of a planner: over all runs seconds, which every build of a site
would spend again.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence

from msgspec import Raw, Struct
from msgspec import json as fast_json

from readerkit.app.cached_files import code_digest, keep, kept_file, read_kept
from readerkit.app.catalog import TABLES, load_runs, shipped
from readerkit.app.folders import cache_folder
from readerkit.estimate.runs import Compared, CutPlace, compare
from readerkit.estimate.step_time import Assumptions

_Found = tuple[tuple[float, CutPlace, CutPlace], ...]


class _Worked(Struct, frozen=True):
    """What was worked out for each run, and of which code and catalog."""

    key: str
    found: Raw
    """Of other code it may have another shape: it is read once the key fits."""


def compared_runs() -> tuple[Compared, ...]:
    """Return each shipped run of a half beside what is predicted for it."""
    runs = [run for run in load_runs() if run.half]
    place, key = kept_file(cache_folder(), shipped("runs.yaml"), ".compared"), _key()
    if body := read_kept(place):
        kept = fast_json.decode(body, type=_Worked)
        if kept.key == key:
            worked = fast_json.decode(kept.found, type=_Found)
            pairs = zip(runs, worked, strict=True)
            return tuple(Compared(run, *found) for run, found in pairs)
    made = tuple(compare(run, Assumptions()) for run in runs)
    found = Raw(fast_json.encode(_plain(made)))
    keep(place, fast_json.encode(_Worked(key, found)))
    return made


def _plain(made: Sequence[Compared]) -> _Found:
    return tuple((each.predicted, each.same_means, each.any_means) for each in made)


def _key() -> str:
    digest = hashlib.sha256(code_digest("app", "estimate", "model").encode())
    for file in sorted({table.file for table in TABLES.values()}):
        digest.update(shipped(file).read_bytes())
    return digest.hexdigest()
