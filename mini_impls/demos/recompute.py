"""Recomputation: what each way keeps and runs again, beside the formulas."""

import argparse
import gc
import weakref
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import Tensor
from torch.autograd.graph import saved_tensors_hooks
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils.flop_counter import FlopCounterMode

from mini_impls import launch
from mini_impls.demos.expected import shape_of
from mini_impls.demos.formulas import get_tensor_parallel_traffic
from mini_impls.demos.training import Train, train_slices
from mini_impls.launch import Rank
from mini_impls.model import GPT, GPTConfig, build_model, make_batch
from mini_impls.recompute import RandomStreams
from mini_impls.recompute_hooks import checkpoint_without_reentrant, keep
from mini_impls.recompute_model import Recompute, RecomputedGPT, train
from mini_impls.tensor_parallel import check_sizes, tensor_parallel
from mini_impls.traffic import CollectiveCounter
from mini_impls.vocab_parallel_loss import vocab_parallel_cross_entropy
from readerkit.estimate.activations import LayerKind, layer_bytes
from readerkit.estimate.flops import layer_flops_per_token
from readerkit.estimate.recompute import module_flops

CONFIG = GPTConfig(num_query_groups=4)
DROPPING = replace(CONFIG, hidden_dropout=0.1)
ATTENTION_DROPOUT = 0.1
ROWS = 8
FLOAT32 = 4
PRODUCTS = torch.ops.aten.addmm.default, torch.ops.aten.mm.default


def keeping_products(*args: Any) -> Tensor:
    """Return what a part made, of which the products with weights are kept."""
    return checkpoint_without_reentrant(*args, policy=keep(*PRODUCTS))


def selective(*modules: str) -> Recompute:
    """Return the plan that runs these parts of each layer again."""
    return Recompute("selective", modules=frozenset(modules))


FULL = Recompute("full")
PLANS = {
    "nothing again": Recompute(),
    "core_attn": selective("core_attn"),
    "layernorm": selective("layernorm"),
    "mlp": selective("mlp"),
    "core_attn, layernorm, mlp": selective("core_attn", "layernorm", "mlp"),
    "full, uniform": FULL,
    "full, uniform, chunks of 2": replace(FULL, num_layers=2),
    "full, block of 1": replace(FULL, method="block"),
    "full, inputs sharded": replace(FULL, distribute_saved_activations=True),
    "full, by hooks": replace(FULL, checkpoint=checkpoint_without_reentrant),
    "full, by hooks, products kept": replace(FULL, checkpoint=keeping_products),
}


# --- what the estimates say ---


def kept_bytes(config: GPTConfig, plan: Recompute, ranks: int) -> int:
    """Return what the layers keep on one rank, by the estimates and in float32.

    And the mean and the deviation of each token, which norms keep and estimates do not
    count; a norm that runs again keeps none.
    """
    sequence, count = config.max_sequence_length, config.num_layers
    again = {"full": "full", None: "none"}.get(plan.granularity)
    kind = LayerKind(
        sequence=sequence,
        micro_batch=ROWS,
        tensor_parallel=ranks,
        recompute=again or ",".join(sorted(plan.modules)),
        element_bytes=FLOAT32,
    )
    shape = shape_of(config)
    statistics = 2 * 2 * FLOAT32 * sequence * ROWS
    plain = layer_bytes(shape, kind._replace(recompute="none")) + statistics
    one = layer_bytes(shape, kind)
    if plan.granularity != "full":
        norms = 0 if plan.part("layernorm") else statistics
        return int(count * (one + norms))
    if plan.method == "block":
        first = min(plan.num_layers, count)
        return int(first * one + (count - first) * plain)
    cut = ranks if plan.distribute_saved_activations else 1
    chunks = -(-count // plan.num_layers)
    return int(chunks * one) // cut


def products_bytes(config: GPTConfig, ranks: int) -> int:
    """Return what the policy keeps besides: what each product with a weight made."""
    queries = config.num_attention_heads + 2 * config.num_query_groups
    cut = queries * config.kv_channels + config.ffn_hidden_size
    made = cut // ranks + 2 * config.hidden_size
    return config.num_layers * FLOAT32 * ROWS * config.max_sequence_length * made


def flops_again(config: GPTConfig, plan: Recompute, ranks: int) -> int:
    """Return the FLOPs of matrix products that one rank runs again."""
    shape, sequence = shape_of(config), config.max_sequence_length
    layers = config.num_layers
    if plan.granularity == "full":
        each = layer_flops_per_token(shape, sequence=sequence)
        if plan.method == "block":
            layers = min(plan.num_layers, layers)
        if plan.checkpoint is keeping_products:
            each = module_flops(
                shape, frozenset({"core_attn"}), sequence=sequence, moe=False
            )
    elif plan.granularity == "selective":
        each = module_flops(shape, plan.modules, sequence=sequence, moe=False)
    else:
        return 0
    return int(ROWS * sequence * layers * each) // ranks


def get_recompute_traffic(
    config: GPTConfig, num_tokens: int, world_size: int, plan: Recompute
) -> dict[str, int]:
    """Payload bytes of each operation in one step of one rank, in fp32.

    Reentrant: what runs again sends again, to its end.
    """
    traffic = dict(get_tensor_parallel_traffic(config, num_tokens, world_size))
    hidden = FLOAT32 * num_tokens * config.hidden_size
    layers = config.num_layers if world_size > 1 else 0
    if plan.granularity == "full" and plan.method == "block":
        layers = min(layers, plan.num_layers)
    if plan.granularity == "full":
        traffic["all_reduce"] += 2 * layers * hidden
    elif plan.part("mlp"):
        traffic["all_reduce"] += layers * hidden
    if plan.distribute_saved_activations and world_size > 1:
        chunks = -(-config.num_layers // plan.num_layers)
        traffic["all_gather"] = chunks * hidden
    return traffic


# --- what is measured ---


class KeptStorages(TorchDispatchMode):
    """Follows the memory that autograd and policies keep of what runs inside `with`.

    Memory that merely lives is not counted: a thread of gloo lets go of what it sent
    a moment after the call has ended.
    """

    def __init__(self) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.kept: dict[int, weakref.ref[Any]] = {}
        self.hooks = saved_tensors_hooks(self.note, lambda x: x)

    def __enter__(self) -> "KeptStorages":
        """Look on."""
        self.hooks.__enter__()
        super().__enter__()  # type: ignore[no-untyped-call]
        return self

    def __exit__(self, *error: Any) -> None:
        """Look away."""
        super().__exit__(*error)  # type: ignore[no-untyped-call]
        self.hooks.__exit__(*error)

    def __torch_dispatch__(
        self, func: Any, types: Any, args: Any = (), kwargs: Any = None
    ) -> Any:
        """Let the call pass; what a policy keeps was detached."""
        out = func(*args, **(kwargs or {}))
        return self.note(out) if func is torch.ops.aten.detach.default else out

    def note(self, x: Tensor) -> Tensor:
        """Note the memory of a tensor, which may go."""
        storage = x.untyped_storage()
        self.kept[storage._cdata] = weakref.ref(storage)
        return x

    def bytes_left(self, besides: Sequence[Tensor]) -> int:
        """Return the bytes that are kept still, but for the memory of some tensors."""
        gc.collect()
        skipped = {tensor.untyped_storage()._cdata for tensor in besides}
        left = {key: ref() for key, ref in self.kept.items() if key not in skipped}
        return sum(each.nbytes() for each in left.values() if each is not None)


@dataclass(frozen=True, slots=True)
class LayersRun:
    """One forward and backward of the layers."""

    kept_bytes: int
    flops: int
    sent: dict[str, int]
    """Calls of each operation in backward."""
    gradients: dict[str, Tensor]


def watch(rank: Rank, config: GPTConfig, plan: Recompute) -> LayersRun:
    """Return what the layers of a model keep, run and send, with dropout in both."""
    gpt = build_model(config).to(rank.device)
    tensor_parallel(gpt, rank.group)
    streams = RandomStreams(rank.device)
    streams.manual_seed(0, rank.rank)
    model = RecomputedGPT(
        gpt, plan, streams, rank.group, attention_dropout=ATTENTION_DROPOUT
    )
    tokens, _ = make_batch(config, step=0, batch_size=ROWS)
    leaf = model.embedding(tokens.to(rank.device)).detach().requires_grad_()
    hidden = leaf.clone()
    with FlopCounterMode(display=False) as flops:
        with KeptStorages() as kept:
            out = model.run_layers(hidden)
        left = kept.bytes_left(list(model.parameters()))
        with CollectiveCounter() as sent:
            out.square().mean().backward()
    named = model.named_parameters()
    gradients = {name: p.grad for name, p in named if p.grad is not None}
    assert leaf.grad is not None
    gradients["hidden"] = leaf.grad
    return LayersRun(left, flops.get_total_flops(), sent.counts(), gradients)


# --- the demonstration ---


def demo(rank: Rank, args: argparse.Namespace) -> None:
    """Show bytes and FLOPs of every way; train one beside one process."""
    plain = watch(rank, DROPPING, PLANS["nothing again"])
    for name, plan in PLANS.items():
        seen = watch(rank, DROPPING, plan)
        formula = kept_bytes(DROPPING, plan, rank.world_size)
        if plan.checkpoint is keeping_products:
            formula += products_bytes(DROPPING, rank.world_size)
        flops = flops_again(DROPPING, plan, rank.world_size)
        rank.say(
            f"{name}: keeps {seen.kept_bytes} bytes (formula {formula}), "
            f"runs again {seen.flops - plain.flops} (formula {flops}) FLOPs"
        )
        calls = ", ".join(f"{n} {op}" for op, n in seen.sent.items()) or "nothing"
        rank.say(f"    backward sends {calls}")
        off = max(
            (seen.gradients[name] - gradient).abs().max().item()
            for name, gradient in plain.gradients.items()
        )
        rank.say_each(f"    largest difference of a gradient: {off:.1e}")

    streams = RandomStreams(rank.device)
    plan = PLANS["full, inputs sharded"]

    def loss(logits: Tensor, labels: Tensor) -> Tensor:
        return vocab_parallel_cross_entropy(logits, labels, rank.group).mean()

    def cut(gpt: GPT) -> Train:
        tensor_parallel(gpt, rank.group)
        streams.manual_seed(0, rank.rank)
        model = RecomputedGPT(gpt, plan, streams, rank.group)
        return lambda optimizer, batches: train(model, optimizer, batches, loss)

    def traffic(config: GPTConfig, tokens: int, world_size: int) -> dict[str, int]:
        return get_recompute_traffic(config, tokens, world_size, plan)

    def show(gpt: GPT) -> None:
        rank.say("--- full, inputs sharded: trained")

    train_slices(
        rank,
        CONFIG,
        args.steps,
        cut=cut,
        show=show,
        get_traffic=traffic,
        # Layers' inputs are sharded, as those of sequence parallelism.
        layout={"tp": rank.world_size, "sequence_parallel": True, "recompute": "full"},
    )


def check(args: argparse.Namespace) -> None:
    """Raise ValueError where the demo's model does not fit the world."""
    check_sizes(CONFIG, args.world)


def main(argv: list[str] | None = None) -> int:
    """Run the demo on this command line's ranks; return the exit status."""
    description = "recomputation: bytes kept beside FLOPs added"
    return launch.main(demo, description=description, check=check, argv=argv)
