"""A GPT that recomputes: whole layers, or the parts of each that are large and cheap.

Layers are checkpointed in chunks of some (`uniform`), or one by one the first few
(`block`). Or of every layer three parts can be: the attention's scores, which grow with
the square of the sequence; what the two norms make, which is thrown away; the MLP.
Attention is written out here, for a fused kernel keeps no scores.

    norm* -> qkv -> [ scores, softmax, drop, sum ] -> proj -> drop -> +
    norm* -> [ fc1 -> GELU -> fc2 ] -> drop -> +         * thrown away, filled again

Follows:
- NVIDIA/Megatron-LM: megatron/core/transformer/transformer_block.py
- NVIDIA/Megatron-LM: megatron/core/transformer/transformer_layer.py
- NVIDIA/Megatron-LM: megatron/core/transformer/attention.py

Leaves out:
- slices of the weights: `tensor_parallel.py` puts them in, before this
- parts of experts and latent attention, pipeline stages that recompute fewer batches
"""

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, Literal

import torch
import torch.distributed as dist
from torch import Tensor, nn

from mini_impls import recompute
from mini_impls.model import GPT, Batch, TransformerLayer
from mini_impls.recompute import CheckpointWithoutOutput, RandomStreams, Run

# Dimension letters: B sequences, T tokens, D hidden, N heads, G query groups, R = N/G,
# H = D/N width of a head; heads and groups are those of this rank.

Checkpoint = Callable[..., Tensor]
"""`recompute.checkpoint`, or `recompute_hooks.checkpoint_without_reentrant`."""


@dataclass(frozen=True, slots=True)
class Recompute:
    """What is run again, in Megatron's words."""

    granularity: Literal["full", "selective"] | None = None
    method: Literal["uniform", "block"] = "uniform"
    """Of whole layers: all of them in chunks, or the first ones alone."""
    num_layers: int = 1
    """In a chunk, or how many are the first ones."""
    modules: frozenset[str] = frozenset({"core_attn"})
    """Of each layer: core_attn, layernorm, mlp."""
    distribute_saved_activations: bool = False
    """Whether each rank keeps a slice of the inputs of whole layers."""
    checkpoint: Checkpoint = recompute.checkpoint
    checkpoint_without_output: Callable[..., Any] = CheckpointWithoutOutput

    def __post_init__(self) -> None:
        """Refuse parts that no layer has here, and settings without a meaning."""
        if unknown := self.modules - {"core_attn", "layernorm", "mlp"}:
            raise ValueError(f"no part of a layer here: {', '.join(sorted(unknown))}")
        if self.num_layers < 1:
            raise ValueError(f"{self.num_layers} layers are less than 1")
        if self.distribute_saved_activations and self.granularity != "full":
            raise ValueError("inputs are cut between ranks where whole layers rerun")

    def part(self, module: str) -> bool:
        """Say whether this part of every layer is run again."""
        return self.granularity == "selective" and module in self.modules


# --- 1. attention that keeps its scores, and dropout that keeps a byte ---


def dropout(x: Tensor, p: float, training: bool) -> Tensor:
    """Drop; what stays for backward is a mask of a byte an element, on a CPU too."""
    if not training or p == 0.0:
        return x
    dropped: Tensor = torch.native_dropout(x, p, True)[0]
    return dropped


class CoreAttention(nn.Module):
    """Scores of every pair, softmax, dropout by this rank's stream, sum of values."""

    def __init__(self, master: nn.Module, p: float, streams: RandomStreams) -> None:
        super().__init__()
        self.heads_per_group = int(master.heads_per_group)  # type: ignore[arg-type]
        self.kv_channels = int(master.kv_channels)  # type: ignore[arg-type]
        self.p, self.streams = p, streams

    def forward(self, mixed_qkv: Tensor) -> Tensor:
        """Map rows of whole groups, (B, T, G(R+2)H), to (B, T, GRH)."""
        b, t, _ = mixed_qkv.shape
        r, h = self.heads_per_group, self.kv_channels
        mixed_qkv = mixed_qkv.view(b, t, -1, r + 2, h).permute(0, 2, 3, 1, 4)
        # Each in memory of its own, (B, G, R or 1, T, H): a view would keep all three.
        query, key, value = (x.contiguous() for x in mixed_qkv.split([r, 1, 1], dim=2))
        query = query.flatten(2, 3) / math.sqrt(h)  # (B, G, RT, H)
        scores = query @ key.squeeze(2).transpose(2, 3)  # (B, G, RT, T)
        later = torch.full((t, t), -torch.inf, device=scores.device).triu(1)  # (T, T)
        scores = scores.unflatten(2, (r, t)) + later.to(scores.dtype)  # (B, G, R, T, T)
        probs = scores.softmax(dim=-1)
        if self.training and self.p:
            with self.streams.fork():  # heads are cut between ranks
                probs = dropout(probs, self.p, True)
        context: Tensor = probs.flatten(2, 3) @ value.squeeze(2)  # (B, G, RT, H)
        context = context.unflatten(2, (r, t)).permute(0, 3, 1, 2, 4)  # (B, T, G, R, H)
        return context.reshape(b, t, -1)  # (B, T, GRH)


# --- 2. a layer, of which parts are run again ---


class RecomputedLayer(nn.Module):
    """A layer with the weights and the names of `model.TransformerLayer`."""

    def __init__(
        self,
        master: TransformerLayer,
        plan: Recompute,
        streams: RandomStreams,
        p: float,
    ) -> None:
        super().__init__()
        self.plan, self.streams = plan, streams
        self.hidden_dropout = master.hidden_dropout.p
        self.input_layernorm = master.input_layernorm
        self.self_attention: nn.Module = master.self_attention
        self.core_attention = CoreAttention(self.self_attention, p, streams)
        self.pre_mlp_layernorm = master.pre_mlp_layernorm
        self.mlp: nn.Module = master.mlp

    def forward(self, hidden: Tensor) -> Tensor:
        """(B, T, D) -> (B, T, D)."""
        attention = self.behind(self.input_layernorm, self.attend, hidden)
        hidden = hidden + dropout(attention, self.hidden_dropout, self.training)
        mlp = self.behind(self.pre_mlp_layernorm, self.feed_forward, hidden)
        return hidden + dropout(mlp, self.hidden_dropout, self.training)

    def behind(self, norm: nn.Module, part: Run, hidden: Tensor) -> Tensor:
        """Return what a part makes of the normed states, kept or thrown away."""
        if not (self.plan.part("layernorm") and torch.is_grad_enabled()):
            return part(norm(hidden))
        norm_checkpoint = self.plan.checkpoint_without_output(self.streams)
        output = part(norm_checkpoint.checkpoint(norm, hidden))
        norm_checkpoint.discard_output_and_register_recompute(output)
        return output

    def attend(self, hidden: Tensor) -> Tensor:
        """(B, T, D) -> (B, T, D)."""
        attention = self.self_attention
        mixed_qkv = attention.get_submodule("linear_qkv")(hidden)
        context = self.run("core_attn", self.core_attention, mixed_qkv)
        out: Tensor = attention.get_submodule("linear_proj")(context)
        return out

    def feed_forward(self, hidden: Tensor) -> Tensor:
        """(B, T, D) -> (B, T, F) -> (B, T, D)."""
        return self.run("mlp", self.mlp, hidden)

    def run(self, module: str, run_function: Run, x: Tensor) -> Tensor:
        """Run a part, now alone or in backward once more."""
        if self.plan.part(module):
            return self.plan.checkpoint(run_function, self.streams, x)
        return run_function(x)


# --- 3. a model, of which layers are run again ---


class RecomputedGPT(nn.Module):
    """`model.GPT` with its weights and names, which recomputes what a plan says."""

    def __init__(
        self,
        gpt: GPT,
        plan: Recompute,
        streams: RandomStreams,
        tp_group: dist.ProcessGroup | None = None,
        *,
        attention_dropout: float = 0.0,
    ) -> None:
        super().__init__()
        is_cut = plan.distribute_saved_activations
        if is_cut and tp_group is None:
            raise ValueError("inputs that are cut between ranks need their group")
        self.plan, self.streams = plan, streams
        self.distribute_over = tp_group if is_cut else None
        self.embedding = gpt.embedding
        self.layers = nn.ModuleList()
        for layer in gpt.layers:
            assert isinstance(layer, TransformerLayer)
            self.layers.append(RecomputedLayer(layer, plan, streams, attention_dropout))
        self.final_layernorm = gpt.final_layernorm
        self.output_layer = gpt.output_layer

    def forward(self, tokens: Tensor) -> Tensor:
        """Tokens (B, T) -> logits (B, T, V), or this rank's slice of them."""
        hidden = self.embedding(tokens)
        if torch.is_grad_enabled() and not hidden.requires_grad:
            hidden.requires_grad_()  # a frozen embedding; the weights behind it are not
        hidden = self.run_layers(hidden)
        logits: Tensor = self.output_layer(self.final_layernorm(hidden))
        return logits

    def run_layers(self, hidden: Tensor) -> Tensor:
        """(B, T, D) -> (B, T, D)."""
        plan, count = self.plan, len(self.layers)
        if plan.granularity != "full":
            return self.custom(0, count)(hidden)
        if plan.method == "uniform":  # one input is kept for each chunk
            for start in range(0, count, plan.num_layers):
                end = min(start + plan.num_layers, count)
                hidden = self.checkpoint_handler(self.custom(start, end), hidden)
            return hidden
        for index in range(count):  # whatever the memory holds is not run again
            forward = self.custom(index, index + 1)
            if index < plan.num_layers:
                hidden = self.checkpoint_handler(forward, hidden)
            else:
                hidden = forward(hidden)
        return hidden

    def custom(self, start: int, end: int) -> Run:
        """Return a function that runs some of the layers."""

        def custom_forward(hidden: Tensor) -> Tensor:
            for layer in self.layers[start:end]:
                hidden = layer(hidden)
            return hidden

        return custom_forward

    def checkpoint_handler(self, forward: Run, hidden: Tensor) -> Tensor:
        """Run layers whose input is kept, by each rank or a slice by each."""
        args, over = (forward, self.streams, hidden), self.distribute_over
        if over is None:
            return self.plan.checkpoint(*args)
        return recompute.checkpoint(*args, distribute_over=over)


# --- 4. training ---


def train(
    gpt: RecomputedGPT,
    optimizer: torch.optim.Optimizer,
    batches: Iterable[Batch],
    compute_loss: Callable[[Tensor, Tensor], Tensor],
) -> list[float]:
    """Train in place, with the same batches on every rank; return the losses."""
    losses = []
    for tokens, labels in batches:
        optimizer.zero_grad()
        loss = compute_loss(gpt(tokens), labels)
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return losses
