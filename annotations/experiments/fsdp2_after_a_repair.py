"""How many times weights get their gradient behind a failed backward that was reset."""

import torch
import torch.distributed as dist
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import fully_shard
from torch.testing._internal.distributed.fake_pg import FakeStore

dist.init_process_group("fake", rank=0, world_size=2, store=FakeStore())
mesh = init_device_mesh("cpu", (2,))


def fail(grad):
    raise MemoryError


def show(name, clears_before):
    """Print one list a step; before them backward raised in front of layer 1."""
    model = torch.nn.Sequential(*(torch.nn.Linear(4, 4) for _ in range(4)))
    for module in (*model[:3], model):
        fully_shard(module, mesh=mesh)
    weights, norms = [layer.weight for layer in model], []
    for do in (torch.clone, fail, torch.clone, torch.clone):
        hook = model[1].register_forward_hook(
            lambda _, args, out, do=do: out.register_hook(do) and None
        )
        try:
            model(torch.ones(1, 4)).sum().backward()
            norms.append([weight.grad.to_local().norm().item() for weight in weights])
        except MemoryError:
            clears_before and model.zero_grad()
            model.reset_iter_state()
            clears_before or model.zero_grad()
        hook.remove(), do is fail or model.zero_grad()
    pairs = [zip(norm, norms[0], strict=True) for norm in norms[1:]]
    print(name, "=", [[round(a / b) for a, b in pair] for pair in pairs])


show("reset_and_cleared", clears_before=False)
show("cleared_and_reset", clears_before=True)
