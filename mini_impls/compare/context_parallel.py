"""Context parallelism beside torch's ring and gather, and Megatron's heads for tokens.

On both sides a rank sees parts of the sequences. Upstream cuts the batch, brings keys
and queries together, and averages the gradients; the rest of the model is the mini's.
"""

from collections.abc import Callable
from importlib import import_module
from types import SimpleNamespace
from typing import Any

import torch
from torch import Tensor, nn
from torch.autograd import Function
from torch.distributed.device_mesh import DeviceMesh
from torch.distributed.tensor.experimental._context_parallel import (
    _attention as torch_cp,
)
from torch.distributed.tensor.experimental._context_parallel._load_balancer import (
    _HeadTailLoadBalancer,
)
from torch.nn import functional as F
from torch.nn.parallel import DistributedDataParallel

from mini_impls import context_parallel, context_parallel_model, ring_attention
from mini_impls.compare import megatron
from mini_impls.compare.ddp import MegatronSide
from mini_impls.compare.sides import (
    Comparison,
    DataParallelSide,
    Formula,
    Formulas,
    Sides,
    Tolerance,
    all_bytes,
    trained,
)
from mini_impls.context_parallel_model import Attention
from mini_impls.demos.formulas import get_context_parallel_traffic
from mini_impls.launch import Rank
from mini_impls.model import GPT, Batch, GPTConfig, build_model

aten: Any = torch.ops.aten
CONFIG = GPTConfig(num_query_groups=4)
"""As many key heads as query heads: torch's ring knows of no groups."""
ONE_BUCKET_MB = 1024.0
"""More than the model has: upstream too sends its gradients in one call."""

Split = Callable[[Tensor, Tensor, Tensor], tuple[Tensor, Tensor, Tensor]]
"""Maps tokens, labels and positions, (B, T) each, to this rank's (B, T/W)."""


# --- both sides ---


class Positions(nn.Module):
    """Position embeddings of the positions that a split has left here."""

    def __init__(self, embedding: Any) -> None:
        super().__init__()
        self.word_embeddings = embedding.word_embeddings
        self.position_embeddings = embedding.position_embeddings
        self.positions = torch.empty(0)

    def forward(self, tokens: Tensor) -> Tensor:
        """Map (B, T/W) to (B, T/W, D)."""
        words: Tensor = self.word_embeddings(tokens)
        places: Tensor = self.position_embeddings(self.positions)
        return words + places


class OfTokens(DataParallelSide):
    """A side whose ranks see parts of the same sequences."""

    split: Split | None = None
    """Upstream's; the mini has its own."""

    def of_this_rank(self, batch: Batch) -> Batch:
        """Return this rank's part of each sequence."""
        if self.split is None:
            return context_parallel_model.shard_batch(batch, self.rank.group)
        whole = batch[0]
        positions = torch.arange(whole.size(1), device=whole.device).expand_as(whole)
        tokens, labels, mine = self.split(*batch, positions)
        assert isinstance(self.module, GPT)
        assert isinstance(self.module.embedding, Positions)
        self.module.embedding.positions = mine
        return tokens, labels


class MiniSide(OfTokens):
    """Ours."""

    def finish_gradients(self) -> None:
        """Average over the ranks."""
        context_parallel_model.average_gradients(
            self.module.parameters(), self.rank.group
        )


class MegatronTokens(OfTokens, MegatronSide):
    """Megatron's data parallelism around parts of sequences."""


def build_mini(rank: Rank, comparison: Comparison, attention: Attention) -> MiniSide:
    """Return the mini with one way to attend."""
    gpt = build_model(comparison.config).to(rank.device)
    context_parallel_model.context_parallel(gpt, attention, rank.group)
    optimizer = torch.optim.AdamW(gpt.parameters(), comparison.learning_rate)
    return MiniSide(rank, gpt, gpt, optimizer)


def build_frame(rank: Rank, comparison: Comparison, attention: Attention) -> GPT:
    """Return the frame of upstream's model around upstream's way to attend."""
    gpt = build_model(comparison.config).to(rank.device)
    context_parallel_model.context_parallel(gpt, attention, rank.group)
    gpt.add_module("embedding", Positions(gpt.embedding))
    return gpt


def formulas(comparison: Comparison, rank: Rank, gpt: nn.Module, way: str) -> Formulas:
    """Return what a step sends, and all weights on each rank."""
    config, w = comparison.config, rank.world_size
    tokens = comparison.rows_per_rank * config.max_sequence_length
    part = f"4 B x {tokens // w * config.hidden_size:,} of this rank"
    layers = f"{config.num_layers} layers x"
    texts = {
        "all_gather": f"{layers} (keys + values) x {w} x {part}",
        "reduce_scatter": f"{layers} (keys + values) x {w} x {part}",
        "all_to_all": f"{layers} 2 x (queries, keys, values, output) x {part}",
        "send": f"{layers} (3 x {w} - 2) hops x (keys + values) x {part}",
        "recv": f"{layers} (3 x {w} - 2) hops x (keys + values) x {part}",
    }
    params = list(gpt.parameters())
    averaged = {"all_reduce": all_bytes(params, "gradients, each once")}
    traffic = get_context_parallel_traffic(config, tokens, w, way)
    sent = {op: Formula(n, texts[op]) for op, n in traffic.items()}
    theirs = {"all_to_all": sent["send"]} if way == "ring" else sent
    payload: Any = {"mini": averaged | sent, "upstream": averaged | theirs}
    return Formulas(payload, Formulas.alike({}, trained(params)).held)


# --- torch ---


def build_torch(
    rank: Rank, comparison: Comparison, ways: tuple[Attention, Attention], way: str
) -> Sides:
    """Return the mini, and a model on torch's split, attention and DDP."""
    gpt = build_frame(rank, comparison, ways[1])
    mesh = DeviceMesh.from_group(rank.group, rank.device.type)

    def split(*whole: Tensor) -> Any:
        balancer = _HeadTailLoadBalancer(whole[0].size(1), rank.world_size, rank.device)
        return torch_cp._context_parallel_shard(mesh, list(whole), [1, 1, 1], balancer)

    model = DistributedDataParallel(
        gpt,
        process_group=rank.group,
        bucket_cap_mb=ONE_BUCKET_MB,
        gradient_as_bucket_view=True,
    )
    optimizer = torch.optim.AdamW(gpt.parameters(), comparison.learning_rate)
    upstream = OfTokens(rank, model, gpt, optimizer)
    upstream.split = split
    mini = build_mini(rank, comparison, ways[0])
    expected = formulas(comparison, rank, gpt, way)
    return Sides(mini, upstream, {rank.group.group_name: "cp"}, expected)


class TorchRing(Function):
    """torch's ring, forward and backward, around a fused kernel of the device.

    `context_parallel` itself raises on a CPU: its dispatch knows the kernels of GPUs
    alone. The ring below it takes any kernel that returns a logsumexp.
    """

    @staticmethod
    def forward(ctx: Any, query: Tensor, key: Tensor, value: Tensor, group: Any) -> Any:
        """Map (B, N, T/W, H) three times to (B, N, T/W, H)."""
        kernel: Any = _of_gpu if query.is_cuda else _of_cpu
        out, logsumexp = torch_cp._templated_ring_attention(
            group, 2, kernel, query, key, value, is_causal=True
        )
        ctx.save_for_backward(query, key, value, out, logsumexp)
        ctx.group = group
        return out

    @staticmethod
    def backward(ctx: Any, grad_out: Tensor) -> Any:
        """Go round again."""
        kernel: Any = _of_gpu_backward if grad_out.is_cuda else _of_cpu_backward
        named = zip(
            ("query", "key", "value", "out", "logsumexp"),
            ctx.saved_tensors,
            strict=True,
        )
        grads = torch_cp._templated_ring_attention_backward(
            ctx.group,
            2,
            kernel,
            grad_out=grad_out,
            grad_out_name="grad_out",
            is_causal=True,
            **dict(named),
        )
        return (*grads, None)


def _of_cpu(query: Tensor, key: Tensor, value: Tensor, **how: Any) -> Any:
    return aten._scaled_dot_product_flash_attention_for_cpu(query, key, value, **how)


def _of_cpu_backward(query: Tensor, key: Tensor, value: Tensor, **more: Any) -> Any:
    return aten._scaled_dot_product_flash_attention_for_cpu_backward(
        query=query, key=key, value=value, dropout_p=0.0, **more
    )


ROWS_OF_32 = 32
"""A GPU's kernel for float32 fills its logsumexp up to a multiple of so many tokens."""


def _of_gpu(query: Tensor, key: Tensor, value: Tensor, **how: Any) -> Any:
    out, logsumexp, *_ = aten._scaled_dot_product_efficient_attention(
        query, key, value, None, compute_log_sumexp=True, **how
    )
    return out, logsumexp[..., : query.size(2)]  # (B, N, T/W)


def _of_gpu_backward(
    query: Tensor, key: Tensor, value: Tensor, logsumexp: Tensor, **more: Any
) -> Any:
    nowhere = torch.zeros((), dtype=torch.int64)  # no dropout, which would draw there
    grads = aten._scaled_dot_product_efficient_attention_backward(
        grad_out_=more.pop("grad_out"),
        query=query,
        key=key,
        value=value,
        attn_bias=None,
        logsumexp=F.pad(logsumexp, (0, -logsumexp.size(2) % ROWS_OF_32)),
        philox_seed=nowhere,
        philox_offset=nowhere,
        dropout_p=0.0,
        grad_input_mask=[True, True, True, False],
        **more,
    )
    return grads[:3]


def torch_ring(query: Tensor, key: Tensor, value: Tensor, group: Any) -> Tensor:
    """Attend by torch's ring; (B, G, 1, T/W, H) is (B, N, T/W, H) for it."""
    inputs = (each.squeeze(2) for each in (query, key, value))
    output: Tensor = TorchRing.apply(*inputs, group)  # type: ignore[no-untyped-call]
    return output.unsqueeze(2)


def build_torch_ring(rank: Rank, comparison: Comparison) -> Sides:
    """Return both rings."""
    torch_cp.set_rotate_method("alltoall")
    ways = ring_attention.ring_attention, torch_ring
    return build_torch(rank, comparison, ways, "ring")


def build_torch_all_gather(rank: Rank, comparison: Comparison) -> Sides:
    """Return both gathers: torch's is what its context parallelism does for flex."""
    style = torch_cp._ContextParallel
    flex = style(seq_dim=2, attention_type=style.AttentionType.FLEX)
    mesh = DeviceMesh.from_group(rank.group, rank.device.type)
    w = rank.world_size
    tokens = comparison.config.max_sequence_length
    each = [
        context_parallel.positions_of(r, w, tokens).to(rank.device) for r in range(w)
    ]

    def attention(query: Tensor, key: Tensor, value: Tensor, group: Any) -> Tensor:
        inputs = tuple(each.squeeze(2) for each in (query, key, value))
        (_, keys, values), _ = flex.flex_input_fn(None, inputs, {}, mesh)
        gathered = keys.unsqueeze(2), values.unsqueeze(2)
        return context_parallel.attend(
            query, *gathered, each[rank.rank], torch.cat(each)
        )

    ways = context_parallel.all_gather_attention, attention
    return build_torch(rank, comparison, ways, "all-gather")


# --- Megatron ---


def build_megatron(rank: Rank, comparison: Comparison) -> Sides:
    """Return the mini, and a model on Megatron's split, all-to-alls and DDP."""
    groups = megatron.start(rank, context=rank.world_size)
    utils: Any = import_module("megatron.core.utils")
    swaps: Any = import_module("megatron.core.ssm.mamba_context_parallel")
    distributed: Any = import_module("megatron.core.distributed")
    transformer: Any = import_module("megatron.core.transformer")
    config = comparison.config

    def attention(query: Tensor, key: Tensor, value: Tensor, group: Any) -> Tensor:
        n, w = query.size(1), group.size()
        whole = []
        for each in (query, key, value):
            flat = each.permute(3, 0, 1, 2, 4).flatten(2)  # (T/W, B, NH)
            heads = swaps._all_to_all_cp2hp(flat, group)  # (T, B, NH/W)
            heads = swaps._undo_attention_load_balancing(heads, w)
            heads = heads.unflatten(2, (n // w, 1, -1))
            whole.append(heads.permute(1, 2, 3, 0, 4))  # (B, N/W, 1, T, H)
        context = context_parallel.attention(*whole)
        flat = context.permute(3, 0, 1, 2, 4).flatten(2)
        flat = swaps._redo_attention_load_balancing(flat, w)
        flat = swaps._all_to_all_hp2cp(flat, group)  # (T/W, B, NH)
        mine: Tensor = flat.unflatten(2, (n, 1, -1))
        return mine.permute(1, 2, 3, 0, 4)

    def split(tokens: Tensor, labels: Tensor, positions: Tensor) -> Any:
        batch = {"tokens": tokens, "labels": labels, "position_ids": positions}
        mine = SimpleNamespace(**utils.get_batch_on_this_cp_rank(batch))
        return mine.tokens, mine.labels, mine.position_ids

    gpt = build_frame(rank, comparison, attention)
    model = distributed.DistributedDataParallel(
        transformer.TransformerConfig(
            num_layers=config.num_layers,
            hidden_size=config.hidden_size,
            num_attention_heads=config.num_attention_heads,
            context_parallel_size=rank.world_size,
        ),
        distributed.DistributedDataParallelConfig(overlap_grad_reduce=False),
        gpt,
    )
    optimizer = torch.optim.AdamW(gpt.parameters(), comparison.learning_rate)
    upstream = MegatronTokens(model, rank, model, gpt, optimizer)
    upstream.split = split
    mini = build_mini(rank, comparison, context_parallel.ulysses_attention)
    names = dict.fromkeys((rank.group.group_name, *groups), "cp")
    expected = formulas(comparison, rank, gpt, "ulysses")
    return Sides(mini, upstream, names, expected)


# --- all ---


def check(world_size: int) -> None:
    """Raise ValueError where the model cannot be cut so."""
    context_parallel_model.check_sizes(CONFIG, world_size)


def compared(
    upstream: str, build: Any, tolerance: Tolerance, **more: Any
) -> Comparison:
    """Return a comparison of this model."""
    return Comparison(
        mini="context_parallel",
        upstream=upstream,
        build=build,
        tolerance=tolerance,
        config=CONFIG,
        data_parallel=False,
        check=check,
        **more,
    )


OF_SUMS = Tolerance(
    1e-4,
    "gradients of all weights lie in two orders in the two buffers, and gloo's ring "
    "starts each chunk of a buffer at another rank",
)
COMPARISONS = (
    compared(
        "torch_ring",
        build_torch_ring,
        Tolerance(
            1e-3,
            "a fused kernel and written-out scores round apart, and AdamW divides "
            "small sums by their size",
        ),
    ),
    compared(
        "torch_all_gather",
        build_torch_all_gather,
        OF_SUMS,
        of_two_ranks=Tolerance(0.0, "two ranks: a + b = b + a"),
    ),
    compared(
        "megatron",
        build_megatron,
        OF_SUMS,
        of_two_ranks=Tolerance(0.0, "two ranks: a + b = b + a"),
        upstreams=("megatron",),
        shims=("current_device",),
    ),
)
