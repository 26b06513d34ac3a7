"""Events for tests, with one line each."""

from typing import Any

from msgspec.structs import replace

from readerkit.evidence.record import Event

PLAIN = Event(
    phase="backward",
    op="all_reduce",
    group="dp",
    dtype="float32",
    payload_bytes=8,
    issue=0,
    wait=1,
    site=None,
    stack=0,
    wait_site=None,
    peer=None,
    reduction="sum",
    products_before=0,
    products_hidden=0,
    gradients_ready=None,
    gradients_at_wait=None,
)


def event(**changes: Any) -> Event:
    """Return an all-reduce of 8 bytes with some fields changed."""
    return replace(PLAIN, **changes)


def row(*payloads: int, **changes: Any) -> list[Event]:
    """Return calls that are waited for at once, of so many bytes."""
    return [
        event(payload_bytes=n, issue=2 * i, wait=2 * i + 1, **changes)
        for i, n in enumerate(payloads)
    ]
