"""From the name of a place in source to its exact lines, with tree-sitter.

The only package that imports tree_sitter. It reads no file: bytes come in, spans go
out.
"""

from readerkit.anchors.fingerprint import fingerprint, is_same_of_equals
from readerkit.anchors.resolve import equals_of, resolve
from readerkit.anchors.source import SourceFile
from readerkit.anchors.symbols import Symbol
from readerkit.model.anchor import Anchor, Fingerprint, Span

__all__ = [
    "Anchor",
    "Fingerprint",
    "SourceFile",
    "Span",
    "Symbol",
    "equals_of",
    "fingerprint",
    "is_same_of_equals",
    "resolve",
]
