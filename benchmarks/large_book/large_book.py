"""A book of many notes, written by the same code that `note` and `init` use."""

from __future__ import annotations

import random
import subprocess
import sys
from pathlib import Path

import yaml

from readerkit.anchors import SourceFile
from readerkit.anchors.propose import propose
from readerkit.errors import AnchorError
from readerkit.model.anchor import Anchor, Span

NOTES = 1_000
SEED = 18
CONCEPTS = """\
- id: an-idea
  title: An idea
  summary: What these notes are about.
  prerequisites: []
"""
WORDS = ("kept", "read", "sent", "asked", "held", "made", "moved", "named", "closed")


def write_book(root: Path, paths: list[str], notes: int = NOTES) -> None:
    """Write a book on a repository, beside its code, and its lock."""
    _readerkit(root, "init", ".", "--name", "code", "--no-site", timeout=600)
    book = root / "book"
    folder = book / "annotations" / "code"
    written = 0
    rng = random.Random(SEED)
    chosen = rng.sample(paths, len(paths))
    topics: dict[str, list[object]] = {}
    each_file = max(1, -(-notes // len(paths)))
    for path in chosen:
        if written == notes:
            break
        for anchor in _anchors(root, path, rng, each_file):
            topic = f"topic-{written // 25:03}"
            topics.setdefault(topic, []).append(_note(written, anchor, rng))
            written += 1
            if written == notes:
                break
    for topic, entries in topics.items():
        text = yaml.safe_dump(entries, sort_keys=False, width=90)
        (folder / f"{topic}.yaml").write_text(text, "utf-8")
    _readerkit(root, "annotate", "--update-lock")


def _anchors(root: Path, path: str, rng: random.Random, most: int) -> list[Anchor]:
    """Return anchors of some definitions, and of lines within them."""
    source = SourceFile(path, (root / path).read_bytes())
    found: list[Anchor] = []
    symbols = [s for many in source.symbols.values() for s in many]
    rng.shuffle(symbols)
    for number, symbol in enumerate(symbols[: 4 * most]):
        span = Span(path, symbol.first, symbol.last)
        if number % 2 and symbol.last - symbol.first > 3:
            span = Span(path, symbol.first + 2, symbol.first + 2)
        try:
            found.append(propose(span, source))
        except AnchorError:
            continue
        if len(found) == most:
            break
    return found


def _note(number: int, anchor: Anchor, rng: random.Random) -> dict[str, object]:
    at = anchor.to_yaml()
    words = " ".join(rng.choices(WORDS, k=40))
    note: dict[str, object] = {
        "id": f"note-{number:04}",
        "at": at,
        "kind": "note",
        "title": f"What is {rng.choice(WORDS)} here, {number}",
        "text": f"These lines stand as they are read. {words.capitalize()}.",
        "concepts": ["an-idea"],
    }
    if number % 5 == 0:
        note["claims"] = [{"says": "These lines stand", "stands": anchor.to_yaml()}]
    return note


def _readerkit(root: Path, *words: str, timeout: float = 1_200) -> None:
    command = [sys.executable, "-m", "readerkit", *words]
    if words[0] != "init":
        command += ["--book", str(root / "book")]
    subprocess.run(
        command, check=True, cwd=root, timeout=timeout, stdout=subprocess.DEVNULL
    )
