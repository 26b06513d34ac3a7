"""The shape of a quiz's files: its questions by type, and the bank they belong to."""

from __future__ import annotations

from typing import Annotated, Any

from msgspec import Meta

from mini_impls.schedules import SCHEDULES
from readerkit.content.kind import Kind
from readerkit.shapes import (
    ANCHOR_KEYS,
    CITED,
    COUNT,
    ID,
    IDS,
    NAME,
    TEXT,
    list_of,
    object_of,
    where,
)

TYPES = (
    "single",
    "multiple",
    "numeric",
    "order",
    "match",
    "fill",
    "locate",
    "predict",
    "sketch",
    "short",
)
_UPSTREAM = {"type": "string", "pattern": "^[a-z][a-z0-9-]*$"}

_NUMBER = {"type": "number"}
_FORMULA = {"type": ["string", "number"]}
_PLACE = object_of(["upstream", "file"], upstream=_UPSTREAM, **ANCHOR_KEYS)
_TOLERANCE = {
    "relative": {**_NUMBER, "minimum": 0, "maximum": 0.2},
    "absolute": {**_NUMBER, "minimum": 0},
    "significant": {**COUNT, "maximum": 6},
}
_PARAMETER = object_of(
    [],
    choose=list_of(_NUMBER, minItems=2),
    **{"from": _NUMBER, "to": _NUMBER, "step": _NUMBER, "is": _FORMULA},
    significant={**COUNT, "maximum": 9},
)
_OPTION = object_of(
    ["text"],
    text=TEXT,
    right={"type": "boolean"},
    why={**TEXT, "description": "Why a wrong option is wrong."},
    note={**ID, "description": "The annotation whose lines refute it."},
    at={**_PLACE, "description": "The lines that refute it."},
)
_SOURCE = object_of(
    ["give"],
    give={
        "enum": [
            "calls",
            "bytes",
            "ops",
            "held",
            "row",
            "timeline",
            "lead",
            "in_flight",
            "bubble_ideal",
            "bubble_total",
            "symptom",
        ]
    },
    record={**NAME, "description": "A comparison of annotations/records."},
    side={"enum": ["mini", "upstream"]},
    phase={"enum": ["setup", "forward", "backward", "optimizer"]},
    op=NAME,
    group=NAME,
    category={"enum": ["parameters", "gradients", "optimizer state"]},
    skip={"type": "integer", "minimum": 0},
    take=COUNT,
    schedule={"enum": list(SCHEDULES)},
    ranks=_FORMULA,
    microbatches=_FORMULA,
    chunks=_FORMULA,
    rank=_FORMULA,
    mini={**NAME, "description": "The mini of a fault of readerkit break."},
    fault={**ID, "description": "Its name: what shows when it is run is the key."},
)
_CELL = object_of(
    [],
    word=TEXT,
    shape=list_of(_FORMULA, minItems=1),
    number=_FORMULA,
    groups=NAME,
)

# What a question of each type must have beside what all have, and may have.
_OWN: dict[str, tuple[list[str], dict[str, Any]]] = {
    "single": (["options"], {"options": list_of(_OPTION, minItems=3, maxItems=8)}),
    "numeric": (
        ["answer", "parameters"],
        {
            "answer": object_of(["value"], value=_FORMULA, unit=TEXT, **_TOLERANCE),
            "misconceptions": list_of(
                object_of(["value", "says"], value=_FORMULA, unit=TEXT, says=TEXT)
            ),
        },
    ),
    "order": (
        ["items"],
        {
            "items": list_of(TEXT, minItems=3, maxItems=9),
            "also": list_of(list_of(COUNT), minItems=1),
        },
    ),
    "match": (
        ["pairs"],
        {
            "pairs": list_of(
                object_of(["left", "right"], left=TEXT, right=TEXT),
                minItems=3,
                maxItems=9,
            ),
            "spare": list_of(TEXT),
        },
    ),
    "fill": (
        ["accept"],
        {
            "accept": list_of(TEXT, minItems=1),
            "mistakes": list_of(object_of(["text", "says"], text=TEXT, says=TEXT)),
        },
    ),
    "locate": (["at"], {"at": _PLACE, "within": _PLACE}),
    "predict": (
        ["from"],
        {"from": _SOURCE, "unit": TEXT, "words": list_of(TEXT), **_TOLERANCE},
    ),
    "sketch": (
        ["columns", "rows"],
        {
            "columns": list_of(TEXT, minItems=1),
            "words": list_of(TEXT),
            "layout": {"type": "object", "additionalProperties": _FORMULA},
            "rows": list_of(
                object_of(["label", "cells"], label=TEXT, cells=list_of(_CELL)),
                minItems=2,
            ),
        },
    ),
    "short": (
        ["rubric", "model"],
        {"rubric": list_of(TEXT, minItems=2), "model": TEXT},
    ),
}
_OWN["multiple"] = _OWN["single"]
_ALL_OWN = {key: shape for _, keys in _OWN.values() for key, shape in keys.items()}


def _rule(kind: str) -> dict[str, Any]:
    required, mine = _OWN[kind]
    others = {key: False for key in _ALL_OWN if key not in mine}
    return where("type", (kind,), required=required, properties=others)


QUESTION_LIST = list_of(
    {
        **object_of(
            [
                "id",
                "type",
                "objective",
                "concepts",
                "difficulty",
                "prompt",
                "explanation",
            ],
            id={**ID, "description": "Unique in the bank; never changes."},
            type={"enum": list(TYPES)},
            objective=ID,
            concepts={**IDS, "items": {**ID, "title": "concept"}, "minItems": 1},
            difficulty={"enum": [1, 2, 3]},
            prompt={**TEXT, "description": "{name} shows a parameter."},
            explanation=TEXT,
            parameters={
                "type": "object",
                "propertyNames": NAME,
                "additionalProperties": _PARAMETER,
            },
            notes={**IDS, "description": "Annotations to read next."},
            code=list_of(_PLACE),
            references=CITED,
            **_ALL_OWN,
        ),
        "allOf": [_rule(kind) for kind in TYPES],
    }
)

_BANK = object_of(
    ["phase", "version", "title", "pass", "count", "exam", "objectives"],
    phase={**COUNT, "maximum": 999},
    version={**COUNT, "description": "Raised when a change would alter variants."},
    title=TEXT,
    **{"pass": {**_NUMBER, "minimum": 0, "maximum": 1}},
    count=COUNT,
    exam=object_of(["count"], count=COUNT, minutes=COUNT),
    objectives=list_of(
        object_of(["id", "title", "source"], id=ID, title=TEXT, source=TEXT),
        minItems=1,
    ),
)

QUESTIONS: Kind[dict[str, Any]] = Kind(
    "questions",
    Annotated[dict[str, Any], Meta(extra_json_schema=QUESTION_LIST["items"])],
)
BANK: Kind[dict[str, Any]] = Kind(
    "bank", Annotated[dict[str, Any], Meta(extra_json_schema=_BANK)], "one"
)
