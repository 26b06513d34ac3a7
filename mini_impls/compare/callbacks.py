"""Watches what other threads than the step's do for it: callbacks, pools.

A communication hook of torch's DDP goes on in callbacks: gloo runs them on a thread of
its own unless the future is done already, and what watches the step's thread (dispatch
modes, `sys.settrace`) is of that thread alone.
"""

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
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


@contextmanager
def pooled_too(watch: AbstractContextManager[Any]) -> Iterator[None]:
    """Enter `watch` around each function that a pool of threads is handed meanwhile."""
    submit = ThreadPoolExecutor.submit

    def watched(fn: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
        with watch:
            return fn(*args, **kwargs)

    def watching_submit(pool: Any, fn: Any, /, *args: Any, **kwargs: Any) -> Any:
        return submit(pool, watched, fn, *args, **kwargs)

    ThreadPoolExecutor.submit = watching_submit  # type: ignore
    try:
        yield
    finally:
        ThreadPoolExecutor.submit = submit  # type: ignore[method-assign]
