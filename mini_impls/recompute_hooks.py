"""Recomputation by hooks: autograd hands over what it would keep, and asks for it back.

Each tensor that a part would keep is dropped, and a token stands in its place. The
first token that backward brings runs the part again and fills all of them. There is no
autograd inside autograd here: no input needs a gradient, and single gradients can be
asked for. First the plain way. Then one that stops where the last token is filled, and
one of which a policy says, operation by operation, what is kept and not run again.

    forward     x -> [ part, autograd keeps tokens ] -> y
    backward    token -> [ part, up to its last token ] -> tensors -> dx <- dy

Follows:
- pytorch/pytorch: torch/utils/checkpoint.py (`use_reentrant=False`)

Leaves out:
- backwards over one graph at the same time, and one inside the part
- outputs that are moved to the host instead of kept, or changed after they were
- autocast's state, traces of both runs for an error, torch.compile
- operations that return several tensors, as fused attention: they run again whatever a
  policy says
"""

from collections import defaultdict
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext, suppress
from itertools import count
from typing import Any
from weakref import ref

import torch
from torch import Tensor
from torch._ops import OpOverload
from torch.autograd import Function
from torch.autograd.graph import saved_tensors_hooks
from torch.utils._python_dispatch import TorchDispatchMode

from mini_impls.recompute import RandomStreams, Run

# --- 1. plain: all that was dropped, again ---


def plain_checkpoint(run_function: Run, *args: Tensor) -> Tensor:
    """Return `run_function(*args)`; right for whatever draws no random numbers."""
    numbers = count()
    again: dict[int, Tensor] = {}

    def unpack(number: int) -> Tensor:
        if number not in again:
            made: list[Tensor] = []

            def pack(x: Tensor) -> None:
                made.append(x.detach())

            with saved_tensors_hooks(pack, lambda x: x), torch.enable_grad():
                run_function(*args)
            again.update(enumerate(made))
        return again.pop(number)

    with saved_tensors_hooks(lambda x: next(numbers), unpack):
        return run_function(*args)


# --- 2. tokens that die with the graph, and a stop behind the last of them ---


class Token:
    """Stands where autograd would keep a tensor; autograd alone holds it."""

    tensor: Tensor | None = None


class KeptInputs(Function):
    """A node that does nothing: autograd keeps what it saves, like anything else.

    So the inputs of a checkpoint inside another are dropped by the outer one's hooks.
    """

    @staticmethod
    def forward(ctx: Any, anchor: Tensor, *args: Tensor) -> Tensor:
        """Save the inputs; the anchor needs a gradient, or there would be no node."""
        ctx.save_for_backward(*args)
        return anchor.clone()


class StopRecomputation(Exception):
    """Nothing behind this point is wanted."""


def describe(x: Tensor) -> tuple[torch.Size, torch.dtype, torch.device]:
    """Return what must be the same the second time."""
    return x.shape, x.dtype, x.device


class CheckpointFrame:
    """One run of a part: its inputs, and a token for each tensor that it dropped."""

    def __init__(self, recompute_fn: Callable[..., None], *args: Tensor) -> None:
        self.recompute_fn = recompute_fn
        anchor = torch.empty(0, requires_grad=True)
        # The tensor, not its node alone: with it torch may let go of what is saved.
        self.inputs: Any = KeptInputs.apply(anchor, *args)  # type: ignore[no-untyped-call]
        self.tokens: list[ref[Token]] = []
        self.metadata: list[tuple[torch.Size, torch.dtype, torch.device]] = []

    def pack(self, x: Tensor) -> Token:
        """Drop a tensor."""
        token = Token()
        # A strong reference would keep every tensor that the second run brings back.
        self.tokens.append(ref(token))
        self.metadata.append(describe(x))
        return token

    def unpack(self, token: Token) -> Tensor:
        """Return what was dropped, once: another backward runs the part again."""
        if token.tensor is None:
            self.recompute()
        tensor, token.tensor = token.tensor, None
        assert tensor is not None
        return tensor

    def recompute(self) -> None:
        """Fill the tokens that still live, and stop.

        Raises:
            RuntimeError: the part kept other tensors than the first time.
        """
        numbers = count()

        def fill(x: Tensor) -> Tensor:
            number, x = next(numbers), x.detach()  # with its graph it would stay
            token = self.tokens[number]()
            if token is not None:
                if describe(x) != self.metadata[number]:
                    found = f"{describe(x)}, not {self.metadata[number]}"
                    raise RuntimeError(f"tensor {number} came back as {found}")
                token.tensor = x
            if number + 1 == len(self.tokens):
                raise StopRecomputation
            return x

        with (
            suppress(StopRecomputation),
            saved_tensors_hooks(fill, lambda x: x),
            torch.enable_grad(),
        ):
            self.recompute_fn(*self.inputs.grad_fn.saved_tensors)
        if (found := next(numbers)) != len(self.tokens):
            raise RuntimeError(f"{found} tensors came back of {len(self.tokens)}")


# --- 3. a policy: what an operation made is kept, or made again ---

Policy = Callable[..., bool]
"""Whether to keep what `(op, *args)` made."""
CONSUMED = object()
Storage = dict[OpOverload, list[Any]]
"""Of each operation, call by call: a tensor, None, or CONSUMED."""


class CachingMode(TorchDispatchMode):
    """The first run: asks the policy of every operation, and keeps what it says."""

    def __init__(self, policy: Policy, storage: Storage) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.policy, self.storage = policy, storage

    def __torch_dispatch__(
        self, func: Any, types: Any, args: Any = (), kwargs: Any = None
    ) -> Any:
        """Run it; keep the output without its graph, which would keep everything."""
        out = func(*args, **(kwargs or {}))
        if func is not torch.ops.aten.detach.default:  # the hooks detach, too
            kept = isinstance(out, Tensor) and self.policy(func, *args)
            self.storage[func].append(out.detach() if kept else None)
        return out


class CachedMode(TorchDispatchMode):
    """The second run: what was kept takes the place of the operation."""

    def __init__(self, storage: Storage) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.storage = storage

    def __enter__(self) -> Any:
        """Begin with each operation's first call."""
        self.calls: defaultdict[OpOverload, int] = defaultdict(int)
        return super().__enter__()  # type: ignore[no-untyped-call]

    def __torch_dispatch__(
        self, func: Any, types: Any, args: Any = (), kwargs: Any = None
    ) -> Any:
        """Return what was kept, once, or run the operation."""
        if func is torch.ops.aten.detach.default:
            return func(*args, **(kwargs or {}))
        number, entries = self.calls[func], self.storage[func]
        self.calls[func] += 1
        if number >= len(entries):
            raise RuntimeError(f"{func} was not called {number + 1} times before")
        entry = entries[number]
        if entry is None:
            return func(*args, **(kwargs or {}))
        if entry is CONSUMED:
            raise RuntimeError("what a policy kept is there for one backward")
        entries[number] = CONSUMED
        return entry


def create_selective_checkpoint_contexts(
    policy: Policy,
) -> tuple[CachingMode, CachedMode]:
    """Return what the first run goes on under, and the second."""
    storage: Storage = defaultdict(list)
    return CachingMode(policy, storage), CachedMode(storage)


def keep(*operations: OpOverload) -> Policy:
    """Return a policy that keeps what these made, and nothing else."""
    return lambda func, *args: func in operations


# --- 4. what a model calls ---


def checkpoint_without_reentrant(
    run_function: Run,
    streams: RandomStreams,
    *args: Tensor,
    policy: Policy | None = None,
) -> Tensor:
    """Return `run_function(*args)`, which keeps its inputs, and what a policy says."""
    if not torch.is_grad_enabled():
        return run_function(*args)
    rng_states = streams.get_states()
    first: AbstractContextManager[Any] = nullcontext()
    second: AbstractContextManager[Any] = nullcontext()
    if policy is not None:
        first, second = create_selective_checkpoint_contexts(policy)

    def recompute_fn(*inputs: Tensor) -> None:
        with streams.replay(rng_states), second:
            run_function(*inputs)

    frame = CheckpointFrame(recompute_fn, *args)
    with saved_tensors_hooks(frame.pack, frame.unpack), first:
        return run_function(*args)
