"""What an expression may call: the words of a numeric answer.

Each takes keyword arguments with units in their names and returns one plain number.
"""

from __future__ import annotations

from collections.abc import Callable

from readerkit.estimate.activations import activation_bytes_per_layer, kv_cache_bytes
from readerkit.estimate.collectives import (
    algorithm_bandwidth,
    all_to_all_bytes,
    bus_bandwidth,
    bus_factor,
    collective_bytes,
    collective_seconds,
    naive_all_reduce_bytes,
    ring_all_gather_bytes,
    ring_all_reduce_bytes,
    ring_reduce_scatter_bytes,
    ring_steps,
    tree_all_reduce_bytes,
    tree_ring_crossover_bytes,
    tree_steps,
)
from readerkit.estimate.compression import (
    cast_ratio,
    compressed_bytes,
    powersgd_ratio,
    top_k_ratio,
)
from readerkit.estimate.flops import (
    cost_usd,
    flops_utilization,
    gpu_hours,
    korthikanti_hardware_flops,
    korthikanti_model_flops,
    mean_hours_between_failures,
    narayanan_flops_per_iteration,
    six_nd_flops,
    training_days,
)
from readerkit.estimate.overlap import (
    communication_overhead,
    communication_share,
    exposed_seconds,
    overlap_speedup,
    step_seconds,
)
from readerkit.estimate.pipeline import (
    bubble_fraction,
    bubble_ratio_to_ideal,
    bubble_time,
    peak_in_flight,
)
from readerkit.estimate.quantity import Number
from readerkit.estimate.shape import (
    gpt_parameters,
    narayanan_parameters,
    padded_vocab,
    transformer_parameters,
)
from readerkit.estimate.states import (
    bytes_per_param,
    fsdp_unsharded_bytes,
    model_state_bytes,
    zero_bytes_per_param,
    zero_max_params,
)
from readerkit.estimate.volumes import (
    dp_volume_bytes,
    ep_volume_bytes,
    pp_volume_bytes,
    tp_volume_bytes,
)

FUNCTIONS: dict[str, Callable[..., Number]] = {
    function.__name__: function
    for function in (
        activation_bytes_per_layer,
        algorithm_bandwidth,
        all_to_all_bytes,
        bubble_fraction,
        bubble_ratio_to_ideal,
        bubble_time,
        bus_bandwidth,
        bus_factor,
        bytes_per_param,
        cast_ratio,
        collective_bytes,
        collective_seconds,
        communication_overhead,
        communication_share,
        compressed_bytes,
        cost_usd,
        dp_volume_bytes,
        ep_volume_bytes,
        exposed_seconds,
        flops_utilization,
        fsdp_unsharded_bytes,
        gpt_parameters,
        gpu_hours,
        korthikanti_hardware_flops,
        korthikanti_model_flops,
        kv_cache_bytes,
        mean_hours_between_failures,
        model_state_bytes,
        naive_all_reduce_bytes,
        narayanan_flops_per_iteration,
        narayanan_parameters,
        overlap_speedup,
        padded_vocab,
        peak_in_flight,
        powersgd_ratio,
        pp_volume_bytes,
        ring_all_gather_bytes,
        ring_all_reduce_bytes,
        ring_reduce_scatter_bytes,
        ring_steps,
        six_nd_flops,
        step_seconds,
        top_k_ratio,
        tp_volume_bytes,
        training_days,
        transformer_parameters,
        tree_all_reduce_bytes,
        tree_ring_crossover_bytes,
        tree_steps,
        zero_bytes_per_param,
        zero_max_params,
    )
}
"""Name to function: the words of a numeric answer."""
