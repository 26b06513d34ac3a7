"""What `recover` is set to do: an accident, a broken device, a bit that stays."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

import torch
import torch.distributed as dist
from torch import Tensor

from mini_impls import model
from mini_impls.faults.works.measures import (
    CONFIG,
    STEPS,
    apart_between_ranks,
    mean_over_ranks,
)
from mini_impls.launch import Rank
from mini_impls.model import Batch, build_model, compute_loss, shard_batch
from mini_impls.recover import (
    EXIT_CODE_RESUME_TO_DISAMBIGUATE,
    RerunStateMachine,
    train_step,
)
from mini_impls.recover_checks import check_param_hashes_across_dp_replicas
from mini_impls.recover_step import RerunDataIterator, RerunDiagnostic, SavedState

ACCIDENT, BROKEN_DEVICE = 3, 5
PLACES = ("node-a", "node-a", "node-b")
"""Where the job is started, one after another: the second time where it was."""


class RecoveringRun:
    """Replicas whose last rank computes wrongly now and then."""

    def __init__(self, rank: Rank, batches: list[Batch]) -> None:
        self.rank = rank
        self.gpt = build_model(CONFIG)
        self.optimizer = torch.optim.AdamW(self.gpt.parameters(), 3e-3)
        self.batches = batches
        self.wrong: Callable[[int], bool] = lambda run: False
        self.start("node-a", 0)

    def start(self, place: str, step: int) -> None:
        """Start a job that goes on with this step."""
        saved_state = SavedState(self.rank.device)
        self.machine = RerunStateMachine(self.rank.group, place, saved_state)
        self.iterator = RerunDataIterator(iter(self.batches[step:]))

    @contextmanager
    def computing(self, run: int) -> Iterator[None]:
        """Multiply what the last rank computes with, where it computes wrongly."""
        weight = self.gpt.output_layer.weight
        is_wrong = self.rank.rank == self.rank.world_size - 1 and self.wrong(run)
        with torch.no_grad():
            weight.mul_(64 if is_wrong else 1)
        yield
        with torch.no_grad():
            weight.mul_(1 / 64 if is_wrong else 1)

    def step(self, *, fatal: bool) -> tuple[float, int]:
        """Return the mean loss and the exit code."""
        runs, w = 0, self.rank.world_size

        def forward_backward(batch: Batch) -> Tensor:
            nonlocal runs
            tokens, labels = shard_batch(batch, rank=self.rank.rank, world_size=w)
            with self.computing(runs):
                loss = compute_loss(self.gpt(tokens), labels)
                self.machine.validate_result(
                    loss, lambda found: found.item() > 6, "loss", fatal=fatal
                )
                loss.backward()
            runs += 1
            for param in self.gpt.parameters():
                assert param.grad is not None
                dist.all_reduce(param.grad.div_(w), group=self.rank.group)
            return loss

        loss, _, code = train_step(
            self.machine, self.iterator, forward_backward, self.optimizer
        )
        return mean_over_ranks(loss.item(), self.rank.group), code

    def go_elsewhere(self, step: int) -> float:
        """Start the job again until it is known what it was; return the loss.

        What is found correct is taken for right.
        """
        saved = self.machine.state_dict(self.iterator)
        for place in PLACES[1:]:
            self.start(place, step)
            self.machine.load_state_dict(saved)
            self.wrong = lambda run, at=place: at == "node-a"  # type: ignore[misc]
            loss, code = self.step(fatal=True)
            if code != EXIT_CODE_RESUME_TO_DISAMBIGUATE:
                break
        found = self.machine.diagnostic
        is_right = found is RerunDiagnostic.CORRECT_RESULT
        if any_rank(self.rank, is_right):
            self.optimizer.step()
            self.start(place, step + 1)
            return loss
        self.start("node-b", step)
        loss, _ = self.step(fatal=True)
        return loss


def any_rank(rank: Rank, value: bool) -> bool:
    """Tell whether it is true on some rank."""
    return mean_over_ranks(float(value), rank.group) > 0


def recover(rank: Rank) -> dict[str, float]:
    """Train through all of it, beside one process to which nothing happens."""
    w = rank.world_size
    batches = [
        model.make_batch(CONFIG, step=step, batch_size=4 * w) for step in range(STEPS)
    ]
    run, losses = RecoveringRun(rank, batches), []
    for step in range(STEPS):
        is_broken = step == BROKEN_DEVICE
        run.wrong = lambda n, step=step, broken=is_broken: (  # type: ignore[misc]
            broken or (step == ACCIDENT and n == 0)
        )
        loss, code = run.step(fatal=is_broken)
        if code:
            loss = run.go_elsewhere(step)
        losses.append(loss)
    alone = build_model(CONFIG)
    model.train_one_process(
        alone, torch.optim.AdamW(alone.parameters(), 3e-3), batches, chunks=w
    )
    mend_replicas(rank, run)
    pairs = zip(run.gpt.parameters(), alone.parameters(), strict=True)
    params = list(run.gpt.parameters())
    return {
        "first loss": losses[0],
        "last loss": losses[-1],
        "apart between ranks": apart_between_ranks(params, rank.group),
        "apart from one process": max((a - b).abs().max().item() for a, b in pairs),
    }


def mend_replicas(rank: Rank, run: RecoveringRun) -> None:
    """Let a bit turn and stay, at the end of a weight; load what is saved if found."""
    saved = {name: p.detach().clone() for name, p in run.gpt.named_parameters()}
    if rank.rank == rank.world_size - 1:
        last = run.gpt.output_layer.weight.detach().view(-1)[-1:]
        last.view(torch.int32)[0] ^= 1 << 31  # its sign
    if check_param_hashes_across_dp_replicas(run.gpt, rank.group):
        with torch.no_grad():
            for name, param in run.gpt.named_parameters():
                param.copy_(saved[name])


WORKS = {
    "recover": recover,
}
