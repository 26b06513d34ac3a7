"""The shape of hand-written files: one JSON Schema for the loader and for editors."""

from __future__ import annotations

import difflib
from collections.abc import Iterable
from functools import lru_cache
from typing import Any

import jsonschema_rs

from readerkit.document import Kind, Path, YamlFile
from readerkit.errors import Fault
from readerkit.quiz_schema import BANK, QUESTIONS
from readerkit.shapes import (
    ANCHOR,
    ANY_LETTER,
    CITED,
    COUNT,
    ID,
    ID_PATTERN,
    IDS,
    NAME,
    TEXT,
    list_of,
    object_of,
    where,
)
from readerkit.wording import counted
from readerkit.yaml_tree import parse_yaml

ANNOTATION_KINDS = ("citation", "note", "pitfall")
RELATIONS = ("same", "simplified", "differs", "upstream-only")
PRESSURES = ("memory", "time", "coordination", "reliability")
LAYERS = (
    "hardware",
    "wire",
    "collective",
    "parameters",
    "gradients",
    "optimizer",
    "activations",
    "schedule",
    "model",
    "job",
)
PHASES = ("setup", "forward", "backward", "optimizer", "checkpoint")
OPERATIONS = (
    "all_reduce",
    "reduce",
    "all_gather",
    "reduce_scatter",
    "broadcast",
    "all_to_all",
    "gather",
    "scatter",
    "send",
    "recv",
)
DIFFERENCES = (
    "only-mini",
    "only-upstream",
    "mini-waits-longer",
    "upstream-waits-longer",
    "payload",
    "order",
    "values",
)

_DIALECT = "https://json-schema.org/draft/2020-12/schema"
# What pip is given: never an option, an address or a folder that it would build.
_PIP_WORD = {"type": "string", "pattern": "^[A-Za-z0-9][A-Za-z0-9._+!-]*$"}
_EVENT: dict[str, Any] = {
    "phase": {"enum": list(PHASES)},
    "op": {"enum": list(OPERATIONS)},
    "group": NAME,
}
_COMPARISONS = list_of(NAME, uniqueItems=True, minItems=1)
_AT_MOST = {
    "type": ["integer", "number", "string"],
    "description": "How many on a rank, or how far values may be apart: a number, or "
    "an expression of world, rank, layers, microbatches, chunks and parameters.",
}
_DIFFERENCE = {
    **object_of(
        ["comparisons", "what", "why"],
        comparisons=_COMPARISONS,
        what={"enum": list(DIFFERENCES)},
        why=TEXT,
        events=list_of(
            object_of(["phase", "op", "at_most"], **_EVENT, at_most=_AT_MOST),
            minItems=1,
        ),
        at_most=_AT_MOST,
    ),
    "allOf": [
        where("what", DIFFERENCES[:5], required=["events"]),
        where("what", DIFFERENCES[5:], required=["at_most"]),
    ],
}
_NOTE_TEXTS = {
    name: TEXT for name in ("decision", "alternative", "why", "cost", "text")
}

_AMOUNT = {"type": "number", "exclusiveMinimum": 0}
_DATE = {"type": "string", "pattern": "^[0-9]{4}-[0-9]{2}-[0-9]{2}$"}
# Money is text: a float of a price is not that price.
_PRICE = {"type": "string", "pattern": "^[0-9]{1,6}(\\.[0-9]{1,4})?$"}


def _named(entry: dict[str, Any]) -> dict[str, Any]:
    """Return an object of entries by name."""
    name = {"type": "string", "pattern": "^[a-z0-9]+([.-][a-z0-9]+)*$"}
    return {"type": "object", "propertyNames": name, "additionalProperties": entry}


_STAMP = {"type": "string", "pattern": "^en-[0-9a-f]{8}$"}


def _translated(**texts: dict[str, Any]) -> dict[str, Any]:
    """Return an object of texts by the id of what they translate."""
    entry = object_of([], of=_STAMP, **texts)
    return {"type": "object", "propertyNames": ID, "additionalProperties": entry}


_SCHEMAS: dict[Kind, dict[str, Any]] = {
    "models": _named(
        object_of(
            ["source", "shape"],
            source=TEXT,
            parameters=COUNT,
            shape={"type": "object"},
        )
    ),
    "hardware": object_of(
        ["dated"],
        dated=_DATE,
        gpus=_named(
            object_of(
                ["memory_gb", "memory_gb_s", "tflops", "link_gb_s", "source"],
                memory_gb=_AMOUNT,
                memory_gb_s=_AMOUNT,
                kernel_efficiency={**_AMOUNT, "maximum": 1},
                efficiency_source=TEXT,
                tflops=_AMOUNT,
                link_gb_s=_AMOUNT,
                source=TEXT,
            )
        ),
        clusters=_named(
            object_of(
                [
                    "gpu",
                    "gpus_per_node",
                    "inside_gb_s",
                    "between_gb_s",
                    "inside_latency_us",
                    "between_latency_us",
                    "source",
                ],
                gpu=TEXT,
                gpus_per_node=COUNT,
                inside_gb_s=_AMOUNT,
                between_gb_s=_AMOUNT,
                inside_latency_us={"type": "number", "minimum": 0},
                between_latency_us={"type": "number", "minimum": 0},
                source=TEXT,
            )
        ),
    ),
    "prices": object_of(
        ["prices"],
        prices=list_of(
            object_of(
                ["vendor", "gpu", "kind", "usd_per_hour", "dated", "source"],
                vendor=ID,
                gpu=ID,
                kind={"enum": ["on-demand", "spot"]},
                usd_per_hour=_PRICE,
                dated=_DATE,
                source=TEXT,
            )
        ),
    ),
    "annotations": list_of(
        {
            **object_of(
                ["id", "at", "kind", "title", "concepts"],
                id={**ID, "description": "Unique in the book; never changes."},
                at=ANCHOR,
                kind={"enum": list(ANNOTATION_KINDS)},
                title={**TEXT, "maxLength": 80},
                **_NOTE_TEXTS,
                references=CITED,
                concepts={**IDS, "minItems": 1},
            ),
            "allOf": [
                where(
                    "kind",
                    ("citation",),
                    required=["decision", "why", "cost", "references"],
                    properties={"references": {"minItems": 1}},
                ),
                where("kind", ("note", "pitfall"), required=["text"]),
            ],
        }
    ),
    "translation": _translated(title=TEXT, **_NOTE_TEXTS),
    "concept-translation": _translated(title=TEXT, summary=TEXT),
    "route-translation": object_of(
        [],
        failures=_translated(symptom=TEXT, cause=TEXT),
        pairs=_translated(wire=TEXT),
    ),
    "diagram-translation": object_of(
        ["title", "alternative"], of=_STAMP, title=TEXT, alternative=TEXT
    ),
    "mirror": object_of(
        ["id", "title", "idea", "sections"],
        id=ID,
        title=TEXT,
        idea=TEXT,
        concepts=IDS,
        sections=list_of(
            {
                **object_of(
                    ["title", "relation", "upstream"],
                    title=TEXT,
                    relation={"enum": list(RELATIONS)},
                    upstream={**IDS, "minItems": 1},
                    mini=list_of(ANCHOR, minItems=1),
                    leaves_out=list_of(
                        object_of(["what", "why"], what=TEXT, why=TEXT), minItems=1
                    ),
                    why=TEXT,
                    events=list_of(
                        object_of(
                            ["comparisons", "phase", "op"],
                            comparisons=_COMPARISONS,
                            **_EVENT,
                        )
                    ),
                    differences=list_of(_DIFFERENCE, minItems=1),
                ),
                "allOf": [
                    where(
                        "relation",
                        ("upstream-only",),
                        required=["why"],
                        properties={"mini": False},
                    ),
                    where("relation", RELATIONS[:-1], required=["mini"]),
                ],
            },
            minItems=1,
        ),
    ),
    "comparisons": list_of(
        object_of(
            ["name", "mini", "upstream", "title"],
            name=NAME,
            mini=NAME,
            upstream=NAME,
            title=TEXT,
        )
    ),
    "concepts": list_of(
        object_of(
            ["id", "title", "summary", "pressure", "layer"],
            id=ID,
            title=TEXT,
            summary=TEXT,
            pressure={"enum": list(PRESSURES)},
            layer={"enum": list(LAYERS)},
            requires=IDS,
            recurs=IDS,
            references=CITED,
        )
    ),
    "references": list_of(
        object_of(
            ["key", "title", "authors", "year", "url", "sections"],
            key=ID,
            title=TEXT,
            authors=TEXT,
            year={"type": "integer", "minimum": 1950, "maximum": 2100},
            url={"type": "string", "pattern": '^https://[^\\s"<>]+$'},
            sections={"type": "object", "additionalProperties": {"type": "string"}},
        )
    ),
    "upstreams": list_of(
        {
            **object_of(
                ["name", "title", "include"],
                name={"type": "string", "pattern": "^[a-z][a-z0-9-]{0,59}$"},
                title=TEXT,
                url={
                    "type": "string",
                    "pattern": '^(https|ssh|http|git|file)://[^\\s"<>]+$',
                },
                tag=TEXT,
                commit={"type": "string", "pattern": "^[0-9a-f]{40}$"},
                include=list_of(TEXT, minItems=1),
                licence=object_of(
                    ["spdx", "path", "holder"], spdx=TEXT, path=TEXT, holder=TEXT
                ),
                package=object_of(
                    ["name", "version"],
                    name=_PIP_WORD,
                    version=_PIP_WORD,
                    wheel=object_of(
                        ["python", "platform"], python=_PIP_WORD, platform=_PIP_WORD
                    ),
                ),
                installed={"type": "string", "pattern": "^[A-Za-z_][A-Za-z0-9_]*$"},
                folder={"type": "string", "pattern": "^[A-Za-z0-9_-]+$"},
            ),
            "if": {"not": {"required": ["folder"]}},
            "then": {"required": ["url", "commit", "licence"]},
        }
    ),
    "diagram": object_of(
        ["title", "alternative", "claims"],
        title=TEXT,
        alternative=TEXT,
        claims=list_of(
            object_of(
                ["node", "upstream", "at", "holds"],
                node=TEXT,
                upstream=ID,
                at=ANCHOR,
                holds=list_of(TEXT, minItems=1),
            )
        ),
    ),
    "questions": QUESTIONS,
    "bank": BANK,
}


def json_schema(
    kind: Kind, *, concepts: Iterable[str] = (), references: Iterable[str] = ()
) -> dict[str, Any]:
    """Return the JSON Schema of a kind of file, for editors.

    The ids of the book at hand become choices, so that an editor can complete them.
    """
    schema = {"$schema": _DIALECT, "title": f"readerkit {kind}", **_SCHEMAS[kind]}
    choices = {"concepts": sorted(concepts), "references": sorted(references)}
    return dict(_with_choices(schema, choices))


def _with_choices(node: Any, choices: dict[str, list[str]]) -> Any:
    """Copy a schema with the items of ``concepts`` and the keys of citations listed."""
    if isinstance(node, list):
        return [_with_choices(item, choices) for item in node]
    if not isinstance(node, dict):
        return node
    copy = {key: _with_choices(value, choices) for key, value in node.items()}
    if node is CITED and choices["references"]:
        copy["items"]["properties"]["key"] = {"enum": choices["references"]}
    properties = copy.get("properties", {})
    if "items" in properties.get("concepts", {}) and choices["concepts"]:
        properties["concepts"]["items"] = {"enum": choices["concepts"]}
    return copy


def read_document(data: bytes, file: str, kind: Kind) -> YamlFile:
    """Return the document in ``data``; what does not fit its schema is in its faults.

    Raises:
        ContentError: a file that is no YAML.
    """
    document = parse_yaml(data, file)
    one_entry = kind in ("mirror", "bank", "diagram", "diagram-translation")
    if document.value is None and not one_entry:  # a list with nothing in it yet
        return document
    # Where a key or a value was refused already, its stand-in is no second fault.
    refused = {(fault.line, fault.column) for fault in document.faults}
    for error in _validator(kind).iter_errors(document.value):
        path = _path(error, document.value)
        found = _faults(error, path, document, kind)
        document.faults += [f for f in found if (f.line, f.column) not in refused]
        is_name = error.kind.name == "propertyNames"
        whole = error.kind.error.instance if is_name else None
        document.broken.add(path[0] if path else whole)
        document.misfits.add(path)
    return document


def _path(error: Any, value: Any) -> Path:
    """Return where an error stands; its own path has the key ``'4'`` as a number."""
    path: Path = ()
    for step in error.instance_path:
        key = str(step) if isinstance(value, dict) else step
        path, value = (*path, key), value[key]
    return path


@lru_cache
def _validator(kind: Kind) -> Any:
    return jsonschema_rs.Draft202012Validator(_SCHEMAS[kind])


_EXPECTED = {
    "maxLength": "at most {} characters",
    "minimum": "at least {}",
    "maximum": "at most {}",
    "exclusiveMinimum": "more than {}",
    "pattern": "text that fits {}",
    "uniqueItems": "each entry once",
}


def _faults(error: Any, path: Path, document: YamlFile, kind: Kind) -> list[Fault]:
    """Say a validator's error in the words of the file: what, got, expected."""
    rule, value = error.kind.name, error.instance
    limit: Any = _SCHEMAS[kind]
    for step in error.schema_path:
        limit = limit[step]
    if rule == "additionalProperties":
        known = _known_keys(kind, error.schema_path)
        return [
            _unknown_key(document, path, key, known) for key in error.kind.unexpected
        ]
    if rule == "required":
        return [
            document.fault(path, f"missing key '{error.kind.property}'{_of(value)}")
        ]
    if rule == "propertyNames":
        name = error.kind.error.instance
        mark = document.key_mark((*path, name))
        return [
            Fault(
                document.file, *mark, "wrong key", _show(name), f"an id: {ID_PATTERN}"
            )
        ]
    if rule == "falseSchema":
        what = f"key '{path[-1]}' does not belong here"
        return [Fault(document.file, *document.key_mark(path), what)]
    named = path and isinstance(path[-1], str)
    name = f"'{path[-1]}'" if named else "this entry"
    if rule == "type":
        types = [limit] if isinstance(limit, str) else list(limit)
        expected = " or ".join(types) + _quote_hint(value, types)
        return [document.fault(path, f"wrong type for {name}", _show(value), expected)]
    if rule == "enum":
        expected = "one of " + ", ".join(map(str, limit))
    elif limit == ANY_LETTER:
        expected = "some text"
    elif rule == "minItems":
        expected = f"at least {counted(limit, 'entry', 'entries')}"
    else:
        expected = _EXPECTED[rule].format(limit) if rule in _EXPECTED else error.message
    return [document.fault(path, f"wrong value for {name}", _show(value), expected)]


def _known_keys(kind: Kind, schema_path: list[Any]) -> list[str]:
    schema: Any = _SCHEMAS[kind]
    for step in schema_path[:-1]:
        schema = schema[step]
    return list(schema.get("properties", ()))


def _unknown_key(document: YamlFile, path: Any, key: str, known: list[str]) -> Fault:
    near = difflib.get_close_matches(key, known, n=1)
    expected = f"'{near[0]}', perhaps" if near else "one of " + ", ".join(known)
    mark = document.key_mark((*path, key))
    return Fault(document.file, *mark, "unknown key", f"'{key}'", expected)


def _of(value: Any) -> str:
    if not isinstance(value, dict):
        return ""
    label = value.get("id") or value.get("key") or value.get("name")
    return f" in {label}" if isinstance(label, str) else ""


def _show(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 60 else text[:57] + "..."


def _quote_hint(value: Any, types: list[str]) -> str:
    quotable = isinstance(value, (int, float, bool)) and "string" in types
    return " (put it in quotes)" if quotable else ""
