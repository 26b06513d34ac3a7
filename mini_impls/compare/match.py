"""Aligns what two sides did: equal events first, then near ones, then the rest.

A difference is excused only by one that a mirror names, and only as often as it says.
"""

from bisect import bisect_left
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher

from readerkit.content.mirrors import Difference
from readerkit.content.vocabulary import DifferenceKind, SideName
from readerkit.evidence.record import Event, EventMatch


@dataclass
class NamedDifference:
    """A difference that a mirror names, and how often it may still occur."""

    mirror: str
    difference: Difference
    left: int

    def fits(self, what: DifferenceKind, event: Event) -> bool:
        """Tell whether this speaks of such a difference of such an event."""
        difference = self.difference
        return (
            difference.what == what
            and difference.phase in ("", event.phase)
            and difference.op in ("", event.op)
            and difference.group in ("", event.group)
        )


def excuses(
    known: Iterable[tuple[str, Difference]], sizes: Mapping[str, int]
) -> list[NamedDifference]:
    """Return what may differ in the events of one rank of a run of these sizes."""
    return [
        NamedDifference(mirror, difference, int(difference.at_most.evaluate(sizes)))
        for mirror, difference in known
        if difference.what not in ("order", "values", "memory")
    ]


Key = Callable[[Event], Hashable]


def same(event: Event) -> Hashable:
    """Return everything that equal events share."""
    near = (event.phase, event.op, event.group, event.dtype, event.peer)
    return (*near, event.reduction, event.payload_bytes)


def near(event: Event) -> Hashable:
    """Return what two events need to be one, done differently."""
    return (event.phase, event.op, event.group)


def align(
    mini: Sequence[Event],
    upstream: Sequence[Event],
    known: Sequence[NamedDifference] = (),
) -> tuple[EventMatch, ...]:
    """Return every event of both sides exactly once; uses up ``known``.

    Collectives are met in order. Sends and receives of one direction meet each other,
    the first the first; between directions only the schedule sets an order.
    """
    pairs: list[tuple[int, int]] = []
    for ours, theirs in _channels(mini, upstream):
        left, right = [mini[i] for i in ours], [upstream[j] for j in theirs]
        pairs += [
            (ours[i], theirs[j])
            for i, j in _align_channel(left, right)
            if not _are_two(left[i], right[j], known)
        ]
    with_mini, with_upstream = dict(pairs), {j: i for i, j in pairs}
    matches: list[EventMatch] = []
    shown: set[int] = set()
    for j in range(len(upstream)):
        if j not in with_upstream:
            matches.append(_alone(upstream, j, "upstream", known))
            continue
        for i in range(with_upstream[j] + 1):
            if i not in shown and (i not in with_mini or i == with_upstream[j]):
                shown.add(i)
                matches.append(
                    _both(mini, upstream, i, j, known)
                    if i in with_mini
                    else _alone(mini, i, "mini", known)
                )
    rest = [i for i in range(len(mini)) if i not in shown]
    return (*matches, *(_alone(mini, i, "mini", known) for i in rest))


def count_reordered(matches: Iterable[EventMatch]) -> int:
    """Return how many matched events one side issued in another order than the other.

    The fewest that would have to move: all but a longest run that both keep.
    """
    order = [m.mini for m in matches if m.mini is not None and m.upstream is not None]
    ends: list[int] = []
    for place in order:
        at = bisect_left(ends, place)
        ends[at : at + 1] = [place]
    return len(order) - len(ends)


def _channels(
    mini: Sequence[Event], upstream: Sequence[Event]
) -> Iterator[tuple[list[int], list[int]]]:
    def channel(event: Event) -> Hashable:
        if event.op in ("send", "recv"):
            return (event.phase, event.op, event.group, event.peer)
        return None

    for key in dict.fromkeys(channel(e) for e in (*upstream, *mini)):
        yield (
            [i for i, e in enumerate(mini) if channel(e) == key],
            [j for j, e in enumerate(upstream) if channel(e) == key],
        )


def _align_channel(
    mini: Sequence[Event], upstream: Sequence[Event]
) -> list[tuple[int, int]]:
    """Pair equal events in order, then out of order, then those that are nearly so."""
    pairs = _pair(mini, upstream, same)
    left = [i for i in range(len(mini)) if i not in dict(pairs)]
    right = [j for j in range(len(upstream)) if j not in {j for _, j in pairs}]
    for i in list(left):
        j = next((j for j in right if same(mini[i]) == same(upstream[j])), None)
        if j is not None:
            pairs.append((i, j))
            left.remove(i)
            right.remove(j)
    rest = _pair([mini[i] for i in left], [upstream[j] for j in right], near)
    return [*pairs, *((left[i], right[j]) for i, j in rest)]


def _are_two(mini: Event, upstream: Event, known: Sequence[NamedDifference]) -> bool:
    """Tell whether near events are two: a mirror knows of either on its side alone."""
    return (
        same(mini) != same(upstream)
        and not any(k.fits("payload", mini) for k in known)
        and any(k.fits("only-mini", mini) for k in known)
        and any(k.fits("only-upstream", upstream) for k in known)
    )


def _pair(
    mini: Sequence[Event], upstream: Sequence[Event], key: Key
) -> list[tuple[int, int]]:
    matcher = SequenceMatcher(
        None, [key(e) for e in mini], [key(e) for e in upstream], autojunk=False
    )
    return [
        (block.a + k, block.b + k)
        for block in matcher.get_matching_blocks()
        for k in range(block.size)
    ]


def _alone(
    events: Sequence[Event],
    index: int,
    side: SideName,
    known: Sequence[NamedDifference],
) -> EventMatch:
    apart, event = f"only {side} has this", events[index]
    if side == "mini":
        return _excused(index, None, "only-mini", apart, event, known)
    return _excused(None, index, "only-upstream", apart, event, known)


def _both(
    mini: Sequence[Event],
    upstream: Sequence[Event],
    i: int,
    j: int,
    known: Sequence[NamedDifference],
) -> EventMatch:
    names = ("dtype", "peer", "reduction", "payload_bytes")
    ours, theirs = mini[i], upstream[j]
    sent = [
        f"{name} {getattr(ours, name)} and {getattr(theirs, name)}"
        for name in names
        if getattr(ours, name) != getattr(theirs, name)
    ]
    if sent:
        return _excused(i, j, "payload", ", ".join(sent), ours, known)
    if ours.wait is None or theirs.wait is None:
        return EventMatch(i, j, "matched")  # C++ waits, and nobody saw when
    waits = _wait(mini, i), _wait(upstream, j)
    if waits[0] == waits[1]:
        return EventMatch(i, j, "matched")
    what: DifferenceKind = (
        "mini-waits-longer" if waits[0] > waits[1] else "upstream-waits-longer"
    )
    texts = [f"{later} later calls and {hidden} products" for later, hidden in waits]
    apart = f"waited for after {texts[0]}, and after {texts[1]}"
    return _excused(i, j, what, apart, ours, known)


def _excused(
    i: int | None,
    j: int | None,
    what: DifferenceKind,
    apart: str,
    event: Event,
    known: Sequence[NamedDifference],
) -> EventMatch:
    """Return the match of a difference: explained, if a mirror has one left for it."""
    fitting = [excuse for excuse in known if excuse.fits(what, event)]
    for excuse in fitting:
        if excuse.left > 0:
            excuse.left -= 1
            why = excuse.difference.why
            return EventMatch(i, j, "explained", what, apart, why, excuse.mirror)
    if fitting:
        apart += f", more often than mirror {fitting[0].mirror} allows"
    return EventMatch(i, j, "flagged", what, apart)


def _wait(events: Sequence[Event], index: int) -> tuple[int, int]:
    """Return how many calls and matrix products came between issue and wait."""
    own = events[index]
    assert own.wait is not None and own.products_hidden is not None
    later = sum(own.issue < event.issue < own.wait for event in events)
    return later, own.products_hidden
