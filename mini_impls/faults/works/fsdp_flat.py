"""What `fsdp_flat` is set to do."""

from __future__ import annotations

import torch

from mini_impls import fsdp_flat, model
from mini_impls.faults.works.data_parallel import Trainee, train_data_parallel
from mini_impls.faults.works.measures import CONFIG, all_grads, bytes_of, state_of
from mini_impls.launch import Rank


def build_fsdp_flat(rank: Rank, gpt: model.GPT) -> Trainee:
    """Return a model with flat parameters."""
    names = [f"layers.{i}" for i in range(CONFIG.num_layers)]
    state = fsdp_flat.fully_shard_flat(gpt, rank.group, modules=names)
    optimizer = torch.optim.AdamW(gpt.parameters(), 3e-3)

    def held() -> dict[str, int]:
        whole = [handle._full_param_padded for handle in state.handles.values()]
        return {
            "shards": bytes_of(gpt.parameters()),
            "gathered parameters": bytes_of(whole),
            "optimizer state": bytes_of(state_of(optimizer)),
        }

    return Trainee(
        gpt,
        optimizer,
        all_grads(gpt),
        is_sharded=True,
        full=state.full_parameters,
        held=held,
    )


WORKS = {
    "fsdp_flat": lambda rank: train_data_parallel(rank, build_fsdp_flat),
}
