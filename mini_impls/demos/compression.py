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
from mini_impls.demos.expected import FLOAT32, over_steps, peak_bytes, replicated
from mini_impls.demos.training import train_alone, train_beside
from mini_impls.model import GPT, build_model
from readerkit.estimate.compression import cast_ratio, powersgd_ratio, top_k_ratio

ROWS = 8
"""Sequences of each rank."""


def compressors(args: argparse.Namespace) -> dict[str, Compressor]:
    """Return each way to send gradients by the name it is shown under."""
    return {
        "float32": all_reduce,
        "float16": all_reduce_as(torch.float16),
        "uint8": all_gather_uint8,
        f"top {args.share:.0%}": TopK(args.share),
        f"PowerSGD of rank {args.columns}": PowerSGD(args.columns),
    }


def get_traffic(
    gpt: GPT, compress: Compressor, step: int, ranks: int
) -> dict[str, int]:
    """Payload bytes of each operation in a step, by the estimates' ratios.

    What has no sum on the way is gathered: as much from each rank.
    """
    params = list(gpt.parameters())
    numel = sum(param.numel() for param in params)
    whole = FLOAT32 * numel
    if isinstance(compress, TopK):
        kept = max(1, int(compress.share * numel))
        ratio = top_k_ratio(kept_fraction=kept / numel, index_bytes=8)
        return {"all_gather": ranks * round(float(whole / ratio))}
    if isinstance(compress, PowerSGD):
        if step < compress.start_iter:
            return {"all_reduce": whole}
        matrices = [p.flatten(1) if p.dim() > 1 else p.view(-1, 1) for p in params]
        thin = [m for m in matrices if compress.is_worth_it(m)]
        for n, m in (tuple(matrix.shape) for matrix in thin):
            columns = min(n, m, compress.rank)
            ratio = powersgd_ratio(rows=n, columns=m, rank=columns)
            whole -= FLOAT32 * n * m - round(float(FLOAT32 * n * m / ratio))
        return {"all_reduce": whole}
    if compress is all_gather_uint8:
        codes = round(float(whole / cast_ratio(bits=8)))
        scale_and_zero = 2 * FLOAT32
        return {"all_gather": ranks * (codes + scale_and_zero)}
    bits = 8 * FLOAT32 if compress is all_reduce else 16
    return {"all_reduce": round(float(whole / cast_ratio(bits=bits)))}


def demo(rank: launch.Rank, args: argparse.Namespace) -> None:
    """Train the same model once for each way, beside one process."""
    reference = train_alone(rank, args.steps, rows=ROWS)
    ways = compressors(args)
    rank.recorder.parts = len(ways)
    for name, compress in ways.items():
        rank.recorder.begin(name)
        rank.say(f"--- {name}")
        gpt = build_model(reference.model.config).to(rank.device)
        model = CompressedDataParallel(gpt, rank.group, compress)
        optimizer = torch.optim.AdamW(gpt.parameters(), lr=3e-3)
        due = [
            get_traffic(gpt, compress, step, rank.world_size)
            for step in range(args.steps)
        ]
        mean_loss = {"all_reduce": FLOAT32}
        payloads = [(over_steps(due), rank.world_size), (mean_loss, rank.world_size)]
        peak = peak_bytes(gpt.config, rows=ROWS, dp=rank.world_size)
        rank.recorder.expect(
            replicated(gpt.config, rows=ROWS, payloads=payloads, peak=peak)
        )
        sent = train_beside(reference, rank, model, optimizer)
        payload = sent.payload_bytes()
        told = (
            f"{count} {op}, {payload[op]:,} bytes (formula {due[-1].get(op, 0):,})"
            for op, count in sent.counts().items()
        )
        rank.say(f"the last step sent {'; '.join(told)}")
        apart = reference.difference(gpt.named_parameters())
        rank.say(f"furthest a parameter is from the one process: {apart:.1e}")


def check(args: argparse.Namespace) -> None:
    """Refuse a part of the gradients that is none."""
    if not 0 < args.share <= 1:
        raise ValueError(f"--share {args.share:g} is no share above 0, at most 1")
    if args.columns < 1:
        raise ValueError(f"--columns {args.columns} is below 1")


def main(argv: list[str] | None = None) -> int:
    """Run the demo on this command line's ranks; return the exit status."""
    options = {
        "share": (0.01, "share of the elements that top-k sends (default 0.01)"),
        "columns": (2, "columns of PowerSGD's P and Q (default 2; torch's is 1)"),
    }
    return launch.main(
        demo,
        description="Gradient compression.",
        check=check,
        options=options,
        argv=argv,
    )
