"""What `schedules` is set to do: an order is laid out, nothing is sent."""

from __future__ import annotations

from mini_impls import schedules
from mini_impls.faults.works.measures import MICROBATCHES
from mini_impls.launch import Rank
from mini_impls.timeline import get_bubble, get_peak_in_flight, get_timeline


def run_zb_h1(rank: Rank) -> dict[str, float]:
    """Lay out a schedule that splits the backward; nothing is sent, time is counted."""
    orders = schedules.get_orders("zb-h1", rank.world_size, MICROBATCHES)
    ideal, _ = get_bubble(get_timeline(orders), rank.world_size)
    in_flight = get_peak_in_flight(orders[rank.rank])
    return {
        "microbatches in flight": float(in_flight),
        "bubble over ideal time": float(ideal),
    }


WORKS = {
    "schedules, zb-h1": run_zb_h1,
}
