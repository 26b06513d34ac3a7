"""The kinds of files below ``annotations/``, by where they stand."""

from __future__ import annotations

import re
from typing import Annotated, Any

from readerkit.content.annotations import (
    ANNOTATIONS,
    COMPARISONS,
    CONCEPTS,
    REFERENCES,
)
from readerkit.content.kind import Kind
from readerkit.content.mirrors import MIRROR
from readerkit.content.translations import CONCEPT_TRANSLATION, NOTE_TRANSLATION
from readerkit.upstreams.upstream import PINNED_OR_FOLDER, Upstream

UPSTREAMS: Kind[Upstream] = Kind("upstreams", Annotated[Upstream, PINNED_OR_FOLDER])

BY_NAME: dict[str, Kind[Any]] = {
    "comparisons.yaml": COMPARISONS,
    "concepts.yaml": CONCEPTS,
    "concepts.<language>.yaml": CONCEPT_TRANSLATION,
    "references.yaml": REFERENCES,
    "upstreams.yaml": UPSTREAMS,
}


def kind_of(path: str) -> Kind[Any] | None:
    """Return the kind of a file by its path; None: nobody reads it."""
    _, *folders, name = path.split("/")
    if len(folders) == 1 and name.endswith(".yaml"):
        if name.count(".") > 1:
            return NOTE_TRANSLATION
        return MIRROR if folders == ["mirrors"] else ANNOTATIONS
    general = re.sub(r"^concepts\.[A-Za-z-]+\.yaml$", "concepts.<language>.yaml", name)
    return None if folders else BY_NAME.get(general)
