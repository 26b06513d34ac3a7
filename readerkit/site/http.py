"""What the served site answers at all: requests under its own name, or a fault."""

from __future__ import annotations

import contextlib
import gzip
import signal
import socket
import traceback
from collections.abc import Callable, Iterator
from html import escape

import h11
import uvicorn
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request
from starlette.responses import PlainTextResponse, Response
from starlette.types import ASGIApp, Receive, Scope, Send
from uvicorn.protocols.http.h11_impl import H11Protocol

from readerkit.errors import ReaderkitError
from readerkit.model import addresses

HOST = "127.0.0.1"
MAX_BODY_BYTES = 1_000_000
HEADERS = {
    "Cache-Control": "no-store",
    "Content-Security-Policy": "frame-ancestors 'none'",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
}
PACKED_FROM_BYTES = 1_000
"""Below it a packed answer is hardly smaller."""
_PACKED = ("text/", "application/json", "application/javascript", "image/svg")
_QUICK = 6
"""Of nine levels: the next takes half as long again and saves a hundredth."""


def names_of(port: int) -> frozenset[str]:
    """Return the host names of a server on this machine; the port is part of each."""
    ends = (f":{port}", "") if port == 80 else (f":{port}",)
    return frozenset(name + end for name in (HOST, "localhost") for end in ends)


class OwnNameOnly:
    """Refuses what is addressed to anybody else.

    A page of another site can have its own name lead here; another server of this
    machine, on another port, is somebody else too.
    """

    def __init__(self, app: ASGIApp, names: frozenset[str]) -> None:
        self._app = app
        self._names = names

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer, or refuse to."""
        if scope["type"] == "lifespan" or self._is_ours(Request(scope)):
            await self._app(scope, receive, send)
        else:
            refusal = PlainTextResponse("not a name of this server", 400)
            await refusal(scope, receive, send)

    def _is_ours(self, request: Request) -> bool:
        hosts = [host.lower() for host in request.headers.getlist("host")]
        # With a whole address in its first line a request names its host there.
        is_path = request.scope["path"].startswith("/")
        return is_path and len(hosts) == 1 and hosts[0] in self._names


def answer(request: Request, data: bytes, kind: str, status: int = 200) -> Response:
    """Return an answer of these bytes, packed where that helps and is understood."""
    headers = HEADERS
    if kind.startswith(_PACKED):
        headers = {**HEADERS, "Vary": "Accept-Encoding"}
        if len(data) >= PACKED_FROM_BYTES and takes_gzip(request):
            data = gzip.compress(data, _QUICK, mtime=0)
            headers["Content-Encoding"] = "gzip"
    return Response(data, status, media_type=kind, headers=headers)


def takes_gzip(request: Request) -> bool:
    """Tell whether who asks can unpack gzip, which ``q=0`` denies."""
    wanted = {}
    for listed in request.headers.getlist("accept-encoding"):
        for coding in listed.lower().split(","):
            name, *options = (part.strip() for part in coding.split(";"))
            weights = [each[2:] for each in options if each.startswith("q=")]
            wanted[name] = not weights or weights[0].strip("0.") != ""
    return wanted.get("gzip", wanted.get("x-gzip", wanted.get("*", False)))


async def own_body(request: Request) -> bytes:
    """Return the body of a request from a page of this site; others may not write."""
    own = f"http://{request.headers['host'].lower()}"
    if request.headers.getlist("origin") != [own]:
        raise HTTPException(403, "only this site's own pages may write")
    size = request.headers.get("content-length")
    if size is None or int(size) > MAX_BODY_BYTES:
        raise HTTPException(413, "too much at once")
    try:
        return await request.body()
    except ClientDisconnect:
        raise HTTPException(400, "the body broke off") from None


class Protocol(H11Protocol):
    """HTTP by h11, whatever else is installed: it refuses what is malformed."""

    def send_400_response(self, msg: str) -> None:
        """Refuse; where the body turns out malformed later, only close.

        Who is still at work on the request writes to nobody from here on.
        """
        with contextlib.suppress(h11.LocalProtocolError):
            super().send_400_response(msg)
        self.transport.close()
        if self.cycle is not None:
            self.cycle.disconnected = True
            self.cycle.message_event.set()


_FAULT = """<!doctype html>
<html lang="en"><head><meta charset="utf-8"><title>{path} · readerkit</title>
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; \
script-src 'self'; style-src 'self'; connect-src 'self'">
<link rel="stylesheet" href="{root}theme/site.css"></head>
<body><main id="content"><h1>{title}</h1>
<pre class="warning" role="alert">{said}</pre>
<p><a href="{root}index.html">The first page of the site</a></p></main>
</body></html>
"""


def fault_page(path: str, title: str, said: str) -> bytes:
    """Return a page that tells why there is no other, and follows its mending."""
    root = addresses.to_root(path)
    texts = {"root": root, "path": path, "title": title, "said": said}
    return _FAULT.format_map({k: escape(text) for k, text in texts.items()}).encode()


def said_of(error: Exception) -> str:
    """Return an error's message; of one that nobody foresaw, its name."""
    if isinstance(error, ReaderkitError):
        return str(error)
    traceback.print_exception(error)
    return f"{type(error).__name__}: {error}: a bug of readerkit; the terminal has more"


class SignalServer(uvicorn.Server):
    """Ends as a terminal wants it, and says so to whoever has event streams open."""

    def __init__(self, config: uvicorn.Config, closing: Callable[[], None]) -> None:
        super().__init__(config)
        self._closing = closing

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Take a closed terminal and ^\\ as ^C is taken: shut down, then end by it."""
        ends = (signal.SIGHUP, signal.SIGQUIT)
        heeded = [s for s in ends if signal.getsignal(s) is not signal.SIG_IGN]
        before = {s: signal.signal(s, self.handle_exit) for s in heeded}
        try:
            with super().capture_signals():
                yield
        finally:
            for signum, handler in before.items():
                signal.signal(signum, handler)
        for signum in {*heeded} & {*self._captured_signals}:
            signal.raise_signal(signum)

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """Have open event streams end, and end."""
        self._closing()
        await super().shutdown(sockets)
