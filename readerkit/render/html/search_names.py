"""The second half of the search index: the names in the files, and words of their code.

A page fetches it for a query that looks like a name, or that the texts do not answer.
Its columns have a row for each file, in the order of the first half (``search.py``).
"""

from __future__ import annotations

import json
from collections import defaultdict

from readerkit.anchors.xref.names import Names
from readerkit.render.html import search_packing as packing
from readerkit.render.html.site_model import SiteModel
from readerkit.render.terminal_safe import visible

FILE = "search-names.js"
FILES_OF_A_SETTING = 6
"""A name in capitals is found in so many files; any other word of the code in one: in
more it tells little, and would fill the index."""


def names_index(model: SiteModel) -> bytes:
    """Return the script; it is of use after the first half alone."""
    defined: set[str] = set()
    files_of: dict[str, int] = defaultdict(int)
    for sheet in model.sheets.values():
        defined.update(n.rpartition(".")[2] for n in sheet.names.defined)
        defined.update(n.rpartition(".")[2] for n in sheet.names.fields)
        for word in sheet.names.words:
            files_of[word] += 1
    names, at, said, said_at = list[str](), list[str](), list[str](), list[str]()
    for sheet in model.sheets.values():
        packed, lines = _defined(sheet.names)
        names.append(packed)
        at.append(lines)
        words = sorted(
            (line, word)
            for word, line in sheet.names.words.items()
            if word not in defined
            and files_of[word] <= (FILES_OF_A_SETTING if word.isupper() else 1)
        )
        said.append(" ".join(visible(word) for _, word in words))
        said_at.append(packing.numbers(packing.steps(line for line, _ in words)))
    data = {
        "names": packing.column(names),
        "at": "".join(at),
        "said": packing.column(said),
        "said_at": "".join(said_at),
    }
    packed = json.dumps(data, separators=(",", ":"))
    return f"readerkitNames({packed});\n".encode()


def count(names: Names) -> int:
    """Return how many names a file defines."""
    return len(names.fields) + sum(map(len, names.defined.values()))


def _defined(names: Names) -> tuple[str, str]:
    """Return the names that a file defines, and how far each is from that before.

    Dots in front stand for as many parts of the name before; ``=`` for a field.
    """
    places = [
        (line, name, "") for name, lines in names.defined.items() for line in lines
    ]
    places += [(line, name, "=") for name, line in names.fields.items()]
    places.sort()
    packed, before = [], list[str]()
    for _, name, sign in places:
        parts = visible(name).split(".")
        same = packing.shared(parts, before)
        packed.append(sign + "." * same + ".".join(parts[same:]))
        before = parts
    steps = packing.steps(line for line, _, _ in places)
    return " ".join(packed), packing.numbers(steps)
