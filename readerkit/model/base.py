"""What the model of a hand-written file is made of: its base, and types of fields.

A field is declared once, with what it must fit. From that come the JSON Schema which
files are held against and editors complete from (``content.schema``), and the value.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Annotated, Any

from msgspec import Meta, Struct

Problem = tuple[str, str, str]
"""What is wrong, what was got, what was expected; the last two may be empty."""


class Model(Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """A mapping of a file: these keys and no others."""

    def problems(self) -> Iterator[Problem]:
        """Yield what is wrong with it that no schema tells."""
        return iter(())


def pattern(text: str, says: str = "", **more: Any) -> Meta:
    """Return a pattern that text must fit, and what it asks for in words.

    For the schema alone: a regular expression of JSON Schema is not quite Python's, and
    a value out of the cache was held against it when it was put there.
    """
    # As editors know it: a JSON Schema has no words of its own for a misfit.
    words = {"patternErrorMessage": says} if says else {}
    return Meta(extra_json_schema={"pattern": text, **words, **more})


def where(key: str, values: Iterable[str], **then: Any) -> dict[str, Any]:
    """Return a rule for mappings whose ``key`` has one of these values."""
    has_value = {"required": [key], "properties": {key: {"enum": list(values)}}}
    return {"if": has_value, "then": then}


def rules(*each: dict[str, Any]) -> Meta:
    """Return rules between the keys of one mapping."""
    return Meta(extra_json_schema={"allOf": list(each)})


ANY_LETTER = "\\S"
ID_PATTERN = "^[a-z0-9]+(-[a-z0-9]+)*$"

Text = Annotated[str, pattern(ANY_LETTER)]
Id = Annotated[str, pattern(ID_PATTERN, maxLength=60)]
Name = Annotated[str, pattern("^[a-z][a-z0-9_]*$")]
UpstreamName = Annotated[str, pattern("^[a-z][a-z0-9-]{0,59}$")]
# The title lets an editor offer what the book at hand has.
ConceptId = Annotated[Id, Meta(title="concept")]
ConditionId = Annotated[Id, Meta(title="condition")]
ReferenceKey = Annotated[Id, Meta(title="reference")]
Count = Annotated[int, Meta(ge=1)]
Formula = Annotated[
    int | float | str, Meta(description="A number, or a formula over the parameters.")
]

ONCE = Meta(extra_json_schema={"uniqueItems": True})


def at_least(least: int, most: int | None = None) -> Meta:
    """Return how many entries a list must have, and may have."""
    bounds = {"minItems": least} | ({"maxItems": most} if most else {})
    return Meta(extra_json_schema=bounds)


SOME = at_least(1)
UNWRITTEN = Meta(extra_json_schema={"unwritten": True})
"""Of a field that no file holds: where it stands, in which folder."""
