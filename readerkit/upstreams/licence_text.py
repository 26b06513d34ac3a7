"""Whose code it is and under which terms, as the text of a licence says it."""

from __future__ import annotations

import re
from collections.abc import Iterable

from readerkit.model.git_names import TreePath
from readerkit.upstreams.upstream import Licence, Upstream, matching

LICENCE_FILES = ("LICENSE*", "LICENCE*", "COPYING*")
"""What such files are called, at the top of a repository."""
UNKNOWN = "NOASSERTION"
"""What SPDX calls terms that are not known by their text."""
_TERMS = {
    "Apache-2.0": "Apache License",
    "MIT": "Permission is hereby granted, free of charge",
    "BSD-3-Clause": "Neither the name",
    "BSD-2-Clause": "Redistribution and use in source and binary forms",
    "MPL-2.0": "Mozilla Public License",
    "AGPL-3.0-or-later": "GNU AFFERO GENERAL PUBLIC LICENSE",
    "LGPL-3.0-or-later": "GNU LESSER GENERAL PUBLIC LICENSE",
    "GPL-3.0-or-later": "GNU GENERAL PUBLIC LICENSE",
}
"""Words that a licence's own text is known by, the telling ones first."""


def licence_files(paths: Iterable[str]) -> list[str]:
    """Return which of some paths are a licence by their name, in order."""
    globs = [matching(glob) for glob in LICENCE_FILES]
    return sorted(path for path in paths if any(g.fullmatch(path) for g in globs))


def is_licence(path: str, upstream: Upstream) -> bool:
    """Tell whether a file of a package is its licence, at the top or in its metadata.

    That is the one that a pin names; where it names none, any of such a name.
    """
    _, _, beside = path.partition(".dist-info/")
    name = beside.removeprefix("licenses/") or path
    known = upstream.licence
    return name == known.path if known else bool(licence_files([name]))


def licence_of(text: str, path: TreePath, name: str) -> Licence:
    """Return what a licence's text says, of a code base that is called so."""
    flat = " ".join(text.split())
    spdx = next((each for each, words in _TERMS.items() if words in flat), UNKNOWN)
    said = re.search(
        r"Copyright\s+(?:\(c\)\s*|©\s*)?[\d,\s-]*(?P<who>[^\n]+)", text, re.I
    )
    who = said["who"].strip(" .") if said and spdx != "Apache-2.0" else ""
    who = re.sub(r"\[([^\]]+)\]\([^)]*\)", r"\1", who)  # a link of Markdown
    return Licence(spdx, path, who[:80] or f"the authors of {name}")
