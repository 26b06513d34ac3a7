"""In which order memory is taken, and which allocation fails first on a GPU."""

from __future__ import annotations

from typing import NamedTuple

from readerkit.estimate.memory import RankMemory
from readerkit.estimate.quantity import Number
from readerkit.wording.numbers import format_bytes

STEADY = "second forward"


class Moment(NamedTuple):
    """One allocation of a run, in order of time."""

    name: str
    what: str
    held_bytes: Number
    """Everything that is held once this is allocated."""


def timeline(most: RankMemory) -> list[Moment]:
    """Return when what is allocated, from loading to the second forward.

    Adam makes its moments at the first step, not when it is built; so a model can load,
    run forward and backward once, and fail there. (Megatron allocates the gradients
    with the model instead.) Gradients stay, as buckets or buffers.
    """
    work = most.activations + most.logits + most.gathered
    moments = [
        ("model on the GPU", "weights", most.weights),
        ("optimizer built", "master copy", most.weights + most.master),
        ("first forward", "activations", most.weights + most.master + work),
    ]
    before_step = most.weights + most.master + most.gradients
    moments += [
        ("first backward", "gradients", before_step + work + most.recomputed),
        (
            "first step",
            "optimizer moments",
            most.weights + most.gradients + most.optimizer,
        ),
        (STEADY, "activations beside all of it", most.total),
    ]
    return [Moment(*moment) for moment in moments]


def first_failure(most: RankMemory, gpu_bytes: Number, reserve: Number = 0) -> str:
    """Return a sentence: which allocation fails first on this GPU, or that all fit."""
    usable = gpu_bytes * (1 - reserve)
    for moment in timeline(most):
        if moment.held_bytes > usable:
            return (
                f"does not fit: fails at '{moment.name}' ({moment.what}): "
                f"{format_bytes(moment.held_bytes, 2)} held, "
                f"{format_bytes(usable, 2)} usable"
            )
    free = usable - most.total
    return f"fits: {format_bytes(free, 2)} of {format_bytes(usable, 2)} usable are left"
