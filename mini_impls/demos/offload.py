"""Offload: what goes to the host and comes back in a step, and what is waited for."""

import argparse
import time
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any

import torch
import torch.distributed as dist
from torch import nn

from mini_impls import launch
from mini_impls.demos.expected import FLOAT32, Estimated, ring_bytes, shape_of
from mini_impls.demos.peaks import (
    offloaded_activations_bytes,
    offloaded_optimizer_bytes,
    offloaded_states_bytes,
)
from mini_impls.demos.training import counted, drop_hooks, train_alone
from mini_impls.model import (
    GPT,
    GPTConfig,
    Reference,
    build_model,
    compute_loss,
    shard_batch,
)
from mini_impls.offload import HostLink, HostOptimizer, OverlappedHostOptimizer
from mini_impls.offload_activations import (
    ActivationOffload,
    offload_layers,
    save_on_host,
)
from mini_impls.offload_states import OffloadedModel
from mini_impls.recorder import Expected
from readerkit.estimate.flops import step_flops
from readerkit.estimate.layout import Layout
from readerkit.estimate.offload import offload_traffic
from readerkit.estimate.states import precision
from readerkit.wording.numbers import format_seconds

ROWS = 8
WAYS = {"to host": "to the CPU", "to device": "from the CPU"}
"""The mini's names of the two ways, and the estimate's."""


def estimated(config: GPTConfig, world_size: int, what: str) -> dict[str, float]:
    """Return the bytes of each way in one step of a rank, by the estimates.

    A rank's share of all weights, which rows need not divide into.
    """
    stage = 3 if what == "states-cpu" else 1
    layout = Layout(dp=world_size, zero=stage, offload=what, sequence_parallel=False)
    shape, kept = shape_of(config), precision("fp32-16")
    each = {m.way: m.bytes for m in offload_traffic(shape, layout, kept)}
    return {way: float(each[theirs]) for way, theirs in WAYS.items()}


def unit_names(gpt: GPT) -> list[str]:
    """Return the model and its layers."""
    return ["", *(f"layers.{i}" for i in range(len(gpt.layers)))]


def padding(gpt: GPT, world_size: int) -> float:
    """Return the bytes of the rows that are added, a rank's share of them."""
    params = list(gpt.parameters())
    rows = [-(-len(p) // world_size) * world_size for p in params]
    pairs = zip(params, rows, strict=True)
    return sum(c * (p.nbytes // len(p)) - p.nbytes for p, c in pairs) / world_size


# --- 1. what is done in a step ---

Forward = Callable[[torch.Tensor], torch.Tensor]
Parts = tuple[Forward, Callable[[], None], list[nn.Parameter]]
"""What computes logits, what updates, and parameters with hooks."""


def build_optimizer(
    rank: launch.Rank, gpt: GPT, link: HostLink, overlapped: bool
) -> Parts:
    """Return the model with its optimizer on the host, for each rank the whole."""
    kind = OverlappedHostOptimizer if overlapped else HostOptimizer
    optimizer = kind(gpt.parameters(), torch.optim.AdamW, link, lr=3e-3)
    return gpt, optimizer.step, list(gpt.parameters())


def build_states(rank: launch.Rank, gpt: GPT, link: HostLink, prefetch: bool) -> Parts:
    """Return the model with its rows, and their optimizer, on the host."""
    names = unit_names(gpt)
    model = OffloadedModel(gpt, rank.group, link, modules=names, prefetch=prefetch)
    optimizer = torch.optim.AdamW(gpt.parameters(), 3e-3)
    link.forget()

    def step() -> None:
        optimizer.step()
        optimizer.zero_grad()

    return gpt, step, [whole for unit in model.units for whole in unit.wholes]


def build_activations(
    rank: launch.Rank, gpt: GPT, link: HostLink, ahead: bool
) -> Parts:
    """Return the model whose layers' activations wait on the host."""
    optimizer = torch.optim.AdamW(gpt.parameters(), 3e-3)
    offload = ActivationOffload(link, gpt.parameters())
    if ahead:
        offload_layers(gpt.layers, offload)

    def forward(tokens: torch.Tensor) -> torch.Tensor:
        if ahead:
            logits: torch.Tensor = gpt(tokens)
            offload.end_forward()
            return logits
        with save_on_host(link):
            kept: torch.Tensor = gpt(tokens)
            return kept

    def step() -> None:
        mean_gradients(gpt, rank.group)
        optimizer.step()
        optimizer.zero_grad()

    return forward, step, []


def mean_gradients(gpt: nn.Module, group: dist.ProcessGroup) -> None:
    """Replace each gradient by its mean."""
    for param in gpt.parameters():
        assert param.grad is not None
        param.grad /= group.size()
        dist.all_reduce(param.grad, group=group)


BUILD = {
    "optimizer-cpu": (build_optimizer, ("plain", "overlapped")),
    "states-cpu": (build_states, ("plain", "prefetched")),
    "activations": (build_activations, ("plain", "prefetched")),
}


# --- 2. a lane whose end of a copy is seen ---


class SeenLane(ThreadPoolExecutor):
    """Copies as a lane of `HostLink` does; the thread that asks is last to let go.

    The recorder sees what is freed on its own thread alone. What a copy was of would
    look alive until its memory is used again; here, until the next copy is asked for.
    """

    def __init__(self, workers: int, name: str) -> None:
        super().__init__(workers, name)
        self.boxes: list[tuple[Future[Any], list[Any]]] = []

    def submit(self, copy: Any, /, *args: Any, **kwargs: Any) -> Future[Any]:
        """Start a copy, and let go of what earlier ones held."""
        self.forget()
        box = [args]
        done = super().submit(_copy, copy, box)
        self.boxes.append((done, box))
        return done

    def forget(self) -> None:
        """Let go of what ended."""
        for done, box in self.boxes:
            if done.done():
                box.clear()
        self.boxes = [pair for pair in self.boxes if pair[1]]


def forget(link: HostLink) -> None:
    """Let go of what ended in the lanes of a link, where they are seen."""
    for lane in link.lanes.values():
        if isinstance(lane, SeenLane):
            lane.forget()


def _copy(copy: Callable[..., None], box: list[Any]) -> None:
    copy(*box[0])


# --- 3. training, and what it says ---


def train(
    rank: launch.Rank,
    reference: Reference,
    what: str,
    second: bool,
    rate: float | None,
) -> None:
    """Train in one way; say its bytes beside the formula's, and what was waited for."""
    build, names = BUILD[what]
    name, world_size = f"{what}, {names[second]}", rank.world_size
    link = HostLink(rank.device, bytes_per_s=rate)
    if rank.recorder.is_on:
        link.lanes = {way: SeenLane(1, way) for way in link.lanes}
    gpt = build_model(reference.model.config).to(rank.device)
    forward, step, hooked = build(rank, gpt, link, second)
    is_alone = what == "optimizer-cpu"  # each rank trains all of it, as one process
    rank.recorder.expect(expected(gpt.config, rank, what, second))
    losses, begin = [], time.perf_counter()
    for batch in counted(rank, reference.batches, f"{name}, step"):
        parts = range(world_size) if is_alone else [rank.rank]
        total = torch.zeros((), device=rank.device)
        for part in parts:
            tokens, labels = shard_batch(batch, rank=part, world_size=world_size)
            logits = forward(tokens.to(rank.device))
            loss = compute_loss(logits, labels.to(rank.device))
            (loss / len(parts)).backward()
            total += loss.detach()
        step()
        forget(link)
        if not is_alone:
            dist.all_reduce(total, group=rank.group)
        losses.append(total.item() / world_size)
    seconds = (time.perf_counter() - begin) / len(losses)
    link.close()
    drop_hooks(hooked)
    pairs = enumerate(zip(losses, reference.losses, strict=True))
    for done, (here, alone) in pairs if what == "states-cpu" and second else ():
        rank.say(f"step {done}: loss {here:.4f}, one process {alone:.4f}")
    rank.say(f"--- {name}")
    apart = max(abs(a - b) for a, b in zip(losses, reference.losses, strict=True))
    rank.say_each(f"largest difference of a loss from one process: {apart:.1e}")
    say_moved(rank, link, gpt.config, len(losses), what, second)
    busy, waited = sum(link.busy_s.values()), link.exposed_s
    rank.say(
        f"a step took {format_seconds(seconds)}, "
        f"its copies {format_seconds(busy / len(losses))}; "
        f"{format_seconds(waited / len(losses))} were waited for"
    )


def say_moved(
    rank: launch.Rank,
    link: HostLink,
    config: GPTConfig,
    steps: int,
    what: str,
    second: bool,
) -> None:
    """Say the bytes of each way in a step, and what the estimates give."""
    if what == "activations":
        for way in WAYS:
            rank.say(f"{way}: {link.moved[way] // steps:,} bytes a step")
        return
    due = estimated(config, 1 if what == "optimizer-cpu" else rank.world_size, what)
    if what == "optimizer-cpu" and second:  # each microbatch's gradients
        due["to host"] *= rank.world_size
    if what == "states-cpu":
        added = padding(build_model(config), rank.world_size)
        due["to host"] += added
        due["to device"] += 2 * added
    for way, bytes_due in due.items():
        moved = link.moved[way] // steps
        rank.say(f"{way}: {moved:,} bytes (formula {round(bytes_due):,}) a step")


def expected(config: GPTConfig, rank: launch.Rank, what: str, second: bool) -> Expected:
    """Return what a rank is due: of data parallelism, or of all the work alone."""
    ranks, device = rank.world_size, rank.device
    whole = FLOAT32 * sum(p.numel() for p in build_model(config).parameters())
    shape, sequence, rows = shape_of(config), config.max_sequence_length, ROWS
    sent = {"all_reduce": whole}
    if what == "optimizer-cpu":
        sent, rows = {}, ROWS * ranks
        peak = offloaded_optimizer_bytes(
            config, rows=ROWS, overlapped=second, device=device
        )
    elif what == "states-cpu":
        sent = {"all_gather": 2 * whole, "reduce_scatter": whole}
        peak = offloaded_states_bytes(
            config, rows=ROWS, ranks=ranks, prefetch=second, device=device
        )
    else:
        peak = offloaded_activations_bytes(
            config, rows=ROWS, ahead=second, device=device
        )
    flops = step_flops(shape, batch=rows, sequence=sequence)
    return Estimated(ring_bytes(sent, ranks), flops=float(flops), peak_bytes=peak)


# --- 4. on this command line's ranks ---


def demo(rank: launch.Rank, args: argparse.Namespace) -> None:
    """Offload three things, each in two ways, beside one process."""
    rate = args.mb_per_s * 1e6 or None
    if rank.device.type == "cpu":
        rank.say("host and device are two names for this machine's memory here")
    speed = f"{args.mb_per_s:g} MB/s at most, a number that was chosen"
    rank.say(f"each copy is made, and timed: {speed if rate else 'as fast as it is'}")
    reference = train_alone(rank, args.steps, rows=ROWS)
    rank.recorder.parts = 2 * len(BUILD)
    for what, (_, names) in BUILD.items():
        for second in (False, True):
            rank.recorder.begin(f"{what}, {names[second]}")
            train(rank, reference, what, second, rate)


def check(args: argparse.Namespace) -> None:
    """Refuse a link that moves nothing."""
    if not 0 <= args.mb_per_s < float("inf"):
        raise ValueError(f"--mb_per_s {args.mb_per_s:g} is no speed")


def main(argv: list[str] | None = None) -> int:
    """Run the demo on this command line's ranks; return the exit status."""
    options = {
        "mb_per_s": (50.0, "how fast a link is, 0 for as fast as memory (default 50)")
    }
    return launch.main(
        demo,
        description="Offload to host memory.",
        options=options,
        check=check,
        argv=argv,
    )
