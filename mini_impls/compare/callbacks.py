"""Watches what a future's callback does, on whichever thread the future ends.

A communication hook of torch's DDP goes on in callbacks: gloo runs them on a thread of
its own unless the future is done already, and what watches the step's thread (dispatch
modes, `sys.settrace`) is of that thread alone.
"""

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager
from threading import get_ident
from typing import Any

import torch


@contextmanager
def watched_too(*watches: AbstractContextManager[Any]) -> Iterator[None]:
    """Enter `watches` around each callback that runs on another thread than this."""
    here, future = get_ident(), torch._C.Future
    then = future.then

    def watching_then(self: Any, callback: Callable[[Any], Any]) -> Any:
        def watched(value: Any) -> Any:
            with ExitStack() as entered:
                if get_ident() != here:
                    for watch in watches:
                        entered.enter_context(watch)
                return callback(value)

        return then(self, watched)

    future.then = watching_then  # type: ignore[method-assign]
    try:
        yield
    finally:
        future.then = then  # type: ignore[method-assign]
