"""How many matrix products the two halves of a backward take: of four layers."""

import torch
from torch.distributed.pipelining import _backward as upstream
from torch.utils._python_dispatch import TorchDispatchMode

from mini_impls import zero_bubble_backward as mini

RANKS = 1


class Products(TorchDispatchMode):
    """Counts them."""

    count = 0

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        self.count += func.__name__.split(".")[0] in ("mm", "addmm")
        return func(*args, **(kwargs or {}))


def products(call, *args):
    with Products() as seen:
        found = call(*args)
    return seen.count, found


layers = torch.nn.Sequential(*[torch.nn.Linear(6, 6) for _ in range(4)])
weights, grad = list(layers.parameters()), torch.ones(5, 6)
x = torch.randn(5, 6, requires_grad=True)
output, out = layers(x), [layers(x)]
here, (_, groups) = products(mini.stage_backward_input, output, grad, x, weights)
print("halves =", [here, products(mini.stage_backward_weight, groups)[0]])
here, (_, groups) = products(upstream.stage_backward_input, out, [grad], [x], weights)
print("torch =", [here, products(upstream.stage_backward_weight, weights, groups)[0]])
output = layers(x)
here, _ = products(mini.backward_input, output, grad, x)
print("plain =", [here, products(mini.backward_weight, output, grad, weights)[0]])
