"""Plots as SVG: colours come from the page's theme, so one drawing serves both.

Each has a title and a sentence that says in words what it shows, as all its words are
in the languages of a page.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from math import isfinite
from typing import Literal

from markupsafe import Markup, escape

from readerkit.model.language import SPANISH, Say, Told, said
from readerkit.render.html.escape import shown
from readerkit.render.html.words import Words
from readerkit.wording.numbers import format_bytes, format_number

Tell = Callable[[Say], str]
"""Returns words in the language of the phrases that it is given."""
_ENGLISH = Words()
_WIDTH, _HEIGHT = 640, 260
_LEFT, _RIGHT, _TOP, _BOTTOM = 58, 12, 12, 38
_LETTER = 8.8
"""How wide one is, at most on average: on a phone the style sheet makes them larger."""


@dataclass(frozen=True, slots=True)
class Cell:
    """A box in a Gantt chart."""

    row: int
    start: float
    end: float
    text: str
    kind: Literal["F", "B", "W"]
    chunk: int = 0


@dataclass(frozen=True, slots=True)
class MemoryStack:
    """Bytes that are held at once, one on the other."""

    name: str
    parts: tuple[tuple[str, float], ...]


def _frame(
    words: Words, name: str, title: Tell, text: Tell, height: int, inner: Markup
) -> Markup:
    opening = (
        '<svg class="chart" role="img" viewBox="0 0 {w} {h}" '
        'aria-labelledby="{n}-t {n}-d">'
    )
    start = Markup(opening).format(w=_WIDTH, h=height, n=name)
    start += _aloud(words, "title", f"{name}-t", title)
    start += _aloud(words, "desc", f"{name}-d", text)
    return start + inner + Markup("</svg>")


def _aloud(words: Words, tag: str, name: str, tell: Tell) -> Markup:
    """Return what is read aloud; a script puts the Spanish there."""
    told = words.text(tell)
    mark = Markup(' data-es="{}"').format(told.es) if told.es else Markup(' lang="en"')
    whole = '<{t} id="{n}"{m}>{e}</{t}>'
    return Markup(whole).format(t=tag, n=name, m=mark, e=told.en)


def _room(words: Words, labels: Iterable[Tell]) -> float:
    """Return what labels that end before a chart take up, with a gap at either end."""
    told = [words.text(each) for each in labels]
    longest = max(len(text) for each in told for text in (each.en, each.es or ""))
    return 16 + _LETTER * longest


def label(x: float, y: float, kind: str, text: str) -> Markup:
    """Return words at a place; how they stand there, their kind says."""
    at = f'x="{round(x, 1):g}" y="{round(y, 1):g}"'
    return Markup(f'<text {at} class="{escape(kind)}">{shown(text)}</text>')


def spoken(words: Words, x: float, y: float, kind: str, tell: Tell) -> Markup:
    """Return words at a place, in each language; of which a page shows one."""
    told = words.text(tell)
    tag = '<text x="{:g}" y="{:g}" class="{}" lang="{}">{}</text>'
    at = round(x, 1), round(y, 1)
    if told.es is None:
        return Markup(tag).format(*at, kind, "en", told.en)
    own = Markup(tag).format(*at, f"{kind} b", "en", told.en)
    return own + Markup(tag).format(*at, f"{kind} b", SPANISH, told.es)


def box(x: float, y: float, width: float, height: float, kind: str) -> Markup:
    """Return a rectangle; what it looks like, its kind says."""
    at = f'x="{round(x, 2):g}" y="{round(y, 2):g}"'
    size = f'width="{round(width, 2):g}" height="{round(height, 2):g}"'
    return Markup(f'<rect {at} {size} class="{escape(kind)}"/>')


def _line(x1: float, y1: float, x2: float, y2: float, kind: str) -> Markup:
    tag = '<line x1="{:.1f}" y1="{:.1f}" x2="{:.1f}" y2="{:.1f}" class="{}"/>'
    return Markup(tag).format(x1, y1, x2, y2, kind)


def loss_chart(
    name: str, series: Mapping[str, Sequence[float]], words: Words = _ENGLISH
) -> Markup:
    """Return the losses of both sides by step, on one plot."""
    # A side that went wrong may have no number for a loss: it has no point either.
    values = [v for line in series.values() for v in line if isfinite(v)] or [0.0]
    low, high = min(values), max(values)
    room = (high - low) or 1.0
    low, high = low - 0.05 * room, high + 0.05 * room
    steps = max(map(len, series.values()))
    across = (_WIDTH - _LEFT - _RIGHT) / max(steps - 1, 1)

    def place(step: int, value: float) -> tuple[float, float]:
        share = (value - low) / (high - low)
        return _LEFT + across * step, _HEIGHT - _BOTTOM - share * (
            _HEIGHT - _TOP - _BOTTOM
        )

    parts = list(_axis(low, high))
    for step in range(0, steps, max(1, steps // 6)):
        parts.append(label(place(step, low)[0], _HEIGHT - 18, "tick mid", str(step)))
    parts.append(
        spoken(words, _WIDTH / 2, _HEIGHT - 3, "tick mid", lambda say: say("step"))
    )
    for index, (side, line) in enumerate(series.items()):
        known = [at for at in enumerate(line) if isfinite(at[1])]
        points = " ".join("{:.1f},{:.1f}".format(*place(*at)) for at in known)
        drawn = '<polyline points="{}" class="series s{}"/>'
        parts.append(Markup(drawn).format(points, index))
        for at in known:
            x, y = place(*at)
            dot = '<circle cx="{:.1f}" cy="{:.1f}" r="{}" class="dot s{}"/>'
            parts.append(Markup(dot).format(x, y, 4.5 if index == 0 else 2.2, index))
        x = _LEFT + 100 * index  # below the plot, where no line can run
        parts.append(box(x, _HEIGHT - 12, 10, 10, f"key s{index}"))
        parts.append(
            spoken(words, x + 16, _HEIGHT - 3, "tick", partial(phrase_of, side))
        )

    def text(say: Say) -> str:
        ends = "; ".join(
            say("{name} from {first} to {last}").format(
                name=say(side),
                first=format_number(line[0]),
                last=format_number(line[-1]),
            )
            for side, line in series.items()
        )
        return say("Loss over {steps} steps: {ends}.").format(steps=steps, ends=ends)

    inner = Markup("").join(parts)
    title = partial(phrase_of, "Losses of both sides")
    return _frame(words, name, title, text, _HEIGHT, inner)


def phrase_of(phrase: str, say: Say) -> str:
    """Return a phrase, or what is told with one, in a language."""
    return said(phrase, say) if isinstance(phrase, Told) else say(phrase)


def _axis(low: float, high: float) -> Iterator[Markup]:
    for index in range(5):
        value = low + (high - low) * index / 4
        y = _HEIGHT - _BOTTOM - index / 4 * (_HEIGHT - _TOP - _BOTTOM)
        yield _line(_LEFT, y, _WIDTH - _RIGHT, y, "grid")
        yield label(_LEFT - 8, y + 4, "tick end", f"{value:.3g}")


def memory_chart(
    name: str, rows: Sequence[tuple[str, str, int]], words: Words = _ENGLISH
) -> Markup:
    """Return bytes by side and category as bars: (category, side, bytes) each."""
    most = max(count for _, _, count in rows) or 1
    named = [partial(_held_by, category, side) for category, side, _ in rows]
    left, step = _room(words, named), 22
    height = step * len(rows) + 8
    parts = []
    for index, (_, side, count) in enumerate(rows):
        y = 4 + step * index
        parts.append(spoken(words, left - 8, y + 13, "tick end", named[index]))
        width = (_WIDTH - left - 90) * count / most
        kind = "key s0" if side == "mini" else "key s1"
        parts.append(box(left, y + 2, max(width, 0.5), step - 7, kind))
        parts.append(label(left + width + 6, y + 13, "tick", format_bytes(count)))

    def text(say: Say) -> str:
        each = zip(named, rows, strict=True)
        held = "; ".join(f"{tell(say)}: {format_bytes(n)}" for tell, (*_, n) in each)
        return say("Bytes that one rank holds: {held}.").format(held=held)

    inner, title = Markup("").join(parts), partial(phrase_of, "Memory by category")
    return _frame(words, name, title, text, height, inner)


def _held_by(category: str, side: str, say: Say) -> str:
    return f"{say(category)}, {say(side)}"


def stack_chart(
    name: str,
    title: str,
    stacks: Sequence[MemoryStack],
    limit: float,
    words: Words = _ENGLISH,
) -> Markup:
    """Return bars of bytes held at once, and a line at what there is room for."""
    kinds = [*dict.fromkeys(part for stack in stacks for part, _ in stack.parts)]
    totals = [sum(count for _, count in stack.parts) for stack in stacks]
    left, step, top = 66, 34, 20
    foot = top + step * len(stacks)
    scale = (_WIDTH - left - 78) / max(*totals, limit, 1)
    at = left + limit * scale
    parts = []
    for index, (stack, total) in enumerate(zip(stacks, totals, strict=True)):
        y, x = top + step * index, float(left)
        named = partial(phrase_of, stack.name)
        parts.append(spoken(words, left - 8, y + 18, "tick end", named))
        for part, count in stack.parts:
            width = count * scale
            kind = f"part p{kinds.index(part)}"
            parts.append(box(x, y + 3, max(width - 0.8, 0.4), step - 12, kind))
            x += width
        # The figure stands clear of the line.
        x = max(x, at) if x + 60 > at else x
        parts.append(label(x + 6, y + 18, "tick", format_bytes(total)))
    parts.append(_line(at, top - 4, at, foot, "limit"))

    def usable(say: Say) -> str:
        return say("usable: {bytes}").format(bytes=format_bytes(limit))

    parts.append(spoken(words, at, top - 8, "tick mid", usable))
    for index, kind in enumerate(kinds):
        x, y = left + 190 * (index % 3), foot + 12 + 18 * (index // 3)
        parts.append(box(x, y, 10, 10, f"part p{index}"))
        parts.append(spoken(words, x + 15, y + 9, "tick", partial(phrase_of, kind)))
    height = foot + 16 + 18 * -(-len(kinds) // 3)
    inner, text = Markup("").join(parts), partial(_say_stacks, stacks, limit)
    return _frame(words, name, partial(phrase_of, title), text, height, inner)


def _say_stacks(stacks: Sequence[MemoryStack], limit: float, say: Say) -> str:
    """Return what the bars show, for who does not see them."""
    held = "; ".join(
        say("{name}: {total}, of it {parts}").format(
            name=phrase_of(stack.name, say),
            total=format_bytes(sum(count for _, count in stack.parts)),
            parts=", ".join(
                f"{phrase_of(part, say)} {format_bytes(n)}" for part, n in stack.parts
            ),
        )
        for stack in stacks
    )
    told = say("Bytes held at once, with {limit} usable. {held}.")
    return told.format(limit=format_bytes(limit), held=held)


def gantt(
    name: str,
    title: Tell,
    rows: Sequence[str],
    cells: Sequence[Cell],
    words: Words = _ENGLISH,
) -> Markup:
    """Return who works on what and when: a row for each rank, a box for each step."""
    end = max(cell.end for cell in cells)
    begin = min(cell.start for cell in cells)
    named = [partial(_row_name, row) for row in rows]
    left, step = _room(words, named), 30
    height = step * len(rows) + 24
    scale = (_WIDTH - left - 6) / (end - begin)
    parts = []
    for index, tell in enumerate(named):
        y = step * index + 4
        parts.append(spoken(words, left - 8, y + 18, "tick end", tell))
        parts.append(box(left, y, _WIDTH - left - 6, step - 4, "idle"))
    for cell in cells:
        x, y = left + (cell.start - begin) * scale, step * cell.row + 4
        width = (cell.end - cell.start) * scale
        kind = f"work {cell.kind} chunk{cell.chunk % 4}"
        parts.append(box(x, y, max(width - 0.8, 0.6), step - 4, kind))
        if width > 7 * len(cell.text):
            parts.append(label(x + width / 2, y + 17, "in mid", cell.text))
    parts.append(spoken(words, left, height - 4, "tick", lambda say: say("time →")))

    def text(say: Say) -> str:
        orders = "; ".join(
            f"{tell(say)}: " + " ".join(c.text for c in cells if c.row == index)
            for index, tell in enumerate(named)
        )
        if any(cell.kind == "W" for cell in cells):
            told = say(
                "F is a forward, B its inputs' half of a backward, W the weights' of "
                "a microbatch."
            )
        else:
            told = say("F is a forward, B a backward of a microbatch.")
        return f"{told} {orders}."

    inner = Markup("").join(parts)
    return _frame(words, name, title, text, height, inner)


def _row_name(row: str, say: Say) -> str:
    """Return the name of a row: of ranks, or of a side with the number of a rank."""
    name, _, number = row.rpartition(" ")
    return f"{say(name)} {number}" if number.isdigit() and name != "rank" else row
