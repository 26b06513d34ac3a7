"""What a mini did step by step, to be played: who held what, and what was sent.

``tools/make_mechanisms.py`` runs the minis on real ranks and writes it down. What a
rank holds in a slot is a row of pieces, each a word: ``.`` is not here, ``=`` is here,
``02`` is here and the sum of what ranks 0 and 2 gave; ``~`` behind it is on its way,
``:a`` is a name to show.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Literal, NamedTuple

from readerkit.model.freshness import Change
from readerkit.model.stored import Stored

FORMAT = 1

Does = Literal[
    "start",
    "send",
    "all_reduce",
    "reduce_scatter",
    "all_gather",
    "broadcast",
    "reduce",
    "all_to_all",
    "wait",
    "compute",
    "ready",
    "free",
    "update",
    "cut",
    "route",
]
PlayedPhase = Literal[
    "",
    "forward",
    "backward",
    "update",
    "reduce-scatter",
    "all-gather",
    "reduce",
    "broadcast",
    "dispatch",
    "experts",
    "combine",
]


class Slot(Stored, frozen=True, omit_defaults=True):
    """Something that every rank has a place for."""

    name: str
    pieces: int
    """Into how many it is cut."""
    bytes: int
    """Of the whole."""
    rows: int = 1
    columns: int = 1
    """The shape that is drawn."""
    down: bool = False
    """Whether the pieces stand below one another: it is cut by rows."""
    first_hue: int = -1
    """The hue of a piece that is here without a sum; its own number, where negative."""


class SentMessage(Stored, frozen=True, array_like=True):
    """A message from one rank to another."""

    source: int
    target: int
    slot: int
    bytes: int


class PlayedStep(Stored, frozen=True, omit_defaults=True):
    """One thing that happened, on all ranks at once."""

    does: Does
    phase: PlayedPhase = ""
    of: str = ""
    """What it happened to, as the code calls it."""
    slots: tuple[int, ...] = ()
    """Those that a collective works on."""
    bytes: int = 0
    """What a collective was given or gives, whichever is more."""
    sent: tuple[SentMessage, ...] = ()
    cells: Mapping[str, str] = {}
    """``rank.slot`` to its pieces, where they changed."""


class PlayedRun(Stored, frozen=True, omit_defaults=True):
    """A mechanism, played once."""

    world_size: int
    slots: tuple[Slot, ...]
    steps: tuple[PlayedStep, ...]
    """The first one is how it starts."""
    made_from: Mapping[str, str]
    """File to digest."""


class Mechanisms(Stored, frozen=True, omit_defaults=True):
    """The file: every mechanism by name."""

    format: int
    torch: str
    runs: Mapping[str, PlayedRun]


class HeldPiece(NamedTuple):
    """A part of a slot as a rank has it."""

    is_here: bool
    ranks: tuple[int, ...]
    """Whose terms are in its sum; none, where it is no sum."""
    is_moving: bool
    name: str


@dataclass(frozen=True, slots=True)
class Still:
    """How all ranks stand after a step."""

    step: PlayedStep
    cells: Mapping[tuple[int, int], tuple[HeldPiece, ...]]
    """By rank and slot."""


@dataclass(frozen=True, slots=True)
class Played:
    """A run, and what changed since it was made."""

    name: str
    run: PlayedRun
    stale: tuple[Change, ...] = ()


def frames(run: PlayedRun) -> Iterator[Still]:
    """Yield how everything stands after each step."""
    cells = {
        (rank, index): tuple(map(parse_piece, ["."] * slot.pieces))
        for rank in range(run.world_size)
        for index, slot in enumerate(run.slots)
    }
    for step in run.steps:
        for key, text in step.cells.items():
            rank, _, slot = key.partition(".")
            cells[int(rank), int(slot)] = tuple(map(parse_piece, text.split()))
        yield Still(step, dict(cells))


def parse_piece(text: str) -> HeldPiece:
    """Return what a word says of a piece.

    >>> parse_piece("02~:a")
    HeldPiece(is_here=True, ranks=(0, 2), is_moving=True, name='a')
    """
    word, _, name = text.partition(":")
    is_moving = word.endswith("~")
    word = word.rstrip("~")
    ranks = tuple(map(int, word)) if word.isdecimal() else ()
    return HeldPiece(word != ".", ranks, is_moving, name)


def sent_bytes(run: PlayedRun) -> list[int]:
    """Return what each rank sent in single messages."""
    totals = [0] * run.world_size
    for step in run.steps:
        for message in step.sent:
            totals[message.source] += message.bytes
    return totals
