"""YAML changed in place: the values that are others now; comments and layout stay."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from typing import Any

Edit = tuple[int, int, str]
"""Where a text is changed, from and to, and what stands there then."""
_PLAIN = re.compile(r"[A-Za-z_][\w./-]*")
_WORDS = {"true", "false", "yes", "no", "on", "off", "null", "y", "n"}
_WIDTH = 88


def edited(text: str, edits: list[Edit]) -> str:
    """Return a text with its edits made, of which no two overlap."""
    for start, end, value in sorted(edits, reverse=True):
        text = text[:start] + value + text[end:]
    return text


def mappings(text: str) -> Iterator[Any]:
    """Yield every mapping of a YAML text, with its marks."""
    for node in nodes(text):
        if isinstance(node.value, list) and node.tag.endswith(":map"):
            yield node


def nodes(text: str) -> Iterator[Any]:
    """Yield every value of a YAML text, those outside first."""
    import yaml

    todo = [yaml.compose(text, Loader=yaml.SafeLoader)]
    while todo:
        node = todo.pop()
        if node is None:
            continue
        yield node
        if isinstance(node, yaml.MappingNode):
            todo += [value for _, value in node.value]
        elif isinstance(node, yaml.SequenceNode):
            todo += node.value


def values(node: Any) -> dict[str, Any]:
    """Return the values of a mapping by their keys; of anything else nothing."""
    if not isinstance(node.value, list) or not node.tag.endswith(":map"):
        return {}
    return {key.value: value for key, value in node.value}


def changed(node: Any, old: Any, new: Any) -> Iterator[Edit]:
    """Yield the edits that make a value another one, as small as they can be."""
    if old == new:
        return
    if (
        isinstance(old, Mapping)
        and isinstance(new, Mapping)
        and old.keys() == new.keys()
    ):
        below = values(node)
        for key, value in old.items():
            yield from changed(below[key], value, new[key])
        return
    is_list = isinstance(old, list | tuple) and isinstance(new, list | tuple)
    if is_list and len(old) == len(new) == len(node.value):
        for child, one, other in zip(node.value, old, new, strict=True):
            yield from changed(child, one, other)
        return
    if isinstance(new, str) and getattr(node, "style", "") == "'":
        yield whole(node, "'" + new.replace("'", "''") + "'")
        return
    yield whole(node, _shown(new, node.start_mark.column))


def _shown(value: Any, column: int) -> str:
    if isinstance(value, Mapping):
        return flow(value, column)
    if isinstance(value, list | tuple):
        return "[" + ", ".join(_shown(each, column) for each in value) + "]"
    return scalar(value)


def flow(value: Mapping[str, Any], column: int) -> str:
    """Return a mapping in braces, broken where it is too long."""
    parts = [f"{key}: {_shown(each, column)}" for key, each in value.items()]
    line = "{" + ", ".join(parts) + "}"
    if column + len(line) <= _WIDTH:
        return line
    return "{" + (",\n" + " " * (column + 1)).join(parts) + "}"


def whole(node: Any, value: str) -> Edit:
    """Return the edit that puts something in a value's place."""
    return (node.start_mark.index, _end(node), value)


def scalar(value: Any) -> str:
    """Return a value as YAML has it, in quotes where it could be read otherwise."""
    if not isinstance(value, str):
        return json.dumps(value)
    if _PLAIN.fullmatch(value) and value.lower() not in _WORDS:
        return value
    return json.dumps(value, ensure_ascii=False)


def _end(node: Any) -> int:
    """Return where a value ends; of a block that is where its last part does."""
    is_block = not isinstance(node.value, str) and not node.flow_style and node.value
    if is_block:
        last = node.value[-1]
        return max(map(_end, last)) if isinstance(last, tuple) else _end(last)
    end: int = node.end_mark.index
    if getattr(node, "style", "") in ("|", ">"):
        buffer = node.end_mark.buffer
        kept = node.start_mark.index
        body = buffer[kept:end].rstrip() if buffer else ""
        return kept + len(body) if body else end
    return end
