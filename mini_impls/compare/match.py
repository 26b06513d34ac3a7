"""Aligns what two sides did: equal events first, then near ones, then the rest."""

from bisect import bisect_left
from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher

from readerkit.records import Event, Match, Phase, SideName


@dataclass(frozen=True, slots=True)
class Explanation:
    """A difference that is known, with its reason; an empty field fits anything."""

    why: str
    side: SideName | None = None
    """Who alone has such an event; None: both have it, and it differs."""
    phase: Phase | None = None
    op: str = ""
    group: str = ""
    waits: bool = False
    """Whether it speaks of when a call is waited for, not of what it sends."""

    def fits(self, event: Event) -> bool:
        """Tell whether this speaks of such an event."""
        return (
            self.phase in (None, event.phase)
            and self.op in ("", event.op)
            and self.group in ("", event.group)
        )


Key = Callable[[Event], Hashable]


def same(event: Event) -> Hashable:
    """Return everything that equal events share."""
    near = (event.phase, event.op, event.group, event.dtype, event.peer)
    return (*near, event.reduction, event.payload_bytes)


def near(event: Event) -> Hashable:
    """Return what two events need to be one, done differently."""
    return (event.phase, event.op, event.group)


def align(
    mini: Sequence[Event], upstream: Sequence[Event], known: Iterable[Explanation] = ()
) -> tuple[Match, ...]:
    """Return every event of both sides exactly once.

    Collectives are met in order. Sends and receives of one direction meet each other,
    the first the first; between directions only the schedule sets an order.
    """
    known = list(known)
    pairs: list[tuple[int, int]] = []
    for ours, theirs in _channels(mini, upstream):
        left, right = [mini[i] for i in ours], [upstream[j] for j in theirs]
        pairs += [(ours[i], theirs[j]) for i, j in _align_channel(left, right)]
    with_mini, with_upstream = dict(pairs), {j: i for i, j in pairs}
    matches: list[Match] = []
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


def count_reordered(matches: Iterable[Match]) -> int:
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
    events: Sequence[Event], index: int, side: SideName, known: Iterable[Explanation]
) -> Match:
    why = next((k.why for k in known if k.side == side and k.fits(events[index])), "")
    mini, upstream = (index, None) if side == "mini" else (None, index)
    if why:
        return Match(mini, upstream, "explained", why)
    return Match(mini, upstream, "flagged", f"only {side} has this")


def _both(
    mini: Sequence[Event],
    upstream: Sequence[Event],
    i: int,
    j: int,
    known: Iterable[Explanation],
) -> Match:
    names = ("dtype", "peer", "reduction", "payload_bytes")
    ours, theirs = mini[i], upstream[j]
    sent = [
        f"{name} {getattr(ours, name)} and {getattr(theirs, name)}"
        for name in names
        if getattr(ours, name) != getattr(theirs, name)
    ]
    waited = _waits_apart(mini, upstream, i, j)
    if not sent and not waited:
        return Match(i, j, "matched", "")
    reasons = []
    for apart, waits in ((", ".join(sent), False), (waited, True)):
        if not apart:
            continue
        fitting = [k for k in known if k.side is None and k.waits == waits]
        why = next((k.why for k in fitting if k.fits(ours)), "")
        if not why:
            return Match(i, j, "flagged", apart)
        reasons.append(f"{apart}: {why}")
    return Match(i, j, "explained", "; ".join(reasons))


def _waits_apart(
    mini: Sequence[Event], upstream: Sequence[Event], i: int, j: int
) -> str:
    """Say how two calls differ in when they are waited for; empty where they do not."""
    ours, theirs = mini[i], upstream[j]
    if ours.wait is None or theirs.wait is None:
        return ""  # C++ waits, and nobody saw when
    later = [_issued_before_wait(mini, i), _issued_before_wait(upstream, j)]
    if later[0] != later[1]:
        return f"waited for after {later[0]} and {later[1]} later calls"
    if ours.products_hidden != theirs.products_hidden:
        return f"hides {ours.products_hidden} and {theirs.products_hidden} products"
    return ""


def _issued_before_wait(events: Sequence[Event], index: int) -> int:
    own = events[index]
    assert own.wait is not None
    return sum(own.issue < event.issue < own.wait for event in events)
