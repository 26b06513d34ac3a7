"""The calls of one rank's step as text: both sides, one below the other."""

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from textwrap import wrap

from readerkit.evidence.record import Event, ExecutedLine, RankEvents
from readerkit.model.language import Say, english

MARKS = {
    **{"agree": "=", "explained": "~", "differ": "!"},
    **{"matched": "=", "flagged": "!"},
    **{"identical": "=", "trap": "!", "unexplained": "!"},
}
LEGEND = "= agree   ~ differ for a known reason   ! differ without one"
LEAST_SITE = 16
"""A column narrower than this tells no call site."""
Give = Callable[[str, str], str]
"""Returns the reason that a mirror gives, in the reader's language."""
COLUMNS = (
    "at: place of issue and of wait among all of the step's (C++: unseen)",
    "ready: gradients that backward had computed at the issue",
    "hides: matrix products between issue and wait",
)


def as_given(mirror: str, why: str) -> str:
    """Return a reason as the mirror has it."""
    return why


def events(
    rank: RankEvents, width: int, say: Say = english, give: Give = as_given
) -> Iterator[str]:
    """Yield a table of the calls, a legend, and the reasons for what differs."""
    every = [*rank.mini, *rank.upstream]
    if not every:
        return
    common = [{event.group for event in every}, {event.dtype for event in every}]
    counts = any(event.gradients_ready is not None for event in every)
    heading = ""
    rows: list[tuple[str, ...]] = []
    for match in rank.matches:
        for side, events, index in (
            ("mini", rank.mini, match.mini),
            ("up", rank.upstream, match.upstream),
        ):
            if index is not None:
                event = events[index]
                if heading != (heading := _heading(event, common)):
                    rows.append((f"{heading}:",))
                mark = f"{MARKS[match.state]} {side}"
                rows.append((mark, *_event(event, counts)))
    ready = ("ready",) if counts else ()
    head = ("operation", "bytes", "at", *ready, "hides", "call site")
    yield from _columns([("", *map(say, head)), *rows], width)
    for line in (LEGEND, *COLUMNS):
        if counts or not line.startswith("ready"):
            yield from wrap(say(line), width, subsequent_indent="  ")
    named = zip(("group", "dtype"), common, strict=True)
    same = [f"{name} {one}" for name, (one, *rest) in named if not rest]
    if same:
        said = f"{say('every call')}: {', '.join(same)}"
        yield from wrap(said, width, subsequent_indent="  ")
    yield from _reasons(rank, width, say, give)


def _heading(event: Event, common: Sequence[set[str]]) -> str:
    """Return the phase, with the group and the dtype where not all have one."""
    varying = zip((event.group, event.dtype), common, strict=True)
    return ", ".join([event.phase, *(name for name, all_ in varying if len(all_) > 1)])


def _event(event: Event, counts: bool) -> tuple[str, ...]:
    peer = "" if event.peer is None else str(event.peer)
    words = (event.op, event.reduction or "", peer)
    wait = "C++" if event.wait is None else str(event.wait)
    ready = "" if event.gradients_ready is None else str(event.gradients_ready)
    hidden = "" if event.products_hidden is None else str(event.products_hidden)
    return (
        " ".join(filter(None, words)),
        f"{event.payload_bytes:,}",
        f"{event.issue}-{wait}",
        *((ready,) * counts),
        hidden,
        _site(event.site),
    )


def _site(site: ExecutedLine | None) -> str:
    return f"{site.path}:{site.line}" if site else "C++"


def _columns(rows: Sequence[Sequence[str]], width: int) -> Iterator[str]:
    """Yield rows in columns; a call site is set below where there is no room."""
    full = [row for row in rows if len(row) > 1]
    widths = [max(len(row[i]) for row in full) for i in range(len(full[0]) - 1)]
    room = width - sum(widths) - 2 * len(widths)
    gap = "  " if room >= 0 else " "
    below = "\n    " if room < LEAST_SITE else ""
    for row in rows:
        if len(row) == 1:
            yield row[0]
            continue
        cells = [
            cell.ljust(size) if i < 2 else cell.rjust(size)
            for i, (cell, size) in enumerate(zip(row, widths, strict=False))
        ]
        site = fitted(row[-1], width - 4 if below else room)
        line = gap.join(cells).rstrip() if below else gap.join([*cells, ""])
        yield f"{line}{below}{site}".rstrip()


def fitted(place: str, room: int) -> str:
    """Return a path without the folders that there is no room for."""
    while len(place) > room and "/" in place:
        place = place.partition("/")[2]
    return place if len(place) <= room else f"..{place[2 - room :]}"


def _reasons(rank: RankEvents, width: int, say: Say, give: Give) -> Iterator[str]:
    notes: Counter[str] = Counter()
    for match in rank.matches:
        if match.state == "explained":
            given = say("mirror {name}").format(name=match.mirror)
            notes[f"~ {give(match.mirror, match.why)} ({given})"] += 1
        elif match.state == "flagged":
            notes[f"! {match.apart}"] += 1
    for note, count in notes.items():
        one = say("1 event") if count == 1 else say("{count} events")
        events = one.format(count=count)
        yield from wrap(f"{note} ({events})", width, subsequent_indent="  ")
