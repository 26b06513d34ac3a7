"""Training beside one process, as the demos share it."""

import gc
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import torch
import torch.distributed as dist
from torch import nn

from mini_impls.demos.expected import sliced
from mini_impls.launch import Rank
from mini_impls.model import (
    GPT,
    Batch,
    GPTConfig,
    Reference,
    build_model,
    compute_loss,
    make_batch,
    shard_batch,
    train_one_process,
)
from mini_impls.traffic import CollectiveCounter


def counted(
    rank: Rank, batches: Sequence[Batch], doing: str = "step"
) -> Iterator[Batch]:
    """Yield the batches, and tell a person who waits how many are done."""
    collect(rank)  # the part before this one
    for done, batch in enumerate(batches):
        rank.show(doing, done, len(batches))
        with rank.recorder.step(batch[0].numel()):
            yield batch


def counted_alone(rank: Rank, batches: Sequence[Batch]) -> Iterator[Batch]:
    """Yield the batches to the one process that all ranks are held against."""
    for done, batch in enumerate(batches):
        rank.show("one process alone, step", done, len(batches))
        yield batch


@contextmanager
def alone(rank: Rank) -> Iterator[None]:
    """Do what is only there to compare with; what it keeps is no part of a peak.

    What the caller dropped within counts as dropped, though it refers to itself.
    """
    with rank.recorder.alone():
        yield
        collect(rank)


def collect(rank: Rank) -> None:
    """Free what refers to itself, where memory is recorded: it looks alive there."""
    if rank.recorder.is_on:
        gc.collect()


def drop_hooks(params: Iterable[nn.Parameter]) -> None:
    """Remove what runs once a gradient is there, or the next part has this one's model.

    The collector does not see that such a hook refers to its own parameter.
    """
    for param in params:
        if hooks := param._post_accumulate_grad_hooks:
            hooks.clear()


def next_multiple(of: int, least: int) -> int:
    """Return the first multiple of a number that is not below another.

    >>> next_multiple(3, least=4)
    6
    """
    return of * -(-least // of)


def train_alone(rank: Rank, steps: int, *, rows: int = 8) -> Reference:
    """Return one process's run of the default model, each step told.

    It takes the batches of all ranks, of `rows` sequences each, in rank order.
    """
    config, world_size = GPTConfig(), rank.world_size
    batches = [
        make_batch(config, step=i, batch_size=rows * world_size) for i in range(steps)
    ]
    with alone(rank):
        model = build_model(config)
        optimizer = torch.optim.AdamW(model.parameters(), 3e-3)
        told = counted_alone(rank, batches)
        losses = train_one_process(model, optimizer, told, chunks=world_size)
        del optimizer
    return Reference(batches, losses, model)


def train_beside(
    reference: Reference, rank: Rank, model: nn.Module, optimizer: torch.optim.Optimizer
) -> CollectiveCounter:
    """Return what the last step sent; say each loss beside that of one process.

    Whatever the gradients need happens within backward: the step is one process's.
    """
    batches = counted(rank, reference.batches)
    for step, batch in enumerate(batches):
        tokens, labels = shard_batch(batch, rank=rank.rank, world_size=rank.world_size)
        sent = CollectiveCounter()
        with sent:
            optimizer.zero_grad()
            loss = compute_loss(model(tokens.to(rank.device)), labels.to(rank.device))
            loss.backward()
            optimizer.step()
        mean = loss.detach()
        dist.all_reduce(mean, group=rank.group)
        mean /= rank.world_size
        alone = reference.losses[step]
        rank.say(f"step {step}: loss {mean:.4f}, one process {alone:.4f}")
    return sent


Train = Callable[[torch.optim.Optimizer, Iterable[Batch]], list[float]]
"""Trains on batches that all ranks share, and returns the losses."""


def train_slices(
    rank: Rank,
    config: GPTConfig,
    steps: int,
    *,
    cut: Callable[[GPT], Train],
    show: Callable[[GPT], None],
    get_traffic: Callable[[GPTConfig, int, int], dict[str, int]],
    layout: Mapping[str, Any],
) -> None:
    """Train slices on all ranks; say what they send and how far from one process.

    `cut` puts this rank's slices in a full model; `show` says what they are; `layout`
    has the sizes of it by the estimates' names.
    """
    batches = []
    for step in range(steps):
        tokens, labels = make_batch(config, step=step, batch_size=8)
        batches.append((tokens.to(rank.device), labels.to(rank.device)))
    gpt = build_model(config).to(rank.device)
    train = cut(gpt)
    show(gpt)
    optimizer = torch.optim.AdamW(gpt.parameters(), lr=1e-3)
    formula = get_traffic(config, batches[0][0].numel(), rank.world_size)
    due = sliced(config, rank, rows=8, payload=formula, layout=layout)
    rank.recorder.expect(due)
    with CollectiveCounter() as sent:
        losses = train(optimizer, batches[:1])
    for op, payload_bytes in sent.payload_bytes().items():
        rank.say(
            f"one step: {sent.counts()[op]} {op}, {payload_bytes:,} bytes "
            f"(formula {formula.get(op, 0):,})"
        )
    losses += train(optimizer, counted(rank, batches[1:]))
    rank.say("loss: " + " ".join(f"{loss:.4f}" for loss in losses))

    alone = build_model(config).to(rank.device)
    optimizer = torch.optim.AdamW(alone.parameters(), lr=1e-3)
    expected = train_one_process(alone, optimizer, counted_alone(rank, batches))
    cut(alone)  # what one process made, in the same way
    pairs = zip(gpt.parameters(), alone.parameters(), strict=True)
    parameter = max((a - b).abs().max().item() for a, b in pairs)
    loss = max(abs(a - b) for a, b in zip(losses, expected, strict=True))
    rank.say_each(
        f"largest difference from one process: loss {loss:.1e}, "
        f"parameter {parameter:.1e}"
    )


def say_beside_one_process(
    rank: Rank,
    config: GPTConfig,
    stages: Mapping[int, nn.Module],
    batches: Sequence[Batch],
    microbatches: int,
    losses: Sequence[float],
) -> None:
    """Train in one process what a pipeline trained; say how far its stages are off."""
    with rank.recorder.alone():
        reference = build_model(config).to(rank.device)
        optimizer = torch.optim.AdamW(reference.parameters(), lr=1e-3)
        told = counted_alone(rank, batches)
        expected = train_one_process(reference, optimizer, told, chunks=microbatches)
    full = dict(reference.named_parameters())
    parameter = max(
        (param - full[name]).abs().max().item()
        for stage in stages.values()
        for name, param in stage.named_parameters()
    )
    text = f"largest difference from one process: parameter {parameter:.1e}"
    if losses:
        loss = max(abs(a - b) for a, b in zip(losses, expected, strict=True))
        text += f", loss {loss:.1e}; loss: " + " ".join(f"{x:.4f}" for x in losses)
    rank.say_each(text)
