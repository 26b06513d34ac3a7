"""A step is run again: was its result an accident, the device's, or right.

First the plain way: a result that cannot be ends the run, and nobody knows why. Then a
machine of states around forward and backward. What another run of the step says of a
rejected result is the finding:

    the same device, another value     a transient error
    the same device, the same value    a checkpoint, and the step runs elsewhere:
        another device, another value      a persistent error, of the first device
        another device, the same value     correct, or wrong in the program

Follows:
- NVIDIA/Megatron-LM: megatron/core/rerun_state_machine.py
- NVIDIA/Megatron-LM: megatron/training/training.py (`train_step`)

Leaves out:
- the mode that tells how much results vary, injected errors, a log of rejected results
- a run that goes on after a finding: it starts without `load_state_dict`
- what rejects a result and who finds it: `recover_checks.py`
"""

import math
from collections import Counter
from collections.abc import Callable
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor

from mini_impls.recover_step import (
    RerunDataIterator,
    RerunDiagnostic,
    RerunState,
    SavedState,
    ValidationCall,
    compare_floats,
)

EXIT_CODE_RESUME_TO_DISAMBIGUATE = 16
EXIT_CODE_FAILED_ON_RESULT_VALIDATION = 17

# --- 1. plain: a result that cannot be ends the run ---


def check_result(
    result: Tensor, rejection_func: Callable[[Tensor], bool], message: str
) -> None:
    """Raise RuntimeError for a rejected result; why it came about stays unknown."""
    if rejection_func(result):
        raise RuntimeError(f"unexpected result {result.item()} ({message})")


# --- 2. the machine: which run of the step comes next ---


class RerunStateMachine:
    """Runs forward and backward again where a rank rejects what came of them.

    `place` names node and device: whether a job that resumes has got another one.
    `RerunState` draws the way from state to state.
    """

    def __init__(
        self, group: dist.ProcessGroup, place: str, saved_state: SavedState
    ) -> None:
        self.group, self.place, self.saved_state = group, place, saved_state
        self.state = RerunState.NOT_RUNNING_YET
        self.first_iteration_complete = False
        self.failed_validation_call: ValidationCall | None = None
        self.initial_result = math.nan
        self.suspicious_place: str | None = None
        self.diagnostic: RerunDiagnostic | None = None
        self.data_iterator_checkpoint: list[Any] = []
        self.validation_counts: Counter[str] = Counter()
        self._forget_requests()

    def _forget_requests(self) -> None:
        # Of this rank; `_reduce_any` tells the others.
        self.rerun_requested = self.checkpoint_requested = False
        self.restart_again_requested = self.continue_requested = False

    def _reduce_any(self, values: list[bool]) -> list[bool]:
        """Return what is true on some rank: a step holds collectives of all of them."""
        device = self.saved_state.device
        flags = torch.tensor(values, dtype=torch.int32, device=device)  # (F)
        dist.all_reduce(flags, group=self.group)
        return [flag > 0 for flag in flags.tolist()]

    def should_run_forward_backward(self, data_iterator: RerunDataIterator) -> bool:
        """Tell whether to run the step, the first time or again."""
        self.validation_counts.clear()
        if self.state is RerunState.NOT_RUNNING_YET:
            self.saved_state.save()
            data_iterator.advance()
            self._forget_requests()
            self.state = RerunState.INITIAL_RUN
            return True
        if self.state is RerunState.INITIAL_RUN:
            (will_rerun,) = self._reduce_any([self.rerun_requested])
            if not will_rerun:
                self.state = RerunState.NOT_RUNNING_YET
                return False
            self.state = RerunState.RERUNNING_IN_PLACE
            self.saved_state.restore()
            data_iterator.rewind()
            return True
        if self.state is RerunState.RERUNNING_IN_PLACE:
            will_continue, will_checkpoint = self._reduce_any(
                [self.continue_requested, self.checkpoint_requested]
            )
            if will_continue:  # with the gradients of the second run
                self.state = RerunState.NOT_RUNNING_YET
                return False
            if will_checkpoint:
                self.state = RerunState.WILL_RERUN_FROM_CHECKPOINT
            self.saved_state.restore()  # a checkpoint is of the moment before the step
            data_iterator.rewind()
            return False
        if self.state is RerunState.WILL_RERUN_FROM_CHECKPOINT:
            data_iterator.saved_microbatches = self.data_iterator_checkpoint
            data_iterator.rewind()
            self.state = RerunState.RERUNNING_FROM_CHECKPOINT
            return True
        if self.state is RerunState.RERUNNING_FROM_CHECKPOINT:
            will_restart_again, will_continue = self._reduce_any(
                [self.restart_again_requested, self.continue_requested]
            )
            if will_restart_again:
                self.state = RerunState.RERUNNING_AGAIN_FROM_CHECKPOINT
            elif will_continue:
                self.state = RerunState.NOT_RUNNING_YET
            return False
        raise RuntimeError(f"the job should have ended: it is {self.state.name}")

    def should_checkpoint_and_exit(self) -> tuple[bool, bool, int]:
        """Return whether to save, whether to leave, and with which exit code."""
        self.first_iteration_complete = True
        failed = EXIT_CODE_FAILED_ON_RESULT_VALIDATION
        resume = EXIT_CODE_RESUME_TO_DISAMBIGUATE
        return {
            RerunState.RERUNNING_IN_PLACE: (True, True, failed),
            RerunState.WILL_RERUN_FROM_CHECKPOINT: (True, True, resume),
            RerunState.RERUNNING_FROM_CHECKPOINT: (False, True, failed),
            RerunState.RERUNNING_AGAIN_FROM_CHECKPOINT: (False, True, resume),
        }.get(self.state, (False, False, 0))

    # --- 3. a result, held against what can be, then against itself ---

    def validate_result(
        self,
        result: Tensor,
        rejection_func: Callable[[Tensor], bool],
        message: str,
        *,
        tolerance: float = 0.0,
        fatal: bool = True,
    ) -> None:
        """Validate a scalar of this rank; called alike in each run of a step.

        `fatal`: a finding ends the job; else training goes on with the last run.
        """
        self.validation_counts[message] += 1
        validation_call = ValidationCall(message, self.validation_counts[message])
        if self.state is RerunState.INITIAL_RUN:
            # Before the first update there may be nothing to save, so nothing is
            # rejected; and the first finding of a step is the one that is followed.
            if not self.first_iteration_complete or self.rerun_requested:
                return
            if rejection_func(result):
                self.failed_validation_call = validation_call
                self.initial_result = result.item()
                self.rerun_requested = True
        elif validation_call == self.failed_validation_call:
            comparison = compare_floats(self.initial_result, result.item())
            if self.state is RerunState.RERUNNING_IN_PLACE:
                self._validate_first_rerun(comparison > tolerance, fatal)
            elif self.state is RerunState.RERUNNING_FROM_CHECKPOINT:
                self._validate_second_rerun(comparison > tolerance, fatal)

    def _validate_first_rerun(self, differs: bool, fatal: bool) -> None:
        if differs:
            self.diagnostic = RerunDiagnostic.TRANSIENT_ERROR
        else:
            self.suspicious_place = self.place
            self.checkpoint_requested = fatal
        self.continue_requested = not fatal

    def _validate_second_rerun(self, differs: bool, fatal: bool) -> None:
        if self.place == self.suspicious_place:  # which would agree with itself
            self.restart_again_requested = True
            return
        persistent, correct = (
            RerunDiagnostic.PERSISTENT_ERROR,
            RerunDiagnostic.CORRECT_RESULT,
        )
        self.diagnostic = persistent if differs else correct
        self.continue_requested = not fatal

    # --- 4. from one job to the next ---

    def state_dict(self, data_iterator: RerunDataIterator) -> dict[str, Any]:
        """Return what this rank saves beside the model of the moment before the step.

        Empty where no step has to run again: a transient error has been judged.
        """
        if self.state is not RerunState.WILL_RERUN_FROM_CHECKPOINT:
            return {}
        return {
            "state": self.state,
            "failed_validation_call": self.failed_validation_call,
            "initial_result": self.initial_result,
            "suspicious_place": self.suspicious_place,
            "data_iterator_checkpoint": data_iterator.saved_microbatches,
        }

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Take up the step that the job before this one could not judge."""
        for name, value in state_dict.items():
            setattr(self, name, value)


# --- 5. a training step around it ---


def train_step(
    machine: RerunStateMachine,
    data_iterator: RerunDataIterator,
    forward_backward: Callable[[Any], Tensor],
    optimizer: torch.optim.Optimizer,
) -> tuple[Tensor, bool, int]:
    """Return the loss, whether to save before leaving, and the exit code, 0 to go on.

    `forward_backward` takes a batch, validates, and leaves gradients of all ranks.
    """
    while machine.should_run_forward_backward(data_iterator):
        optimizer.zero_grad()
        loss = forward_backward(next(data_iterator))
    should_checkpoint, should_exit, exit_code = machine.should_checkpoint_and_exit()
    if not should_exit:
        optimizer.step()
    return loss, should_checkpoint, exit_code


if __name__ == "__main__":
    from mini_impls.demos.recover import main

    raise SystemExit(main())
