"""What a reader is asked of a step before it is shown: what comes next, and of what.

Asked is only what the record holds: which operation, or where there is but one, how
many bytes; each choice says what it is, and where this step has it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Literal

from readerkit.content.vocabulary import PHASES
from readerkit.evidence.executed_lines import op_name
from readerkit.evidence.record import Event, Record
from readerkit.model.language import Say
from readerkit.render.html.words import Text, Words
from readerkit.wording.numbers import format_bytes

MEANS: Mapping[str, str] = {
    "all_gather": "each rank gives its part, and all have the whole",
    "all_reduce": "each rank gives a whole tensor, and all have the sum",
    "all_to_all": "each rank gives every other a part of its own",
    "barrier": "nothing is sent: ranks wait for each other",
    "broadcast": "one rank gives, and all have it",
    "gather": "each rank gives its part, and one has the whole",
    "recv": "a tensor comes from one rank",
    "reduce": "each rank gives a whole tensor, and one has the sum",
    "reduce_scatter": "each rank gives a whole tensor, and has its part of the sum",
    "scatter": "one rank gives each its part",
    "send": "a tensor goes to one rank",
}
SPLIT = {
    "dp": "the sequences (dp)",
    "tp": "the matrices of each layer (tp)",
    "pp": "the layers (pp)",
}
"""What the ranks of a group have shared out, by the name of the group."""
_MOST = 8
"""Choices beyond which a guess is a lottery."""


@dataclass(frozen=True, slots=True)
class Guess:
    """What may come next."""

    value: str
    why: Text
    """What it is, and where the step has it."""


@dataclass(frozen=True, slots=True)
class Prediction:
    """What rank 0 issues next, as upstream does it."""

    of: Literal["name", "bytes"]
    """The field of a call that is asked for."""
    choices: tuple[Guess, ...]


def prediction(words: Words, record: Record) -> Prediction | None:
    """Return what can be asked; nothing where each answer would be the same."""
    events = record.events[0].upstream if record.events else ()
    by_name: dict[str, list[Event]] = {}
    by_bytes: dict[str, list[Event]] = {}
    for event in sorted(events, key=lambda event: event.payload_bytes):
        by_name.setdefault(op_name(event.op), []).append(event)
        by_bytes.setdefault(format_bytes(event.payload_bytes), []).append(event)
    if 1 < len(by_name) <= _MOST:
        return Prediction("name", tuple(_choices(words, dict(sorted(by_name.items())))))
    if 1 < len(by_bytes) <= _MOST:
        return Prediction("bytes", tuple(_choices(words, by_bytes)))
    return None


def _choices(words: Words, found: Mapping[str, Sequence[Event]]) -> Iterator[Guess]:
    for value, events in found.items():
        yield Guess(value, words.text(partial(_where, events, value)))


def _where(events: Sequence[Event], name: str, say: Say) -> str:
    """Return what a choice is, and how often and when the step has it."""
    found = {event.phase for event in events}
    phases = ", ".join(phase for phase in PHASES if phase in found)
    told = say("{count} in this step, in {phases}").format(
        count=len(events), phases=phases
    )
    if op_name(events[0].op) != name:
        return f"{name}: {told}."
    return f"{name}: {say(MEANS[events[0].op])}; {told}."


def say_set_up(record: Record, say: Say) -> str:
    """Return what is trained, by how many ranks, and what these have shared out."""
    return " ".join(_set_up(record, say))


def _set_up(record: Record, say: Say) -> Iterator[str]:
    work = record.work
    if {"num_layers", "hidden_size", "batch_size", "max_sequence_length"} <= set(work):
        yield say(
            "A GPT of {num_layers} layers of width {hidden_size} takes a step on "
            "{batch_size} sequences of {max_sequence_length} tokens."
        ).format(**work)
        if work.get("microbatches", 1) != 1:
            yield say("They come in {microbatches} microbatches.").format(**work)
    rows = [(e.group, e) for r in record.events for e in (*r.mini, *r.upstream)]
    split = [SPLIT[group] for group in SPLIT if group in dict(rows)]
    if split:
        yield say("{ranks} ranks share out {what}.").format(
            ranks=record.world_size, what=", ".join(map(say, split))
        )
    kept = [h for h in record.held if not h.rank and h.side == "upstream" and h.bytes]
    if kept:
        each = ", ".join(f"{say(h.category)} {format_bytes(h.bytes)}" for h in kept)
        yield say("Between steps one keeps, upstream: {kept}.").format(kept=each)
