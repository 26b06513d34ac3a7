"""Files of the catalog: models, GPUs and clusters, prices."""

from __future__ import annotations

from typing import Annotated, Any

from msgspec import Meta

from readerkit.content.kind import Kind
from readerkit.shapes import COUNT, ID, TEXT, list_of, object_of

_AMOUNT = {"type": "number", "exclusiveMinimum": 0}
_DATE = {"type": "string", "pattern": "^[0-9]{4}-[0-9]{2}-[0-9]{2}$"}
# Money is text: a float of a price is not that price.
_PRICE = {"type": "string", "pattern": "^[0-9]{1,6}(\\.[0-9]{1,4})?$"}


def _named(entry: dict[str, Any]) -> dict[str, Any]:
    """Return an object of entries by name."""
    name = {"type": "string", "pattern": "^[a-z0-9]+([.-][a-z0-9]+)*$"}
    return {"type": "object", "propertyNames": name, "additionalProperties": entry}


def _kind(name: str, schema: dict[str, Any]) -> Kind[dict[str, Any]]:
    entry = Annotated[dict[str, Any], Meta(extra_json_schema=schema)]
    return Kind(name, entry, "one")


MODELS = _kind(
    "models",
    _named(
        object_of(
            ["source", "shape"],
            source=TEXT,
            parameters=COUNT,
            shape={"type": "object"},
        )
    ),
)
HARDWARE = _kind(
    "hardware",
    object_of(
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
)
PRICES = _kind(
    "prices",
    object_of(
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
)
