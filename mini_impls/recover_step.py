"""What a rerun of a step starts from, and how far two runs of it are apart.

A step is run again with the batches, the parameters and the random numbers that it had:
the optimizer has not stepped yet, so the parameters are still there; batches are kept,
and the random numbers are put back.

Follows:
- NVIDIA/Megatron-LM: megatron/core/rerun_state_machine.py (`RerunDataIterator`,
  `_save_state`, `_compare_floats`)

Leaves out:
- Python's and NumPy's random numbers; what else a step changes is the caller's to save
- several iterators, one for each model chunk of a pipeline
"""

import math
from collections.abc import Callable, Iterator
from enum import Enum
from typing import Any, NamedTuple

import torch
from torch import Tensor

# --- 1. which run of a step this is, and what is found ---


class RerunDiagnostic(Enum):
    """What a rejected result was."""

    CORRECT_RESULT = "correct_result"
    TRANSIENT_ERROR = "transient_error"
    PERSISTENT_ERROR = "persistent_error"


class RerunState(Enum):
    """Which run of a step this is.

    NOT_RUNNING_YET <--- INITIAL_RUN             nothing was rejected on any rank
      ^                       v
      '-- not fatal -- RERUNNING_IN_PLACE -----> exit 17   another value
                              v  the same value
                WILL_RERUN_FROM_CHECKPOINT ----> save, exit 16
                              v  the job that resumes
                RERUNNING_FROM_CHECKPOINT -----> exit 17   on another device
                              v  on the same device
            RERUNNING_AGAIN_FROM_CHECKPOINT ---> exit 16
    """

    NOT_RUNNING_YET = 0
    INITIAL_RUN = 1
    RERUNNING_IN_PLACE = 2
    WILL_RERUN_FROM_CHECKPOINT = 3
    RERUNNING_FROM_CHECKPOINT = 4
    RERUNNING_AGAIN_FROM_CHECKPOINT = 5


class ValidationCall(NamedTuple):
    """Which call of `validate_result` within a step, alike in each run of it."""

    message: str
    sequence: int


# --- 2. how far two results are apart ---


def compare_floats(a: float, b: float) -> float:
    """Return the difference beside the size, 0 to 2; inf if only one is a number."""
    if a == b or (math.isnan(a) and math.isnan(b)):
        return 0.0
    if not (math.isfinite(a) and math.isfinite(b)):
        return math.inf
    return abs(a - b) / (abs(a) + abs(b)) * 2


# --- 3. the batches of a step, once more ---


class RerunDataIterator:
    """Hands out the same batches again after `rewind`, new ones after `advance`."""

    def __init__(self, iterable: Iterator[Any]) -> None:
        self.iterable = iterable
        self.saved_microbatches: list[Any] = []
        self.replaying = False
        self.replay_pos = 0

    def __next__(self) -> Any:
        """Return a batch of this step, kept until the step after it."""
        if self.replaying:
            assert self.replay_pos < len(self.saved_microbatches), "no more to replay"
            self.replay_pos += 1
            return self.saved_microbatches[self.replay_pos - 1]
        self.saved_microbatches.append(next(self.iterable))
        return self.saved_microbatches[-1]

    def rewind(self) -> None:
        """Go back to the first batch of the step."""
        self.replaying, self.replay_pos = True, 0

    def advance(self) -> None:
        """Drop what the last step read."""
        self.replaying, self.saved_microbatches = False, []


# --- 4. random numbers, and what else the caller names ---


class SavedState:
    """What a step changes before the optimizer does: dropout must fall alike again."""

    def __init__(
        self,
        device: torch.device,
        state_save_func: Callable[[], Any] = lambda: None,
        state_restore_func: Callable[[Any], None] = lambda state: None,
    ) -> None:
        self.device = device
        self.state_save_func = state_save_func
        self.state_restore_func = state_restore_func
        self.rng_state: list[Tensor] = []
        self.other_state: Any = None

    def save(self) -> None:
        """Note where the step starts."""
        self.rng_state = [torch.get_rng_state()]
        if self.device.type == "cuda":
            self.rng_state.append(torch.cuda.get_rng_state(self.device))
        self.other_state = self.state_save_func()

    def restore(self) -> None:
        """Go back there."""
        torch.set_rng_state(self.rng_state[0])
        for of_device in self.rng_state[1:]:
            torch.cuda.set_rng_state(of_device, self.device)
        self.state_restore_func(self.other_state)
