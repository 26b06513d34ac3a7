"""What torch's save_on_cpu is handed for two linear layers of one input."""

import torch
from torch.autograd.graph import save_on_cpu, saved_tensors_hooks

RANKS = 1

torch.manual_seed(0)
layers = [torch.nn.Linear(4, 4), torch.nn.Linear(4, 4)]
weights = {layer.weight.untyped_storage().data_ptr() for layer in layers}
x = torch.randn(3, 4, requires_grad=True)
hooks, handed, same = save_on_cpu(), [], []


def pack(tensor):
    handed.append(tensor.untyped_storage().data_ptr())
    packed = hooks.pack_hook(tensor)
    same.append(packed[1].untyped_storage().data_ptr() == handed[-1])
    return packed


with saved_tensors_hooks(pack, hooks.unpack_hook):
    out = layers[0](x) + layers[1](x)
out.sum().backward()
print("tensors =", len(handed))
print("weights =", sum(at in weights for at in handed))
print("the_input =", handed.count(x.untyped_storage().data_ptr()))
print("not_copied =", sum(same))
