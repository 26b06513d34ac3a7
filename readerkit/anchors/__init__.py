"""From the name of a place in source to its exact lines, with tree-sitter.

The only package that imports tree_sitter. It reads no file: bytes come in, spans go
out.
"""

from readerkit.anchors.anchor import Anchor, Span
from readerkit.anchors.fingerprint import Fingerprint, fingerprint
from readerkit.anchors.resolve import resolve
from readerkit.anchors.source import SourceFile
from readerkit.anchors.symbols import Symbol

__all__ = [
    "Anchor",
    "Fingerprint",
    "SourceFile",
    "Span",
    "Symbol",
    "fingerprint",
    "resolve",
]
