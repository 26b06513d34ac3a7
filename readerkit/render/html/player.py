"""A mechanism as frames of one drawing: a row for each rank, a column for each slot.

Without a script the last frame stands there, and the table says every step. A frame is
drawn whole, its boxes of one colour as one path, so that it is small.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial

from markupsafe import Markup

from readerkit.evidence.played import (
    HeldPiece,
    PlayedRun,
    SentMessage,
    Slot,
    Still,
    frames,
)
from readerkit.model.language import LANGUAGES, Say, english
from readerkit.render.html.charts import label
from readerkit.render.html.escape import shown
from readerkit.render.html.play_words import phase_of, slot_name, told
from readerkit.render.html.words import Text, Words
from readerkit.wording.numbers import format_bytes

_LEFT, _TOP, _GAP = 54, 34, 20
_CELL = (78.0, 40.0)
"""What a slot without a shape measures."""
_ROOM = 420
"""How wide all columns are, at most, where they can be narrower."""
_LONG = 72
"""The longest side of a matrix."""
_SHORT = 13
"""The shortest."""
_HUES = 8
_LETTER = 5.6
_WIDE = 460
"""From here on a phone shows a part of it at a time, to be pushed along."""


@dataclass(frozen=True, slots=True)
class StepRow:
    """A line of the table: one step."""

    number: int
    phase: Text
    says: Text
    bytes: str
    """Of what was sent or given, all ranks together."""


@dataclass(frozen=True, slots=True)
class Player:
    """A drawing with its frames, and the steps in words."""

    name: str
    image: Markup
    rows: tuple[StepRow, ...]
    has_sums: bool
    """Whether a colour says whose term it is, in some box."""


def player(words: Words, name: str, title: str, run: PlayedRun) -> Player:
    """Return a run to be played."""
    drawn = _Stage(run, words)
    every = list(frames(run))
    before = [*every[:1], *every]
    parts = [
        drawn.frame(index == len(every) - 1, frame, before[index])
        for index, frame in enumerate(every)
    ]
    opening = (
        '<svg class="stage{k}" role="img" viewBox="0 0 {w:g} {h:g}" '
        'width="{w:g}" height="{h:g}" aria-labelledby="{n}-t">'
        '<title id="{n}-t" data-es="{e}">{t}</title>'
    )
    start = Markup(opening).format(
        w=drawn.width,
        h=drawn.height,
        n=f"play-{name}",
        t=shown(title),
        e=shown(words.in_spanish(title)),
        k=" wide" if drawn.width > _WIDE else "",
    )
    image = start + drawn.ground() + Markup("").join(parts) + Markup("</svg>")
    rows = tuple(_row(words, run, index, each) for index, each in enumerate(every))
    sums = any(p.ranks for e in every for pieces in e.cells.values() for p in pieces)
    return Player(name, image, rows, sums)


def _row(words: Words, run: PlayedRun, index: int, frame: Still) -> StepRow:
    step = frame.step
    total = sum(message.bytes for message in step.sent) or step.bytes

    def phase(say: Say) -> str:
        return phase_of(step.phase, say)

    says = words.text(partial(told, run, step))
    return StepRow(index, words.text(phase), says, format_bytes(total) if total else "")


class _Stage:
    """Where everything stands."""

    def __init__(self, run: PlayedRun, words: Words) -> None:
        self.run = run
        self.names = [
            [slot_name(slot.name, say) for say in (english, words.in_spanish)]
            for slot in run.slots
        ]
        self.sizes = [*_sizes(run.slots)]
        self.rank_height = max(height for _, height in self.sizes) + _GAP
        self.x: list[float] = []
        at = float(_LEFT)
        for names, (width, _) in zip(self.names, self.sizes, strict=True):
            lines = [text for name in names for text in _lines(name)]
            room = max(width, max(map(len, lines)) * _LETTER)
            self.x.append(at + (room - width) / 2)
            at += room + _GAP
        self.width = at
        self.height = _TOP + self.rank_height * run.world_size

    def place(self, rank: int, slot: int) -> tuple[float, float, float, float]:
        """Return where a rank has a slot: left, top, width, height."""
        width, height = self.sizes[slot]
        middle = (self.rank_height - _GAP - height) / 2
        return (
            round(self.x[slot], 1),
            round(_TOP + self.rank_height * rank + middle, 1),
            width,
            height,
        )

    def ground(self) -> Markup:
        """Return what all frames share: names, and the outline of every box."""
        parts = []
        for index, names in enumerate(self.names):
            x, _, width, _ = self.place(0, index)
            own, other = names
            shown_in = zip(names, LANGUAGES, strict=True)
            for name, language in shown_in if own != other else ((own, ""),):
                opening = Markup('<g class="b" lang="{}">').format(language)
                parts.append(opening if language else Markup("<g>"))
                lines = _lines(name)
                for row, text in enumerate(lines):
                    over = 12 * (len(lines) - 1 - row)
                    at = x + width / 2, _TOP - 9 - over
                    parts.append(label(*at, "mid name", text))
                parts.append(Markup("</g>"))
        for rank in range(self.run.world_size):
            _, y, _, height = self.place(rank, 0)
            parts.append(label(_LEFT - 10, y + height / 2 + 4, "end", f"rank {rank}"))
        path = "".join(
            _rect(*self.place(rank, slot))
            for rank in range(self.run.world_size)
            for slot in range(len(self.run.slots))
        )
        parts.append(Markup('<path class="empty" d="{}"/>').format(path))
        return Markup("").join(parts)

    def frame(self, is_last: bool, frame: Still, before: Still) -> Markup:
        """Return one frame; the last one is shown where no script chooses."""
        paths: dict[str, str] = defaultdict(str)
        names: list[Markup] = []
        for (rank, slot), pieces in frame.cells.items():
            places = self._pieces(rank, slot)
            for number, (piece, at) in enumerate(zip(pieces, places, strict=True)):
                for kind, path in self._drawn(slot, number, piece, at):
                    paths[kind] += path
                if piece.name:
                    x, y, width, height = at
                    middle = (x + width / 2, y + height / 2 + 3.5)
                    names.append(label(*middle, "mid of", piece.name))
        for message in frame.step.sent:
            paths["sent"] += self._arrow(message)
        for slot in frame.step.slots:
            paths[f"call {frame.step.does}"] += self._bracket(slot)
        kind = "frame on" if is_last else "frame"
        # Edges lie over all that they part.
        in_order = sorted(paths.items(), key=lambda each: each[0] == "edge")
        inner = Markup("").join(
            Markup('<path class="{}" d="{}"/>').format(kind, path)
            for kind, path in in_order
        )
        opening = Markup('<g class="{}"{}>').format(kind, self._eye(frame, before))
        return opening + inner + Markup("").join(names) + Markup("</g>")

    def _eye(self, frame: Still, before: Still) -> Markup:
        """Return where to look, as far as a wide drawing is pushed along."""
        slots = {*frame.step.slots, *(message.slot for message in frame.step.sent)}
        slots = slots or {
            slot
            for (rank, slot), pieces in frame.cells.items()
            if before.cells[rank, slot] != pieces
        }
        if self.width <= _WIDE or not slots:
            return Markup("")
        places = [self.place(0, slot) for slot in slots]
        ends = (min(x for x, *_ in places), max(x + w for x, _, w, _ in places))
        return Markup(' data-x="{:.3f}"').format(sum(ends) / 2 / self.width)

    def _pieces(self, rank: int, slot: int) -> Iterator[tuple[float, ...]]:
        """Yield where each piece of a slot stands."""
        x, y, width, height = self.place(rank, slot)
        count, down = self.run.slots[slot].pieces, self.run.slots[slot].down
        for index in range(count):
            if down:
                yield x, y + height * index / count, width, height / count
            else:
                yield x + width * index / count, y, width / count, height

    def _drawn(
        self, slot: int, number: int, piece: HeldPiece, at: tuple[float, ...]
    ) -> Iterator[tuple[str, str]]:
        """Yield the boxes of a piece: a band for each rank whose term is in it."""
        if not piece.is_here:
            return
        x, y, width, height = at
        first = self.run.slots[slot].first_hue
        own = number if first < 0 else first
        hues = piece.ranks or (own,)
        for index, hue in enumerate(hues):
            across = width / len(hues)
            band = (x + across * index, y, across, height)
            yield f"h{hue % _HUES}{' moving' if piece.is_moving else ''}", _rect(*band)
        if self.run.slots[slot].pieces > 1:
            yield "edge", _rect(x, y, width, height)

    def _arrow(self, message: SentMessage) -> str:
        """Return the way of a message: through the gap, or round what is between."""
        x, top, width, height = self.place(message.source, message.slot)
        _, other, _, _ = self.place(message.target, message.slot)
        middle = x + width / 2
        down = message.target > message.source
        if abs(message.target - message.source) == 1:
            start, end = (top + height, other) if down else (top, other + height)
            return _shaft(middle, start, end)
        side, start, end = x + width, top + height / 2, other + height / 2
        bend = side + 15
        return (
            f"M{side:g} {start:g}C{bend:g} {start:g} {bend:g} {end:g} {side + 3:g} "
            f"{end:g}m4-3l-4 3 4 3"
        )

    def _bracket(self, slot: int) -> str:
        """Return the mark of a call that all ranks make together."""
        x, top, width, _ = self.place(0, slot)
        _, bottom, _, height = self.place(self.run.world_size - 1, slot)
        side = x + width + 4
        return f"M{side:g} {top:g}h5V{bottom + height:g}h-5"


def _shaft(x: float, start: float, end: float) -> str:
    way = 1 if end > start else -1
    tip = end - 2 * way
    back = -4 * way
    return f"M{x:g} {start + 2 * way:g}V{tip:g}m-3 {back:g}l3 {-back:g} 3 {back:g}"


def _rect(x: float, y: float, width: float, height: float) -> str:
    x, y, width, height = (round(each, 1) for each in (x, y, width, height))
    return f"M{x:g} {y:g}h{width:g}v{height:g}h{-width:g}z"


def _lines(name: str) -> list[str]:
    """Return the words of a slot's name, below one another where there are two."""
    return name.split(" ", 1)


def _sizes(slots: Sequence[Slot]) -> Iterator[tuple[float, float]]:
    """Yield width and height of each slot; matrices are on one scale."""
    longest = max(max(slot.rows, slot.columns) for slot in slots)
    width, height = _CELL
    width = max(30.0, min(width, _ROOM / len(slots) - _GAP))
    for slot in slots:
        if longest == 1:
            yield round(width, 1), height
            continue
        scale = _LONG / longest
        yield (
            round(max(_SHORT, slot.columns * scale), 1),
            round(max(_SHORT, slot.rows * scale), 1),
        )
