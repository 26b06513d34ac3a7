"""The script of the estimates' page: translated once, kept by what it is made of."""

from __future__ import annotations

import json
from functools import cache, lru_cache
from pathlib import Path
from typing import Any

from readerkit.app.cached_files import keep, read_kept
from readerkit.app.catalog import rows
from readerkit.app.folders import PACKAGE, cache_folder
from readerkit.app.interface_translation import read_words
from readerkit.estimate.instrument import Shipped
from readerkit.model.freshness import digest
from readerkit.render.javascript.translate import data, translate

FILE = "theme/estimates.js"
ENTRIES = {
    "answers": ("readerkit.estimate.instrument", "answers"),
    "drawn": ("readerkit.estimate.instrument", "drawn"),
    "Dials": ("readerkit.estimate.instrument", "Dials"),
    "Shipped": ("readerkit.estimate.instrument", "Shipped"),
    "numberTexts": ("readerkit.render.estimate_table", "number_texts"),
    "inParts": ("readerkit.model.told_parts", "in_parts"),
    "plain": ("readerkit.render.estimate_table", "plain_number"),
}
"""What the page calls, by the name that it has there."""

METHODS = ("value", "formula", "substitution", "symbols", "said", "to_plain")
"""What the page asks of an estimate and of its items."""


def estimates_script() -> bytes:
    """Return what the page of estimates computes with, and what it knows by name."""
    folders = ("render/javascript", "estimate", "model", "wording")
    code = [path for each in folders for path in sorted((PACKAGE / each).glob("*.py"))]
    code += [PACKAGE / "errors.py", PACKAGE / "render" / "estimate_table.py"]
    minis = ("schedules.py", "timeline.py", "zero_bubble_orders.py")
    code += [PACKAGE.parent / "mini_impls" / name for name in minis]
    made_of = digest(b"".join(path.read_bytes() for path in code))
    known = data("known", known_names()._asdict())
    path = cache_folder() / "scripts" / f"{made_of}.js"
    text = read_kept(path)
    if text is None:
        text = translate(ENTRIES, _source, METHODS).encode()
        keep(path, text)
    return text + (known + _spanish(text.decode())).encode()


def known_names() -> Shipped:
    """Return the models, GPUs and clusters that ship, as the page is given them."""
    models = {n: dict(row.entry["shape"]) for n, row in rows("models").items()}
    others = (
        {name: _without_source(row.entry) for name, row in rows(table).items()}
        for table in ("gpus", "clusters")
    )
    return Shipped(models, *others)


def _without_source(entry: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in entry.items() if name != "dated"}


@cache
def _source(module: str) -> str:
    path = Path(*module.split(".")).with_suffix(".py")
    return (PACKAGE.parent / path).read_text("utf-8")


def _spanish(script: str) -> str:
    """Return the Spanish of what the script says: names, units and phrases."""
    words = read_words()
    said = {each: words.all[each] for each in _said_in(script, tuple(words.all))}
    spanish = data("spanish", {**said, **words.estimates})
    return spanish + data("parts", words.conventions)


@lru_cache(maxsize=1)  # a server asks at every build, of the same script
def _said_in(script: str, phrases: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(each for each in phrases if json.dumps(each) in script)
