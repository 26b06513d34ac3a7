"""What `schedules` is set to do: an order is laid out, nothing is sent."""

from __future__ import annotations

from mini_impls import schedules
from mini_impls.faults.works.measures import MICROBATCHES
from mini_impls.launch import Rank
from mini_impls.timeline import get_bubble, get_peak_in_flight, get_timeline


def lay_out(rank: Rank, schedule: str, chunks: int = 1) -> dict[str, float]:
    """Lay out what all ranks do; nothing is sent, time is counted."""
    orders = schedules.get_orders(schedule, rank.world_size, MICROBATCHES, chunks)
    ideal, _ = get_bubble(get_timeline(orders), rank.world_size)
    in_flight = get_peak_in_flight(orders[rank.rank])
    return {
        "microbatches in flight": float(in_flight),
        "bubble over ideal time": float(ideal),
    }


WORKS = {
    "schedules, 1f1b": lambda rank: lay_out(rank, "1f1b"),
    "schedules, interleaved": lambda rank: lay_out(rank, "interleaved", 2),
    "schedules, zb-h1": lambda rank: lay_out(rank, "zb-h1"),
}
