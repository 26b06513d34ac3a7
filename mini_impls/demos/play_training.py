"""DDP, ZeRO and FSDP, written down over one step of a small model of four layers.

Every rank knows what each of them would compute alone, so that a gradient's numbers say
whose terms are in it.
"""

from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import Any

import torch
from torch import Tensor, nn

from mini_impls.ddp import DistributedDataParallel
from mini_impls.demos.play import Notebook, Noted, join, watched, whose
from mini_impls.fsdp_options import fully_shard
from mini_impls.launch import Rank
from mini_impls.zero import ZeroStage1, ZeroStage2
from mini_impls.zero_stage3 import ZeroStage3

WIDTHS = (16, 32, 48, 64, 80)
"""Of the layers' inputs and outputs: each weight has another size, which names it."""
ROWS = 4


def build() -> nn.Sequential:
    """Return four layers, the same on every rank."""
    torch.manual_seed(0)
    pairs = pairwise(WIDTHS)
    return nn.Sequential(*(nn.Linear(i, o, bias=False) for i, o in pairs))


def batch(rank: int) -> Tensor:
    """Return the rows of a rank."""
    generator = torch.Generator().manual_seed(rank + 1)
    return torch.randn(ROWS, WIDTHS[0], generator=generator)


def loss_of(module: nn.Module, rank: int) -> Tensor:
    """Return what a rank would have less of."""
    output: Tensor = module(batch(rank))
    return output.square().sum()


def alone(world_size: int) -> list[list[Tensor]]:
    """Return by layer the gradient that each rank has of its own rows."""
    grads = []
    for rank in range(world_size):
        module = build()
        loss_of(module, rank).backward()
        grads.append([param.grad for param in module.parameters()])
    return [list(each) for each in zip(*grads, strict=True)]


def _names(layers: Sequence[nn.Module]) -> dict[int, int]:
    """Return the number of each layer by the size of its weight."""
    return {p.numel(): i for i, layer in enumerate(layers) for p in layer.parameters()}


# --- data parallelism ---


def ddp(rank: Rank) -> list[Noted]:
    """Write down a backward: gradients fill buckets, and full ones leave."""
    parts, me = alone(rank.world_size), str(rank.rank)
    module = build()
    number = {param: i for i, param in enumerate(module.parameters())}
    notebook: list[Notebook] = []
    for param, i in number.items():

        def ready(_: Tensor, i: int = i) -> None:
            notebook[0].begin("ready", of=f"layers.{i}")

        param.register_post_accumulate_grad_hook(ready)
    # So large that the two last layers fill one bucket, and the first two another.
    model = DistributedDataParallel(
        module, rank.group, bucket_cap_mb=0.02, first_bucket_mb=0.02
    )
    moving: set[int] = set()
    over: set[int] = set()

    def piece(bucket: Any, index: int, param: Any) -> str:
        if bucket.grad_data.untyped_storage().data_ptr() in moving:
            return f"{me}~:{number[param]}"
        if param not in bucket.params_ready and index not in over:
            return "."
        terms = whose(bucket.main_grad[param], parts[number[param]], mean=True)
        return f"{terms}:{number[param]}"

    def look() -> list[str]:
        return [
            " ".join(piece(bucket, index, param) for param in bucket.params)
            for index, bucket in enumerate(model.buckets)
        ]

    def place(tensor: Tensor) -> tuple[str, tuple[int, ...]]:
        sizes = [bucket.grad_data.numel() for bucket in model.buckets]
        index = sizes.index(tensor.numel())
        over.add(index)
        return f"bucket {index}", (index,)

    notebook.append(Notebook(look))
    notebook[0].phase = "backward"
    with watched(notebook[0], place, moving):
        loss_of(model, rank.rank).backward()
    notebook[0].close()
    return notebook[0].entries


def buckets_of(per_rank: list[list[Noted]]) -> dict[str, Any]:
    """Return a run whose slots are the buckets."""
    sizes = [p.nbytes for p in build().parameters()]
    # Pieces carry the numbers of their layers in the end.
    slots = []
    for index, cell in enumerate(per_rank[0][-1].cells):
        layers = [int(word.partition(":")[2]) for word in cell.split()]
        total = sum(sizes[layer] for layer in layers)
        slots.append({"name": f"bucket {index}", "pieces": len(layers), "bytes": total})
    return join(per_rank, slots)


# --- ZeRO ---


def _zero(rank: Rank, make: Callable[[nn.Module, Any], Any]) -> list[Noted]:
    parts, me = alone(rank.world_size), str(rank.rank)
    module = build()
    before = [param.detach().clone() for param in module.parameters()]
    optimizer = make(module, rank.group)
    names, moving = _names([*module.children()]), set[int]()
    layers = [param for layer in module for param in layer.parameters()]
    everything = set(layers)

    def held(i: int, param: nn.Parameter) -> str:
        is_mine = optimizer.param_to_rank[param] == rank.rank
        if not is_mine and param not in getattr(optimizer, "unsharded", everything):
            return "."
        if param.untyped_storage().data_ptr() in moving:
            return "=~"
        is_next = notebook.phase == "update" and not torch.equal(param, before[i])
        return "=:t+1" if is_next else "="

    def gradient(i: int, param: nn.Parameter) -> str:
        flying = getattr(optimizer, "_in_flight", None)
        if flying is not None and flying[0] is param:
            return f"{me}~"
        grad = getattr(optimizer, "main_grad", {}).get(param, param.grad)
        return "." if grad is None else whose(grad, parts[i], mean=True)

    def state(param: nn.Parameter) -> str:
        return "=" if optimizer.optim.state.get(param) else "."

    def look() -> list[str]:
        rows = [held(i, p) for i, p in enumerate(layers)]
        grads = [gradient(i, p) for i, p in enumerate(layers)]
        return [" ".join(row) for row in (rows, grads, [state(p) for p in layers])]

    def place(tensor: Tensor) -> tuple[str, tuple[int, ...]]:
        of = f"layers.{names[tensor.numel()]}"
        is_param = any(p.data_ptr() == tensor.data_ptr() for p in layers)
        return of, (0 if is_param else 1,)

    notebook = Notebook(look)
    _mark(module, notebook, optimizer)
    with watched(notebook, place, moving):
        notebook.phase = "forward"
        loss = loss_of(module, rank.rank)
        notebook.phase = "backward"
        loss.backward()
        optimizer.step()
    notebook.close()
    return notebook.entries


def _mark(module: nn.Module, notebook: Notebook, optimizer: Any) -> None:
    """Note the products, what is freed, and the update."""
    for i, layer in enumerate(module.children()):
        noting = notebook.hook("compute", f"layers.{i}")
        layer.register_forward_pre_hook(noting)

        def later(
            _: nn.Module, args: Any, output: Tensor, noting: Any = noting
        ) -> None:
            output.register_hook(noting)

        layer.register_forward_hook(later)
    local_step = optimizer._local_step

    def update() -> None:
        notebook.phase = "update"
        notebook.begin("update")
        local_step()

    optimizer._local_step = update
    if isinstance(optimizer, ZeroStage3):
        reshard, names = optimizer._reshard, _names([*module.children()])

        def free(param: nn.Parameter) -> None:
            if param in optimizer.unsharded:
                notebook.begin("free", of=f"layers.{names[param.numel()]}")
            reshard(param)

        optimizer._reshard = free  # type: ignore[method-assign]


def zero_1(rank: Rank) -> list[Noted]:
    """Write stage 1 down."""
    return _zero(
        rank,
        lambda module, group: ZeroStage1(
            module.parameters(), torch.optim.Adam, group, lr=0.01
        ),
    )


def zero_2(rank: Rank) -> list[Noted]:
    """Write stage 2 down."""
    return _zero(
        rank,
        lambda module, group: ZeroStage2(
            module.parameters(), torch.optim.Adam, group, lr=0.01
        ),
    )


def zero_3(rank: Rank) -> list[Noted]:
    """Write stage 3 down."""
    return _zero(
        rank,
        lambda module, group: ZeroStage3(
            module, module.parameters(), torch.optim.Adam, group, lr=0.01
        ),
    )


def states_of(per_rank: list[list[Noted]]) -> dict[str, Any]:
    """Return a run whose slots are parameters, gradients, optimizer state."""
    size, pieces = sum(p.nbytes for p in build().parameters()), len(WIDTHS) - 1
    names = {"parameters": size, "gradients": size, "optimizer state": 2 * size}
    slots = [{"name": n, "pieces": pieces, "bytes": b} for n, b in names.items()]
    return join(per_rank, slots)


# --- FSDP ---


def fsdp(rank: Rank) -> list[Noted]:
    """Write a forward and a backward down: each layer a group, gathered ahead."""
    parts, w = alone(rank.world_size), rank.world_size
    module = build()
    layers = [str(i) for i in range(len(module))]
    state = fully_shard(module, rank.group, modules=layers)
    groups = [state.param_groups[name] for name in layers]
    only = [group.fsdp_params[0] for group in groups]
    sizes = [len(param.all_gather_input()) for param in only]
    flying: set[int] = set()  # whose collective has begun and brought nothing yet

    def held(i: int, group: Any) -> str:
        mine = ["=" if r == rank.rank else "." for r in range(w)]
        if group.is_unsharded:
            flying.discard(2 * i)
            mine = ["="] * w
        elif 2 * i in flying:
            mine = ["=" if r == rank.rank else "=~" for r in range(w)]
        return " ".join(mine)

    def gradient(i: int) -> str:
        param = only[i]
        whole, shard = param.unsharded_param.grad, param.sharded_param.grad
        if whole is None:
            whole = param.unsharded_accumulated_grad
        if whole is not None or (shard is None and 2 * i + 1 in flying):
            word = f"{rank.rank}" if whole is not None else f"{rank.rank}~"
            return " ".join([word] * w)
        if shard is None:
            return " ".join(["."] * w)
        own = [part.chunk(w)[rank.rank] for part in parts[i]]
        terms = whose(shard, own, mean=True)
        return " ".join(terms if r == rank.rank else "." for r in range(w))

    def look() -> list[str]:
        return [
            text
            for i, group in enumerate(groups)
            for text in (held(i, group), gradient(i))
        ]

    def place(tensor: Tensor) -> tuple[str, tuple[int, ...]]:
        numel = tensor.numel()
        i = sizes.index(numel) if numel in sizes else sizes.index(numel // w)
        slot = 2 * i + (numel in sizes)  # a gather gives all, a scatter a shard
        return f"layers.{i}", (slot,)

    notebook = Notebook(look)
    for i, group in enumerate(groups):
        _note_group(notebook, module[i], group, f"layers.{i}")
    with watched(notebook, place, begun=flying.update):
        notebook.phase = "forward"
        loss = loss_of(module, rank.rank)
        notebook.phase = "backward"
        loss.backward()
    notebook.close()
    return notebook.entries


def _note_group(notebook: Notebook, layer: nn.Module, group: Any, name: str) -> None:
    """Note the products of a group, and what it frees."""
    reshard, post_backward = group.reshard, group.post_backward

    def free() -> None:
        if group.is_unsharded:
            notebook.begin("free", of=name)
        reshard()

    def ready() -> None:
        notebook.begin("ready", of=name)
        post_backward()

    group.reshard, group.post_backward = free, ready
    layer.register_forward_pre_hook(notebook.hook("compute", name))


def groups_of(per_rank: list[list[Noted]]) -> dict[str, Any]:
    """Return a run whose slots are each group's parameters and gradients."""
    slots = []
    for i, param in enumerate(build().parameters()):
        for what in ("parameters", "gradients"):
            name = f"layers.{i} {what}"
            pieces = {"pieces": len(per_rank), "bytes": param.nbytes}
            slots.append({"name": name, **pieces})
    return join(per_rank, slots)


RUNS = {
    "ddp-buckets": (ddp, buckets_of, "ddp"),
    "zero-1": (zero_1, states_of, "zero"),
    "zero-2": (zero_2, states_of, "zero"),
    "zero-3": (zero_3, states_of, "zero zero_stage3"),
    "fsdp": (fsdp, groups_of, "fsdp fsdp_param fsdp_options"),
}
"""By name: what each rank runs, how their notes are joined, the minis."""
