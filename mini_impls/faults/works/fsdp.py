"""What `fsdp` and its options are set to do."""

from __future__ import annotations

import torch

from mini_impls import fsdp_options, model
from mini_impls.faults.works.data_parallel import Trainee, train_data_parallel
from mini_impls.faults.works.measures import CONFIG, all_grads, bytes_of, state_of
from mini_impls.launch import Rank


def build_fsdp(
    rank: Rank,
    gpt: model.GPT,
    compute_dtype: torch.dtype | None = None,
    learning_rate: float = 3e-3,
) -> Trainee:
    """Return a model with its layers and the rest sharded."""
    names = ["", *(f"layers.{i}" for i in range(CONFIG.num_layers))]
    state = fsdp_options.fully_shard(
        gpt, rank.group, modules=names, compute_dtype=compute_dtype
    )
    optimizer = torch.optim.AdamW(gpt.parameters(), learning_rate)

    def held() -> dict[str, int]:
        groups = state.param_groups.values()
        whole = [p.all_gather_output for g in groups for p in g.fsdp_params]
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
        full=lambda: state.full_parameters(gpt),
        held=held,
    )


def build_fsdp_bf16(rank: Rank, gpt: model.GPT) -> Trainee:
    """Return the same, computing in bf16, at a learning rate of fine-tuning."""
    return build_fsdp(rank, gpt, torch.bfloat16, learning_rate=1e-5)


WORKS = {
    "fsdp": lambda rank: train_data_parallel(rank, build_fsdp),
    "fsdp, in bf16": lambda rank: train_data_parallel(
        rank, build_fsdp_bf16, learning_rate=1e-5
    ),
}
