"""Which bytes of a file are text, and where the text begins."""

from __future__ import annotations

_BINARY_BYTES = 8_000
"""A zero byte among the first of them makes a file binary, as git sees it."""
_BOM = b"\xef\xbb\xbf"


def is_binary(data: bytes) -> bool:
    """Tell whether bytes are no text that is read, as git tells it."""
    return b"\0" in data[:_BINARY_BYTES]


def without_mark(data: bytes) -> bytes:
    r"""Return text without the byte order mark before it, which moves no line.

    >>> without_mark(b"\xef\xbb\xbfimport torch")
    b'import torch'
    """
    return data.removeprefix(_BOM)
