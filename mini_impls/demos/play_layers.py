"""Two linear layers cut by columns and by rows, written down forward and backward.

Every rank knows the whole matrices: whose terms a sum has is read off its numbers.
"""

from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor, nn
from torch.nn import functional as F

from mini_impls import sequence_parallel as sp
from mini_impls import tensor_parallel as tp
from mini_impls.demos.play import Notebook, Noted, join, replaced, whose
from mini_impls.launch import Rank

TOKENS, HIDDEN, FFN = 8, 8, 16
SLOTS = ("X", "A", "Y", "B", "Z", "dZ", "dY", "dX")
SHAPES = {
    "X": (TOKENS, HIDDEN),
    "A": (HIDDEN, FFN),
    "Y": (TOKENS, FFN),
    "B": (FFN, HIDDEN),
    "Z": (TOKENS, HIDDEN),
    "dZ": (TOKENS, HIDDEN),
    "dY": (TOKENS, FFN),
    "dX": (TOKENS, HIDDEN),
}


class _Whole:
    """The same two layers in one process, and what each rank's part of them gives."""

    def __init__(self, world_size: int) -> None:
        torch.manual_seed(0)
        self.a, self.b = nn.Linear(HIDDEN, FFN), nn.Linear(FFN, HIDDEN)
        self.x, self.dz = torch.randn(TOKENS, 1, HIDDEN), torch.randn(TOKENS, 1, HIDDEN)
        pre = self.a(self.x)
        y = F.gelu(pre)
        cuts = zip(
            y.chunk(world_size, -1), self.b.weight.chunk(world_size, 1), strict=True
        )
        self.z = [(part @ rows.t()).detach() for part, rows in cuts]
        pre.retain_grad()
        self.b(y).backward(self.dz)
        assert pre.grad is not None
        grads = zip(
            pre.grad.chunk(world_size, -1), self.a.weight.chunk(world_size), strict=True
        )
        self.dx = [(part @ columns).detach() for part, columns in grads]


class _BlockNotes:
    """What a rank holds of each matrix, and the collectives that change it."""

    def __init__(self, rank: Rank, by_tokens: bool) -> None:
        self.rank, self.w, self.by_tokens = rank, rank.world_size, by_tokens
        self.whole = _Whole(self.w)
        self.held = dict.fromkeys(SLOTS, "")
        for name in SLOTS:
            self.put(name, ["."] * self.w)
        self.put_mine("A", "=")
        self.put_mine("B", "=")
        if by_tokens:
            self.put_mine("X", "=")
        else:
            self.put("X", ["="] * self.w)
        self.notebook = Notebook(lambda: [self.held[name] for name in SLOTS])

    def put(self, name: str, pieces: list[str]) -> None:
        self.held[name] = " ".join(pieces)

    def put_mine(self, name: str, text: str) -> None:
        pieces = ["."] * self.w
        pieces[self.rank.rank] = text
        self.put(name, pieces)

    def put_sum(self, name: str, tensor: Tensor) -> None:
        """Say whose terms are in a matrix, whole or this rank's rows of it."""
        parts = self.whole.z if name == "Z" else self.whole.dx
        if tensor.size(0) < TOKENS:
            mine = [part.chunk(self.w)[self.rank.rank] for part in parts]
            self.put_mine(name, whose(tensor, mine))
        else:
            self.put(name, [whose(tensor, parts)] * self.w)

    def moving(self, name: str) -> None:
        pieces = self.held[name].split()
        self.put(name, [p if p == "." else p + "~" for p in pieces])

    def gathered(self, name: str) -> None:
        self.put(name, ["="] * self.w)


class _Later:
    def __init__(self, work: Any, done: Any) -> None:
        self.work, self.done = work, done

    def wait(self) -> None:
        """Wait, and note it."""
        self.work.wait()
        self.done()


def _watched(writer: _BlockNotes) -> dict[str, Any]:
    """Return what takes the place of torch's collectives, and notes them."""
    book = writer.notebook
    names = iter(["X", "Z", "dZ", "X", "dX"] if writer.by_tokens else ["Z", "dX"])

    def noting(does: str, call: Any) -> Any:
        def noted(output: Tensor, *args: Any, **options: Any) -> Any:
            name, given = next(names), [t for t in args[:1] if isinstance(t, Tensor)]
            if does != "all_gather":
                source = given[0] if given else output
                writer.put_sum(name, source.clone())
            size = max(t.nbytes for t in (output, *given))
            slots = (SLOTS.index(name),)
            book.begin(does, of=name, slots=slots, bytes=size)
            work = call(output, *args, **options)
            after = does == "all_gather"

            def done(waits: bool = True) -> None:
                if waits:
                    book.begin("wait", of=name, slots=slots)
                if after:
                    writer.gathered(name)
                else:
                    writer.put_sum(name, output)

            if not options.get("async_op"):
                done(waits=False)
                return work
            writer.moving(name)
            return _Later(work, done)

        return noted

    calls = {"all_reduce": "all_reduce", "all_gather_single": "all_gather"}
    calls["reduce_scatter_single"] = "reduce_scatter"
    return {name: noting(op, getattr(dist, name)) for name, op in calls.items()}


def _block(rank: Rank, by_tokens: bool) -> list[Noted]:
    writer = _BlockNotes(rank, by_tokens)
    whole, book, group = writer.whole, writer.notebook, rank.group
    if by_tokens:
        column: nn.Module = sp.ColumnParallelLinear(whole.a, group)
        row: nn.Module = sp.RowParallelLinear(whole.b, group)
        x, dz = (t.chunk(writer.w)[rank.rank] for t in (whole.x, whole.dz))
    else:
        column = tp.ColumnParallelLinear(whole.a, tp_group=group)
        row = tp.RowParallelLinear(whole.b, tp_group=group)
        x, dz = whole.x, whole.dz
    x = x.detach().requires_grad_()
    with replaced(dist, **_watched(writer)):
        book.phase = "forward"
        pre = column(x)
        book.begin("compute", of="Y = GELU(X A)")
        y = F.gelu(pre)
        writer.put_mine("Y", "=")
        book.begin("compute", of="Z = Y B")
        writer.put("Z", [str(rank.rank)] * writer.w)
        z = row(y)
        book.phase = "backward"

        def arrived(grad: Tensor) -> None:
            book.begin("compute", of="dY = dZ Bᵀ")
            writer.put_mine("dY", "=")

        def before(grad: Tensor) -> None:
            book.begin("compute", of="dX = dY Aᵀ")
            writer.put("dX", [str(rank.rank)] * writer.w)

        y.register_hook(arrived)
        pre.register_hook(before)
        if by_tokens:
            writer.put_mine("dZ", "=")
        else:
            writer.put("dZ", ["="] * writer.w)
        z.backward(dz)
    book.close()
    return book.entries


def tensor_parallel(rank: Rank) -> list[Noted]:
    """Write f and g of tensor parallelism down."""
    return _block(rank, by_tokens=False)


def sequence_parallel(rank: Rank) -> list[Noted]:
    """Write the same down with the tokens cut outside of the layers."""
    return _block(rank, by_tokens=True)


def matrices_of(per_rank: list[list[Noted]]) -> dict[str, Any]:
    """Return a run whose slots are matrices: A is cut by columns, B by rows."""
    slots = []
    for name in SLOTS:
        rows, columns = SHAPES[name]
        down = name in ("X", "B", "Z", "dZ", "dX")
        shape = {"rows": rows, "columns": columns, "down": down}
        cut = {"pieces": len(per_rank), "bytes": rows * columns * 4}
        slots.append({"name": name, **cut, **shape})
    return join(per_rank, slots)


RUNS = {
    "tensor-parallel": (tensor_parallel, matrices_of, "tensor_parallel"),
    "sequence-parallel": (sequence_parallel, matrices_of, "sequence_parallel"),
}
"""By name: what each rank runs, how their notes are joined, the mini."""
for _run in (tensor_parallel, sequence_parallel):
    _run.world_size = 2  # type: ignore[attr-defined]
