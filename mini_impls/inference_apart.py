"""Prefill and decode apart: some ranks read prompts, others write, the cache goes over.

A prompt is much work at once, a token is little work again and again. On the same ranks
each long prompt holds up everybody's next token. Here two groups have a model each, cut
as it suits each, and what one knows of a prompt is sent to the other: keys and values
of every layer, and the first new token.

    prefill  | read 0 -> | read 1 -> | read 2 -> |
    decode   |           | write 0   | write 1   | write 2 |

    4 query groups     prefill rank 0: 0 1 2 3   -> decode rank 0: 0 1   rank 1: 2 3
                       2 ranks: 0 1 | 2 3        -> 1 rank: both halves

Follows:
- NVIDIA/Megatron-LM: megatron/core/inference/contexts/static_context.py (what is sent)
- DistServe (arXiv 2401.09670); Splitwise (arXiv 2311.18677)

Leaves out:
- a queue and who is served next, several groups of each kind, prompts cut in chunks
- layers sent while later ones are read, memory that the network writes into by itself
- one process or one group for both: `inference.py`
"""

import time
from collections.abc import Sequence
from dataclasses import dataclass

import torch
import torch.distributed as dist
from torch import Tensor

from mini_impls.inference import StaticInferenceContext, generate
from mini_impls.model import GPT

# Dimension letters: B sequences, S tokens of a prompt, G query groups, g of them in one
# message, H width of a head, P ranks that read, W ranks that write.

# --- 1. who sends which query groups to whom ---


@dataclass(frozen=True, slots=True)
class Handover:
    """Some query groups that a rank of prefill has and a rank of decode needs."""

    sender: int
    receiver: int
    first: int
    """The first query group of all; ranks of each side are counted from 0."""
    last: int
    """The one behind the last."""


def get_handovers(num_query_groups: int, readers: int, writers: int) -> list[Handover]:
    """Return every pair that shares a query group, senders in order.

    Raises:
        ValueError: query groups that ranks of either side cannot share evenly.
    """
    for ranks in (readers, writers):
        if ranks < 1 or num_query_groups % ranks:
            raise ValueError(
                f"{num_query_groups} query groups are not divisible by {ranks} ranks"
            )
    has, needs = num_query_groups // readers, num_query_groups // writers
    found = []
    for sender in range(readers):
        for receiver in range(writers):
            first = max(sender * has, receiver * needs)
            last = min((sender + 1) * has, (receiver + 1) * needs)
            if first < last:
                found.append(Handover(sender, receiver, first, last))
    return found


# --- 2. two groups of the ranks ---


@dataclass(frozen=True, slots=True)
class PromptSides:
    """What one rank knows of both sides."""

    group: dist.ProcessGroup
    """All ranks: those that read come first."""
    tp_group: dist.ProcessGroup
    """The ranks of this one's own side, which share its model."""
    readers: int

    @property
    def reads(self) -> bool:
        """Whether this rank reads prompts."""
        return self.group.rank() < self.readers

    def handovers(self, num_query_groups: int) -> list[Handover]:
        """Return those that this rank has a part in."""
        writers = self.group.size() - self.readers
        mine = self.tp_group.rank()
        return [
            each
            for each in get_handovers(num_query_groups, self.readers, writers)
            if (each.sender if self.reads else each.receiver) == mine
        ]


def split_ranks(group: dist.ProcessGroup, readers: int) -> PromptSides:
    """Return both sides of a group; every rank of the world must call it.

    Raises:
        ValueError: a side without ranks.
    """
    if not 0 < readers < group.size():
        raise ValueError(f"{readers} of {group.size()} ranks read: none would write")
    ranks = dist.get_process_group_ranks(group)
    made = [dist.new_group(side) for side in (ranks[:readers], ranks[readers:])]
    mine = made[0] if group.rank() < readers else made[1]
    assert isinstance(mine, dist.ProcessGroup)
    return PromptSides(group, mine, readers)


# --- 3. the cache goes over ---


def send_cache(
    context: StaticInferenceContext,
    token: Tensor,
    sides: PromptSides,
    num_query_groups: int,
) -> list[tuple[dist.Work, Tensor]]:
    """Send what a prompt left, layer by layer; return what is still under way.

    A message is a copy that lives until it is gone, whatever is read meanwhile.
    """
    length = context.sequence_len_offset
    start = sides.tp_group.rank() * (num_query_groups // sides.readers)
    sent = []
    for each in sides.handovers(num_query_groups):
        to = sides.readers + each.receiver
        mine = slice(each.first - start, each.last - start)
        messages = [token]  # (B, 1)
        for keys, values in context.key_value_memory_dict.values():
            both = torch.stack([keys[:, mine, :length], values[:, mine, :length]])
            messages.append(both)  # (2, B, g, S, H)
        for message in messages:
            work = dist.isend(message, group=sides.group, group_dst=to)
            assert work is not None
            sent.append((work, message))
    return sent


def now() -> float:
    """Return the time once a GPU, if there is one, has done what it was asked for."""
    if torch.cuda.is_initialized():
        torch.cuda.current_stream().synchronize()
    return time.perf_counter()


def receive_cache(
    context: StaticInferenceContext,
    gpt: GPT,
    shape: tuple[int, int],
    sides: PromptSides,
) -> Tensor:
    """Fill a cache with what readers know of (B, S) tokens; return the next token."""
    (b, s), config = shape, gpt.config
    like = gpt.final_layernorm.weight
    token = torch.empty(b, 1, dtype=torch.long, device=like.device)
    layers: list[list[Tensor]] = [[] for _ in gpt.layers]
    for each in sides.handovers(config.num_query_groups):
        dist.recv(token, group=sides.group, group_src=each.sender)  # (B, 1)
        for parts in layers:
            sizes = (2, b, each.last - each.first, s, config.kv_channels)
            part = like.new_empty(sizes)  # (2, B, g, S, H)
            dist.recv(part, group=sides.group, group_src=each.sender)
            parts.append(part)  # (2, B, g, S, H)
    for layer_number, parts in enumerate(layers, 1):
        key, value = torch.cat(parts, dim=2)  # (B, G/W, S, H) each
        context.adjust_key_value(layer_number, key, value)
    context.sequence_len_offset = s
    return token


# --- 4. each side at its work ---


@dataclass(frozen=True, slots=True)
class ServedPrompts:
    """What one rank did."""

    tokens: list[Tensor]
    """Of each prompt, on ranks that write: the new tokens, (B, num_tokens)."""
    busy_s: float
    """Seconds in the model."""
    waited_s: float
    """Seconds for a cache to come, or for the last one to be gone."""


@torch.inference_mode()
def serve(
    gpt: GPT,
    context: StaticInferenceContext,
    prompts: Sequence[Tensor],
    num_tokens: int,
    sides: PromptSides,
) -> ServedPrompts:
    """Continue (B, S) prompts one after another, each by `num_tokens` tokens.

    All ranks know the prompts' shapes; ranks that write look at nothing else of them.
    `gpt` is cut for this side's ranks around `context`.

    Raises:
        ValueError: where a prompt and what continues it do not fit the cache.
    """
    for b, s in (prompt.shape for prompt in prompts):
        for what, size, limit in (
            ("tokens", s + num_tokens, context.max_sequence_length),
            ("sequences", b, context.max_batch_size),
        ):
            if size > limit:
                raise ValueError(f"{size} {what} do not fit a cache for {limit}")
    tokens: list[Tensor] = []
    under_way: list[tuple[dist.Work, Tensor]] = []
    busy, begin = 0.0, now()
    for prompt in prompts:
        context.key_value_memory_dict.clear()  # the next one may have other rows
        context.sequence_len_offset = 0
        if sides.reads:
            start = now()
            made = generate(gpt, prompt, 1, context)  # (B, S + 1)
            busy += now() - start
            token = made.tokens[:, -1:].contiguous()  # (B, 1)
            groups = gpt.config.num_query_groups
            under_way += send_cache(context, token, sides, groups)
        else:
            b, s = prompt.shape
            token = receive_cache(context, gpt, (b, s), sides)  # (B, 1)
            start = now()
            if num_tokens > 1:
                token = generate(gpt, token, num_tokens - 1, context).tokens
            tokens.append(token)  # (B, num_tokens)
            busy += now() - start
    for work, _ in under_way:
        work.wait()
    return ServedPrompts(tokens, busy, now() - begin - busy)
