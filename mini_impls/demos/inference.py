"""Generation with tensor parallelism and a cache, beside one process without one."""

import argparse
import copy
import statistics
import tempfile
from functools import partial
from pathlib import Path

import torch
import torch.distributed as dist
from torch import Tensor

from mini_impls import launch, model
from mini_impls.demos import training
from mini_impls.demos.expected import Estimated, ring_bytes, shape_of
from mini_impls.demos.peaks import generation_bytes
from mini_impls.inference import (
    Generation,
    StaticInferenceContext,
    check_sizes,
    generate,
    tensor_parallel,
)
from mini_impls.inference_apart import PromptSides, serve, split_ranks
from mini_impls.launch import Rank
from mini_impls.model import GPT, GPTConfig
from mini_impls.recorder import Expected
from mini_impls.traffic import CollectiveCounter
from mini_impls.weights import load_weights, save_weights
from readerkit.estimate.activations import kv_cache_bytes
from readerkit.estimate.flops import forward_flops_per_token
from readerkit.wording.numbers import format_seconds

CONFIG = GPTConfig(num_query_groups=4)
PROMPT_LENGTH = 8


@torch.inference_mode()
def generate_alone(gpt: GPT, prompt: Tensor, num_tokens: int) -> Tensor:
    """Continue a prompt with the whole model and no cache: the run to equal."""
    gpt.eval()
    tokens = prompt
    for _ in range(num_tokens):
        logits = gpt(tokens)  # (B, S, V), every position anew
        tokens = torch.cat([tokens, logits[:, -1:].argmax(dim=-1)], dim=1)
    return tokens


def get_cache_bytes(
    config: GPTConfig, batch_size: int, sequence_length: int, world_size: int
) -> int:
    """Return the bytes of keys and values that a rank holds, in fp32."""
    groups = config.num_query_groups // world_size
    numbers = 2 * config.num_layers * batch_size * sequence_length
    return 4 * numbers * groups * config.kv_channels


def get_traffic(
    config: GPTConfig, batch_size: int, num_tokens: int, world_size: int
) -> dict[str, int]:
    """Payload bytes of each operation in a step over `num_tokens` tokens, in fp32."""
    if world_size == 1:
        return {}
    hidden = 4 * batch_size * num_tokens * config.hidden_size
    logits = 4 * batch_size * config.vocab_size
    return {"all_reduce": 2 * config.num_layers * hidden, "all_gather": logits}


def demo(rank: Rank, args: argparse.Namespace) -> None:
    """Train a model alone, hand its weights over, generate on all ranks."""
    config = CONFIG
    batch_size, num_tokens = 4, args.steps
    with training.alone(rank):
        alone, losses = train_alone(rank, config)
    rank.say(f"one process trained {len(losses)} steps, loss {losses[-1]:.4f}")

    # Rank 0 writes, every rank reads and holds what arrived against the digests.
    handed: list[tuple[str, dict[str, str]] | None] = [None]
    with tempfile.TemporaryDirectory() as folder:
        if rank.rank == 0:
            path = Path(folder, "model.safetensors")
            handed = [(str(path), save_weights(alone, path))]
        dist.broadcast_object_list(handed, src=0, group=rank.group)
        assert handed[0] is not None
        weights = load_weights(Path(handed[0][0]), handed[0][1])
        dist.barrier(rank.group)  # rank 0 removes the folder behind this line
    gpt = GPT(config).to(rank.device)
    gpt.load_state_dict(weights, strict=not config.share_embeddings_and_output_weights)
    rank.say_each(f"{len(weights)} tensors arrived with the digests they left with")
    del weights

    context = StaticInferenceContext(batch_size, config.max_sequence_length)
    tensor_parallel(gpt, context, rank.group)
    tokens, _ = model.make_batch(config, step=1_000, batch_size=batch_size)
    prompt = tokens[:, :PROMPT_LENGTH].to(rank.device)
    with CollectiveCounter() as sent:
        made = generate_in_steps(rank, gpt, prompt, num_tokens, context)
    cache_bytes = get_cache_bytes(
        config, batch_size, config.max_sequence_length, rank.world_size
    )
    token = format_seconds(statistics.median(made.token_s or [made.prefill_s]))
    rank.say_each(
        f"prefill {format_seconds(made.prefill_s)}, then {token} a token "
        f"(median); holds {context.num_bytes():,} bytes of keys and values "
        f"(formula {cache_bytes:,})"
    )
    steps = [PROMPT_LENGTH] + [1] * (num_tokens - 1)
    formulas = [get_traffic(config, batch_size, t, rank.world_size) for t in steps]
    for op, payload_bytes in sent.payload_bytes().items():
        expected = sum(formula.get(op, 0) for formula in formulas)
        rank.say(
            f"{num_tokens} tokens: {sent.counts()[op]} {op}, {payload_bytes:,} bytes "
            f"(formula {expected:,})"
        )
    same = torch.equal(made.tokens, generate_alone(alone, prompt, num_tokens))
    rank.say(f"row 0: {' '.join(str(t) for t in made.tokens[0].tolist())}")
    rank.say_each(f"the tokens of one process without a cache: {same}")
    if rank.world_size > 1:
        serve_apart(rank, alone, num_tokens)


def train_alone(rank: Rank, config: GPTConfig) -> tuple[GPT, list[float]]:
    """Return a model that one process trained, without gradients, and its losses."""
    gpt = model.build_model(config).to(rank.device)
    optimizer = torch.optim.AdamW(gpt.parameters(), lr=3e-3)
    batches = [model.make_batch(config, step=i, batch_size=16) for i in range(40)]
    batches = [(t.to(rank.device), y.to(rank.device)) for t, y in batches]
    told = training.counted_alone(rank, batches)
    losses = model.train_one_process(gpt, optimizer, told)
    optimizer.zero_grad()
    return gpt, losses


def generate_in_steps(
    rank: Rank,
    gpt: GPT,
    prompt: Tensor,
    num_tokens: int,
    context: StaticInferenceContext,
) -> Generation:
    """Return what `generate` does, each token a step of its own: the prompt's first."""
    training.collect(rank)
    rank.recorder.parts = min(2, num_tokens)
    tokens, new, seconds = prompt, prompt, []
    for done in range(num_tokens):
        rank.recorder.begin("a token" if done else "the prompt")
        rank.recorder.expect(expected(rank, new, context))
        rank.show("token", done, num_tokens)
        with rank.recorder.step(new.numel()):
            made = generate(gpt, new, 1, context)
        new = made.tokens[:, -1:]
        tokens = torch.cat([tokens, new], dim=1)
        seconds.append(made.prefill_s)
    return Generation(tokens, sum(seconds[:1]), seconds[1:])


def expected(rank: Rank, new: Tensor, context: StaticInferenceContext) -> Expected:
    """Return what a rank is due that reads these tokens and scores behind the last."""
    (batch_size, num_tokens), ranks = new.shape, rank.world_size
    met = context.sequence_len_offset + num_tokens
    forward = partial(forward_flops_per_token, shape_of(CONFIG), sequence=met)
    flops = batch_size * (num_tokens - 1) * forward(logits=False)
    flops += batch_size * forward(logits=True)
    payload = get_traffic(CONFIG, batch_size, num_tokens, ranks)
    peak = generation_bytes(CONFIG, batch=batch_size, tokens=num_tokens, ranks=ranks)
    sent = ring_bytes(payload, ranks)
    return Estimated(sent, flops=float(flops) / ranks, peak_bytes=peak)


def get_handover_bytes(
    config: GPTConfig, shape: tuple[int, int], sides: PromptSides
) -> dict[str, int]:
    """Return what one prompt of this shape has a rank send and receive, in fp32.

    Keys and values of its query groups, and a token to each rank that gets some.
    """
    batch_size, sequence_length = shape
    cache = kv_cache_bytes(
        layers=config.num_layers,
        kv_heads=config.num_query_groups,
        head_dim=config.kv_channels,
        tokens=sequence_length,
        batch=batch_size,
        element_bytes=4,
        tensor_parallel=sides.tp_group.size(),
    )
    partners = len(sides.handovers(config.num_query_groups))
    way = "send" if sides.reads else "recv"
    return {way: int(cache) + 8 * batch_size * partners}


def serve_apart(rank: Rank, alone: GPT, num_tokens: int) -> None:
    """Read three prompts on half of the ranks, continue them on the others."""
    config = CONFIG
    sides = split_ranks(rank.group, rank.world_size // 2)
    gpt = copy.deepcopy(alone)
    context = StaticInferenceContext(4, config.max_sequence_length)
    tensor_parallel(gpt, context, sides.tp_group)
    prompts = [
        model.make_batch(config, step=2_000 + i, batch_size=4)[0][:, :PROMPT_LENGTH]
        for i in range(3)
    ]
    prompts = [prompt.to(rank.device) for prompt in prompts]
    with CollectiveCounter() as sent:
        served = serve(gpt, context, prompts, num_tokens, sides)
    due = get_handover_bytes(config, (4, PROMPT_LENGTH), sides)
    what = "reads" if sides.reads else "writes"
    parts = [
        f"{sent.counts()[way]} {way}, {sent.payload_bytes()[way]:,} bytes "
        f"(formula {len(prompts) * payload_bytes:,})"
        for way, payload_bytes in due.items()
    ]
    text = (
        f"apart, {what}: {', '.join(parts)}; in the model "
        f"{format_seconds(served.busy_s)}, waiting {format_seconds(served.waited_s)}"
    )
    if not sides.reads:
        same = all(
            torch.equal(
                torch.cat([prompt, tokens], dim=1),
                generate_alone(alone, prompt, num_tokens),
            )
            for prompt, tokens in zip(prompts, served.tokens, strict=True)
        )
        text += f"; the tokens of one process: {same}"
    rank.say_each(text)


def check(args: argparse.Namespace) -> None:
    """Raise ValueError where the demo's model does not fit the world."""
    config = CONFIG
    check_sizes(config, args.world)
    room = config.max_sequence_length - PROMPT_LENGTH
    if not 1 <= args.steps <= room:
        raise ValueError(f"--steps {args.steps}: from 1 to {room} tokens fit the cache")


def main(argv: list[str] | None = None) -> int:
    """Run the demo."""
    description = "generation with tensor parallelism and a cache of keys and values"
    return launch.main(demo, description=description, check=check, argv=argv)
