"""Dataclasses as JSON that diffs well, and back, held against their type hints."""

from __future__ import annotations

import json
import math
import types
from collections.abc import Callable, Mapping
from dataclasses import fields, is_dataclass
from functools import cache
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints

from readerkit.model.git_names import (
    BlobId,
    CommitId,
    TreePath,
    parse_blob,
    parse_commit,
    parse_path,
)

Decode = Callable[[Any, str], Any]
"""Takes a JSON value and where it stands; ValueError says where it does not fit."""

_NAMES = {TreePath: parse_path, BlobId: parse_blob, CommitId: parse_commit}
_NO_NUMBERS = ("nan", "inf", "-inf")
_WIDTH = 2
"""Levels that get a line for each entry; deeper ones stay on one line."""


def write(value: Any, level: int = 0) -> str:
    """Return JSON with a row of each table on a line of its own."""
    # Rank by rank, the lists of events are one level deeper than the other tables.
    nested = isinstance(value, list | tuple | dict) and any(
        isinstance(entry, list | tuple | dict)
        for entry in (value.values() if isinstance(value, dict) else value)
    )
    if not nested or level > _WIDTH + 1 or (level > _WIDTH and not _is_table(value)):
        return json.dumps(_spelt(value), ensure_ascii=False, allow_nan=False)
    if isinstance(value, dict):
        rows = [f"{json.dumps(k)}: {write(v, level + 1)}" for k, v in value.items()]
        return "{\n" + ",\n".join(rows) + "\n}"
    return "[\n" + ",\n".join(write(entry, level + 1) for entry in value) + "\n]"


def _spelt(value: Any) -> Any:
    """Return a value with what JSON has no number for as text: ``nan``, ``inf``."""
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    if isinstance(value, dict):
        return {key: _spelt(entry) for key, entry in value.items()}
    if isinstance(value, list | tuple):
        return [_spelt(entry) for entry in value]
    return value


def _is_table(value: Any) -> bool:
    return isinstance(value, list | tuple) and all(isinstance(v, dict) for v in value)


def decode(kind: Any, value: Any, where: str) -> Any:
    """Return a ``kind`` built from JSON.

    Raises:
        ValueError: a value that does not fit; says where it stands.
    """
    return decoder(kind)(value, where)


@cache
def decoder(kind: Any) -> Decode:
    """Return what builds a ``kind`` from JSON."""
    origin, args = get_origin(kind), get_args(kind)
    if kind in _NAMES:
        return _name(_NAMES[kind])
    if is_dataclass(kind):
        return _dataclass(kind)
    if origin in (Union, types.UnionType):
        return _union(args)
    if origin is Literal:
        return _choice(args)
    if origin is tuple:
        return _tuple(args[0])
    if isinstance(origin, type) and issubclass(origin, Mapping):
        return _mapping(*args)
    return _scalar(kind)


def _dataclass(kind: Any) -> Decode:
    names = {field.name for field in fields(kind)}
    hints = get_type_hints(kind)
    parts: dict[str, Decode] = {}

    def decode(value: Any, where: str) -> Any:
        if not isinstance(value, dict):
            raise ValueError(f"{where} is {value!r}, not an object")
        if value.keys() != names:
            wrong = sorted(names ^ value.keys())
            raise ValueError(f"{where}: missing or unknown keys {wrong}")
        if not parts:  # now, not before: a type may hold itself
            parts.update({name: decoder(hints[name]) for name in names})
        return kind(**{n: parts[n](value[n], f"{where}.{n}") for n in names})

    return decode


def _union(kinds: tuple[Any, ...]) -> Decode:
    choices = [decoder(kind) for kind in kinds if kind is not type(None)]
    optional = len(choices) < len(kinds)

    def decode(value: Any, where: str) -> Any:
        if value is None and optional:
            return None
        faults = []
        for choice in choices:
            try:
                return choice(value, where)
            except ValueError as error:
                faults.append(str(error))
        raise ValueError("; ".join(faults))

    return decode


def _choice(allowed: tuple[Any, ...]) -> Decode:
    def decode(value: Any, where: str) -> Any:
        if value not in allowed:
            raise ValueError(f"{where} is {value!r}, not one of {allowed}")
        return value

    return decode


def _tuple(kind: Any) -> Decode:
    entry = decoder(kind)

    def decode(value: Any, where: str) -> Any:
        if not isinstance(value, list):
            raise ValueError(f"{where} is {value!r}, not a list")
        return tuple(entry(v, f"{where}[{i}]") for i, v in enumerate(value))

    return decode


def _mapping(key_kind: Any, kind: Any) -> Decode:
    key, entry = decoder(key_kind), decoder(kind)

    def decode(value: Any, where: str) -> Any:
        if not isinstance(value, dict):
            raise ValueError(f"{where} is {value!r}, not an object")
        return {key(k, where): entry(v, f"{where}.{k}") for k, v in value.items()}

    return decode


def _name(parse: Callable[[object], Any]) -> Decode:
    def decode(value: Any, where: str) -> Any:
        try:
            return parse(value)
        except ValueError as error:
            raise ValueError(f"{where}: {error}") from None

    return decode


def _scalar(kind: Any) -> Decode:
    def decode(value: Any, where: str) -> Any:
        if kind is float and (type(value) is int or value in _NO_NUMBERS):
            return float(value)
        if type(value) is not kind:
            raise ValueError(f"{where} is {value!r}, not of type {kind.__name__}")
        return value

    return decode
