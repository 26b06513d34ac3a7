"""An estimate of the site's page: its numbers, and the command that makes them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from readerkit.app.catalog import find_gpu, find_model
from readerkit.estimate.defaults import PRECISION, RESERVE
from readerkit.estimate.layout import Layout
from readerkit.estimate.memory_estimates import estimate_training
from readerkit.estimate.shape import Shape
from readerkit.estimate.traffic_estimate import estimate_step_traffic
from readerkit.render.html.estimate_examples import Worked
from readerkit.wording.next_command import written


def shape_of(model: str) -> Shape:
    """Return the shape of a model that ships."""
    return Shape.parse(find_model(model))


def as_flags(values: Mapping[str, Any]) -> str:
    """Return the options that say these values to a command."""
    flags = []
    for name, value in values.items():
        option = "--" + name.replace("_", "-")
        if value is True or value is False:
            flags.append(option if value else option.replace("--", "--no-", 1))
        else:
            flags.append(f"{option} {value}")
    return " ".join(flags)


def layout_of(values: Mapping[str, Any]) -> Layout:
    """Return a layout; nothing is recomputed where it does not say so."""
    return Layout.parse({"recompute": "none"} | dict(values))


def trained(
    name: str,
    model: str,
    gpu: str,
    values: Mapping[str, Any],
    precision: str = PRECISION,
) -> Worked:
    """Return the memory of a training."""
    estimate = estimate_training(
        shape_of(model),
        layout_of(values),
        convention=precision,
        gpu_bytes=find_gpu(gpu).memory_bytes,
        reserve=RESERVE,
    )
    given = {"model": model, **values, "gpu": gpu}
    if precision != PRECISION:
        given["precision"] = precision
    return Worked(name, f"{written('estimate', 'memory')} {as_flags(given)}", estimate)


def sent(name: str, model: str, values: Mapping[str, Any]) -> Worked:
    """Return what a step sends."""
    estimate = estimate_step_traffic(shape_of(model), layout_of(values))
    command = written("estimate", "comm")
    command += f" {as_flags({'model': model, **values})}"
    return Worked(name, command, estimate)
