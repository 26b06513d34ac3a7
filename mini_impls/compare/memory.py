"""Counts tensor bytes: what is held between steps, and the most that lives within one.

Process memory cannot tell two sides apart that run in one process, and keeps what
malloc keeps; tensors can be counted one storage at a time. A storage belongs to the
side in whose step it was made, or that names it as held; what set-up made and nobody
names is not counted.
"""

import time
import weakref
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor
from torch._subclasses.fake_tensor import FakeTensor
from torch.utils._python_dispatch import TorchDispatchMode

from mini_impls.compare.ops import OPS
from mini_impls.recorder import Wait, replaced_waits
from readerkit.content.vocabulary import Phase


def storages(tensors: Iterable[Tensor]) -> dict[int, torch.UntypedStorage]:
    """Return the memory behind tensors, each piece once."""
    found = {}
    for tensor in tensors:
        local = getattr(tensor, "_local_tensor", tensor)  # of a DTensor: what is here
        storage = local.untyped_storage()
        found[storage._cdata] = storage
    return found


def held_bytes(tensors: Iterable[Tensor]) -> int:
    """Return the bytes of memory behind tensors; shared memory counts once."""
    return sum(storage.nbytes() for storage in storages(tensors).values())


LEFT = "left by earlier steps"
COMMUNICATION = "communication"
SETTLE_S = (0.001, 0.002, 0.004)
"""How long a new peak is looked at again: gloo's thread lets go of what it sent only a
moment after the wait, and what it holds till then is no memory of the side's own. What
outlives that is kept by the side, up to the next transfer or wait."""


class LiveMemory(TorchDispatchMode):
    """Follows the tensors of one side, step by step, inside `with self.watching()`.

    What a step makes is filed under the phase that made it, or as `communication` once
    a collective takes or gives it.
    """

    def __init__(self) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.phase: Phase = "forward"
        self.peak = 0
        self.peak_phase: Phase = "forward"
        self.peak_categories: dict[str, int] = {}
        self.left = 0
        """Bytes that earlier steps left and nobody names as held."""
        self.seen: list[tuple[int, int]] = []
        """When (Unix time in ns) so many bytes lived in the step that was measured."""
        self._measures = False
        self._live: dict[int, tuple[weakref.ref[Any], str]] = {}
        self._is_settled = False
        """Nothing was sent or waited for since a peak was looked at again, in vain."""
        self._known: dict[int, int] = {}
        """Bytes of each storage when a call had it last."""

    def start(
        self, held: Mapping[str, Iterable[Tensor]], *, measures: bool = True
    ) -> None:
        """Begin a step: `held` names what is to live before it."""
        self.phase, self._measures = "forward", measures
        for key, (reference, _) in list(self._live.items()):
            if reference() is None:
                del self._live[key]
            else:
                self._live[key] = reference, LEFT
        for category, tensors in held.items():
            for key, storage in storages(tensors).items():
                self._live[key] = weakref.ref(storage), category
        self.left = self._sizes()[LEFT]
        self.seen = []

    def set_phase(self, phase: Phase, tensor: Tensor | None = None) -> None:
        """Enter a phase."""
        if tensor is None:
            self.phase = phase

    @contextmanager
    def watching(self) -> Iterator[None]:
        """Follow what a step makes, and when it has waited for a transfer."""

        def noting(original: Wait) -> Wait:
            def wait(*args: Any, **kwargs: Any) -> Any:
                self._is_settled = False
                return original(*args, **kwargs)

            return wait

        with replaced_waits(noting), self:
            yield

    def __torch_dispatch__(
        self,
        func: Any,
        types: Any,
        args: tuple[Any, ...] = (),
        kwargs: dict[str, Any] | None = None,
    ) -> Any:
        """Let the call pass and look at what it made."""
        if FakeTensor in types:
            return func(*args, **(kwargs or {}))  # shapes that DTensor tries out
        if any(kind not in (Tensor, torch.nn.Parameter) for kind in types):
            return NotImplemented  # a DTensor: what is inside it comes by here again
        result = func(*args, **(kwargs or {}))
        name = func.__name__.split(".")[0]
        of_group = func.namespace in ("c10d", "_c10d_functional")
        sent = of_group and name in OPS
        self._is_settled &= not of_group
        category = COMMUNICATION if sent else f"made in {self.phase}"
        for tensor in _all_tensors((args, result) if sent else result):
            self._follow(tensor.untyped_storage(), category, move=sent)
        if self._measures and (sent or self._has_grown(args, kwargs or {}, result)):
            self._measure()
        return result

    def _has_grown(self, args: Any, kwargs: Mapping[str, Any], result: Any) -> bool:
        """Tell whether memory of a call is new, or larger than it was: most is neither.

        What was resized since is told by the first call that reads or fills it.
        """
        grown = False
        for tensor in _all_tensors((args, *kwargs.values(), result)):
            storage = tensor.untyped_storage()
            key, size = storage._cdata, storage.nbytes()
            grown |= size > self._known.get(key, -1)
            self._known[key] = size
        return grown

    def _follow(
        self, storage: torch.UntypedStorage, category: str, move: bool = False
    ) -> None:
        key = storage._cdata
        known = self._live.get(key)
        alive = known is not None and known[0]() is not None
        if known is not None and alive and not (move and known[1].startswith("made")):
            return
        if not alive:
            self._known.pop(key, None)  # another has the address of one that is gone
        self._live[key] = weakref.ref(storage), category

    def _measure(self) -> None:
        sizes = self._sizes()
        for seconds in SETTLE_S if not self._is_settled else ():
            if sizes.total() <= self.peak or not sizes[COMMUNICATION]:
                break
            time.sleep(seconds)
            sizes = self._sizes()
        else:
            self._is_settled = True
        if not self.seen or self.seen[-1][1] != sizes.total():
            self.seen.append((time.time_ns(), sizes.total()))
        if sizes.total() > self.peak:
            self.peak, self.peak_phase = sizes.total(), self.phase
            self.peak_categories = {k: v for k, v in sorted(sizes.items()) if v}

    def _sizes(self) -> Counter[str]:
        sizes: dict[str, int] = dict.fromkeys((LEFT, COMMUNICATION), 0)
        for key, (reference, category) in list(self._live.items()):
            storage = reference()
            if storage is None:
                del self._live[key]
            else:  # anew: storages may be resized
                self._known[key] = size = storage.nbytes()
                sizes[category] = sizes.get(category, 0) + size
        return Counter(sizes)


def _all_tensors(value: Any) -> list[Tensor]:
    if isinstance(value, Tensor):
        return [] if value.is_meta or isinstance(value, FakeTensor) else [value]
    if isinstance(value, list | tuple):
        return [tensor for item in value for tensor in _all_tensors(item)]
    return []
