"""What minis with and without a fault are set to do, and what is measured of it.

Imported inside a rank only, once the faulty copy of a mini, if any, is in place.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor, nn

from mini_impls import (
    collectives,
    context_parallel,
    context_parallel_model,
    ddp,
    experts,
    fsdp_flat,
    fsdp_options,
    fsdp_state,
    inference,
    model,
    pipeline,
    ring_attention,
    schedules,
    sequence_parallel_model,
    tensor_parallel,
    zero,
    zero_bubble,
    zero_bubble_plan,
)
from mini_impls.demos.fsdp_state import train_step
from mini_impls.demos.inference import generate_alone
from mini_impls.demos.zero import bytes_held
from mini_impls.demos.zero_bubble import EVEN, get_num_stages, get_stages
from mini_impls.expert_routing import ExpertsConfig
from mini_impls.faults.overlap import Overlap
from mini_impls.faults.symptoms import HELD, UNDER_WAY
from mini_impls.launch import Rank
from mini_impls.model import GPTConfig, build_model, compute_loss, shard_batch
from mini_impls.pipeline_stages import split_model
from mini_impls.timeline import (
    add_send_recv,
    get_bubble,
    get_peak_in_flight,
    get_timeline,
)
from mini_impls.zero_bubble_backward import stage_backward_input, stage_backward_weight

CONFIG = GPTConfig(hidden_size=32, ffn_hidden_size=64)
STEPS = 8
MICROBATCHES = 8
KB = 1 / 1024  # of a MiB


# --- 1. measures that several minis share ---


def apart_between_ranks(tensors: Iterable[Tensor], group: dist.ProcessGroup) -> float:
    """Return the largest difference from rank 0 of what should be one everywhere."""
    worst = 0.0
    for tensor in tensors:
        rank0 = tensor.detach().clone().contiguous()
        dist.broadcast(rank0, group_src=0, group=group)
        worst = max(worst, (tensor.detach() - rank0).abs().max().item())
    return worst


def mean_over_ranks(value: float, group: dist.ProcessGroup) -> float:
    """Return the mean of one number."""
    total = torch.tensor([value], dtype=torch.float64)
    dist.all_reduce(total, group=group)
    return total.item() / group.size()


def norm(tensors: Iterable[Tensor]) -> float:
    """Return the norm of all tensors together."""
    return math.sqrt(sum(t.double().square().sum().item() for t in tensors))


def bytes_of(tensors: Iterable[Any]) -> int:
    """Return the bytes of the memory behind tensors, each memory once."""
    memory = {t.untyped_storage()._cdata: t.untyped_storage().nbytes() for t in tensors}
    return sum(memory.values())


def state_of(optimizer: torch.optim.Optimizer) -> list[Tensor]:
    """Return the tensors that an optimizer keeps."""
    states = optimizer.state.values()
    return [t for state in states for t in state.values() if isinstance(t, Tensor)]


def share_that_agrees(mask: Tensor, group: dist.ProcessGroup) -> float:
    """Return in how many places a mask is rank 0's; on rank 0, rank 1's."""
    masks = [torch.empty_like(mask) for _ in range(group.size())]
    dist.all_gather(masks, mask, group=group)
    other = masks[0 if group.rank() else 1]
    return (mask == other).double().mean().item()


# --- 2. data parallelism: ranks with rows of their own against one process ---


@dataclass
class Trainee:
    """A model under one of the data-parallel minis."""

    forward: Callable[[Tensor], Tensor]
    optimizer: Any
    gradients: Callable[[], list[Tensor]]
    """What the optimizer has read: shards where they are sharded."""
    is_sharded: bool
    full: Callable[[], Mapping[str, Tensor]]
    held: Callable[[], dict[str, int]]


def train_data_parallel(
    rank: Rank,
    build: Callable[[Rank, model.GPT], Trainee],
    *,
    learning_rate: float = 3e-3,
) -> dict[str, float]:
    """Train on this rank's rows, and in one process on all of them."""
    w = rank.world_size
    gpt, alone = build_model(CONFIG), build_model(CONFIG)
    optimizer = torch.optim.AdamW(alone.parameters(), learning_rate)
    trainee = build(rank, gpt)
    start = {name: t.detach().clone() for name, t in trainee.full().items()}
    losses, ratio = [], 0.0
    for step in range(STEPS):
        batch = model.make_batch(CONFIG, step=step, batch_size=4 * w)
        model.train_one_process(alone, optimizer, [batch], chunks=w)
        tokens, labels = shard_batch(batch, rank=rank.rank, world_size=w)
        trainee.optimizer.zero_grad()
        loss = compute_loss(trainee.forward(tokens), labels)
        with Overlap() as seen:
            loss.backward()
        trainee.optimizer.step()
        losses.append(mean_over_ranks(loss.item(), rank.group))
        if step == 0:
            mine = norm(trainee.gradients())
            if trainee.is_sharded:
                mine = math.sqrt(mean_over_ranks(mine**2, rank.group) * w)
            want = norm(p.grad for p in alone.parameters() if p.grad is not None)
            ratio = mine / want
    full = {name: tensor.detach().float() for name, tensor in trainee.full().items()}
    want_full = dict(alone.named_parameters())
    apart = max((full[n] - p.detach()).abs().max().item() for n, p in want_full.items())
    unmoved = sum((full[n] == start[n].float()).sum().item() for n in want_full)
    return {
        "first loss": losses[0],
        "last loss": losses[-1],
        "gradient over one process's": ratio,
        "apart from one process": apart,
        "apart between ranks": apart_between_ranks(full.values(), rank.group),
        "share of weights that never moved": unmoved
        / sum(p.numel() for p in want_full.values()),
        **{HELD[what]: float(n) for what, n in trainee.held().items()},
        UNDER_WAY: float(seen.hidden.total()),
    }


def all_grads(module: nn.Module) -> Callable[[], list[Tensor]]:
    """Return what lists the gradients of a module."""
    return lambda: [p.grad for p in module.parameters() if p.grad is not None]


def build_ddp(rank: Rank, gpt: model.GPT) -> Trainee:
    """Return the bucketed wrapper around a model."""
    cap = 12 * KB
    wrapped = ddp.DistributedDataParallel(
        gpt, rank.group, bucket_cap_mb=cap, first_bucket_mb=cap
    )
    optimizer = torch.optim.AdamW(gpt.parameters(), 3e-3)

    return Trainee(
        wrapped,
        optimizer,
        all_grads(gpt),
        is_sharded=False,
        full=lambda: dict(gpt.named_parameters()),
        held=lambda: {
            "parameters": bytes_of(gpt.parameters()),
            "gradients": bytes_of(bucket.grad_data for bucket in wrapped.buckets),
            "optimizer state": bytes_of(state_of(optimizer)),
        },
    )


def build_zero(rank: Rank, gpt: model.GPT) -> Trainee:
    """Return stage 1."""
    names = {param: name for name, param in gpt.named_parameters()}
    optimizer = zero.ZeroStage1(
        gpt.parameters(), torch.optim.AdamW, rank.group, lr=3e-3
    )

    def full() -> dict[str, Tensor]:
        return {names[p]: t for p, t in optimizer.full_parameters().items()}

    return Trainee(
        gpt,
        optimizer,
        all_grads(gpt),
        is_sharded=False,
        full=full,
        held=lambda: bytes_held(optimizer),
    )


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


class Branch(nn.Module):
    """A part that only some ranks use."""

    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.always, self.sometimes = nn.Linear(4, 4), nn.Linear(4, 4)

    def forward(self, x: Tensor, use: bool) -> Tensor:
        """Go through the second layer where `use` says so."""
        x = self.always(x)
        return self.sometimes(x) if use else x


def unused_on_rank_0(rank: Rank) -> dict[str, float]:
    """One backward in which rank 0 leaves a layer out, and nothing after it."""
    module = Branch()
    wrapped = ddp.DistributedDataParallel(
        module, rank.group, bucket_cap_mb=0, find_unused_parameters=True
    )
    wrapped(torch.ones(2, 4), rank.rank > 0).sum().backward()
    grads = [p.grad for p in module.parameters() if p.grad is not None]
    return {"gradients": float(len(grads)), "norm of gradients": norm(grads)}


# --- 3. tensor and sequence parallelism: one batch, weights cut ---


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


def train_sequence_parallel(rank: Rank) -> dict[str, float]:
    """Train a model whose tokens are cut too, with dropout."""
    config = GPTConfig(
        hidden_size=32, ffn_hidden_size=64, num_query_groups=4, hidden_dropout=0.2
    )
    gpt = build_model(config)
    tracker = sequence_parallel_model.model_parallel_manual_seed(
        11, rank.rank, torch.default_generator
    )
    partial = sequence_parallel_model.sequence_parallel(gpt, rank.group, tracker)
    masks: list[Tensor] = []
    gpt.layers[0].get_submodule("hidden_dropout").register_forward_hook(
        lambda module, args, out: masks.append((out == 0).to(torch.uint8))
    )
    optimizer = torch.optim.AdamW(gpt.parameters(), 3e-3)
    batches = [model.make_batch(config, step=i, batch_size=4) for i in range(STEPS)]
    losses = sequence_parallel_model.train(gpt, optimizer, batches, partial, rank.group)
    return {
        "first loss": mean_over_ranks(losses[0], rank.group),
        "last loss": mean_over_ranks(losses[-1], rank.group),
        "apart between ranks": apart_between_ranks(partial, rank.group),
        "share of dropout that agrees between ranks": share_that_agrees(
            masks[0], rank.group
        ),
    }


def train_context_parallel(
    rank: Rank, attention: context_parallel_model.Attention
) -> dict[str, float]:
    """Train a model whose sequences are cut, in one way to attend."""
    gpt, alone = build_model(CONFIG), build_model(CONFIG)
    context_parallel_model.context_parallel(gpt, attention, rank.group)
    optimizer = torch.optim.AdamW(gpt.parameters(), 3e-3)
    batches = [model.make_batch(CONFIG, step=i, batch_size=4) for i in range(STEPS)]
    losses = context_parallel_model.train(gpt, optimizer, batches[:1], rank.group)
    compute_loss(alone(batches[0][0]), batches[0][1]).backward()
    both = [all_grads(each)() for each in (gpt, alone)]
    mine, want = map(norm, both)
    apart = norm(a - b for a, b in zip(*both, strict=True))
    losses += context_parallel_model.train(gpt, optimizer, batches[1:], rank.group)
    return {
        "first loss": losses[0],
        "last loss": losses[-1],
        "gradient over one process's": mine / want,
        "distance of the gradient from one process's": apart / want,
        "apart between ranks": apart_between_ranks(gpt.parameters(), rank.group),
    }


# --- 4. pipelines and messages ---


def train_pipeline(rank: Rank) -> dict[str, float]:
    """Train the stages of a model by 1F1B."""
    config = GPTConfig(num_layers=4, hidden_size=32, ffn_hidden_size=64)
    orders = schedules.get_orders("1f1b", rank.world_size, MICROBATCHES)
    plan = add_send_recv(orders)[rank.rank]
    gpt, alone = build_model(config), build_model(config)
    stages = split_model(gpt, rank.rank, rank.world_size)
    shape = (1, config.max_sequence_length, config.hidden_size)
    executor = pipeline.PipelineExecutor(stages, shape, rank.group)
    params = nn.ModuleList(stages.values())
    optimizer = torch.optim.AdamW(params.parameters(), 3e-3)
    batches = [
        model.make_batch(config, step=i, batch_size=MICROBATCHES) for i in range(3)
    ]
    pipeline.train(executor, plan, optimizer, batches, MICROBATCHES)
    model.train_one_process(
        alone,
        torch.optim.AdamW(alone.parameters(), 3e-3),
        batches,
        chunks=MICROBATCHES,
    )
    full = dict(alone.named_parameters())
    apart = max(
        (param - full[name]).abs().max().item()
        for stage in stages.values()
        for name, param in stage.named_parameters()
    )
    ideal, _ = get_bubble(get_timeline(orders), rank.world_size)
    return {
        "microbatches in flight": float(executor.peak_in_flight),
        "apart from one process": apart,
        "bubble over ideal time": float(ideal),
    }


def ring_all_reduce(rank: Rank) -> dict[str, float]:
    """Sum a tensor over the ranks by sends to the neighbours."""
    tensor = torch.arange(1024.0) * (rank.rank + 1)
    want = tensor * 0 + torch.arange(1024.0) * sum(range(1, rank.world_size + 1))
    collectives.ring_all_reduce(tensor, rank.group)
    return {"apart from the sum": (tensor - want).abs().max().item()}


def run_zb_h1(rank: Rank) -> dict[str, float]:
    """Lay out a schedule that splits the backward; nothing is sent, time is counted."""
    orders = schedules.get_orders("zb-h1", rank.world_size, MICROBATCHES)
    ideal, _ = get_bubble(get_timeline(orders), rank.world_size)
    in_flight = get_peak_in_flight(orders[rank.rank])
    return {
        "microbatches in flight": float(in_flight),
        "bubble over ideal time": float(ideal),
    }


def train_zb_v(rank: Rank) -> dict[str, float]:
    """Train the stages of a model by ZB-V."""
    p = rank.world_size
    num_stages = get_num_stages("zb-v", p)
    config = GPTConfig(num_layers=num_stages, hidden_size=32, ffn_hidden_size=64)
    gpt, alone = build_model(config), build_model(config)
    blocks = zero_bubble_plan.get_blocks("zb-v", p, MICROBATCHES)
    plan = zero_bubble_plan.add_send_recv(blocks)[rank.rank]
    stages = get_stages(gpt, "zb-v", rank)
    shape = (1, config.max_sequence_length, config.hidden_size)
    executor = zero_bubble.ZeroBubbleExecutor(stages, num_stages, shape, rank.group)
    params = nn.ModuleList(stages.values())
    optimizer = torch.optim.AdamW(params.parameters(), 3e-3)
    batches = [
        model.make_batch(config, step=i, batch_size=MICROBATCHES) for i in range(3)
    ]
    zero_bubble.train(executor, plan, optimizer, batches, MICROBATCHES)
    one_process = torch.optim.AdamW(alone.parameters(), 3e-3)
    model.train_one_process(alone, one_process, batches, chunks=MICROBATCHES)
    full = dict(alone.named_parameters())
    apart = max(
        (param - full[name]).abs().max().item()
        for stage in stages.values()
        for name, param in stage.named_parameters()
    )
    ideal, _ = get_bubble(zero_bubble_plan.get_block_timeline(blocks, EVEN), p)
    order = zero_bubble_plan.get_orders(blocks)[rank.rank]
    return {
        "microbatches in flight": float(get_peak_in_flight(order)),
        "apart from one process": apart,
        "bubble over ideal time": float(ideal),
    }


def split_where_a_weight_is_used_twice(rank: Rank) -> dict[str, float]:
    """Make both halves of one backward, and a whole one beside it."""
    torch.manual_seed(0)
    layer = nn.Linear(6, 6)
    weights, found = list(layer.parameters()), []
    for whole in (True, False):
        layer.zero_grad()
        x = torch.ones(4, 6, requires_grad=True)
        output = layer(torch.tanh(layer(x)))
        grad = torch.ones_like(output)
        if whole:
            output.backward(grad)
        else:
            stage_backward_weight(stage_backward_input(output, grad, x, weights)[1])
        found.append([w.grad for w in weights if w.grad is not None])
    apart = max((a - b).abs().max().item() for a, b in zip(*found, strict=True))
    return {"apart from one process": apart}


# --- 5. what comes after training: a clipped step, a text ---


def train_clipped(rank: Rank) -> dict[str, float]:
    """Train on shards of rows, clipped by the norm of all gradients."""
    w = rank.world_size
    gpt, alone = build_model(CONFIG), build_model(CONFIG)
    shards = {
        name: fsdp_state.shard_rows(p, rank.group) for name, p in gpt.named_parameters()
    }
    optimizer = torch.optim.SGD([shard.param for shard in shards.values()], 0.1)
    one_process = torch.optim.SGD(alone.parameters(), 0.1)
    losses, ratio = [], 0.0
    for step in range(STEPS):
        batch = model.make_batch(CONFIG, step=step, batch_size=4 * w)
        loss, norm_here = train_step(
            gpt, shards, optimizer, batch, rank.group, max_norm=0.5
        )
        losses.append(loss)
        one_process.zero_grad()
        compute_loss(alone(batch[0]), batch[1]).backward()
        want = nn.utils.clip_grad_norm_(alone.parameters(), 0.5)
        one_process.step()
        ratio = ratio or norm_here / want.item()
    full = dict(alone.named_parameters())
    apart = max(
        (s.param - full[name][s.start : s.start + len(s.param)]).abs().max().item()
        for name, s in shards.items()
    )
    return {
        "first loss": losses[0],
        "last loss": losses[-1],
        "norm over one process's": ratio,
        "apart from one process": apart,
    }


def generate_text(rank: Rank) -> dict[str, float]:
    """Continue a prompt with a cache on every rank, and alone without one."""
    config = GPTConfig(num_query_groups=4)
    prompt = model.make_batch(config, step=0, batch_size=4)[0][:, :8]
    expected = generate_alone(build_model(config), prompt, 16)
    gpt = build_model(config)
    context = inference.StaticInferenceContext(4, config.max_sequence_length)
    inference.tensor_parallel(gpt, context, rank.group)
    tokens = inference.generate(gpt, prompt, 16, context).tokens
    new, expected = tokens[:, 8:], expected[:, 8:]
    return {
        "share of new tokens as without a cache": (new == expected)
        .double()
        .mean()
        .item(),
        "apart between ranks": apart_between_ranks([tokens], rank.group),
        "bytes of keys and values": float(context.num_bytes()),
    }


# --- 6. experts: each rank some of them, or slices, and tokens that travel ---


def train_experts(rank: Rank) -> dict[str, float]:
    """Train experts that two groups of ranks share, and all of them in one process."""
    w = rank.world_size
    config = ExpertsConfig(hidden_size=32, moe_ffn_hidden_size=64)
    groups = experts.make_groups(rank.group, ep=2, etp=w // 2)
    gpt, alone = (experts.build_moe_model(config) for _ in range(2))
    experts.expert_parallel(gpt, groups, "alltoall")
    optimizer = torch.optim.AdamW(gpt.parameters(), 3e-3)
    alone_optimizer = torch.optim.AdamW(alone.parameters(), 3e-3)

    def of_experts(model: nn.Module) -> list[Tensor]:
        named = model.named_parameters()
        return [p.grad for n, p in named if ".experts." in n and p.grad is not None]

    losses, ratio = [], 0.0
    for step in range(STEPS):
        batch = model.make_batch(config, step=step, batch_size=4 * w)
        model.train_one_process(alone, alone_optimizer, [batch], chunks=w)
        tokens, labels = shard_batch(batch, rank=rank.rank, world_size=w)
        optimizer.zero_grad()
        loss = compute_loss(gpt(tokens), labels)
        loss.backward()
        experts.finish_gradients(gpt, groups)
        optimizer.step()
        losses.append(mean_over_ranks(loss.item(), rank.group))
        if step == 0:
            mine = mean_over_ranks(norm(of_experts(gpt)) ** 2, rank.group) * w
            ratio = math.sqrt(mine) / norm(of_experts(alone))
    dense = [p for n, p in gpt.named_parameters() if ".experts." not in n]
    return {
        "first loss": losses[0],
        "last loss": losses[-1],
        "gradient over one process's": ratio,
        "apart between ranks": apart_between_ranks(dense, rank.group),
    }


WORKS: Mapping[str, Callable[[Rank], dict[str, float]]] = {
    "ddp": lambda rank: train_data_parallel(rank, build_ddp),
    "ddp, a layer unused on rank 0": unused_on_rank_0,
    "zero": lambda rank: train_data_parallel(rank, build_zero),
    "fsdp": lambda rank: train_data_parallel(rank, build_fsdp),
    "fsdp in bf16": lambda rank: train_data_parallel(
        rank, build_fsdp_bf16, learning_rate=1e-5
    ),
    "fsdp_flat": lambda rank: train_data_parallel(rank, build_fsdp_flat),
    "experts": train_experts,
    "tensor_parallel": train_tensor_parallel,
    "tensor_parallel, one layer": column_backward,
    "sequence_parallel": train_sequence_parallel,
    "context_parallel, all-gather": lambda rank: train_context_parallel(
        rank, context_parallel.all_gather_attention
    ),
    "context_parallel, Ulysses": lambda rank: train_context_parallel(
        rank, context_parallel.ulysses_attention
    ),
    "context_parallel, ring": lambda rank: train_context_parallel(
        rank, ring_attention.ring_attention
    ),
    "pipeline": train_pipeline,
    "collectives": ring_all_reduce,
    "schedules, zb-h1": run_zb_h1,
    "zero_bubble": train_zb_v,
    "zero_bubble, a weight used twice": split_where_a_weight_is_used_twice,
    "fsdp_state, clipped": train_clipped,
    "inference": generate_text,
}
