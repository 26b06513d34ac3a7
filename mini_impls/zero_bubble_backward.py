"""A backward in two halves: for the input at once, for the weights when there is time.

The stage before waits for the gradient of its output; for the gradients of weights only
the optimizer does. First the plain way, autograd asked twice, which makes the inputs'
gradients twice. Then each half once: B stops where weights branch off and keeps what
arrives there, and W goes on from that.

    input <-- Addmm <-- Gelu <-- Addmm <-- output       B: along this way, to the input
                |                  |
              weight             weight                 W: down, from what B left there

Follows:
- pytorch/pytorch: torch/distributed/pipelining/_backward.py

Leaves out:
- stages with several inputs or outputs
- what W does not need let go of before it: the graph holds it as long as itself
"""

from collections import deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial

import torch
from torch import Tensor
from torch.autograd.graph import GradientEdge, Node, get_gradient_edge

# Dimension letters: B sequences of a microbatch, T tokens, D hidden.

# --- 1. plain: autograd asked twice ---


def backward_input(output: Tensor, grad_output: Tensor | None, x: Tensor) -> Tensor:
    """Return the gradient of a stage's input; the graph stays for the other half."""
    (grad,) = torch.autograd.grad(output, x, grad_output, retain_graph=True)
    return grad  # (B, T, D)


def backward_weight(
    output: Tensor, grad_output: Tensor | None, weights: Sequence[Tensor]
) -> None:
    """Ask again: on the way to a weight, autograd makes the inputs' gradients anew."""
    torch.autograd.backward(output, grad_output, inputs=weights)


# --- 2. where weights branch off ---


Arrived = tuple[Tensor | None, ...]
"""What a node of the graph is handed, one for each of its outputs."""


@dataclass(eq=False)
class ParamGroup:
    """Weights, and the nodes at which their gradients leave those of the input."""

    params: list[Tensor]
    intermediates: set[Node]
    grads: dict[Node, Arrived] = field(default_factory=dict)
    """Of each of these nodes, in the order in which it was handed that."""


def construct_reverse_graph(root: Node) -> dict[Node, list[Node]]:
    """Return each node of a graph with those that hand gradients to it."""
    above: dict[Node, list[Node]] = {root: []}
    todo = deque([root])
    while todo:
        node = todo.popleft()
        for below, _ in node.next_functions:
            if below is not None:
                if below not in above:
                    above[below] = []
                    todo.append(below)
                above[below].append(node)
    return above


def reverse_closure(
    start: Node, targets: set[Node], above: Mapping[Node, list[Node]]
) -> tuple[set[Node], set[Node]]:
    """Return all that hands gradients down to `start`, and the targets that end it."""
    closure, met, todo = {start}, set[Node](), deque([start])
    while todo:
        for node in above.get(todo.popleft(), []):
            if node in targets:
                met.add(node)
            elif node not in closure:
                closure.add(node)
                todo.append(node)
    return closure, met


def get_param_groups(
    output: Tensor, x: Tensor, weights: Iterable[Tensor]
) -> list[ParamGroup]:
    """Return the weights, grouped by where they leave the way to the input.

    Those that leave it at a common node are one group. A weight that is used twice has
    two nodes, and the biases beside its uses join it.
    """
    assert output.grad_fn is not None
    above = construct_reverse_graph(output.grad_fn)
    inputs_closure, _ = reverse_closure(get_gradient_edge(x).node, set(), above)
    groups: list[ParamGroup] = []
    for weight in weights:
        node = get_gradient_edge(weight).node
        _, met = reverse_closure(node, inputs_closure, above)
        joined = ParamGroup([weight], met)
        for group in [group for group in groups if group.intermediates & met]:
            groups.remove(group)
            joined.params += group.params
            joined.intermediates |= group.intermediates
        groups.append(joined)
    return [group for group in groups if group.intermediates]


# --- 3. each half once ---


def stage_backward_input(
    output: Tensor, grad_output: Tensor | None, x: Tensor, weights: Iterable[Tensor]
) -> tuple[Tensor, list[ParamGroup]]:
    """Return the input's gradient, and what the weights' half goes on from."""

    def keep(group: ParamGroup, node: Node, grads: Arrived) -> None:
        group.grads[node] = grads

    groups = get_param_groups(output, x, weights)
    with _prehooks(
        (node, partial(keep, group, node))
        for group in groups
        for node in group.intermediates
    ):
        grad = backward_input(output, grad_output, x)  # (B, T, D)
    if not output._is_view():  # a view cannot be cut off its graph
        output.detach_()  # what lies above the last of these nodes may go
    return grad, groups


def stage_backward_weight(param_groups: Iterable[ParamGroup]) -> None:
    """Add to each weight's `.grad` what follows from what arrived at its nodes."""

    def hand_down(kept: Arrived, _: object) -> Arrived:
        return kept

    for group in param_groups:
        arrived = [
            (GradientEdge(node, i), grad)
            for node, grads in group.grads.items()
            for i, grad in enumerate(grads)
            if grad is not None
        ]
        # Where one node of a group lies above another, autograd would bring to the
        # lower one once more what it has kept already.
        edges, grads = zip(*arrived, strict=True)
        with _prehooks(
            (node, partial(hand_down, kept)) for node, kept in group.grads.items()
        ):
            torch.autograd.backward(edges, grads, inputs=group.params)


class _prehooks:
    """Hooks before nodes of a graph run, inside `with`."""

    def __init__(self, hooks: Iterable[tuple[Node, Callable[..., object]]]) -> None:
        self.handles = [node.register_prehook(hook) for node, hook in hooks]

    def __enter__(self) -> None:
        pass

    def __exit__(self, *error: object) -> None:
        for handle in self.handles:
            handle.remove()
