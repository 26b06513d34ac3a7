"""Writes down what a mini does, step by step, for a page that plays it again.

Each rank says what it begins, and what it holds is looked at when the next thing
begins: so a step shows what it brought about. What the ranks wrote is then joined.
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import chain, combinations
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor

Look = Callable[[], list[str]]
"""Returns what this rank holds: a text for each slot, as `readerkit` reads it."""


@dataclass
class Noted:
    """What one rank wrote of one step."""

    at: tuple[Any, ...]
    """The same on all ranks that take part in the step."""
    does: str
    phase: str = ""
    of: str = ""
    slots: tuple[int, ...] = ()
    bytes: int = 0
    sent: list[tuple[int, int, int, int]] = field(default_factory=list)
    cells: list[str] = field(default_factory=list)


class Notebook:
    """What one rank writes down."""

    def __init__(self, look: Look) -> None:
        self.look, self.phase = look, ""
        self.entries: list[Noted] = []
        self.begin("start")

    def begin(self, does: str, *, at: tuple[Any, ...] = (), **said: Any) -> Noted:
        """Note what begins; the step before it is over, and is looked at."""
        self.close()
        at = at or (len(self.entries),)
        self.entries.append(Noted(at, does, self.phase, **said))
        return self.entries[-1]

    def hook(self, does: str, of: str) -> Callable[..., None]:
        """Return what autograd may call: it notes that something begins."""

        def noting(*unused: Any) -> None:
            self.begin(does, of=of)

        return noting

    def close(self) -> None:
        """Look at what the last step brought about."""
        if self.entries:
            self.entries[-1].cells = self.look()


def join(
    per_rank: Sequence[Sequence[Noted]], slots: Sequence[dict[str, Any]]
) -> dict[str, Any]:
    """Return a run as it is stored: the steps of all ranks, what each changed."""
    # Where some ranks sit a round out, the longest list has all of them.
    order = list(dict.fromkeys(e.at for e in max(per_rank, key=len)))
    steps, known = [], dict[str, str]()
    for at in order:
        found = [(r, e) for r, rank in enumerate(per_rank) for e in rank if e.at == at]
        first = found[0][1]
        same = {(e.does, e.phase, e.of, e.slots, e.bytes) for _, e in found}
        if len(same) > 1:
            raise ValueError(f"ranks differ at {at}: {same}")
        cells = {f"{r}.{i}": c for r, e in found for i, c in enumerate(e.cells)}
        step: dict[str, Any] = {"does": first.does, "phase": first.phase}
        step |= {"of": first.of, "slots": first.slots, "bytes": first.bytes}
        step["sent"] = [message for _, e in found for message in e.sent]
        step["cells"] = {key: c for key, c in cells.items() if known.get(key) != c}
        known |= cells
        steps.append({name: value for name, value in step.items() if value})
    return {"world_size": len(per_rank), "slots": list(slots), "steps": steps}


def powers(tensor: Tensor) -> str:
    """Return who gave the terms of a sum whose rank r gave 2^r; `.`, if nobody."""
    (value,) = set(tensor.flatten().tolist()) or {0}
    return "".join(str(r) for r in range(10) if int(value) >> r & 1) or "."


def whose(tensor: Tensor, parts: Sequence[Tensor], *, mean: bool = False) -> str:
    """Return which ranks' terms a tensor is the sum of, or W times their mean."""
    ranks = range(len(parts))
    scales = (1.0, 1 / len(parts)) if mean else (1.0,)
    for some in chain.from_iterable(
        combinations(ranks, n) for n in range(len(parts), 0, -1)
    ):
        total = torch.stack([parts[r] for r in some]).sum(0)
        if any(torch.allclose(tensor, total * s, rtol=1e-4, atol=1e-7) for s in scales):
            return "".join(map(str, some))
    raise ValueError("a tensor that is no sum of what the ranks gave")


@contextmanager
def replaced(owner: Any, **values: Any) -> Iterator[None]:
    """Put other functions in the place of a module's for a while."""
    before = {name: getattr(owner, name) for name in values}
    for name, value in values.items():
        setattr(owner, name, value)
    try:
        yield
    finally:
        for name, value in before.items():
            setattr(owner, name, value)


COLLECTIVES = {
    "all_reduce": "all_reduce",
    "reduce": "reduce",
    "broadcast": "broadcast",
    "all_gather_single": "all_gather",
    "reduce_scatter_single": "reduce_scatter",
}


class _Awaited:
    """A collective under way, which notes that it is waited for."""

    def __init__(self, work: Any, done: Callable[[], None]) -> None:
        self.work, self.done = work, done

    def wait(self) -> None:
        self.work.wait()
        self.done()


@contextmanager
def watched(
    notebook: Notebook,
    place_of: Callable[[Tensor], tuple[str, tuple[int, ...]]],
    moving: set[int] | None = None,
    begun: Callable[[tuple[int, ...]], None] | None = None,
) -> Iterator[None]:
    """Note each collective, and each wait for one; `place_of` names what it works on.

    What is on its way is in `moving`, by the address of its memory.
    """

    def noting(does: str, call: Callable[..., Any]) -> Callable[..., Any]:
        def noted(*args: Any, **options: Any) -> Any:
            tensors = [arg for arg in args[:2] if isinstance(arg, Tensor)]
            name, slots = place_of(tensors[0])
            said: dict[str, Any] = {
                "of": name,
                "slots": slots,
                "bytes": max(t.nbytes for t in tensors),
            }
            notebook.begin(does, **said)
            if begun is not None:
                begun(slots)
            work = call(*args, **options)
            if not options.get("async_op"):
                return work
            address = tensors[0].untyped_storage().data_ptr()
            if moving is not None:
                moving.add(address)

            def done() -> None:
                notebook.begin("wait", of=name, slots=slots)
                if moving is not None:
                    moving.discard(address)

            return _Awaited(work, done)

        return noted

    calls = {name: noting(op, getattr(dist, name)) for name, op in COLLECTIVES.items()}
    with replaced(dist, **calls):
        yield
