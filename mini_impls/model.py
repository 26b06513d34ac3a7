"""The small GPT that every mini trains, and a task on which its loss falls.

Embedding, pre-norm blocks of grouped-query attention and MLP, a final norm and an
output layer that may share the embedding's weight. The task needs attention: every
sequence counts by a stride of its own, which only two earlier tokens reveal.

Follows:
- NVIDIA/Megatron-LM: megatron/core/models/gpt/gpt_model.py
- NVIDIA/Megatron-LM: megatron/core/transformer/transformer_layer.py
- NVIDIA/Megatron-LM: megatron/core/transformer/attention.py (rows of `linear_qkv`)

Leaves out:
- rotary positions, attention dropout, sequence-first layout, caches for generation
- every parallelism: `tensor_parallel.py` and its neighbours add it from outside
"""

import math
from collections.abc import Iterable
from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.nn import functional as F

# Dimension letters: B sequences, T tokens, D hidden, V vocabulary, F MLP width,
# N heads, G query groups, H = D/N width of a head.

Batch = tuple[Tensor, Tensor]
"""Tokens and the tokens that follow them, both (B, T)."""


@dataclass(frozen=True, slots=True)
class GPTConfig:
    """Sizes of the model, as Megatron's TransformerConfig and GPTModel name them."""

    vocab_size: int = 64
    max_sequence_length: int = 32
    num_layers: int = 2
    hidden_size: int = 64
    num_attention_heads: int = 4
    num_query_groups: int = 2
    ffn_hidden_size: int = 256
    hidden_dropout: float = 0.0
    share_embeddings_and_output_weights: bool = False

    def __post_init__(self) -> None:
        """Refuse sizes that do not divide."""
        pairs = (
            ("hidden_size", "num_attention_heads"),
            ("num_attention_heads", "num_query_groups"),
        )
        for whole, part in pairs:
            n, d = getattr(self, whole), getattr(self, part)
            if n % d:
                raise ValueError(f"{whole} {n} is not divisible by {part} {d}")

    @property
    def kv_channels(self) -> int:
        """Width of one head."""
        return self.hidden_size // self.num_attention_heads


# --- 1. embedding ---


class Embedding(nn.Module):
    """Word and position embeddings, then dropout."""

    def __init__(self, config: GPTConfig) -> None:
        super().__init__()
        self.word_embeddings = nn.Embedding(config.vocab_size, config.hidden_size)
        self.position_embeddings = nn.Embedding(
            config.max_sequence_length, config.hidden_size
        )
        self.embedding_dropout = nn.Dropout(config.hidden_dropout)

    def forward(self, tokens: Tensor) -> Tensor:
        """Tokens (B, T) -> hidden states (B, T, D)."""
        positions = torch.arange(tokens.size(1), device=tokens.device)
        hidden = self.word_embeddings(tokens) + self.position_embeddings(positions)
        out: Tensor = self.embedding_dropout(hidden)
        return out


# --- 2. attention ---


class SelfAttention(nn.Module):
    """Causal attention in which N/G query heads share one key and one value head."""

    def __init__(self, config: GPTConfig) -> None:
        super().__init__()
        self.num_query_groups = config.num_query_groups
        self.kv_channels = config.kv_channels
        self.heads_per_group = config.num_attention_heads // config.num_query_groups
        # Rows lie group by group, [its queries | key | value], so that a slice of
        # whole groups is a complete smaller attention: tensor parallelism needs that.
        rows = config.num_query_groups * (self.heads_per_group + 2) * self.kv_channels
        self.linear_qkv = nn.Linear(config.hidden_size, rows)
        self.linear_proj = nn.Linear(config.hidden_size, config.hidden_size)

    def forward(self, hidden: Tensor) -> Tensor:
        """(B, T, D) -> (B, T, D)."""
        out: Tensor = self.linear_proj(self.core_attention(self.linear_qkv(hidden)))
        return out

    def core_attention(self, qkv: Tensor) -> Tensor:
        """Rows of whole query groups, (B, T, G(N/G+2)H) -> (B, T, NH)."""
        b, t, _ = qkv.shape
        # (B, T, G, N/G+2, H): in each group its queries, then one key and one value.
        qkv = qkv.view(b, t, -1, self.heads_per_group + 2, self.kv_channels)
        query, key, value = qkv.split([self.heads_per_group, 1, 1], dim=3)
        query = query.flatten(2, 3).transpose(1, 2)  # (B, N, T, H)
        key = key.squeeze(3).transpose(1, 2)  # (B, G, T, H)
        value = value.squeeze(3).transpose(1, 2)  # (B, G, T, H)
        context = F.scaled_dot_product_attention(
            query, key, value, is_causal=True, enable_gqa=True
        )
        return context.transpose(1, 2).reshape(b, t, -1)  # (B, T, NH)


# --- 3. block ---


class MLP(nn.Module):
    """Two linear layers around a GELU."""

    def __init__(self, config: GPTConfig) -> None:
        super().__init__()
        self.linear_fc1 = nn.Linear(config.hidden_size, config.ffn_hidden_size)
        self.linear_fc2 = nn.Linear(config.ffn_hidden_size, config.hidden_size)

    def forward(self, hidden: Tensor) -> Tensor:
        """(B, T, D) -> (B, T, F) -> (B, T, D)."""
        out: Tensor = self.linear_fc2(F.gelu(self.linear_fc1(hidden)))
        return out


class TransformerLayer(nn.Module):
    """Norm, attention, residual; norm, MLP, residual."""

    def __init__(self, config: GPTConfig) -> None:
        super().__init__()
        self.input_layernorm = nn.LayerNorm(config.hidden_size)
        self.self_attention = SelfAttention(config)
        self.pre_mlp_layernorm = nn.LayerNorm(config.hidden_size)
        self.mlp = MLP(config)
        self.hidden_dropout = nn.Dropout(config.hidden_dropout)

    def forward(self, hidden: Tensor) -> Tensor:
        """(B, T, D) -> (B, T, D)."""
        attention = self.self_attention(self.input_layernorm(hidden))
        hidden = hidden + self.hidden_dropout(attention)
        mlp = self.mlp(self.pre_mlp_layernorm(hidden))
        out: Tensor = hidden + self.hidden_dropout(mlp)
        return out


# --- 4. model ---


class GPT(nn.Module):
    """Embedding, `layers`, `final_layernorm`, `output_layer`."""

    def __init__(self, config: GPTConfig) -> None:
        super().__init__()
        self.config = config
        self.embedding = Embedding(config)
        self.layers = nn.ModuleList(
            TransformerLayer(config) for _ in range(config.num_layers)
        )
        self.final_layernorm = nn.LayerNorm(config.hidden_size)
        self.output_layer = nn.Linear(config.hidden_size, config.vocab_size, bias=False)
        if config.share_embeddings_and_output_weights:
            self.output_layer.weight = self.embedding.word_embeddings.weight
        self.apply(self._init_weights)

    def _init_weights(self, module: nn.Module) -> None:
        if isinstance(module, nn.Linear | nn.Embedding):
            nn.init.normal_(module.weight, std=0.02)
        if isinstance(module, nn.Linear) and module.bias is not None:
            nn.init.zeros_(module.bias)
        if isinstance(module, TransformerLayer):
            # GPT-2: what enters the residual stream shrinks with the depth. `apply`
            # reaches children first, so this comes after their own initialisation.
            scale = 1 / math.sqrt(2 * self.config.num_layers)
            with torch.no_grad():
                module.self_attention.linear_proj.weight.mul_(scale)
                module.mlp.linear_fc2.weight.mul_(scale)

    def forward(self, tokens: Tensor) -> Tensor:
        """Tokens (B, T) -> logits (B, T, V)."""
        hidden = self.embedding(tokens)
        for layer in self.layers:
            hidden = layer(hidden)
        logits: Tensor = self.output_layer(self.final_layernorm(hidden))
        return logits


def build_model(config: GPTConfig, *, seed: int = 0) -> GPT:
    """Return a model whose weights depend on `config` and `seed` alone."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        return GPT(config)


def compute_loss(logits: Tensor, labels: Tensor) -> Tensor:
    """Mean cross entropy over all tokens, a scalar; in fp32 whatever the logits."""
    logits, labels = logits.flatten(0, 1), labels.flatten()  # (BT, V), (BT)
    return F.cross_entropy(logits.float(), labels)


# --- 5. task ---


def make_batch(
    config: GPTConfig, *, step: int, batch_size: int, seed: int = 0
) -> Batch:
    """Batch number `step`: rows that count upward by a stride, modulo the vocabulary.

    The whole batch is the same for any world size; a rank takes its `shard_batch`.
    """
    generator = torch.Generator().manual_seed(seed * 1_000_003 + step)
    vocab, length = config.vocab_size, config.max_sequence_length
    start = torch.randint(vocab, (batch_size, 1), generator=generator)
    stride = torch.randint(1, 5, (batch_size, 1), generator=generator)
    line = (start + stride * torch.arange(length + 1)) % vocab  # (B, T+1)
    return line[:, :-1].contiguous(), line[:, 1:].contiguous()


def shard_batch(batch: Batch, *, rank: int, world_size: int) -> Batch:
    """Return this rank's rows of a batch, (B/W, T) each."""
    tokens, labels = batch
    if tokens.size(0) % world_size:
        raise ValueError(
            f"batch of {tokens.size(0)} sequences is not divisible by {world_size}"
        )
    return tokens.chunk(world_size)[rank], labels.chunk(world_size)[rank]


# --- 6. the run that every mini must equal ---


def train_one_process(
    model: nn.Module,
    optimizer: torch.optim.Optimizer,
    batches: Iterable[Batch],
    *,
    chunks: int = 1,
) -> list[float]:
    """Train in place and return the loss of each step, as one process would see it.

    `chunks` cuts a batch as that many ranks would and adds their gradients in rank
    order: for two ranks the very same sums, so a data-parallel run must be bitwise
    equal. Gradients of the last step are left in `.grad`.
    """
    losses = []
    for batch in batches:
        optimizer.zero_grad()
        loss_sum = 0.0
        for rank in range(chunks):
            tokens, labels = shard_batch(batch, rank=rank, world_size=chunks)
            loss = compute_loss(model(tokens), labels)
            (loss / chunks).backward()
            loss_sum += loss.item()
        optimizer.step()
        losses.append(loss_sum / chunks)
    return losses


@dataclass(frozen=True, slots=True)
class Reference:
    """A one-process run for a mini to be held against."""

    batches: list[Batch]
    losses: list[float]
    model: GPT
    """The trained model, gradients of the last step in place."""

    def difference(self, parameters: Iterable[tuple[str, Tensor]]) -> float:
        """Return the largest absolute difference from parameters of the same names."""
        alone = dict(self.model.named_parameters())
        pairs = ((p.detach().cpu(), alone[name].detach()) for name, p in parameters)
        apart = [(a - b).abs().max().double() for a, b in pairs]
        return torch.stack(apart).max().item()  # with NaN, which `max` passes over


def reference_run(
    config: GPTConfig, *, steps: int, batch_size: int, chunks: int, lr: float = 3e-3
) -> Reference:
    """Train `build_model(config)` alone with AdamW on `steps` batches."""
    batches = [make_batch(config, step=i, batch_size=batch_size) for i in range(steps)]
    model = build_model(config)
    optimizer = torch.optim.AdamW(model.parameters(), lr)
    losses = train_one_process(model, optimizer, batches, chunks=chunks)
    return Reference(batches, losses, model)
