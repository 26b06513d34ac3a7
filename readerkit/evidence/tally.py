"""How the events of a record stand: so many identical, explained, on one side only."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass

from readerkit.evidence.record import RankEvents
from readerkit.model.language import Say, english

_KINDS = {
    "mini-waits-longer": "waited for longer by the mini",
    "upstream-waits-longer": "waited for longer upstream",
    "payload": "with another payload",
}


@dataclass(frozen=True, slots=True)
class Tally:
    """All events of all ranks, each pair counted once."""

    events: int
    identical: int
    unseen: int
    """Those among them of which nobody saw a wait, on one side or both."""
    explained: tuple[tuple[str, int], ...]
    """Pairs that differ for a known reason, by the kind of difference."""
    alone: int
    """Events that one side alone has."""
    alone_unexplained: int
    flagged: int
    """Pairs that differ without a reason."""

    @classmethod
    def of(cls, ranks: Iterable[RankEvents]) -> Tally:
        """Count the matches of a record."""
        ranks = list(ranks)
        matches = [match for rank in ranks for match in rank.matches]
        alone = [m for m in matches if m.mini is None or m.upstream is None]
        pairs = [m for m in matches if m.mini is not None and m.upstream is not None]
        kinds = Counter(m.what for m in pairs if m.state == "explained")
        return cls(
            events=len(matches),
            identical=sum(m.state == "matched" for m in pairs),
            unseen=sum(map(_unseen, ranks)),
            explained=tuple(sorted(kinds.items())),
            alone=len(alone),
            alone_unexplained=sum(m.state == "flagged" for m in alone),
            flagged=sum(m.state == "flagged" for m in pairs),
        )


def _unseen(rank: RankEvents) -> int:
    return sum(
        rank.mini[match.mini].wait is None or rank.upstream[match.upstream].wait is None
        for match in rank.matches
        if match.state == "matched"
        and match.mini is not None
        and match.upstream is not None
    )


def say_tally(tally: Tally, say: Say = english) -> str:
    """Return ``8 of 16 events identical; 6 explained: ...; 2 on one side only``."""
    parts = [
        say("{same} of {events} events identical").format(
            same=tally.identical, events=tally.events
        ),
        say("{count} explained").format(count=sum(n for _, n in tally.explained)),
        say("{count} on one side only").format(count=tally.alone),
    ]
    if tally.unseen:
        parts[0] += f" ({say('{count} with waits unseen').format(count=tally.unseen)})"
    if tally.explained:
        kinds = ", ".join(f"{n} {say(_KINDS[kind])}" for kind, n in tally.explained)
        parts[1] += f": {kinds}"
    if tally.alone:
        without = say("{count} without a reason").format(count=tally.alone_unexplained)
        parts[2] += f" ({without})"
    if tally.flagged:
        flagged = say("{count} differ without a reason")
        parts.append(flagged.format(count=tally.flagged))
    return "; ".join(parts)
