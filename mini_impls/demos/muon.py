"""Muon on sharded state: two ways to share it, and three for a matrix that is cut."""

import argparse
from collections.abc import Callable, Iterator

import torch
import torch.distributed as dist
from torch import Tensor, nn

from mini_impls import fsdp_options, launch
from mini_impls.demos.expected import Estimated, ring_bytes, shape_of
from mini_impls.demos.formulas import (
    get_layer_wise_traffic,
    get_rows_traffic,
    get_split_traffic,
)
from mini_impls.demos.peaks import UPDATED, muon_owners_bytes, muon_rows_bytes
from mini_impls.demos.training import alone, counted, counted_alone
from mini_impls.model import (
    GPT,
    GPTConfig,
    Reference,
    build_model,
    compute_loss,
    make_batch,
    shard_batch,
    train_one_process,
)
from mini_impls.muon import (
    LayerWiseDistributedOptimizer,
    Muon,
    RowsMuon,
    all_reduce_gradients,
)
from mini_impls.muon_split import TensorParallelMuon, newton_schulz_tp
from mini_impls.recorder import Expected
from mini_impls.traffic import CollectiveCounter
from readerkit.estimate.flops import step_flops

MUON_LR, ADAMW_LR = 5e-3, 3e-3
ROWS = 4
"""Sequences of each rank."""


def hidden_matrices(gpt: nn.Module) -> list[nn.Parameter]:
    """Return the weights of the layers: what Muon is for."""
    named = gpt.named_parameters()
    return [p for name, p in named if name.startswith("layers.") and p.ndim == 2]


def others(gpt: nn.Module) -> list[nn.Parameter]:
    """Return the rest, which AdamW trains."""
    matrices = set(hidden_matrices(gpt))
    return [p for p in gpt.parameters() if p not in matrices]


class Chained(torch.optim.Optimizer):
    """Muon and AdamW as one: what `train_one_process` calls."""

    def __init__(self, gpt: nn.Module, muon: torch.optim.Optimizer) -> None:
        self.both = (muon, torch.optim.AdamW(others(gpt), ADAMW_LR))
        super().__init__(gpt.parameters(), {})

    def step(self) -> None:  # type: ignore[override]  # takes no closure
        """Let each update its own."""
        for optimizer in self.both:
            optimizer.step()


def train_alone(rank: launch.Rank, steps: int) -> Reference:
    """Return one process's run of the default model with Muon and AdamW."""
    config, w = GPTConfig(), rank.world_size
    batches = [make_batch(config, step=i, batch_size=ROWS * w) for i in range(steps)]
    with alone(rank):
        gpt = build_model(config)
        optimizer = Chained(gpt, Muon(hidden_matrices(gpt), MUON_LR))
        told = counted_alone(rank, batches)
        losses = train_one_process(gpt, optimizer, told, chunks=w)
        del optimizer
    return Reference(batches, losses, gpt)


Step = Callable[[], object]
Built = tuple[Step, list[torch.optim.Optimizer], dict[str, int], float]
"""The step, its optimizers, what it should send, and the most it should hold."""


def build_whole(rank: launch.Rank, gpt: GPT) -> Built:
    """Return the step of owners of whole tensors, and what it is due."""
    params, matrices = list(gpt.parameters()), set(hidden_matrices(gpt))
    both: list[torch.optim.Optimizer] = [
        Muon(hidden_matrices(gpt), MUON_LR),
        torch.optim.AdamW(others(gpt), ADAMW_LR),
    ]
    optimizer = LayerWiseDistributedOptimizer(both, rank.group)

    def step() -> None:
        all_reduce_gradients(params, rank.group)
        optimizer.step()

    shares = optimizer.params_list
    mine = shares[rank.rank]
    peak = muon_owners_bytes(
        gpt.config,
        rows=ROWS,
        ranks=rank.world_size,
        state_bytes=sum(UPDATED * p.numel() // (1 + (p in matrices)) for p in mine),
        longest=max(sum(p.numel() for p in share) for share in shares),
    )
    return step, both, get_layer_wise_traffic(shares), peak


def build_rows(rank: launch.Rank, gpt: GPT) -> Built:
    """Return the step of rows of every tensor, and what it is due."""
    shapes = {name: param.shape for name, param in gpt.named_parameters()}
    traffic = get_rows_traffic(gpt, rank.world_size)
    peak = muon_rows_bytes(
        gpt.config,
        rows=ROWS,
        ranks=rank.world_size,
        matrices=[p.shape for p in hidden_matrices(gpt)],
    )
    units = ["", *(f"layers.{i}" for i in range(gpt.config.num_layers))]
    fsdp_options.fully_shard(gpt, rank.group, modules=units)
    num_rows = {param: shapes[name][0] for name, param in gpt.named_parameters()}
    both: list[torch.optim.Optimizer] = [
        RowsMuon(hidden_matrices(gpt), rank.group, num_rows, lr=MUON_LR),
        torch.optim.AdamW(others(gpt), ADAMW_LR),
    ]

    def step() -> None:
        for optimizer in both:
            optimizer.step()

    return step, both, traffic, peak


WAYS = {"whole tensors": build_whole, "rows of each": build_rows}


def train(rank: launch.Rank, reference: Reference, way: str) -> None:
    """Train in one way; say its losses, what it sent, and what a rank keeps."""
    gpt = build_model(reference.model.config).to(rank.device)
    step, optimizers, traffic, peak = WAYS[way](rank, gpt)
    rank.recorder.expect(expected(gpt.config, rank, traffic, peak))
    losses = []
    for tokens, labels in counted(rank, reference.batches, f"{way}, step"):
        here = shard_batch((tokens, labels), rank=rank.rank, world_size=rank.world_size)
        with CollectiveCounter() as sent:
            for param in gpt.parameters():
                param.grad = None
            logits = gpt(here[0].to(rank.device))
            loss = compute_loss(logits, here[1].to(rank.device))
            loss.backward()
            step()
        mean = loss.detach()
        dist.all_reduce(mean, group=rank.group)
        losses.append(mean.item() / rank.world_size)
    for done, (ours, there) in enumerate(zip(losses, reference.losses, strict=True)):
        rank.say(f"{way}, step {done}: loss {ours:.4f}, one process {there:.4f}")
    for op, size in sent.payload_bytes().items():
        rank.say(f"{way}: {op} of {size:,} bytes (formula {traffic.get(op, 0):,})")
    rank.say_each(f"{way}: parameters apart by {apart(rank, reference, gpt):.1e}")
    state = sum(t.nbytes for o in optimizers for t in tensors_of(o))
    rank.say_each(f"{way}: keeps {state:,} bytes of optimizer state")


def apart(rank: launch.Rank, reference: Reference, gpt: GPT) -> float:
    """Return how far the parameters, or this rank's rows, are from one process's."""
    worst = 0.0
    alone = dict(reference.model.named_parameters())
    for name, param in gpt.named_parameters():
        want = alone[name].detach()
        if len(param) != len(want):
            rows = -(-len(want) // rank.world_size)
            want = want[rank.rank * rows :][: len(param)]
        difference = (param.detach().cpu() - want).abs()
        worst = max([worst, *difference.flatten().tolist()])
    return worst


def tensors_of(optimizer: torch.optim.Optimizer) -> Iterator[Tensor]:
    """Yield what an optimizer keeps."""
    for state in optimizer.state.values():
        yield from (t for t in state.values() if isinstance(t, Tensor))


def expected(
    config: GPTConfig, rank: launch.Rank, traffic: dict[str, int], peak: float
) -> Expected:
    """Return what a rank is due; its products are its forward's."""
    flops = step_flops(
        shape_of(config), batch=ROWS, sequence=config.max_sequence_length
    )
    sent = ring_bytes(traffic, rank.world_size)
    return Estimated(sent, flops=float(flops), peak_bytes=peak)


def show_split(rank: launch.Rank) -> None:
    """Cut one momentum by columns; say what each mode sends, and how far it is off."""
    generator = torch.Generator().manual_seed(0)
    whole = torch.randn(48, 24 * rank.world_size, generator=generator)
    exact = newton_schulz_tp(whole, None, None, "blockwise")
    mine = exact.chunk(rank.world_size, 1)[rank.rank]
    part = whole.chunk(rank.world_size, 1)[rank.rank].contiguous().to(rank.device)
    for mode in ("blockwise", "duplicated", "distributed"):
        param = nn.Parameter(part)
        optimizer = TensorParallelMuon([param], rank.group, {param: 1}, mode=mode)
        with CollectiveCounter() as sent:
            update = optimizer.orthogonalize(param, part)
        # Scales apart: a block's is that of its own size.
        update = update / update.norm() * mine.norm()
        apart = ((update.cpu() - mine).norm() / mine.norm()).item()
        want = get_split_traffic((whole.size(0), whole.size(1)), mode)
        got = sum(sent.payload_bytes().values())
        rank.say(
            f"{mode}: {got:,} bytes (formula {sum(want.values()):,}), "
            f"{apart:.1e} of the update from the whole matrix's"
        )


def demo(rank: launch.Rank, args: argparse.Namespace) -> None:
    """Train in both ways beside one process; then one matrix that is cut."""
    reference = train_alone(rank, args.steps)
    rank.recorder.parts = len(WAYS)
    for way in WAYS:
        rank.recorder.begin(way)
        train(rank, reference, way)
    show_split(rank)


def main(argv: list[str] | None = None) -> int:
    """Run the demo on this command line's ranks; return the exit status."""
    return launch.main(demo, description="Muon on sharded state.", argv=argv)
