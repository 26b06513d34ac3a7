"""A rank that is struck, replicas that drift apart, a slow rank, a worker that dies."""

import argparse
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor
from torch.distributed.elastic.multiprocessing import SignalException

from mini_impls import launch
from mini_impls.demos.expected import FLOAT32, over_steps, peak_bytes, replicated
from mini_impls.demos.recover_elastic import run_elastic, work_under_torchrun
from mini_impls.demos.training import train_alone
from mini_impls.launch import Rank
from mini_impls.model import (
    Batch,
    GPTConfig,
    Reference,
    build_model,
    compute_loss,
    make_batch,
    shard_batch,
)
from mini_impls.recover import RerunStateMachine, train_step
from mini_impls.recover_checks import (
    DIGEST_BYTES,
    SpikeDetector,
    StragglerDetector,
    check_param_hashes_across_dp_replicas,
    largest_difference_across_dp_replicas,
    repair,
)
from mini_impls.recover_step import RerunDataIterator, SavedState
from mini_impls.torchrun import is_under_torchrun
from mini_impls.traffic import CollectiveCounter
from readerkit.wording.numbers import counted

BIT = 30
"""The highest of the exponent: a weight below two becomes 2**128 times as large."""

ROWS = 8
"""Sequences of each rank."""

LATE_S = 0.05
"""By how much the slow rank is slow in a step."""

CAUSES: dict[str, Callable[[str, int], bool]] = {
    "an accident": lambda place, run: place == "node-a" and run == 0,
    "a broken device": lambda place, run: place == "node-a",
    "the program": lambda place, run: True,
}
"""Whether the result is wrong on a place, in which run there."""


def never(place: str, run: int) -> bool:
    """Stand for a rank that is well."""
    return False


# --- a training that can be struck ---


def flip_bit(tensor: Tensor, bit: int) -> None:
    """Turn one bit of the first element of a float32 tensor, in place."""
    with torch.no_grad():
        tensor.view(torch.int32).view(-1)[0] ^= 1 << bit


@contextmanager
def struck(param: Tensor, *, is_struck: bool) -> Iterator[None]:
    """Have one bit of a parameter be another inside, if it is struck."""
    if is_struck:
        flip_bit(param, BIT)
    yield
    if is_struck:
        flip_bit(param, BIT)


class ReplicaTraining:
    """A whole model on each rank, gradients averaged, the step run again if need be."""

    def __init__(
        self,
        rank: Rank,
        config: GPTConfig,
        batches: Sequence[Batch],
        *,
        place: str,
        fatal: bool,
        learning_rate: float = 3e-3,
    ) -> None:
        self.rank, self.fatal = rank, fatal
        self.model = build_model(config).to(rank.device)
        self.optimizer = torch.optim.AdamW(self.model.parameters(), learning_rate)
        spikes = SpikeDetector(threshold=10.0, num_samples=1)
        self.checks: dict[str, Callable[[Tensor], bool]] = {
            "NaN or Inf in local forward loss": lambda loss: not loss.isfinite(),
            "Spiky loss": spikes.is_unexpectedly_large,
        }
        self.machine = RerunStateMachine(rank.group, place, SavedState(rank.device))
        self.data_iterator = RerunDataIterator(iter(batches))
        self.strikes: Callable[[int], bool] = lambda run: False
        """Whether this rank computes wrongly in a run of the step, from 0."""
        self.runs: list[float] = []
        """The loss of this rank in each run of the last step."""

    def forward_backward(self, batch: Batch) -> Tensor:
        """Return the loss of this rank; leave the gradients of all."""
        rank, w = self.rank, self.rank.world_size
        tokens, labels = shard_batch(batch, rank=rank.rank, world_size=w)
        tokens, labels = tokens.to(rank.device), labels.to(rank.device)
        weight = self.model.output_layer.weight
        with struck(weight, is_struck=self.strikes(len(self.runs))):
            loss = compute_loss(self.model(tokens), labels)
            self.runs.append(loss.item())
            for message, rejection_func in self.checks.items():
                self.machine.validate_result(
                    loss, rejection_func, message, fatal=self.fatal
                )
            loss.backward()
        for param in self.model.parameters():
            assert param.grad is not None
            dist.all_reduce(param.grad.div_(w), group=rank.group)
        return loss

    def step(self) -> tuple[float, int]:
        """Return the mean loss of all ranks and the exit code, 0 to go on."""
        self.runs.clear()
        loss, _, exit_code = train_step(
            self.machine, self.data_iterator, self.forward_backward, self.optimizer
        )
        mean = loss.detach() / self.rank.world_size
        dist.all_reduce(mean, group=self.rank.group)
        return mean.item(), exit_code


# --- 1. struck once: run again, as if nothing had been ---


def train_struck(rank: Rank, reference: Reference) -> ReplicaTraining:
    """Train beside one process; the last rank is struck in the last step."""
    training = ReplicaTraining(
        rank, reference.model.config, reference.batches, place="node-a", fatal=False
    )
    last = len(reference.batches) - 1
    grads = sum(param.nbytes for param in training.model.parameters())
    flag = FLOAT32  # does anybody reject?
    once = {"all_reduce": grads + flag + FLOAT32}
    twice = {"all_reduce": 2 * grads + 3 * flag + FLOAT32}
    due = over_steps([*[once] * last, twice])
    config, payloads = reference.model.config, [(due, rank.world_size)]
    peak = peak_bytes(config, rows=ROWS, dp=rank.world_size)
    rank.recorder.expect(replicated(config, rows=ROWS, payloads=payloads, peak=peak))
    for step, batch in enumerate(reference.batches):
        if step == last and rank.rank == rank.world_size - 1:
            training.strikes = lambda run: run == 0
        with rank.recorder.step(batch[0].numel()):
            loss, _ = training.step()
        alone = reference.losses[step]
        rank.say(f"step {step}: loss {loss:.4f}, one process {alone:.4f}")
    runs = ", ".join(f"{loss:.4g}" for loss in training.runs)
    rank.say_each(f"step {last} ran with the losses {runs}")
    rank.say(f"found: {found_by_any(rank, training.machine)}")
    pairs = zip(training.model.parameters(), reference.model.parameters(), strict=True)
    apart = max((a.cpu() - b).abs().max().item() for a, b in pairs)
    rank.say_each(f"largest difference from one process: parameter {apart:.1e}")
    return training


# --- 2. what it was: three causes, by exit codes ---


def judge(rank: Rank, cause: str) -> str:
    """Return what jobs find out about a loss that jumps on the last rank."""
    config = GPTConfig()
    rows = 4 * rank.world_size
    batches = [make_batch(config, step=step, batch_size=rows) for step in range(3)]
    is_wrong = CAUSES[cause] if rank.rank == rank.world_size - 1 else never
    told: list[str] = []
    saved: dict[str, Any] = {}
    parameters: dict[str, Tensor] = {}
    for place in ("node-a", "node-b"):
        training = ReplicaTraining(rank, config, batches, place=place, fatal=True)
        if saved:
            training.model.load_state_dict(parameters)
            training.machine.load_state_dict(saved)
        else:
            training.step()
            training.step()
        training.strikes = partial(is_wrong, place)
        _, exit_code = training.step()
        saved = training.machine.state_dict(training.data_iterator)
        parameters = training.model.state_dict()  # of the moment before the step
        runs = counted(len(training.runs), "run")
        told.append(f"{place}: {runs}, exit {exit_code}")
        if not saved:
            break
    return f"{'; '.join(told)}: {found_by_any(rank, training.machine)}"


def found_by_any(rank: Rank, machine: RerunStateMachine) -> str:
    """Return the finding of whichever rank has one."""
    found = machine.diagnostic.value if machine.diagnostic else ""
    everyone = [""] * rank.world_size
    dist.all_gather_object(everyone, found, group=rank.group)
    return next(filter(None, everyone), "nothing")


# --- 3. replicas, by digests ---


def compare_replicas(rank: Rank, training: ReplicaTraining) -> None:
    """Turn a bit of a weight that stays turned; find it, and mend it if possible."""
    model = training.model
    if rank.rank == rank.world_size - 1:
        flip_bit(model.output_layer.weight, 0)  # of 2**23 in the mantissa
    apart = largest_difference_across_dp_replicas(model, rank.group)
    with CollectiveCounter() as sent:
        odd = check_param_hashes_across_dp_replicas(model, rank.group)
    count = len(list(model.parameters()))
    rank.say(
        f"one bit turned: replicas are {apart:.1e} apart; digests of each rank take "
        f"{sent.payload_bytes()['all_gather'] // rank.world_size} bytes "
        f"(formula {DIGEST_BYTES * count})"
    )
    for each in odd:
        rank.say(f"    {each.name}: ranks {each.majority} agree, {each.others} do not")
    try:
        repair(model, odd, rank.group)
    except ValueError as error:
        rank.say(f"    {error}")
    else:
        left = check_param_hashes_across_dp_replicas(model, rank.group)
        rank.say(f"    repaired: {len(left)} parameters differ")


# --- 4. a straggler, by timings ---


def find_straggler(rank: Rank, training: ReplicaTraining) -> None:
    """Let the last rank be slow in what it does itself; time steps, and own work."""
    detector = StragglerDetector(rank.group, factor=1.5, patience=2)
    batch = make_batch(training.model.config, step=0, batch_size=4 * rank.world_size)
    tokens, _ = shard_batch(batch, rank=rank.rank, world_size=rank.world_size)
    for _ in range(2):
        start = time.perf_counter()
        for _ in range(3):
            with detector.timed(rank.device), torch.no_grad():
                training.model(tokens.to(rank.device))
                if rank.rank == rank.world_size - 1:
                    time.sleep(LATE_S)
            dist.all_reduce(torch.zeros(1, device=rank.device), group=rank.group)
        whole = time.perf_counter() - start
        report = detector.report(rank.device)
    own = report.elapsed_s[rank.rank]
    rank.say_each(f"three steps took {whole:.3f} s, of which own work {own:.3f} s")
    rank.say(f"slow twice in a row: ranks {report.stragglers}")


# --- the demonstration ---


def demo(rank: Rank, args: argparse.Namespace) -> None:
    """Show each of them; under torchrun, train, die and resume."""
    if is_under_torchrun():
        work_under_torchrun(rank, args)
        return
    rank.say("--- a rank is struck once")
    training = train_struck(rank, train_alone(rank, args.steps, rows=ROWS))
    rank.say("--- a loss jumps, and the reason is")
    for cause in CAUSES:
        rank.say(f"{cause}. {judge(rank, cause)}")
    rank.say("--- replicas")
    compare_replicas(rank, training)
    rank.say("--- a slow rank")
    find_straggler(rank, training)


def check(args: argparse.Namespace) -> None:
    """Refuse a run that could show nothing."""
    if args.steps < 3:
        raise ValueError(f"--steps {args.steps}: at least 3, struck in the third")
    if args.world < 2:
        raise ValueError(f"--world {args.world}: at least 2, one beside the other")
    if not is_under_torchrun():
        for name in ("directory", "kill"):
            if getattr(args, name):
                raise ValueError(f"--{name} is for a run under torchrun")
        return
    if not args.directory:
        raise ValueError(
            "--directory is not given: under torchrun a worker that is started again "
            "looks there for a checkpoint"
        )
    rank, colon, step = args.kill.partition(":")
    if args.kill and not (colon and rank.isdigit() and step.isdigit()):
        raise ValueError(f"--kill {args.kill}: expected RANK:STEP, as 1:2")


def main(argv: list[str] | None = None) -> int:
    """Run the demo on this command line's ranks; return the exit status."""
    options = {
        "directory": ("", "under torchrun: where checkpoints are kept"),
        "kill": ("", "under torchrun: RANK:STEP of a worker that kills itself once"),
    }
    parsed: list[argparse.Namespace] = []

    def check_and_keep(args: argparse.Namespace) -> None:
        check(args)
        parsed.append(args)

    status = launch.main(
        demo,
        description="a step run again, replicas compared, workers started again",
        check=check_and_keep,
        options=options,
        argv=argv,
    )
    if status == 0 and parsed and not is_under_torchrun():
        try:
            run_elastic(parsed[0])
        except SignalException as error:
            return 128 + error.sigval
    return status
