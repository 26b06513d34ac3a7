"""Activations on the host: what is kept for backward leaves the device, and returns.

Autograd hands over each tensor that it would keep, and asks for it back. Plain, both
copies are waited for. Then a part's tensors leave while the next part runs, and return
while backward is still behind it.

    forward    run 0 | run 1, out 0 | run 2, out 1 | ...
    backward   .. in 1 | back 2, in 1 | back 1, in 0 | back 0

Follows:
- pytorch/pytorch: torch/autograd/graph.py (`save_on_cpu`)
- NVIDIA/Megatron-LM:
  megatron/core/pipeline_parallel/fine_grained_activation_offload.py (parts as groups)

Leaves out:
- buffers that are used again, streams
- what to run again instead: `recompute.py`
- a part that is run again inside backward, tensors that are changed in place once they
  were saved
"""

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from torch import Tensor, nn
from torch.autograd.graph import saved_tensors_hooks
from torch.multiprocessing.reductions import StorageWeakRef

from mini_impls.offload import Copy, HostLink

# --- 1. plain: every tensor, each time it is saved ---


class save_on_host(saved_tensors_hooks):  # as torch's `save_on_cpu` is called
    """Inside `with`, whatever autograd keeps goes to the host, weights too."""

    def __init__(self, link: HostLink) -> None:
        def pack(tensor: Tensor) -> Tensor:
            return link.start(tensor, "to host").wait()

        def unpack(packed: Tensor) -> Tensor:
            return link.start(packed, "to device").wait()

        super().__init__(pack, unpack)


# --- 2. ahead of time: part by part ---


@dataclass(eq=False, slots=True)
class OffloadedTensor:
    """Stands where autograd would keep a tensor; all that keep the same have one."""

    leaving: Copy
    users: int = 0
    asked: int = 0
    returning: Copy | None = None

    def fetch(self) -> Copy:
        """Start to bring it back, unless it is there or on the way."""
        if self.returning is None:
            host = self.leaving.wait()
            self.returning = self.leaving.link.start(host, "to device")
        return self.returning

    def take(self) -> Tensor:
        """Return it; whoever asks last has it alone, so that its memory goes."""
        tensor = self.fetch().wait()
        self.asked += 1
        if self.asked % self.users == 0:
            self.returning = None
        return tensor


@dataclass(eq=False, slots=True)
class OffloadedPart:
    """What one part of the model keeps, and the part that ran before it."""

    before: "OffloadedPart | None"
    tensors: dict[tuple[object, ...], OffloadedTensor] = field(default_factory=dict)
    is_asked_for: bool = False

    def fetch(self) -> None:
        """Start to bring everything back, the last that was kept first."""
        if not self.is_asked_for:
            self.is_asked_for = True
            for kept in reversed(self.tensors.values()):
                kept.fetch()


class ActivationOffload:
    """Sends away what parts of a model keep, but for weights: they stay in any case.

    `min_bytes` leaves small tensors where they are: each copy has a cost of its own.
    """

    def __init__(
        self,
        link: HostLink,
        weights: Iterable[nn.Parameter],
        *,
        min_bytes: int = 0,
        prefetch: bool = True,
    ) -> None:
        self.link, self.min_bytes, self.prefetch = link, min_bytes, prefetch
        self.weights = list(weights)
        self.last: OffloadedPart | None = None

    @contextmanager
    def part(self) -> Iterator[None]:
        """Offload what is kept inside `with`; parts follow each other."""
        part = self.last = OffloadedPart(self.last)
        stay = {StorageWeakRef(weight.untyped_storage()) for weight in self.weights}

        def pack(tensor: Tensor) -> OffloadedTensor | Tensor:
            # Not by address: what has left is freed, and the next tensor takes its
            # place. A weak reference is equal to none that was made elsewhere.
            memory = StorageWeakRef(tensor.untyped_storage())
            if memory in stay or tensor.nbytes < self.min_bytes:
                return tensor
            # Two operations may keep one tensor.
            view = tensor.storage_offset(), tensor.size(), tensor.stride()
            key = (memory, *view, tensor.dtype, tensor._version)
            if key not in part.tensors:
                leaving = self.link.start(tensor, "to host")
                part.tensors[key] = OffloadedTensor(leaving)
            part.tensors[key].users += 1
            return part.tensors[key]

        def unpack(packed: OffloadedTensor | Tensor) -> Tensor:
            if isinstance(packed, Tensor):
                return packed
            if self.prefetch:
                part.fetch()
                if part.before is not None:
                    part.before.fetch()
            return packed.take()

        with saved_tensors_hooks(pack, unpack):
            yield

    def end_forward(self) -> None:
        """Let parts of the next forward not follow those of this one."""
        self.last = None


def offload_layers(
    layers: Iterable[nn.Module], offload: ActivationOffload, *, but_last: bool = True
) -> None:
    """Make each layer a part; the last is needed at once, and stays where it is."""
    layers = list(layers)
    for layer in layers[:-1] if but_last else layers:
        layer.forward = _in_a_part(layer.forward, offload)


def _in_a_part(
    forward: Callable[..., Tensor], offload: ActivationOffload
) -> Callable[..., Tensor]:
    def run(*args: Tensor) -> Tensor:
        with offload.part():
            return forward(*args)

    return run
