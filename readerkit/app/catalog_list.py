"""The catalog as it is listed, in terminal and on the site: each row with its source.

A row says on which day its source was read, and of a user's own in which file it is.
"""

from __future__ import annotations

from datetime import date
from typing import TYPE_CHECKING, Any

from readerkit.app.catalog import (
    load_clusters,
    load_gpus,
    load_models,
    load_prices,
    rows,
)
from readerkit.estimate.parameters import active_parameter_count, parameter_count

if TYPE_CHECKING:
    from readerkit.app.own_rows import OwnRows

Listed = dict[str, dict[str, Any]]
_GPU = ("memory_bytes", "flops_per_s", "link_bytes_per_s")
_CLUSTER = ("gpus_per_node", "inside_bytes_per_s", "between_bytes_per_s")


def list_catalog(own: OwnRows | None = None) -> dict[str, Listed]:
    """Return models, GPUs and clusters by their names, in plain values."""
    models, gpus, clusters = load_models(own), load_gpus(own), load_clusters(own)
    found: dict[str, Listed] = {
        "models": {
            name: {
                "parameters": parameter_count(shape),
                "active_parameters": active_parameter_count(shape),
            }
            for name, shape in models.items()
        },
        "gpus": {
            name: {field: getattr(gpu, field) for field in _GPU}
            for name, gpu in gpus.items()
        },
        "clusters": {
            name: {"gpu": one.gpu.name} | {key: getattr(one, key) for key in _CLUSTER}
            for name, one in clusters.items()
        },
    }
    for table, listed in found.items():
        for name, row in rows(table, own).items():
            listed[name] |= {key: row.entry.get(key) for key in ("source", "dated")}
    return found


def list_prices(today: date, own: OwnRows | None = None) -> list[dict[str, Any]]:
    """Return what an hour of each GPU costs, from where, and how old that is."""
    return [
        {
            "vendor": each.vendor,
            "gpu": each.gpu,
            "terms": each.terms,
            "usd_per_hour": float(each.usd_per_hour),
            "dated": str(each.dated),
            "age_days": each.age_days(today),
            "unconfirmed": each.unconfirmed,
            "source": each.source,
        }
        for each in load_prices(own=own)
    ]
