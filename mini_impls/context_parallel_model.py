"""A model under context parallelism: positions, another attention, averaged gradients.

A rank sees T/W tokens of every sequence, and all of a model but two parts of it works
on them as they are. Positions are those in the whole sequence, and attention is one of
`context_parallel.py` and `ring_attention.py`. For the weights this is data parallelism:
each rank has the gradient of its own tokens' loss, and the mean over ranks is that of
all tokens, because each rank has as many of them.

    embedding at its own places | layers on T/W tokens | loss of T/W | mean over ranks

Follows:
- NVIDIA/Megatron-LM: megatron/core/utils.py (`get_batch_on_this_cp_rank`)
- NVIDIA/Megatron-LM: megatron/core/models/common/embeddings/ (positions of a rank)

Leaves out:
- tensor, pipeline and data parallelism around it: `layout.py`
- buckets and overlap of the gradients (`ddp.py`): here one call behind backward
- dropout's streams of random numbers, tokens that carry no loss
"""

from collections.abc import Callable, Iterable

import torch
import torch.distributed as dist
from torch import Tensor, nn

from mini_impls import model
from mini_impls.context_parallel import positions_of, shard
from mini_impls.model import GPT, Batch, GPTConfig, TransformerLayer, compute_loss

# Dimension letters: B sequences, T tokens, D hidden, N heads, G query groups, R = N/G,
# H width of a head, W world_size.

Attention = Callable[[Tensor, Tensor, Tensor, dist.ProcessGroup], Tensor]
"""Maps this rank's queries (B, G, R, T/W, H), and keys and values (B, G, 1, T/W, H), to
what its queries find among all tokens, (B, G, R, T/W, H)."""

# --- 1. a rank's part of a batch ---


def shard_batch(batch: Batch, group: dist.ProcessGroup) -> Batch:
    """Return this rank's tokens and labels, (B, T/W) each, of (B, T).

    Labels were shifted before: the next token of a chunk's last one is elsewhere.
    """
    rank, world_size = group.rank(), group.size()
    tokens, labels = (shard(each, rank, world_size, dim=1) for each in batch)
    return tokens, labels


# --- 2. the two parts that must know of the other ranks ---


class ContextParallelEmbedding(nn.Module):
    """Position embeddings of where this rank's tokens are in their sequence."""

    def __init__(self, master: model.Embedding, cp_group: dist.ProcessGroup) -> None:
        super().__init__()
        self.word_embeddings = master.word_embeddings
        self.position_embeddings = master.position_embeddings
        self.embedding_dropout, self.cp_group = master.embedding_dropout, cp_group

    def forward(self, tokens: Tensor) -> Tensor:
        """Map (B, T/W) to (B, T/W, D)."""
        rank, world_size = self.cp_group.rank(), self.cp_group.size()
        positions = positions_of(rank, world_size, tokens.size(1) * world_size)  # (T/W)
        hidden = self.word_embeddings(tokens)
        hidden = hidden + self.position_embeddings(positions.to(tokens.device))
        dropped: Tensor = self.embedding_dropout(hidden)
        return dropped


class ContextParallelAttention(nn.Module):
    """The layers of a `SelfAttention`, around another way to attend."""

    def __init__(
        self,
        master: model.SelfAttention,
        attention: Attention,
        cp_group: dist.ProcessGroup,
    ) -> None:
        super().__init__()
        self.linear_qkv, self.linear_proj = master.linear_qkv, master.linear_proj
        self.kv_channels = master.kv_channels
        self.split = [master.heads_per_group, 1, 1]  # R queries, a key, a value
        self.attention, self.cp_group = attention, cp_group

    def forward(self, hidden: Tensor) -> Tensor:
        """Map (B, T/W, D) to (B, T/W, D)."""
        heads = (-1, sum(self.split), self.kv_channels)
        qkv = self.linear_qkv(hidden).unflatten(-1, heads)  # (B, T/W, G, R+2, H)
        qkv = qkv.permute(0, 2, 3, 1, 4)  # (B, G, R+2, T/W, H)
        query, key, value = qkv.split(self.split, dim=2)  # (B, G, R or 1, T/W, H)
        context = self.attention(query, key, value, self.cp_group)  # (B, G, R, T/W, H)
        context = context.permute(0, 3, 1, 2, 4).flatten(2)  # (B, T/W, NH)
        out: Tensor = self.linear_proj(context)
        return out


def check_sizes(config: GPTConfig, world_size: int) -> None:
    """Raise ValueError where sequences or heads are not divisible by the ranks."""
    for name, parts in (("max_sequence_length", 2), ("num_attention_heads", 1)):
        if (whole := getattr(config, name)) % (parts * world_size):
            raise ValueError(f"{name} {whole} is not divisible by {parts * world_size}")


def context_parallel(
    gpt: GPT, attention: Attention, cp_group: dist.ProcessGroup
) -> None:
    """Have `gpt` take the tokens of `shard_batch`; its weights stay whole."""
    embedding = ContextParallelEmbedding(gpt.embedding, cp_group)
    gpt.add_module("embedding", embedding)
    for layer in gpt.layers:
        assert isinstance(layer, TransformerLayer)
        wrapped = ContextParallelAttention(layer.self_attention, attention, cp_group)
        layer.add_module("self_attention", wrapped)


# --- 3. a step ---


def average_gradients(params: Iterable[nn.Parameter], group: dist.ProcessGroup) -> None:
    """Average each `.grad` over the ranks, all of them in one call."""
    grads = [param.grad for param in params if param.grad is not None]
    flat = torch.cat([grad.flatten() for grad in grads])  # (all elements)
    dist.all_reduce(flat, group=group)  # (all elements)
    flat /= group.size()
    pieces = flat.split([grad.numel() for grad in grads])  # (numel) each
    for grad, piece in zip(grads, pieces, strict=True):
        grad.copy_(piece.view_as(grad))  # in its own shape


def train(
    gpt: GPT,
    optimizer: torch.optim.Optimizer,
    batches: Iterable[Batch],
    cp_group: dist.ProcessGroup,
) -> list[float]:
    """Train in place, each rank on its tokens; return the losses of all tokens."""
    losses = []
    for batch in batches:
        tokens, labels = shard_batch(batch, cp_group)
        optimizer.zero_grad()
        loss = compute_loss(gpt(tokens), labels)
        loss.backward()
        average_gradients(gpt.parameters(), cp_group)
        optimizer.step()
        total = loss.detach()
        dist.all_reduce(total, group=cp_group)  # ()
        losses.append(total.item() / cp_group.size())
    return losses
