"""Starts Megatron in a rank: its own groups, for one kind of parallelism."""

from importlib import import_module
from typing import Any

from torch.distributed import distributed_c10d

from mini_impls.launch import Rank


def start(
    rank: Rank,
    *,
    tensor: int = 1,
    pipeline: int = 1,
    context: int = 1,
    chunks: int | None = None,
    expert: int = 1,
    expert_tensor: int | None = None,
) -> dict[str, str]:
    """Make Megatron's process groups; return the name of each and what it is for.

    The directory that `upstream_files.write_megatron` wrote must be on `sys.path`.
    """
    parallel_state: Any = import_module("megatron.core.parallel_state")
    default = distributed_c10d.default_pg_timeout
    parallel_state.initialize_model_parallel(
        tensor_model_parallel_size=tensor,
        pipeline_model_parallel_size=pipeline,
        context_parallel_size=context,
        virtual_pipeline_model_parallel_size=chunks,
        expert_model_parallel_size=expert,
        expert_tensor_parallel_size=expert_tensor,
        create_gloo_process_groups=False,
        # Its own default is half an hour, whatever the run's timeout.
        distributed_timeout_minutes=default.total_seconds() / 60,
    )
    made = {
        "dp": (
            parallel_state.get_data_parallel_group(),
            parallel_state.get_data_parallel_group(with_context_parallel=True),
        ),
        "tp": (parallel_state.get_tensor_model_parallel_group(),),
        "pp": (parallel_state.get_pipeline_model_parallel_group(),),
        "cp": (parallel_state.get_context_parallel_group(),),
        "ep": (parallel_state.get_expert_model_parallel_group(),),
        "etp": (parallel_state.get_expert_tensor_parallel_group(),),
        "etp x ep": (parallel_state.get_expert_tensor_and_model_parallel_group(),),
        "edp": (parallel_state.get_expert_data_parallel_group(),),
    }
    return {
        group.group_name: label
        for label, groups in made.items()
        for group in groups
        if group.size() > 1
    }
