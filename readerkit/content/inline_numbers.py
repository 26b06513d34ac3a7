"""Numbers in prose that are computed: ``{= EXPRESSION }``, ``{= EXPRESSION | UNIT }``.

Here is only how they are written. What they come to, ``render/html/computed.py`` says.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from readerkit.content.claims import one_spaced

INLINE = re.compile(r"\{=([^{}|]*)(?:\|([^{}|]*))?\}")
_NAMED = re.compile(r"([a-z_][a-z0-9_]*)\s*=\s*(\S.*)")


@dataclass(frozen=True, slots=True)
class InlineNumber:
    """A number where it stands in a text."""

    start: int
    end: int
    expression: str
    unit: str = ""
    """As it was written; empty: a plain number."""


def inline_numbers(text: str) -> Iterator[InlineNumber]:
    """Yield the numbers of a text in their order.

    >>> [(each.expression, each.unit) for each in inline_numbers("{= 2 * n | GB } of")]
    [('2 * n', 'GB')]
    """
    for match in INLINE.finditer(text):
        expression, unit = match[1], match[2] or ""
        yield InlineNumber(*match.span(), one_spaced(expression), one_spaced(unit))


def is_whole(text: str) -> bool:
    """Tell whether all that begins as a number in a text also ends as one."""
    return "{=" not in INLINE.sub("", text)


def named_expression(row: str) -> tuple[str, str] | None:
    """Return the name and the expression of a row of ``let``; None where it is none.

    >>> named_expression("all = 16 * n")
    ('all', '16 * n')
    """
    match = _NAMED.fullmatch(row.strip())
    return (match[1], match[2].strip()) if match else None
