"""Who has a page of the served site open, and is told of what changes."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator


class OpenPages:
    """Event streams to open pages."""

    def __init__(self) -> None:
        self._listeners: dict[asyncio.Queue[str], str] = {}
        """Who is told, and which page is open there."""
        self._closing = False

    def addresses(self) -> set[str]:
        """Return the pages that are open."""
        return set(self._listeners.values())

    def tell(self, said: str, page: str = "") -> None:
        """Tell something to whoever has this page open, or any."""
        for listener, at in self._listeners.items():
            if page in ("", at):
                listener.put_nowait(said)

    async def listen(self, page: str, state: str) -> AsyncIterator[str]:
        """Yield the state, and then what is told, as lines of an event stream."""
        listener: asyncio.Queue[str] = asyncio.Queue()
        self._listeners[listener] = page
        try:
            yield f"retry: 500\ndata: {state}\n\n"
            while not self._closing:
                with contextlib.suppress(TimeoutError):
                    said = await asyncio.wait_for(listener.get(), 0.5)
                    yield f"data: {said}\n\n"
        finally:
            del self._listeners[listener]

    def close(self) -> None:
        """Have all streams end."""
        self._closing = True
