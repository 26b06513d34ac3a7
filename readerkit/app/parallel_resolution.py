"""Finds where many anchors stand, on all cores, before somebody asks for them."""

from __future__ import annotations

import contextlib
import os
from collections import defaultdict
from collections.abc import Iterable
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool

from readerkit.anchors import SourceFile, resolve
from readerkit.app.parse_cache import FoundPlaces
from readerkit.content.resolved_notes import Located, Sources, with_symbol
from readerkit.errors import AnchorError, SourceError
from readerkit.model.anchor import Anchor
from readerkit.model.git_names import TreePath
from readerkit.system.children import heed_parent_alone

FEW_FILES = 100
"""Below it, starting other processes costs more than they bring."""
_AT_ONCE = 8
"""Files that a process is given at a time."""


def find_ahead(
    sources: Sources, anchors: Iterable[Anchor], places: FoundPlaces
) -> None:
    """Have ``places`` know where anchors stand, if there is much to parse for it.

    What does not resolve is left out: whoever asks for it is told why.
    """
    todo: dict[TreePath, list[Anchor]] = defaultdict(list)
    for anchor in anchors:
        path = anchor.file
        with contextlib.suppress(SourceError):
            if path in sources.paths and not places.knows(sources.blob(path), anchor):
                todo[path].append(anchor)
    cores = min(os.cpu_count() or 1, 8)
    if cores == 1 or len(todo) < FEW_FILES:
        return
    files = [(path, sources.read(path), asked) for path, asked in todo.items()]
    # Without the rest they are found one by one.
    with (
        contextlib.suppress(BrokenProcessPool),
        ProcessPoolExecutor(cores, initializer=heed_parent_alone) as pool,
    ):
        found = pool.map(_found, files, chunksize=_AT_ONCE)
        for (path, _, asked), located in zip(files, found, strict=True):
            for anchor, place in zip(asked, located, strict=True):
                if place is not None:
                    places.learn(sources.blob(path), anchor, place)


def _found(file: tuple[TreePath, bytes, list[Anchor]]) -> list[Located | None]:
    path, data, anchors = file
    try:
        source = SourceFile(path, data)
    except AnchorError:
        return [None] * len(anchors)
    found: list[Located | None] = []
    for anchor in anchors:
        try:
            found.append(with_symbol(resolve(anchor, source), anchor, source))
        except AnchorError:
            found.append(None)
    return found
