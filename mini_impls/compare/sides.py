"""What a comparison is made of: two sides that take the same steps, and what to expect.

A side is a mini or its upstream, ready to train. `mini_impls.compare.ddp` and its
neighbours build the pairs; `mini_impls.compare.run` trains and watches both.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Protocol

import torch
from torch import Tensor, nn

from mini_impls.launch import Rank
from mini_impls.model import (
    GPT,
    Batch,
    GPTConfig,
    build_model,
    compute_loss,
    shard_batch,
)
from readerkit.content.vocabulary import Category, Phase, SideName
from readerkit.evidence.record import Limit, TimelineBar

Held = Mapping[Category, list[Tensor]]
SIDES: tuple[SideName, ...] = ("mini", "upstream")


class SetPhase(Protocol):
    """Says which phase a step has reached."""

    def __call__(self, phase: Phase, tensor: Tensor | None = None) -> None:
        """Enter a phase; with a tensor: what is next sent or received in it has it."""


class Side(Protocol):
    """A mini or its upstream, with a model and an optimizer of its own."""

    def step(self, batch: Batch, set_phase: SetPhase) -> float | None:
        """Train on this rank's part of a batch; return the loss where there is one."""

    def parameters(self) -> dict[str, Tensor]:
        """Return this rank's view of the parameters; both sides use the same keys."""

    def gradients(self) -> dict[str, Tensor]:
        """Return the gradients of the last step in the same way."""

    def held(self) -> Held:
        """Return what is kept between steps."""

    def watched(self) -> Iterable[Tensor]:
        """Return the leaves whose gradients backward computes, if one can tell."""


@dataclass(frozen=True, slots=True)
class Formula:
    """A number of bytes and how it comes about."""

    bytes: int
    text: str


@dataclass(frozen=True, slots=True)
class Formulas:
    """What one rank should send in a step, and keep between steps."""

    payload: Mapping[SideName, Mapping[str, Formula]]
    """By operation; one that is not named should not occur."""
    held: Mapping[SideName, Mapping[Category, Formula]]
    unsized: Mapping[str, str] = field(default_factory=dict)
    """Operations of upstream whose bytes no formula can tell, and why."""

    @classmethod
    def alike(
        cls, sent: Mapping[str, Formula], kept: Mapping[Category, Formula]
    ) -> "Formulas":
        """Return the same for both sides."""
        return cls(dict.fromkeys(SIDES, sent), dict.fromkeys(SIDES, kept))


@dataclass(frozen=True, slots=True)
class Tolerance:
    """How far two sides may be apart, and why."""

    value: float
    reason: str


@dataclass(frozen=True, slots=True)
class Schedule:
    """The order that both sides of a pipeline should keep."""

    name: str
    microbatches: int
    chunks: int
    splits_backward: bool = False
    """Whether the weights' gradients are steps of their own."""


@dataclass(frozen=True, slots=True)
class Sides:
    """Both sides on one rank, built from the same weights."""

    mini: Side
    upstream: Side
    groups: Mapping[str, str]
    """Name of each process group to what it is for."""
    formulas: Formulas
    schedule: Schedule | None = None
    bars: Callable[[], tuple[TimelineBar, ...]] | None = None
    """What both sides of a pipeline did in their last step."""
    of_traced_step: Callable[[int], Formulas] | None = None
    """Returns the formulas of a step, by its number, where data decide what is sent."""


@dataclass(frozen=True, slots=True)
class Alone:
    """The model that one process trains, on the same work."""

    model: GPT
    before_update: Callable[[], None] = lambda: None
    """What a step does between backward and the optimizer."""


@dataclass(frozen=True, slots=True)
class Comparison:
    """One mini beside one upstream."""

    mini: str
    upstream: str
    build: Callable[[Rank, "Comparison"], Sides]
    tolerance: Tolerance
    of_two_ranks: Tolerance | None = None
    """Where sums of two have one order, and those of more ranks several."""
    one_process_tolerance: Tolerance = Tolerance(
        2e-4, "one process adds in another order, and AdamW divides by small sums"
    )
    config: GPTConfig = field(default_factory=GPTConfig)
    rows_per_rank: int = 8
    """Sequences of a batch for each rank; where ranks share them, of all ranks."""
    data_parallel: bool = True
    """Whether each rank has rows of its own."""
    microbatches: int = 1
    """Parts that a batch is cut into where ranks share it."""
    chunks: int = 1
    """Model chunks of a rank, where ranks are stages."""
    learning_rate: float = 3e-3
    upstreams: tuple[str, ...] = ("pytorch",)
    """Pinned upstreams whose lines are noted."""
    shims: tuple[str, ...] = ()
    max_norm: float | None = None
    """What gradients are clipped to, where they are."""
    writes_files: bool = False
    """Whether a step writes files, which the kernel counts with what is sent."""
    uneven: bool = False
    """Whether ranks send each other more and less, or in groups of some of them."""
    covers: frozenset[str] = frozenset()
    """What its work has that cannot be told from its model and what it sends."""
    alone: Callable[[GPTConfig, int, torch.device], Alone] = (
        lambda config, microbatches, device: Alone(build_model(config).to(device))
    )
    """Returns what one process trains on a device, a batch in so many parts."""
    reseeds_gpu: str = ""
    """Why upstream leaves a GPU's stream of random numbers elsewhere, where it does."""
    limits: tuple[Limit, ...] = ()
    """What else its verdict does not say."""
    check: Callable[[int], None] = lambda world_size: None
    """Raises ValueError for a world size that does not fit."""
    resize: Callable[["Comparison", int], "Comparison"] = lambda same, world_size: same
    """Returns the comparison with work that so many ranks can share."""

    @property
    def name(self) -> str:
        """Return what records and mirrors call it."""
        return f"{self.mini}_{self.upstream}"

    def tolerance_at(self, world_size: int, backend: str) -> Tolerance:
        """Return how far the two sides may be apart on so many ranks."""
        if backend == "nccl":
            return max(self.tolerance, ON_GPU, key=lambda each: each.value)
        exact = self.of_two_ranks if world_size == 2 else None
        return exact or self.tolerance

    def at(self, world_size: int) -> "Comparison":
        """Return the comparison for so many ranks."""
        return self.resize(self, world_size)

    def sizes(self, world_size: int) -> dict[str, int]:
        """Return what bounds on differences may speak of."""
        model = self.alone(self.config, 1, torch.device("cpu")).model
        return {
            "world": world_size,
            "layers": self.config.num_layers,
            "microbatches": self.microbatches,
            "chunks": self.chunks,
            "parameters": len(list(model.parameters())),
            "tokens": self.rows_per_rank * self.config.max_sequence_length,
            "hidden": self.config.hidden_size,
            "vocabulary": self.config.vocab_size,
            "layer_bytes": sum(p.nbytes for p in model.layers[0].parameters()),
        }


ON_GPU = Tolerance(
    1e-4,
    "on a GPU another shape or layout has another kernel, which adds in another order, "
    "and AdamW divides small sums by their size",
)
"""How far two sides may be apart there, whatever is exact on a CPU."""


def ignore_phase(phase: Phase, tensor: Tensor | None = None) -> None:
    """Stand in where nobody watches."""


# --- data parallelism ---


class DataParallelSide:
    """A side whose ranks train on rows of their own and keep original names."""

    def __init__(
        self,
        rank: Rank,
        model: nn.Module,
        module: nn.Module,
        optimizer: torch.optim.Optimizer,
    ) -> None:
        self.rank = rank
        self.model = model
        """What is called."""
        self.module = module
        """What holds the parameters under their original names."""
        self.optimizer = optimizer

    def step(self, batch: Batch, set_phase: SetPhase) -> float:
        """Forward, backward, update."""
        tokens, labels = self.of_this_rank(batch)
        self.zero_grad()
        set_phase("forward")
        loss = compute_loss(self.model(tokens), labels)
        set_phase("backward")
        loss.backward()
        self.finish_gradients()
        set_phase("optimizer")
        self.optimizer.step()
        return loss.item()

    def of_this_rank(self, batch: Batch) -> Batch:
        """Return this rank's rows of a batch."""
        return shard_batch(batch, rank=self.rank.rank, world_size=self.rank.world_size)

    def zero_grad(self) -> None:
        """Drop the gradients of the step before."""
        self.optimizer.zero_grad()

    def finish_gradients(self) -> None:
        """Do what is left to do between backward and the optimizer: here nothing."""

    def parameters(self) -> dict[str, Tensor]:
        """Return all parameters."""
        return {name: p.detach() for name, p in self.module.named_parameters()}

    def gradients(self) -> dict[str, Tensor]:
        """Return all gradients."""
        named = self.module.named_parameters()
        return {name: p.grad for name, p in named if p.grad is not None}

    def held(self) -> Held:
        """Return parameters, gradients and optimizer state."""
        params = list(self.module.parameters())
        return {
            "parameters": [param.detach() for param in params],
            "gradients": [param.grad for param in params if param.grad is not None],
            "optimizer state": optimizer_state(self.optimizer),
        }

    def watched(self) -> list[Tensor]:
        """Return all parameters that are trained."""
        return [param for param in self.module.parameters() if param.requires_grad]


def optimizer_state(optimizer: torch.optim.Optimizer) -> list[Tensor]:
    """Return the tensors that an optimizer keeps."""
    states = optimizer.state.values()
    return [t for state in states for t in state.values() if isinstance(t, Tensor)]


def adamw_state(params: Iterable[Tensor]) -> Formula:
    """Return what AdamW keeps for `params`: two moments, and a step count of each."""
    params = list(params)
    numel, itemsize = sum(p.numel() for p in params), 4
    return Formula(
        2 * itemsize * numel + 4 * len(params),
        f"2 moments x {itemsize} B x {numel:,} + a 4 B step count x {len(params)}",
    )


def all_bytes(params: Iterable[Tensor], what: str) -> Formula:
    """Return the bytes of `params`, whole."""
    params = list(params)
    numel = sum(param.numel() for param in params)
    return Formula(sum(p.nbytes for p in params), f"4 B x {numel:,} {what}")


def trained(
    params: Iterable[Tensor], what: str = "parameters"
) -> dict[Category, Formula]:
    """Return what is kept to train `params` by AdamW, each of them whole."""
    params = list(params)
    return {
        "parameters": all_bytes(params, what),
        "gradients": all_bytes(params, "gradients"),
        "optimizer state": adamw_state(params),
    }
