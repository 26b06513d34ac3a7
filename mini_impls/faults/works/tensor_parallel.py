"""What `tensor_parallel` is set to do: one batch, weights cut."""

from __future__ import annotations

import torch
from torch import nn

from mini_impls import model, tensor_parallel
from mini_impls.faults.overlap import Overlap
from mini_impls.faults.symptoms import UNDER_WAY
from mini_impls.faults.works.measures import CONFIG, STEPS, apart_between_ranks, norm
from mini_impls.launch import Rank
from mini_impls.model import build_model


def train_tensor_parallel(rank: Rank) -> dict[str, float]:
    """Train a model whose weights are cut, f and g as operators of their own."""
    gpt, alone = build_model(CONFIG), build_model(CONFIG)
    whole = dict(alone.named_parameters())
    tensor_parallel.tensor_parallel(gpt, rank.group, overlap=False)
    replicated = [p for n, p in gpt.named_parameters() if p.shape == whole[n].shape]
    optimizer = torch.optim.AdamW(gpt.parameters(), 3e-3)
    batches = [model.make_batch(CONFIG, step=i, batch_size=4) for i in range(STEPS)]
    losses = tensor_parallel.train(gpt, optimizer, batches, rank.group)
    expected = model.train_one_process(
        alone, torch.optim.AdamW(alone.parameters(), 3e-3), batches
    )
    return {
        "first loss": losses[0],
        "last loss": losses[-1],
        "last loss of one process": expected[-1],
        "apart between ranks": apart_between_ranks(replicated, rank.group),
    }


def column_backward(rank: Rank) -> dict[str, float]:
    """Run one column-parallel layer backward, and see what the sum hides behind."""
    torch.manual_seed(0)
    layer = tensor_parallel.ColumnParallelLinear(nn.Linear(8, 16), tp_group=rank.group)
    x = torch.randn(4, 8, requires_grad=True)
    output = layer(x)
    with Overlap() as seen:
        output.backward(torch.ones_like(output))
    assert x.grad is not None and layer.weight.grad is not None
    return {
        UNDER_WAY: float(seen.hidden.total()),
        "norm of gradients": norm([x.grad, layer.weight.grad]),
        "apart between ranks": apart_between_ranks([x.grad], rank.group),
    }


WORKS = {
    "tensor_parallel": train_tensor_parallel,
    "tensor_parallel, one layer": column_backward,
}
