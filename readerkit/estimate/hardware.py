"""GPUs and clusters: what a rank computes with, and what it sends over."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from readerkit.estimate.checks import check_amount, check_choice, check_count
from readerkit.estimate.quantity import Number

ASSUMED_EFFICIENCY = 0.6
"""Of a GPU for which no step times were fitted."""


class Gpu(NamedTuple):
    """One kind of GPU."""

    name: str
    memory_bytes: Number
    """As sold: 80 GB are 80 × 10^9 bytes here."""
    memory_bytes_per_s: Number
    flops_per_s: Number
    """Peak, dense, 16-bit inputs and 32-bit sums."""
    link_bytes_per_s: Number
    """To its neighbours in a node, per direction."""
    source: str
    kernel_efficiency: float
    """Share of peak that matrix kernels reach while they run."""
    efficiency_source: str

    @classmethod
    def parse(cls, name: str, values: Mapping[str, Any]) -> Gpu:
        """Return a GPU from its entry in a file.

        Raises:
            EstimateError: a figure that no GPU can have.
        """
        figures = {
            key: check_amount(f"{name}: {key}", values[key])
            for key in ("memory_gb", "memory_gb_s", "tflops", "link_gb_s")
        }
        return cls(
            name,
            _whole(figures["memory_gb"] * 10**9),
            figures["memory_gb_s"] * 1e9,
            figures["tflops"] * 1e12,
            figures["link_gb_s"] * 1e9,
            str(values["source"]),
            float(values.get("kernel_efficiency", ASSUMED_EFFICIENCY)),
            str(values.get("efficiency_source", "an assumption")),
        )


class Cluster(NamedTuple):
    """Nodes of GPUs. Every bandwidth is one GPU's share, in one direction."""

    name: str
    gpu: Gpu
    gpus_per_node: int
    inside_bytes_per_s: Number
    between_bytes_per_s: Number
    inside_latency_s: Number
    between_latency_s: Number
    source: str

    @classmethod
    def parse(
        cls, name: str, values: Mapping[str, Any], gpus: Mapping[str, Gpu]
    ) -> Cluster:
        """Return a cluster from its entry in a file.

        Raises:
            EstimateError: an unknown GPU, or a figure that no cluster can have.
        """
        gpu = gpus[check_choice("GPU", str(values["gpu"]), gpus)]

        def figure(key: str, scale: float, *, zero: bool = False) -> Number:
            return check_amount(f"{name}: {key}", values[key], zero=zero) * scale

        return cls(
            name,
            gpu,
            check_count(f"{name}: gpus_per_node", values["gpus_per_node"]),
            figure("inside_gb_s", 1e9),
            figure("between_gb_s", 1e9),
            figure("inside_latency_us", 1e-6, zero=True),
            figure("between_latency_us", 1e-6, zero=True),
            str(values["source"]),
        )

    def with_memory(self, memory: Number) -> Cluster:
        """Return it with another memory in each GPU.

        Raises:
            EstimateError: a memory that no GPU can have.
        """
        size = check_amount("GPU memory", memory)
        return self._replace(gpu=self.gpu._replace(memory_bytes=size))

    def link(self, ranks_within: int) -> tuple[Number, Number]:
        """Return bandwidth and latency of a group that spans so many adjacent GPUs."""
        if ranks_within <= self.gpus_per_node:
            return self.inside_bytes_per_s, self.inside_latency_s
        return self.between_bytes_per_s, self.between_latency_s


def _whole(value: Number) -> Number:
    return int(value) if isinstance(value, float) and value.is_integer() else value
