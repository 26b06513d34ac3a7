"""Names and colours of a file that Python's own reader cannot tell: by its grammar."""

from __future__ import annotations

from readerkit.anchors import SourceFile
from readerkit.anchors.highlight import highlight
from readerkit.xref.colours import Colours
from readerkit.xref.names import Extent, Names, said_words

_KINDS = {
    "comment": "comment",
    "string": "string",
    "character": "string",
    "number": "number",
    "float": "number",
    "keyword": "keyword",
    "constant.builtin": "constant",
    "boolean": "constant",
    "variable.builtin": "constant",
}
"""What the highlights query of a grammar calls a thing, to what pages colour."""


def names_by_tags(source: SourceFile) -> Names:
    """Return what a file defines; its uses are not known.

    Raises:
        AnchorError: no grammar of its language is installed.
    """
    names = Names(words=said_words(source.data))
    for name, places in source.symbols.items():
        names.defined[name] = sorted({symbol.first for symbol in places})
        for symbol in places:
            names.outline.append(Extent(symbol.first, symbol.first, symbol.last, name))
            if label := symbol.label:
                place = (label.start_byte, label.end_byte, name)
                names.definition_places.append(place)
    names.outline.sort()
    names.definition_places.sort()
    return names


def colours_by_marks(source: SourceFile) -> Colours:
    """Return the parts of a file that have a colour, in order."""
    colours: Colours = {}
    for mark in highlight(source, 1, len(source.raw_lines)):
        kind = _KINDS.get(mark.kind) or _KINDS.get(mark.kind.partition(".")[0])
        begin = source.line_starts[mark.line - 1]
        end = begin + min(mark.end, len(source.raw_lines[mark.line - 1]))
        if kind and begin + mark.start < end:
            colours[begin + mark.start, end] = kind
    return colours
