"""What `inference` is set to do: a text after training."""

from __future__ import annotations

from mini_impls import inference, model
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


WORKS = {
    "inference": generate_text,
}
