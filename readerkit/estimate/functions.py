"""What an expression may call: the words of a numeric answer.

Each takes keyword arguments with units in their names and returns one plain number. A
word brings its own module alone: most formulas need one of them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from importlib import import_module
from typing import TYPE_CHECKING, cast

if TYPE_CHECKING:
    from readerkit.estimate.quantity import Number

_WORDS = {
    "activations": "activation_bytes_per_layer kv_cache_bytes",
    "bubble": "bubble_fraction bubble_ratio_to_ideal bubble_time peak_in_flight",
    "collectives": "algorithm_bandwidth all_to_all_bytes bus_bandwidth bus_factor "
    "collective_bytes collective_seconds naive_all_reduce_bytes ring_all_gather_bytes "
    "ring_all_reduce_bytes ring_reduce_scatter_bytes ring_steps tree_all_reduce_bytes "
    "tree_ring_crossover_bytes tree_steps",
    "compression": "cast_ratio compressed_bytes powersgd_ratio top_k_ratio",
    "flops": "cost_usd flops_utilization gpu_hours korthikanti_hardware_flops "
    "korthikanti_model_flops mean_hours_between_failures narayanan_flops_per_iteration "
    "six_nd_flops training_days",
    "overlap": "communication_overhead communication_share exposed_seconds "
    "overlap_speedup step_seconds",
    "parameters": "gpt_parameters narayanan_parameters transformer_parameters",
    "shape": "padded_vocab",
    "states": "bytes_per_param fsdp_unsharded_bytes model_state_bytes "
    "zero_bytes_per_param zero_max_params",
    "volumes": "dp_volume_bytes ep_volume_bytes pp_volume_bytes tp_volume_bytes",
}
"""By the module of this package that each is in."""


class _Functions(Mapping[str, "Callable[..., Number]"]):
    """Every word; its function is imported when somebody calls it."""

    def __init__(self) -> None:
        pairs = ((module, words.split()) for module, words in _WORDS.items())
        self._homes = {word: module for module, words in pairs for word in words}

    def __getitem__(self, word: str) -> Callable[..., Number]:
        module = import_module(f"readerkit.estimate.{self._homes[word]}")
        return cast("Callable[..., Number]", getattr(module, word))

    def __iter__(self) -> Iterator[str]:
        return iter(sorted(self._homes))

    def __len__(self) -> int:
        return len(self._homes)

    def __contains__(self, word: object) -> bool:
        return word in self._homes


FUNCTIONS: Mapping[str, Callable[..., Number]] = _Functions()
"""Name to function: the words of a numeric answer."""
