"""Context parallelism: three ways to attend, what each sends, beside one process."""

import argparse
import math
from dataclasses import replace

from mini_impls import launch
from mini_impls.context_parallel import (
    all_gather_attention,
    chunks_of,
    ulysses_attention,
)
from mini_impls.context_parallel_model import (
    Attention,
    check_sizes,
    context_parallel,
    train,
)
from mini_impls.demos.formulas import get_context_parallel_traffic
from mini_impls.demos.training import Train, next_multiple, train_slices
from mini_impls.launch import Rank
from mini_impls.model import GPT, GPTConfig, build_model
from mini_impls.ring_attention import ring_attention

Traffic = dict[str, int]
WAYS: dict[str, Attention] = {
    "all-gather": all_gather_attention,
    "ulysses": ulysses_attention,
    "ring": ring_attention,
}


def fitted(world_size: int) -> GPTConfig:
    """Return the default model, larger where so many ranks could not share it.

    Each has two chunks of a sequence as long as another, and for Ulysses as many heads.
    """
    plain = GPTConfig()
    both = math.lcm(world_size, plain.num_query_groups)
    heads = next_multiple(both, plain.num_attention_heads)
    return replace(
        plain,
        max_sequence_length=next_multiple(2 * world_size, plain.max_sequence_length),
        num_attention_heads=heads,
        hidden_size=heads * plain.kv_channels,
    )


def demo(rank: Rank, args: argparse.Namespace) -> None:
    """Train once for each way, say what it sends, compare with one process."""
    config = fitted(rank.world_size)
    early, late = chunks_of(rank.rank, rank.world_size)
    count = 2 * rank.world_size
    rank.say_each(f"chunks {early} and {late} of {count} of every sequence")
    if config != GPTConfig():
        rank.say(
            f"a model of {config.num_attention_heads} heads on sequences of "
            f"{config.max_sequence_length} tokens: {rank.world_size} ranks share it"
        )
    rank.recorder.parts = len(WAYS)
    for name, attention in WAYS.items():
        rank.recorder.begin(name)
        rank.say(f"--- {name}")

        def cut(gpt: GPT, attention: Attention = attention) -> Train:
            context_parallel(gpt, attention, rank.group)
            return lambda optimizer, batches: train(gpt, optimizer, batches, rank.group)

        def traffic(config: GPTConfig, tokens: int, w: int, way: str = name) -> Traffic:
            averaged = 4 * sum(p.numel() for p in build_model(config).parameters())
            sent = get_context_parallel_traffic(config, tokens, w, way)
            return {"all_reduce": averaged + 4} | sent  # the loss is added up too

        train_slices(
            rank,
            config,
            args.steps,
            cut=cut,
            show=lambda gpt: None,
            get_traffic=traffic,
            layout={"cp": rank.world_size, "cp_kind": name},
        )


def check(args: argparse.Namespace) -> None:
    """Raise ValueError where the demo's model does not fit the world."""
    check_sizes(fitted(args.world), args.world)


def main(argv: list[str] | None = None) -> int:
    """Run the demo on this command line's ranks; return the exit status."""
    description = "context parallelism beside one process"
    return launch.main(demo, description=description, check=check, argv=argv)
