"""Options of a cluster, and of what only a measurement of it would tell."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from readerkit.commands.estimate_options import reserve_option
from readerkit.commands.quantity_options import memory_size, rate, real, word
from readerkit.commands.shown_options import OptionGroup
from readerkit.estimate.defaults import CLUSTER, LINK_SHARE, MEMORY_PASSES, OVERLAP
from readerkit.terminal.completing import names

if TYPE_CHECKING:
    from readerkit.estimate.hardware import Cluster
    from readerkit.estimate.step_time import Assumptions

cluster_options = OptionGroup(
    word(
        "cluster",
        f"A cluster that ships (default {CLUSTER}), or FILE.yaml.",
        CLUSTER,
        shell_complete=names("clusters"),
    ),
    memory_size("gpu-memory", "Memory of a GPU, instead of the cluster's."),
    real("kernel-efficiency", "Share of peak of matrix kernels (default: the GPU's)."),
    real(
        "memory-passes",
        "How often a kept activation crosses the GPU's memory "
        f"(default {MEMORY_PASSES:g}).",
        MEMORY_PASSES,
    ),
    real(
        "link-efficiency",
        f"Share of a link's bandwidth that collectives reach (default {LINK_SHARE}).",
        LINK_SHARE,
    ),
    real(
        "overlap",
        f"Share of data-parallel traffic that compute hides (default {OVERLAP}).",
        OVERLAP,
    ),
    reserve_option,
)

link_options = OptionGroup(
    rate("pcie-bandwidth", "Of offload: one GPU to its CPU, one way: 25GB/s."),
    rate("nvme-bandwidth", "Of offload: one GPU's share of NVMe: 3GB/s."),
)


def check_links(given: dict[str, Any], *offloads: str) -> None:
    """Refuse a bandwidth that none of some offloads needs.

    Raises:
        UsageError: with the option.
    """
    places = {each.rpartition("-")[2] for each in offloads}
    for name, of in (("pcie", {"cpu", "nvme"}), ("nvme", {"nvme"})):
        if given[f"{name}_bandwidth"] is not None and not of & places:
            raise click.UsageError(f"--{name}-bandwidth: of which --offload?")


def take_cluster(given: dict[str, Any]) -> tuple[Cluster, Assumptions]:
    """Take the cluster's options out of ``given``."""
    from readerkit.app.catalog import find_cluster
    from readerkit.estimate.checks import check_reserve
    from readerkit.estimate.step_time import Assumptions

    own = click.get_current_context().obj
    cluster, memory = find_cluster(given.pop("cluster"), own), given.pop("gpu_memory")
    if memory is not None:
        cluster = cluster.with_memory(memory)
    assumptions = Assumptions.parse(
        **{name: given.pop(name) for name in Assumptions._fields if name in given}
    )
    check_reserve(given["reserve"])
    return cluster, assumptions
