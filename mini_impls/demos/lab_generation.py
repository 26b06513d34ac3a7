"""Lab 02: generation on 1, 2 and 4 ranks: milliseconds a token, by width."""

import argparse
import statistics
import tempfile
from pathlib import Path
from typing import Any

import torch

from mini_impls import inference, model
from mini_impls.demos import lab
from mini_impls.inference import StaticInferenceContext
from mini_impls.launch import Rank
from mini_impls.model import GPTConfig
from mini_impls.weights import get_digests, load_weights, save_weights

HIDDEN_SIZES = (128, 256, 512, 1024)
PROMPT_LENGTH = 8
NUM_TOKENS = 16
WORLDS = (1, 2, 4)


def get_config(hidden_size: int) -> GPTConfig:
    """Return the model of one width: heads of 64, each with its own key and value."""
    return GPTConfig(
        num_layers=2,
        hidden_size=hidden_size,
        num_attention_heads=hidden_size // 32,
        num_query_groups=hidden_size // 32,
        ffn_hidden_size=4 * hidden_size,
    )


def worlds_up_to(world_size: int) -> list[int]:
    """Return the points of the curve: those of it that are less, and the last."""
    return [*(world for world in WORLDS if world < world_size), world_size]


def on_rank(
    rank: Rank, folder: str, digests: dict[int, dict[str, str]], rounds: int
) -> list[dict[str, Any]]:
    """Read each model, hold it against its digests, cut it, generate."""
    rows = []
    for hidden_size, sent in digests.items():
        config = get_config(hidden_size)
        weights = load_weights(_path(folder, hidden_size), sent)
        gpt = model.GPT(config)
        gpt.load_state_dict(weights)
        gpt = gpt.to(rank.device)
        context = StaticInferenceContext(1, config.max_sequence_length)
        inference.tensor_parallel(gpt, context, rank.group)
        tokens, _ = model.make_batch(config, step=0, batch_size=1)
        prompt = tokens[:, :PROMPT_LENGTH].to(rank.device)
        prefill, token, made = [], [], None
        where = f"world {rank.world_size}"
        for done in range(rounds + 1):
            rank.show(f"{where}, width {hidden_size}, round", done, rounds + 1)
            context.sequence_len_offset = 0
            made = inference.generate(gpt, prompt, NUM_TOKENS, context)
            prefill.append(made.prefill_s)
            token.append(statistics.median(made.token_s))
        assert made is not None
        hidden = torch.zeros(1, 1, hidden_size, device=rank.device)

        def all_reduces(hidden: torch.Tensor = hidden) -> None:
            for _ in range(2 * config.num_layers):  # noqa: B023
                if rank.world_size > 1:
                    torch.distributed.all_reduce(hidden, group=rank.group)

        waits = [lab.seconds(rank, all_reduces) for _ in range(rounds + 1)]
        rows.append(
            {
                "hidden_size": hidden_size,
                "world_size": rank.world_size,
                "prefill_s": statistics.median(prefill[1:]),
                "token_s": statistics.median(token[1:]),
                "all_reduces_s": statistics.median(waits[1:]),
                "weight_bytes": sum(p.nbytes for p in gpt.parameters()),
                "cache_bytes": context.num_bytes(),
                "tokens": made.tokens[0].tolist(),
                "arrived": _digest(get_digests(weights)),
            }
        )
    return rows


def measure(args: argparse.Namespace) -> dict[str, Any]:
    """Return the numbers of this lab."""
    worlds = worlds_up_to(args.world)
    for hidden_size in HIDDEN_SIZES:
        for world_size in worlds:
            inference.check_sizes(get_config(hidden_size), world_size)
    digests, rows = {}, []
    with tempfile.TemporaryDirectory(prefix="mini-impls-lab-") as folder:
        for hidden_size in HIDDEN_SIZES:
            gpt = model.build_model(get_config(hidden_size))
            digests[hidden_size] = save_weights(gpt, _path(folder, hidden_size))
        for world_size in worlds:
            ranks = lab.run(args, world_size, on_rank, folder, digests)
            for row, *others in zip(*ranks, strict=True):
                arrived = [row["arrived"], *(other["arrived"] for other in others)]
                rows.append({**row, "arrived": arrived})
    return {
        "sent": {str(size): _digest(each) for size, each in digests.items()},
        "curve": rows,
    }


def _path(folder: str, hidden_size: int) -> Path:
    return Path(folder, f"{hidden_size}.safetensors")


def _digest(digests: dict[str, str]) -> dict[str, str]:
    """Return digests short enough to read in a file of results."""
    return {name: digest[:16] for name, digest in digests.items()}


DESCRIPTION = (
    "Generation on 1, 2 and 4 ranks, up to --world: latency a token, at four widths."
)


def main(argv: list[str] | None = None) -> int:
    """Measure and write the result; return the exit status."""
    return lab.main("02", DESCRIPTION, inference, measure, argv, world=WORLDS[-1])


if __name__ == "__main__":
    raise SystemExit(main())
