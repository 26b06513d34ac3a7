"""What `inference` is set to do: a text after training."""

from __future__ import annotations

import torch.distributed as dist

from mini_impls import inference, inference_apart, model
from mini_impls.demos.inference import generate_alone
from mini_impls.faults.works.measures import apart_between_ranks
from mini_impls.launch import Rank
from mini_impls.model import GPTConfig, build_model


def generate_text(rank: Rank) -> dict[str, float]:
    """Continue a prompt with a cache on every rank, and alone without one."""
    config = GPTConfig(num_query_groups=4)
    prompt = model.make_batch(config, step=0, batch_size=4)[0][:, :8]
    expected = generate_alone(build_model(config), prompt, 16)
    gpt = build_model(config)
    context = inference.StaticInferenceContext(4, config.max_sequence_length)
    inference.tensor_parallel(gpt, context, rank.group)
    tokens = inference.generate(gpt, prompt, 16, context).tokens
    new, expected = tokens[:, 8:], expected[:, 8:]
    return {
        "share of new tokens as without a cache": (new == expected)
        .double()
        .mean()
        .item(),
        "apart between ranks": apart_between_ranks([tokens], rank.group),
        "bytes of keys and values": float(context.num_bytes()),
    }


def write_apart(rank: Rank) -> dict[str, float]:
    """Continue prompts on other ranks than read them, and alone without a cache."""
    config = GPTConfig(num_query_groups=4)
    prompts = [
        model.make_batch(config, step=step, batch_size=4)[0][:, :8] for step in range(2)
    ]
    sides = inference_apart.split_ranks(rank.group, 1)
    gpt = build_model(config)
    context = inference.StaticInferenceContext(4, config.max_sequence_length)
    inference.tensor_parallel(gpt, context, sides.tp_group)
    served = inference_apart.serve(gpt, context, prompts, 16, sides)
    alone, shares = build_model(config), []
    for prompt, new in zip(prompts, served.tokens, strict=False):
        expected = generate_alone(alone, prompt, 16)[:, 8:]
        shares.append((new == expected).double().mean().item())
    of_all: list[list[float]] = [[]] * rank.world_size
    dist.all_gather_object(of_all, shares, group=rank.group)
    return {
        "share of new tokens as without a cache": min(x for row in of_all for x in row),
        "bytes of keys and values": float(context.num_bytes()),
    }


WORKS = {
    "inference": generate_text,
    "inference, apart": write_apart,
}
