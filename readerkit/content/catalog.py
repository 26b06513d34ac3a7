"""Files of the catalog: models, GPUs and clusters, prices, runs, in others' units."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Literal

from msgspec import Meta

from readerkit.content.kind import Kind
from readerkit.model.base import Count, Id, Model, Text, pattern

Amount = Annotated[int | float, Meta(extra_json_schema={"exclusiveMinimum": 0})]
Microseconds = Annotated[int | float, Meta(extra_json_schema={"minimum": 0})]
Date = Annotated[str, pattern("^[0-9]{4}-[0-9]{2}-[0-9]{2}$")]
# Money is text: a float of a price is not that price.
Usd = Annotated[str, pattern("^[0-9]{1,6}(\\.[0-9]{1,4})?$")]
CatalogName = Annotated[str, pattern("^[a-z0-9]+([.-][a-z0-9]+)*$")]


class ModelEntry(Model, frozen=True):
    """Sizes of a public model."""

    source: Text
    shape: Mapping[str, Any]
    """What ``readerkit.estimate.shape`` knows the sizes by."""
    dated: Date | None = None
    """When the source was read."""
    parameters: Count | None = None
    """The published count, which the shape must come to."""


class GpuEntry(Model, frozen=True):
    """One kind of GPU."""

    memory_gb: Amount
    memory_gb_s: Amount
    tflops: Amount
    link_gb_s: Amount
    source: Text
    kernel_efficiency: Annotated[float, Meta(gt=0, le=1)] | None = None
    efficiency_source: Text | None = None


class ClusterEntry(Model, frozen=True):
    """Nodes of GPUs; every bandwidth is one GPU's share, in one direction."""

    gpu: Text
    gpus_per_node: Count
    inside_gb_s: Amount
    between_gb_s: Amount
    inside_latency_us: Microseconds
    between_latency_us: Microseconds
    source: Text


class Hardware(Model, frozen=True):
    """A file of GPUs and clusters."""

    dated: Date
    gpus: Mapping[CatalogName, GpuEntry] = {}
    clusters: Mapping[CatalogName, ClusterEntry] = {}


class PriceEntry(Model, frozen=True):
    """What one GPU costs for an hour."""

    vendor: Id
    gpu: Id
    kind: Literal["on-demand", "spot"]
    usd_per_hour: Usd
    dated: Date
    source: Text
    cloud: Literal["community", "secure"] | None = None
    """Whose machines, where a vendor rents out its own and other people's."""
    also: Text | None = None
    """Who else read the same price."""
    unconfirmed: bool = False


class Prices(Model, frozen=True):
    """A file of prices."""

    prices: tuple[PriceEntry, ...]


class MeasuredStep(Model, frozen=True):
    """What was measured of a step: its seconds, or FLOP/s of a GPU in 10^12."""

    seconds: Amount | None = None
    tflops: Amount | None = None
    counts: Literal["narayanan", "causal"] | None = None
    """Which FLOPs: narayanan's equation 3 with recompute, or the model's, causal."""


class RunEntry(Model, frozen=True):
    """A step that was published with its layout."""

    source: Text
    edition: Text
    table: Text
    row: Text
    cluster: Text
    layout: Mapping[str, Any]
    """What ``readerkit.estimate.layout`` knows the sizes by."""
    measured: MeasuredStep
    half: Literal["fit", "judge"] | None = None
    """Whether constants were fitted to it, or are judged by it; or neither."""
    model: Text | None = None
    shape: Mapping[str, Any] | None = None
    """Of a model that has no row of its own."""
    precision: Text = "mixed-18"
    assumed: Text | None = None
    """What the source does not say of the layout."""
    unconfirmed: bool = False


MODELS: Kind[ModelEntry] = Kind("models", ModelEntry, "mapping", key=CatalogName)
HARDWARE: Kind[Hardware] = Kind("hardware", Hardware, "one")
PRICES: Kind[Prices] = Kind("prices", Prices, "one")
RUNS: Kind[RunEntry] = Kind("runs", RunEntry, "mapping", key=CatalogName)
