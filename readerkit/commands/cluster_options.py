"""Options of a cluster, and of what only a measurement of it would tell."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from readerkit.commands.estimate_options import options, reserve_option
from readerkit.commands.quantity_options import memory_size, real, word
from readerkit.terminal.completing import names

if TYPE_CHECKING:
    from readerkit.estimate.hardware import Cluster
    from readerkit.estimate.step_time import Assumptions

cluster_options = options(
    word(
        "cluster",
        "A cluster that ships (default dgx-h100), or FILE.yaml.",
        "dgx-h100",
        shell_complete=names("clusters"),
    ),
    memory_size("gpu-memory", "Memory of a GPU, instead of the cluster's."),
    real("kernel-efficiency", "Share of peak of matrix kernels (default: the GPU's)."),
    real(
        "memory-passes",
        "How often a kept activation crosses the GPU's memory (default 8).",
        8.0,
    ),
    real(
        "link-efficiency",
        "Share of a link's bandwidth that collectives reach (default 0.7).",
        0.7,
    ),
    real(
        "overlap",
        "Share of data-parallel traffic that compute hides (default 0.5).",
        0.5,
    ),
    reserve_option,
)


def take_cluster(given: dict[str, Any]) -> tuple[Cluster, Assumptions]:
    """Take the cluster's options out of ``given``."""
    from dataclasses import fields

    from readerkit.app.catalog import find_cluster
    from readerkit.estimate.checks import check_reserve
    from readerkit.estimate.step_time import Assumptions

    own = click.get_current_context().obj
    cluster, memory = find_cluster(given.pop("cluster"), own), given.pop("gpu_memory")
    if memory is not None:
        cluster = cluster.with_memory(memory)
    assumed = [field.name for field in fields(Assumptions)]
    assumptions = Assumptions.parse(
        **{name: given.pop(name) for name in assumed if name in given}
    )
    check_reserve(given["reserve"])
    return cluster, assumptions
