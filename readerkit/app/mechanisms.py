"""Reads the recorded mechanisms of a book, and says what changed since."""

from __future__ import annotations

from readerkit.app.folders import read_at_most
from readerkit.app.library import Library
from readerkit.content.book import MINIS
from readerkit.evidence.played import FORMAT, Mechanisms, Played
from readerkit.model import stored
from readerkit.model.freshness import digest, outdated

FILE = "annotations/mechanisms.json"
MAKE = "python -m tools.make_mechanisms"


def read_played(library: Library) -> dict[str, Played]:
    """Return every mechanism that was recorded; none, in a book without them.

    Raises:
        ContentError: a file that cannot be read.
    """
    path = library.root / FILE
    if not path.is_file():
        return {}
    text = read_at_most(path, library.root).decode("utf-8", "replace")
    what = {"what": "file of mechanisms", "expected": f"{MAKE} --all"}
    file = stored.parse(text, Mechanisms, FILE, version=FORMAT, **what)
    today: dict[str, str] = {}
    if MINIS in library.book.upstreams:
        minis = library.sources(library.book.upstreams[MINIS])
        made_from = {part for run in file.runs.values() for part in run.made_from}
        today = {p: digest(minis.read(p)) for p in minis.paths if p in made_from}
    return {
        name: Played(name, run, tuple(outdated(run.made_from, today)))
        for name, run in file.runs.items()
    }
