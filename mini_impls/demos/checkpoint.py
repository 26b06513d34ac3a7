"""Training that is saved while it goes on, and resumed in another layout."""

import argparse
import contextlib
import math
import os
import shutil
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor, nn
from torch.func import functional_call

from mini_impls import launch
from mini_impls.checkpoint_async import (
    NAMED,
    AsyncCheckpointer,
    resume,
    saved_steps,
)
from mini_impls.checkpoint_plan import HeldTensor, TensorBox
from mini_impls.demos.expected import FLOAT32, replicated
from mini_impls.demos.full_disk import existing, try_disk
from mini_impls.demos.peaks import checkpoint_bytes
from mini_impls.demos.training import collect, train_alone
from mini_impls.model import Batch, GPTConfig, build_model, compute_loss, shard_batch
from mini_impls.recorder import Expected
from readerkit.estimate.states import model_state_bytes

ROWS = 8
"""Sequences of each rank."""
LAYOUTS = {"rows": 0, "columns": -1}
"""The dimension that matrices are cut along. Vectors are whole, a replica a rank."""


def cut(size: torch.Size, dim: int, rank: int, world_size: int) -> TensorBox:
    """Return the box of one rank: the last ranks may have less, or nothing."""
    if len(size) < 2:
        return TensorBox((0,) * len(size), tuple(size))
    dim %= len(size)
    each = -(-size[dim] // world_size)
    start = min(rank * each, size[dim])
    length = min(each, size[dim] - start)
    offsets = tuple(start if d == dim else 0 for d in range(len(size)))
    sizes = tuple(length if d == dim else n for d, n in enumerate(size))
    return TensorBox(offsets, sizes)


class ShardedTraining:
    """A model whose rank holds a box of each parameter, and its AdamW's of the same."""

    def __init__(
        self, rank: launch.Rank, config: GPTConfig, layout: str, *, seed: int = 0
    ) -> None:
        self.rank, self.dim = rank, LAYOUTS[layout]
        self.model = build_model(config, seed=seed).to(rank.device)
        self.params: dict[str, nn.Parameter] = {}
        self.boxes: dict[str, TensorBox] = {}
        self.sizes: dict[str, torch.Size] = {}
        for name, param in self.model.named_parameters():
            box = cut(param.shape, self.dim, rank.rank, rank.world_size)
            whole = TensorBox((0,) * param.dim(), tuple(param.shape))
            mine = box.cut_out_of(param.detach(), whole).clone()
            self.params[name] = nn.Parameter(mine)
            self.boxes[name], self.sizes[name] = box, param.shape
        self.optimizer = torch.optim.AdamW(self.params.values(), lr=3e-3)
        for (
            param
        ) in self.params.values():  # as the first step would, for a load to fill
            self.optimizer.state[param] = {
                "step": torch.tensor(0.0),
                "exp_avg": torch.zeros_like(param),
                "exp_avg_sq": torch.zeros_like(param),
            }

    def state(self) -> dict[str, HeldTensor]:
        """Return what a checkpoint holds: parameters, and what AdamW keeps of each."""
        state = {}
        for name, param in self.params.items():
            offsets, size = self.boxes[name].offsets, tuple(self.sizes[name])
            state[name] = HeldTensor(param.detach(), offsets, size)
            for key, value in self.optimizer.state[param].items():
                boxed = (offsets, size) if value.dim() == param.dim() else ((), ())
                state[f"{name}/{key}"] = HeldTensor(value, *boxed)
        return state

    def whole(self) -> dict[str, Tensor]:
        """Return the whole parameters: each rank adds its box to zeros."""
        tensors = {}
        for name, param in self.params.items():
            full = param.detach()
            if full.shape != self.sizes[name]:
                full = torch.zeros(self.sizes[name], device=full.device)
                everything = TensorBox((0,) * full.dim(), tuple(full.shape))
                self.boxes[name].cut_out_of(full, everything).copy_(param.detach())
                dist.all_reduce(full, group=self.rank.group)  # (N, M)
            tensors[name] = full
        return tensors

    def step(
        self, batch: Batch, set_phase: Callable[[Any], None] = lambda phase: None
    ) -> float:
        """Run one step of all ranks; return the mean loss."""
        rank, w = self.rank, self.rank.world_size
        set_phase("forward")
        whole = {n: t.clone().requires_grad_() for n, t in self.whole().items()}
        tokens, labels = shard_batch(batch, rank=rank.rank, world_size=w)
        tokens, labels = tokens.to(rank.device), labels.to(rank.device)
        loss = compute_loss(functional_call(self.model, whole, (tokens,)), labels)
        set_phase("backward")
        loss.backward()
        for name, param in self.params.items():
            grad = whole[name].grad
            assert grad is not None
            dist.all_reduce(grad.div_(w), group=rank.group)  # (N, M)
            everything = TensorBox((0,) * grad.dim(), tuple(grad.shape))
            param.grad = self.boxes[name].cut_out_of(grad, everything).clone()
        set_phase("optimizer")
        self.optimizer.step()
        mean = loss.detach() / w
        dist.all_reduce(mean, group=rank.group)
        return mean.item()


def demo(rank: launch.Rank, args: argparse.Namespace) -> None:
    """Train on rows, resume on columns, and end where one process ends."""
    temporary = args.directory or (
        tempfile.mkdtemp(prefix="checkpoint-") if rank.rank == 0 else ""
    )
    paths = [temporary]
    dist.broadcast_object_list(paths, group_src=0, group=rank.group)
    try:
        train(rank, args, Path(paths[0]))
    finally:
        if temporary and not args.directory:
            shutil.rmtree(temporary)


def train(rank: launch.Rank, args: argparse.Namespace, root: Path) -> None:
    """Train in two halves of two layouts, with nothing but `root` between them."""
    reference = train_alone(rank, args.steps, rows=ROWS)
    saving = dist.new_group(backend="gloo")
    assert isinstance(saving, dist.ProcessGroup)
    half = args.steps // 2
    rank.recorder.parts = len(LAYOUTS)
    for seed, (layout, stop) in enumerate(
        {"rows": half, "columns": args.steps}.items()
    ):
        training = ShardedTraining(rank, reference.model.config, layout, seed=seed)
        collect(rank)
        rank.recorder.begin(layout)
        rank.recorder.expect(expected(training))
        found: dict[str, Any] | None = resume(root, training.state(), saving)
        done = found["step"] if found else 0
        if found and done < stop:
            rank.say(f"resumed on {layout} at step {done}")
        checkpointer = AsyncCheckpointer(root, saving)
        for step in range(done, stop):
            with rank.recorder.step(reference.batches[step][0].numel()):
                loss = training.step(reference.batches[step])
            with blaming_a_full_disk(root, bytes_in_all(training), saving):
                checkpointer.save(step + 1, training.state(), {"step": step + 1})
            alone = reference.losses[step]
            rank.say(f"step {step}: loss {loss:.4f}, one process {alone:.4f}")
        with blaming_a_full_disk(root, bytes_in_all(training), saving):
            checkpointer.close()
        dist.barrier(rank.group)  # until all have written
        say_what_was_written(rank, training, root)
    want = dict(reference.model.named_parameters())
    differences = [
        (got.cpu() - want[name].detach()).abs().max()
        for name, got in training.whole().items()
    ]
    rank.say(
        f"largest difference from one process: parameter {max(differences).item():.1e}"
    )


def expected(training: ShardedTraining) -> Expected:
    """Return what a rank is due: matrices made whole, all gradients, and the loss."""
    params = list(training.model.parameters())
    cut_bytes = sum(p.nbytes for p in params if p.dim() > 1)
    reduced = cut_bytes + sum(p.nbytes for p in params) + FLOAT32
    due = replicated(
        training.model.config,
        rows=ROWS,
        payloads=[({"all_reduce": reduced}, training.rank.world_size)],
    )
    mine = sum(param.numel() for param in training.params.values())
    held = model_state_bytes(params=mine, stage=0, world_size=1, convention="fp32-16")
    peak = checkpoint_bytes(
        training.model.config, rows=ROWS, elements=mine, device=training.rank.device
    )
    return replace(due, held_bytes=float(held), peak_bytes=peak)


def bytes_in_all(training: ShardedTraining) -> int:
    """Return how many bytes the tensors of a checkpoint have, whoever writes them."""
    items = training.state().values()
    return sum(math.prod(item.size) * item.data.element_size() for item in items)


@contextlib.contextmanager
def blaming_a_full_disk(
    root: Path, size: int, group: dist.ProcessGroup
) -> Iterator[None]:
    """Raise OSError where a save fails and the disk has no room for a checkpoint.

    Of what a rank raises in a save the others are told the text alone: so all of them
    try the disk, and each raises what one of them met. What was half written is gone
    by then: ranks need room to tell of their end.
    """
    try:
        yield
    except RuntimeError as error:
        met = [0] * group.size()
        dist.all_gather_object(met, try_disk(root, size), group=group)
        if number := max(met):
            for half in root.glob("*.part") if group.rank() == 0 else ():
                shutil.rmtree(half, ignore_errors=True)
            dist.barrier(group)
            raise OSError(number, os.strerror(number), str(root)) from error
        raise


def say_what_was_written(
    rank: launch.Rank, training: ShardedTraining, root: Path
) -> None:
    """Say what each rank wrote, of what it holds, and that in all it is one state."""
    newest = root / NAMED.format(saved_steps(root)[-1])
    items = training.state().values()
    held = sum(item.data.numel() * item.data.element_size() for item in items)
    files = {path.name: path.stat().st_size for path in newest.glob("rank-*.bin")}
    mine = files.get(f"rank-{rank.rank:05}.bin", 0)
    rank.say_each(f"{newest.name}: wrote {mine} bytes of {held} held")
    wrote, due = sum(files.values()), bytes_in_all(training)
    rank.say(
        f"{newest.name}: all ranks wrote {wrote} (formula {due}), while the next step "
        "went on: the kernel counts that among what a step sends"
    )


def check(args: argparse.Namespace) -> None:
    """Refuse a run that has no half, or no place for its checkpoints."""
    if args.steps < 2:
        raise ValueError(f"--steps {args.steps}: at least 2, resumed half-way")
    if not args.directory:
        return
    there = existing(Path(args.directory).absolute())
    if not there.is_dir() or not os.access(there, os.W_OK):
        why = "cannot be written" if there.is_dir() else "is no folder"
        raise ValueError(f"--directory {args.directory}: {there} {why}")


def main(argv: list[str] | None = None) -> int:
    """Run the demo on this command line's ranks; return the exit status."""
    options = {
        "directory": (
            "",
            "keep checkpoints there and resume from the newest (default: a folder "
            "that goes with the run)",
        )
    }
    return launch.main(
        demo,
        description="Sharded checkpoints.",
        check=check,
        options=options,
        argv=argv,
    )
