"""A server on standard input and output, which ends when it is told to."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def ending_at_once() -> Iterator[None]:
    """Have what would end this process do so, as the system does it.

    Such a server reads in a thread of its own, which no exception of a signal reaches:
    it would wait for one more message. It holds nothing that is to be cleared up.
    """
    told = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
    ours = [each for each in told if signal.getsignal(each) is not signal.SIG_IGN]
    before = {each: signal.signal(each, signal.SIG_DFL) for each in ours}
    try:
        yield
    finally:
        for signum, handler in before.items():
            signal.signal(signum, handler)
