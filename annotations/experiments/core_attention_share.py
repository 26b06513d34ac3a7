"""Core attention's share of what a layer keeps and computes, at GPT-3's ratios."""

import torch
from torch.autograd.graph import saved_tensors_hooks
from torch.nn.functional import dropout, gelu, layer_norm
from torch.utils.flop_counter import FlopCounterMode

S, A, D = 64, 128, 4  # tokens, heads and their size: s/d = 16, hidden well above s
H = A * D


def cost(work, activations, weights):
    kept, given = {}, [torch.randn(*size, requires_grad=True) for size in activations]
    given += [torch.nn.Parameter(torch.randn(*size)) for size in weights]

    def keep(tensor):
        if not isinstance(tensor, torch.nn.Parameter) and tensor.shape[0] in (S, A):
            kept[tensor.data_ptr(), tensor.shape] = tensor.numel()
        return tensor

    flops = FlopCounterMode(display=False)
    with flops, saved_tensors_hooks(keep, lambda tensor: tensor):
        work(*given)
    return sum(kept.values()), flops.get_total_flops()


def core(q, k, v):
    return dropout(torch.softmax(q @ k.transpose(1, 2) / D**0.5, -1), 0.1) @ v


def rest(x, qkv, out, up, down):
    y = x + dropout((layer_norm(x, [H]) @ qkv)[:, :H] @ out, 0.1)
    return y + dropout(gelu(layer_norm(y, [H]) @ up) @ down, 0.1)


of_core = cost(core, [(A, S, D)] * 3, [])
of_rest = cost(rest, [(S, H)], [(H, 3 * H), (H, H), (H, 4 * H), (4 * H, H)])
shares = [a / (a + b) for a, b in zip(of_core, of_rest, strict=True)]
print(f"share_of_bytes = {shares[0]:.1f}\nshare_of_flops = {shares[1]:.2f}")
