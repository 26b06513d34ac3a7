"""Compressed gradients: what each way sends, and how far it leads from one process."""

import argparse

import torch

from mini_impls import launch
from mini_impls.compression import (
    CompressedDataParallel,
    Compressor,
    PowerSGD,
    TopK,
    all_gather_uint8,
    all_reduce,
    all_reduce_as,
)
from mini_impls.demos.training import train_alone, train_beside
from mini_impls.model import build_model


def compressors(args: argparse.Namespace) -> dict[str, Compressor]:
    """Return each way to send gradients by the name it is shown under."""
    return {
        "float32": all_reduce,
        "float16": all_reduce_as(torch.float16),
        "uint8": all_gather_uint8,
        f"top {args.share:.0%}": TopK(args.share),
        f"PowerSGD of rank {args.columns:.0f}": PowerSGD(int(args.columns)),
    }


def demo(rank: launch.Rank, args: argparse.Namespace) -> None:
    """Train the same model once for each way, beside one process."""
    reference = train_alone(rank, args.steps)
    ways = compressors(args)
    rank.recorder.parts = len(ways)
    for name, compress in ways.items():
        rank.recorder.begin(name)
        rank.say(f"--- {name}")
        gpt = build_model(reference.model.config).to(rank.device)
        model = CompressedDataParallel(gpt, rank.group, compress)
        optimizer = torch.optim.AdamW(gpt.parameters(), lr=3e-3)
        sent = train_beside(reference, rank, model, optimizer)
        rank.say(f"the last step sent {sent.told()}")
        apart = reference.difference(gpt.named_parameters())
        rank.say(f"furthest a parameter is from the one process: {apart:.1e}")


def main(argv: list[str] | None = None) -> int:
    """Run the demo on this command line's ranks; return the exit status."""
    options = {
        "share": (0.01, "share of the elements that top-k sends (default 0.01)"),
        "columns": (2.0, "columns of PowerSGD's P and Q (default 2; torch's is 1)"),
    }
    return launch.main(
        demo, description="Gradient compression.", options=options, argv=argv
    )
