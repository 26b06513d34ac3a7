"""Judges overlap: what could go on while a call was under way, on either side."""

from collections.abc import Iterator, Mapping, Sequence

from mini_impls.compare.judge import explained_by_events, line
from mini_impls.compare.match import excuses
from mini_impls.compare.tables import Known
from readerkit.content.vocabulary import Phase
from readerkit.evidence.record import Event, RankEvents, Verdict

PHASES: tuple[Phase, ...] = ("forward", "backward", "optimizer", "checkpoint")


def overlap(
    events: Sequence[RankEvents], known: Known, sizes: Mapping[str, int]
) -> Iterator[Verdict]:
    """Yield the lines that tell a call that hides behind work from one that blocks."""
    for rank in events:
        yield from _early_waits(rank)
        yield from _hidden(rank)
    yield from _foreseen(events, known, sizes)


def _early_waits(rank: RankEvents) -> Iterator[Verdict]:
    """Count waits before the last gradient, where both sides count gradients."""
    sides = [
        [event for event in side if event.phase == "backward"]
        for side in (rank.mini, rank.upstream)
    ]
    if not all(sides) or any(e.gradients_ready is None for side in sides for e in side):
        return
    last = rank.gradients or 0

    def early(event: Event) -> int:
        at = event.gradients_at_wait
        return int(event.phase == "backward" and at is not None and at < last)

    what = f"calls of backward waited for before the last of {last} gradients was ready"
    reason = "seen on both sides"
    if any(event.wait is None for event in sides[1]):
        what += ", mini (left) and none: upstream's waits are unseen"
        reason = "what waits for no call hides it; upstream waits in C++"
    mini, upstream = (sum(map(early, side)) for side in sides)
    excuse = explained_by_events(rank, early)
    yield line(what, rank.rank, mini, upstream, 0, reason, excuse=excuse)


def _hidden(rank: RankEvents) -> Iterator[Verdict]:
    """Count calls with products between issue and wait, where all waits are seen."""
    for phase in PHASES:

        def hides(event: Event, phase: Phase = phase) -> int:
            return int(event.phase == phase and bool(event.products_hidden))

        sides = [
            [event for event in side if event.phase == phase and event.payload_bytes]
            for side in (rank.mini, rank.upstream)
        ]
        if not all(sides) or any(e.wait is None for side in sides for e in side):
            continue
        mini, upstream = (sum(map(hides, side)) for side in sides)
        if mini or upstream or phase == "backward":
            yield line(
                f"calls of {phase} that matrix products ran beside",
                rank.rank,
                mini,
                upstream,
                0,
                f"of {len(sides[0])} and {len(sides[1])} calls",
                excuse=explained_by_events(rank, hides),
            )


def _foreseen(
    events: Sequence[RankEvents], known: Known, sizes: Mapping[str, int]
) -> Iterator[Verdict]:
    """Hold the mini to the longer waits that mirrors foresee: its overlap."""
    foreseen = {
        (excuse.mirror, excuse.difference.why)
        for rank in events
        for excuse in excuses(known, {**sizes, "rank": rank.rank})
        if excuse.left > 0
        and any(excuse.fits("mini-waits-longer", event) for event in rank.mini)
    }
    if not foreseen:
        return
    needed = {
        (match.mirror, match.why)
        for rank in events
        for match in rank.matches
        if match.what == "mini-waits-longer"
    }
    missing = len(foreseen - needed)
    yield line(
        "reasons for longer waits of the mini: needed (left) and given by mirrors",
        None,
        len(foreseen) - missing,
        len(foreseen),
        0,
        "each is needed: what the mini hides, it hides",
    )
