"""Files of JSON that readerkit wrote: read with every value of its type, or refused."""

from __future__ import annotations

import json
import math
import numbers
import re
from typing import TYPE_CHECKING, Any, TypeVar

from msgspec import (
    Meta,
    MsgspecError,
    Struct,
    ValidationError,
    convert,
    to_builtins,
)
from msgspec.json import decode

from readerkit.errors import ContentError, ContentFault
from readerkit.system import json_file

_T = TypeVar("_T")
_NO_NUMBERS = ("nan", "inf", "-inf")
HEX_ID = Meta(pattern="^[0-9a-f]{40}\\Z")
MEASURED = Meta(ge=0, le=1e300)
"""Of what was measured: no infinity, and no number that is none."""

if TYPE_CHECKING:
    Real = int | float
else:  # msgspec asks ``_real`` what it is: a number, or ``nan`` or ``inf`` as text
    Real = numbers.Real


class Stored(Struct, frozen=True, forbid_unknown_fields=True):
    """An object of such a file: these keys and no others."""


def parse(
    text: str,
    kind: type[_T],
    file: str,
    *,
    what: str,
    expected: str,
    version: int | None = None,
) -> _T:
    """Return what a file holds; ``version`` is what its ``format`` must be.

    Raises:
        ContentError: text that is no such file.
    """
    if (whole := _read_at_once(text, kind, version)) is not None:
        return whole
    try:
        data = json_file.load(text)
        if version is not None and (got := data["format"]) != version:
            old = f"a {what} of another version", f"format {got!r:.80}"
            fault = ContentFault(file, 1, 1, *old, f"{version}: {expected}")
            raise ContentError([fault])
        return convert(data, kind, dec_hook=_real)
    except ValidationError as error:
        line, said = 1, str(error)
        said = _with_key(said, data, kind) or _with_value(said, data)
    except (ValueError, KeyError, TypeError) as error:
        line = error.lineno if isinstance(error, json.JSONDecodeError) else 1
        said = f"{type(error).__name__}: {error}"
    fault = ContentFault(file, line, 1, f"not a readable {what}", said, expected)
    raise ContentError([fault]) from None


class _Format(Struct):
    format: Any = None


def _read_at_once(text: str, kind: type[_T], version: int | None) -> _T | None:
    """Return what a good file holds, five times as fast; None where it is none."""
    if len(text) > json_file.MAX_BYTES:
        return None
    try:
        if version is None or decode(text, type=_Format).format == version:
            return decode(text, type=kind, dec_hook=_real)
    except (MsgspecError, ValueError, RecursionError):
        pass  # what is wrong with it, and where, is told by who reads it slowly
    return None


def write(value: Struct, *, width: int = 2) -> str:
    """Return JSON with a row of each table on a line of its own, made to be diffed.

    So many levels get a line for each entry; deeper ones stay on one line.
    """
    return _lines(_spelt(to_builtins(value)), width) + "\n"


def _real(kind: type, value: Any) -> Any:
    if type(value) in (int, float):
        return value
    if value in _NO_NUMBERS:
        return float(value)
    raise ValueError(f"Expected a number, got `{type(value).__name__}`")


def _with_key(said: str, data: Any, kind: type) -> str:
    """Return what msgspec says is wrong in an entry of a table, with the entry's name.

    Msgspec has no more than ``[...]`` for it: the entry is the first that fails alone.
    """
    place = said.partition(" - at `$.")[2].partition("[...]")
    if not place[1] or not place[0].isidentifier() or place[0] not in data:
        return ""
    for key, entry in data[place[0]].items():
        try:
            convert({**data, place[0]: {key: entry}}, kind, dec_hook=_real)
        except ValidationError as error:
            if str(error) == said:
                return f"{key}: {said}"
    return ""


def _with_value(said: str, data: Any) -> str:
    """Return what msgspec says is wrong, with the value at its place."""
    _, _, place = said.partition(" - at `$")
    if not place or "[...]" in place or "key" in place:
        return said
    try:
        for name, index in re.findall(r"\.(\w+)|\[(\d+)\]", place):
            data = data[name or int(index)]
    except (KeyError, IndexError, TypeError):
        return said
    return said if isinstance(data, dict | list) else f"{said}: {data!r:.80}"


def _lines(value: Any, width: int) -> str:
    # Rank by rank, the lists of events are one level deeper than the other tables.
    entries = value.values() if isinstance(value, dict) else value
    is_nested = isinstance(value, list | dict) and any(
        isinstance(entry, list | dict) for entry in entries
    )
    is_table = isinstance(value, list) and all(isinstance(v, dict) for v in value)
    if not is_nested or width < -1 or (width < 0 and not is_table):
        return json.dumps(value, ensure_ascii=False, allow_nan=False)
    if isinstance(value, dict):
        rows = [f"{json.dumps(k)}: {_lines(v, width - 1)}" for k, v in value.items()]
        return "{\n" + ",\n".join(rows) + "\n}"
    return "[\n" + ",\n".join(_lines(entry, width - 1) for entry in value) + "\n]"


def _spelt(value: Any) -> Any:
    """Return a value with what JSON has no number for as text."""
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    if isinstance(value, dict):
        return {key: _spelt(entry) for key, entry in value.items()}
    return [*map(_spelt, value)] if isinstance(value, list | tuple) else value
