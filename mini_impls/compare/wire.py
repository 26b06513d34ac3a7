"""What a rank sends for a call: by the textbook, and by gloo's own algorithms."""

from collections.abc import Mapping

from msgspec.structs import replace

from readerkit.evidence.record import Event

HEADER_BYTES = 1024
"""What gloo may add to one call for each other rank: 48 bytes a message."""

INSIDE: Mapping[str, str] = {
    "reduce_scatter": " (an all-reduce inside)",
    "reduce": " (a reduce-scatter inside, then chunks to the root)",
}
"""What gloo does for a call that is not what its name says."""


def ring_bytes(event: Event, rank: int, world_size: int) -> float:
    """Return what a rank sends for an event by the textbook: rings, one way each."""
    share = (world_size - 1) / world_size
    match event.op:
        case "all_reduce":
            return 2 * share * event.payload_bytes
        case "all_to_all" if event.peer is not None:  # all of it goes to one rank
            return 0.0 if event.peer == rank else float(event.payload_bytes)
        case "all_gather" | "reduce_scatter" | "all_to_all":
            return share * event.payload_bytes
        case "broadcast":  # down a chain: all but the last rank send it once
            last = (event.peer or 0) + world_size - 1
            return 0.0 if rank == last % world_size else float(event.payload_bytes)
        case "reduce":  # up a chain: all but the root send it once
            return 0.0 if rank == event.peer else float(event.payload_bytes)
        case "send":
            return float(event.payload_bytes)
    return 0.0


def gloo_bytes(event: Event, rank: int, world_size: int) -> float | None:
    """Return what a rank sends with gloo; None where this is not written down.

    Gloo's reduce-scatter is an all-reduce inside; its broadcast is a binomial tree; its
    reduce is a reduce-scatter in a ring, from which each rank sends its chunk to the
    root.
    """
    match event.op:
        case "barrier":
            return 0.0
        case "reduce_scatter":
            return ring_bytes(replace(event, op="all_reduce"), rank, world_size)
        case "broadcast":
            virtual = (rank - (event.peer or 0)) % world_size
            sends = sum(
                1
                for i in range((world_size - 1).bit_length())
                if virtual < 1 << i and virtual + (1 << i) < world_size
            )
            return float(sends * event.payload_bytes)
        case "reduce":
            share = (world_size - 1) / world_size
            return event.payload_bytes * (share if rank == event.peer else 1.0)
        case "all_reduce" | "all_gather" | "all_to_all" | "send" | "recv":
            return ring_bytes(event, rank, world_size)
    return None
