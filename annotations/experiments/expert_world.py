"""How many ranks four tensor-parallel and sixty-four expert ranks need in Megatron."""

import json

import torch.distributed as dist
from megatron.core import parallel_state
from torch.testing._internal.distributed.fake_pg import FakeStore

RANKS = 1
UPSTREAMS = ["megatron"]


def sizes(world: int, expert_tensor: int) -> dict[str, int] | str:
    """Return the sizes of rank 0's groups in a world; the error that refuses it."""
    dist.init_process_group("fake", rank=0, world_size=world, store=FakeStore())
    try:
        parallel_state.initialize_model_parallel(
            tensor_model_parallel_size=4,
            expert_model_parallel_size=64,
            expert_tensor_parallel_size=expert_tensor,
            create_gloo_process_groups=False,
        )
        return {
            "dp": parallel_state.get_data_parallel_world_size(),
            "expert_dp": parallel_state.get_expert_data_parallel_world_size(),
        }
    except RuntimeError as error:
        return type(error).__name__
    finally:
        parallel_state.destroy_model_parallel()
        dist.destroy_process_group()


print(f"of_64 = {json.dumps(sizes(64, 1))}")
print(f"of_64_cut = {json.dumps(sizes(64, 4))}")
print(f"of_256 = {json.dumps(sizes(256, 1))}")
print(f"of_256_cut = {json.dumps(sizes(256, 4))}")
