"""Activation recomputation: keep what goes into a part of a model, run the part again.

A checkpointed part keeps its input alone; its backward runs the forward once more, with
autograd inside autograd. First the plain way. Then random streams that are replayed, an
input of which each rank keeps a slice, and outputs thrown away and filled again.

    forward     x -> [ part, nothing kept ] -> y
    backward    x -> [ part, all kept     ] -> y, then dx <- [ part ] <- dy

Follows:
- NVIDIA/Megatron-LM: megatron/core/tensor_parallel/random.py
- pytorch/pytorch: torch/utils/checkpoint.py (`CheckpointFunction`)

Leaves out:
- hooks on what autograd saves, and parts that keep some of it: `recompute_hooks.py`
- which layers of a model are run again, which parts of a layer: `recompute_model.py`
- several outputs, arguments that are no tensors, autocast, FP8's scales, CUDA graphs
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor
from torch.autograd import Function

# Dimension letters: T tokens, B sequences, D hidden, W world_size of the tensor group.

Run = Callable[..., Tensor]  # the part that is run again: tensors to one tensor


def detach(inputs: tuple[Tensor, ...]) -> tuple[Tensor, ...]:
    """Return the same numbers as leaves, which collect gradients of their own."""
    return tuple(x.detach().requires_grad_(x.requires_grad) for x in inputs)


def _apply(function: type[Function], *args: Any) -> Tensor:
    output: Tensor = function.apply(*args)
    return output


# --- 1. plain: keep the input, run again ---


class PlainCheckpoint(Function):
    """Right for whatever draws no random numbers."""

    @staticmethod
    def forward(ctx: Any, run_function: Run, *args: Tensor) -> Tensor:
        """Run: inside a `Function` autograd keeps nothing but what it is told to."""
        ctx.run_function = run_function
        ctx.save_for_backward(*args)
        return run_function(*args)

    @staticmethod
    def backward(ctx: Any, grad_output: Tensor) -> tuple[Tensor | None, ...]:
        """Run again, with a graph this time, and go back through it at once."""
        inputs = detach(ctx.saved_tensors)
        with torch.enable_grad():
            output = ctx.run_function(*inputs)
        torch.autograd.backward(output, grad_output)  # also to the weights inside
        return (None, *[x.grad for x in inputs])


# --- 2. random streams, so that dropout drops the same again ---

States = tuple[list[Tensor], dict[str, Tensor]]  # of generators, of named streams


class RandomStreams:
    """The generators that a model draws from, and streams that stand aside by name.

    The common one agrees between tensor ranks: dropout of what each holds whole. The
    named one differs: dropout of what is cut between them.
    """

    def __init__(self, device: torch.device) -> None:
        self.generators = [torch.default_generator]
        if device.type == "cuda":
            self.generators.append(torch.cuda.default_generators[device.index])
        self.states_: dict[str, Tensor] = {}

    def manual_seed(self, seed: int, tp_rank: int) -> None:
        """Seed the common stream with `seed`, and one that is this rank's alone."""
        for generator in self.generators:
            generator.manual_seed(seed)
        own = torch.Generator(self.generators[-1].device)
        own.manual_seed(seed + 2718 + tp_rank)
        self.states_["model-parallel-rng"] = own.get_state()

    @contextmanager
    def fork(self, name: str = "model-parallel-rng") -> Iterator[None]:
        """Draw from a named stream inside `with`; go on with the common one after."""
        generator = self.generators[-1]
        orig_rng_state = generator.get_state()
        generator.set_state(self.states_[name])
        try:
            yield
        finally:
            self.states_[name] = generator.get_state()
            generator.set_state(orig_rng_state)

    def get_states(self) -> States:
        """Return where every stream stands."""
        return [each.get_state() for each in self.generators], dict(self.states_)

    def set_states(self, states: States) -> None:
        """Put every stream there; what is drawn next leaves `states` as they are."""
        for generator, state in zip(self.generators, states[0], strict=True):
            generator.set_state(state)
        self.states_ = dict(states[1])

    @contextmanager
    def replay(self, states: States) -> Iterator[None]:
        """Draw inside `with` what was drawn from `states` on; leave all as it was."""
        current_states = self.get_states()
        self.set_states(states)
        try:
            yield
        finally:
            self.set_states(current_states)


# --- 3. an input of which each rank keeps a slice ---


def split_into_1d_equal_chunks(tensor: Tensor, group: dist.ProcessGroup) -> Tensor:
    """Return this rank's part of the elements, in memory of its own."""
    numel, ranks = tensor.numel(), group.size()
    if numel % ranks:
        raise ValueError(f"{numel} elements are not divisible by {ranks} ranks")
    return tensor.detach().flatten().chunk(ranks)[group.rank()].clone()  # (BTD/W)


def gather_split_1d_tensor(tensor: Tensor, group: dist.ProcessGroup) -> Tensor:
    """Return all elements, in a row."""
    gathered = tensor.new_empty(tensor.numel() * group.size())
    dist.all_gather_single(gathered, tensor, group=group)  # (BTD/W) to (BTD)
    return gathered


class CheckpointFunction(Function):
    """Keeps its inputs and where streams stood; with a group, 1/W of the first."""

    @staticmethod
    def forward(
        ctx: Any, run_function: Run, streams: RandomStreams, group: Any, *args: Tensor
    ) -> Tensor:
        """Run, then cut the first input, which must be the same on every rank."""
        ctx.run_function, ctx.streams, ctx.tp_group = run_function, streams, group
        ctx.rng_states = streams.get_states()
        output, ctx.input_0_shape = run_function(*args), args[0].shape
        if group is not None:
            # The caller's own tensor shrinks: a copy would leave the whole one alive.
            args[0].data = split_into_1d_equal_chunks(args[0], group)
        ctx.save_for_backward(*args)
        return output

    @staticmethod
    def backward(ctx: Any, grad_output: Tensor) -> tuple[Tensor | None, ...]:
        """Make the input whole, put the streams back, run again, go back."""
        check_backward()
        saved, shape = ctx.saved_tensors, ctx.input_0_shape
        if saved[0].shape != shape:
            whole = gather_split_1d_tensor(saved[0].detach(), ctx.tp_group)
            saved[0].data = whole.view(shape)  # (B, T, D), as a leaf's gradient will be
        inputs = detach(saved)
        with ctx.streams.replay(ctx.rng_states), torch.enable_grad():
            output = ctx.run_function(*inputs)
        torch.autograd.backward(output, grad_output)
        return (None, None, None, *[x.grad for x in inputs])


def check_backward() -> None:
    """Raise RuntimeError under `.grad()`: the backward inside adds to all weights."""
    if not torch.autograd._is_checkpoint_valid():
        raise RuntimeError("a checkpoint is run again by .backward(), not by .grad()")


def checkpoint(
    run_function: Run,
    streams: RandomStreams,
    *args: Tensor,
    distribute_over: dist.ProcessGroup | None = None,
) -> Tensor:
    """Return `run_function(*args)`, which keeps its inputs alone until backward.

    With a group the first of them is cut between its ranks, in the caller's hands too.
    """
    if not torch.is_grad_enabled():
        return run_function(*args)
    if not any(x.requires_grad for x in args):
        raise ValueError("no input needs a gradient: weights inside would have none")
    return _apply(CheckpointFunction, run_function, streams, distribute_over, *args)


# --- 4. an output that is thrown away, and filled again ---


class CheckpointWithoutOutputFunction(Function):
    """Goes back through a forward that `CheckpointWithoutOutput` ran again."""

    @staticmethod
    def forward(ctx: Any, run_function: Run, outer: Any, *args: Tensor) -> Tensor:
        """Run, and keep the inputs."""
        ctx.save_for_backward(*detach(args))
        outer.ctx = ctx
        return run_function(*args)

    @staticmethod
    def backward(ctx: Any, grad_output: Tensor) -> tuple[Tensor | None, ...]:
        """Use the graph of what was run again before its output was needed."""
        torch.autograd.backward(ctx.output, grad_output)
        inputs, ctx.inputs, ctx.output = ctx.inputs, None, None
        return (None, None, *[x.grad for x in inputs])


class CheckpointWithoutOutput:
    """A checkpoint whose output is not kept either, though the next part saved it.

    The memory is taken from under the saved tensor, and put back when the gradient of
    what the next part made arrives: just before it needs what it saved.
    """

    def __init__(self, streams: RandomStreams) -> None:
        self.streams = streams
        self.ctx: Any = None

    def checkpoint(self, run_function: Run, *args: Tensor) -> Tensor:
        """Return `run_function(*args)`, for now."""
        self.run_function, self.rng_states = run_function, self.streams.get_states()
        run = CheckpointWithoutOutputFunction
        self.output = _apply(run, run_function, self, *args)
        return self.output

    def discard_output_and_register_recompute(self, hook_tensor: Tensor) -> None:
        """Free the output, whose last use in the forward made `hook_tensor`."""
        if hook_tensor.requires_grad:
            self.output.untyped_storage().resize_(0)  # its shape stays
            hook_tensor.register_hook(self._recompute)

    def _recompute(self, _: Tensor) -> None:
        check_backward()
        inputs = detach(self.ctx.saved_tensors)
        with self.streams.replay(self.rng_states), torch.enable_grad():
            output = self.run_function(*inputs)
        memory = output.untyped_storage()
        self.output.untyped_storage().resize_(memory.size()).copy_(memory)
        self.ctx.inputs, self.ctx.output = inputs, output
        self.ctx = None
        del self.output


if __name__ == "__main__":
    from mini_impls.demos.recompute import main

    raise SystemExit(main())
