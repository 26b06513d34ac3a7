"""Cells of a typed grid: words, shapes, numbers, groups of ranks, as people write them.

A row is read by what its columns hold, so that blanks may stand within a list, and a
list may be one of Python's.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from readerkit.errors import ReaderkitError
from readerkit.model.expression import evaluate
from readerkit.model.language import Told
from readerkit.model.number_with_unit import QuantityError, parse_quantity
from readerkit.quiz.kinds.question import squeezed
from readerkit.quiz.variant import AnswerError

_LIST = re.compile(r"[\[({]([\d,\s]*)[\])}]")
_MANNER = re.compile(r"(?<=\w)[\s-]*(?:parallel|wise)\b", re.IGNORECASE)
PATTERNS = {"list": _LIST, "manner": _MANNER}
"""By which a cell is read, on a page too."""


def split_row(line: str, kinds: Sequence[str]) -> list[str]:
    """Return the cells of a row; blanks within a list or a shape part none."""
    if len(kinds) == 1:
        return [line.strip()]
    line = re.sub(r"(?<=\d)\s*[xX×*]\s*(?=\d)", "x", _MANNER.sub("", line))
    line = re.sub(r"\s*\|\s*", "|", line)
    line = re.sub(r"(?<=\d)\s*,\s*(?=\d)|(?<=[\])}])\s*,\s*(?=[\[({])", ",", line)
    cells, depth = [""], 0
    for sign in line:
        depth += (sign in "[({") - (sign in "])}")
        if depth <= 0 and (
            sign.isspace() or (sign == "," and not cells[-1][-1:].isdigit())
        ):
            cells.append("")
        else:
            cells[-1] += sign
    return [cell for cell in cells if cell]


def read_cell(cell: str, kind: str, words: Sequence[str]) -> object:
    """Return a cell as it is compared.

    Raises:
        AnswerError: what is no such cell, with what was expected.
    """
    read = {"groups": _groups, "shape": _shape, "number": _number}.get(kind)
    return read(cell) if read else _word(cell, words)


def _groups(cell: str) -> list[list[int]]:
    """Return sorted groups of `0,4|1,5`, `0 4 | 1 5`, `[[0, 4], [1, 5]]` or sets."""
    inner = [each for each in _LIST.findall(cell) if each.strip()]
    rest = _LIST.sub("", cell) if inner else ""
    groups = inner or re.split(r"[|/]", cell)
    is_open = sum(map(cell.count, "[({")) != sum(map(cell.count, "])}"))
    strange = (
        is_open
        or re.search(r"[^\s,|/\[\](){}]", rest)
        or any(
            re.search(r"[^\d\s,]", group)
            or not group.strip(" ,")
            or ("," in group and re.search(r"\d\s+\d", group))
            for group in groups
        )
    )
    if strange:
        raise _not_read(
            cell, Told("ranks, with a bar between groups, or a list of lists")
        )
    return sorted(sorted(map(int, re.findall(r"\d+", group))) for group in groups)


def _shape(cell: str) -> list[float]:
    """Return the sizes of `16x8`, `16 × 8`, `[16, 8]`, `(16,8)` or `4096/2 x 8`."""
    bare = cell.strip().strip("[](){}")
    by_sign = re.split(r"\s*[x×*]\s*", bare)
    parts = (
        [p.replace(",", "") for p in by_sign]
        if by_sign[1:]
        else re.split(r"[,\s]+", bare)
    )
    try:
        return [float(evaluate(part.strip(), {}, {})) for part in parts]
    except ReaderkitError:
        raise _not_read(cell, Told("sizes such as 1024x4096")) from None


def _number(cell: str) -> float:
    form = Told("a number without a unit: 41.7 or 3/16")
    try:
        return parse_quantity(cell, expected=form, to="").number
    except QuantityError as error:
        raise AnswerError(*error.args) from None


def _word(cell: str, words: Sequence[str]) -> str:
    """Return the word of those offered that was meant: `col`, `column-parallel`."""
    given = squeezed(_MANNER.sub("", cell))
    known = [squeezed(word) for word in words]
    if given in known:
        return given
    found = [
        w for w in known if len(given) > 1 and (w.startswith(given) or given == f"{w}s")
    ]
    if len(found) != 1:
        raise _not_read(cell, Told("one of {words}", words=", ".join(words)))
    return found[0]


def _not_read(cell: str, expected: str) -> AnswerError:
    return AnswerError(
        Told("got '{got}', expected {expected}", got=cell[:60], expected=expected)
    )
