"""A step run again beside Megatron's rerun state machine.

Both sides train the same replicas by the same code. One rank is struck: in one step by
a broken device, whose step runs again, elsewhere once more, and then as it should; in
all steps after it by an accident, whose step is run again and goes on. Which device a
job has got is said by the name in its checkpoint: there is one machine here.
"""

import logging
from abc import abstractmethod
from importlib import import_module
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor

from mini_impls import recover
from mini_impls.compare import megatron, recover_agent
from mini_impls.compare.sides import (
    Comparison,
    DataParallelSide,
    Formula,
    Formulas,
    SetPhase,
    Sides,
    Tolerance,
    trained,
)
from mini_impls.demos.recover import struck
from mini_impls.launch import Rank
from mini_impls.model import Batch, GPTConfig, build_model, compute_loss
from mini_impls.recover_step import RerunDataIterator, SavedState

BROKEN_DEVICE = 1
"""The second step; the first one of a job is never judged."""
ELSEWHERE = "another device"
LARGE = 100.0


def is_broken(step: int) -> bool:
    """Tell whether a bit stays turned until the job is elsewhere."""
    return step == BROKEN_DEVICE


def is_accident(step: int) -> bool:
    """Tell whether a bit turns for the first run of this step: of all later ones."""
    return step > BROKEN_DEVICE


def is_rejected(result: Tensor) -> bool:
    """Reject what no loss of this model is."""
    return not result.item() < LARGE


class Feed:
    """Gives the batch of the step, as often as it is asked."""

    batch: Batch

    def __next__(self) -> Batch:
        """Return it."""
        return self.batch

    def __iter__(self) -> "Feed":
        """Return itself."""
        return self


class RerunSide(DataParallelSide):
    """What both sides do around a machine of their own."""

    machine: Any
    iterator: Any

    def __init__(self, rank: Rank, comparison: Comparison) -> None:
        model = build_model(comparison.config).to(rank.device)
        optimizer = torch.optim.AdamW(model.parameters(), comparison.learning_rate)
        super().__init__(rank, model, model, optimizer)
        self.count, self.feed = 0, Feed()
        self.codes: list[int] = []
        """Each exit code that was returned, 0 for a step that went on."""
        self.start_job()

    @abstractmethod
    def start_job(self) -> None:
        """Have a machine that knows nothing yet."""

    @abstractmethod
    def resume_elsewhere(self) -> None:
        """Have another machine, which takes up the state of this one."""

    def step(self, batch: Batch, set_phase: SetPhase) -> float:
        """Train, whatever happens to the last rank."""
        self.feed.batch = self.of_this_rank(batch)
        step, self.count = self.count, self.count + 1
        loss = self.run(step, set_phase, is_elsewhere=False)
        if self.leaves() == recover.EXIT_CODE_RESUME_TO_DISAMBIGUATE:
            self.resume_elsewhere()
            self.run(step, set_phase, is_elsewhere=True)
            self.leaves()
            self.start_job()
            loss = self.run(step, set_phase, is_elsewhere=True)
            self.leaves()
        self.optimizer.step()
        return loss

    def run(self, step: int, set_phase: SetPhase, *, is_elsewhere: bool) -> float:
        """Run forward and backward as often as the machine says."""
        fatal, runs = is_broken(step), 0
        weight = dict(self.model.named_parameters())["output_layer.weight"]
        while self.machine.should_run_forward_backward(self.iterator):
            self.zero_grad()
            tokens, labels = next(self.iterator)
            is_struck = self.rank.rank == self.rank.world_size - 1 and (
                (is_accident(step) and runs == 0) or (fatal and not is_elsewhere)
            )
            set_phase("forward")
            with struck(weight, is_struck=is_struck):
                loss = compute_loss(self.model(tokens), labels)
                self.machine.validate_result(
                    loss, is_rejected, "loss too large", fatal=fatal
                )
                set_phase("backward")
                loss.backward()
            self.reduce_gradients()
            set_phase("optimizer")
            runs += 1
        return loss.item()

    def reduce_gradients(self) -> None:
        """Average the gradients of all ranks, as one flat tensor."""
        grads = [p.grad for p in self.model.parameters() if p.grad is not None]
        flat = torch.cat([grad.view(-1) for grad in grads])  # (all elements)
        dist.all_reduce(flat.div_(self.rank.world_size), group=self.rank.group)
        for grad, part in zip(
            grads, flat.split([g.numel() for g in grads]), strict=True
        ):
            grad.copy_(part.view_as(grad))

    def leaves(self) -> int:
        """Return the exit code that the machine wants, and keep it."""
        code: int = self.machine.should_checkpoint_and_exit()[-1]
        self.codes.append(code)
        return code

    def parameters(self) -> dict[str, Tensor]:
        """Return all parameters, and the exit codes as one more."""
        codes = torch.tensor([0.0, *self.codes])
        return {**super().parameters(), "exit codes": codes}


class MiniRerunSide(RerunSide):
    """Ours."""

    def start_job(self) -> None:
        """Have a new machine."""
        saved_state = SavedState(self.rank.device)
        self.machine = recover.RerunStateMachine(self.rank.group, "here", saved_state)
        self.iterator = RerunDataIterator(self.feed)

    def resume_elsewhere(self) -> None:
        """Have a new one with the state of the old."""
        saved = self.machine.state_dict(self.iterator)
        self.start_job()
        if saved["suspicious_place"] is not None:
            saved["suspicious_place"] = ELSEWHERE
        self.machine.load_state_dict(saved)


class MegatronRerunSide(RerunSide):
    """Megatron's machine, one for the process."""

    def __init__(self, rank: Rank, comparison: Comparison) -> None:
        self.reruns: Any = import_module("megatron.core.rerun_state_machine")
        # It tells of each finding as an error; the exit codes are compared here.
        logging.getLogger(self.reruns.__name__).setLevel(logging.CRITICAL)
        super().__init__(rank, comparison)

    def start_job(self) -> None:
        """Have a new machine."""
        self.reruns.destroy_rerun_state_machine()
        self.reruns.initialize_rerun_state_machine(
            mode=self.reruns.RerunMode.VALIDATE_RESULTS
        )
        self.machine = self.reruns.get_rerun_state_machine()
        self.iterator = self.reruns.RerunDataIterator(self.feed)

    def resume_elsewhere(self) -> None:
        """Have a new one with the state of the old, as a checkpoint gives it back."""
        saved = self.machine.state_dict(self.iterator, "torch_dist")
        saved["sharded"] = saved["sharded"].data
        if saved["sharded"]["suspicious_device"] is not None:
            saved["sharded"]["suspicious_device"] = ELSEWHERE
        self.start_job()
        self.machine.load_state_dict(saved)


def build(rank: Rank, comparison: Comparison) -> Sides:
    """Return both sides."""
    groups = megatron.start(rank)
    mini = MiniRerunSide(rank, comparison)
    upstream = MegatronRerunSide(rank, comparison)

    def due(step: int) -> Formulas:
        return formulas(comparison.config, step)

    names = {rank.group.group_name: "dp", **groups}
    return Sides(mini, upstream, names, due(BROKEN_DEVICE + 1), of_traced_step=due)


def formulas(config: GPTConfig, step: int) -> Formulas:
    """Return what a step sends that goes on at once, or after another run."""
    params = list(build_model(config).parameters())
    grads = sum(param.nbytes for param in params)
    text = f"{grads:,} B of gradients + 1 flag of 4 B: does anybody reject?"
    sent = Formula(grads + 4, text)
    if is_accident(step):
        again = f"2 runs x {grads:,} B of gradients + 1 flag of 4 B + 2 of them"
        sent = Formula(2 * grads + 12, again)
    return Formulas.alike({"all_reduce": sent}, trained(params))


COMPARISONS = (
    Comparison(
        mini="recover",
        upstream="megatron",
        build=build,
        tolerance=Tolerance(0.0, "both train by the same code, and run as often"),
        upstreams=("megatron",),
        shims=("current_device", "cuda_is_cpu", "cpu_streams"),
    ),
    *recover_agent.COMPARISONS,
)
