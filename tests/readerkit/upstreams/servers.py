"""Servers on loopback: git that counts, cuts and stalls; a package index; silence."""

from __future__ import annotations

import contextlib
import http.server
import socket
import subprocess
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from tests.terminals import WAIT_S


class GitServer:
    """``git daemon`` behind a port of its own, one process for each connection.

    ``limits`` says after how many bytes of its answer a connection (from 1) is cut;
    with ``hold`` it stays open and silent until ``released``, and ``stalled`` is set.
    """

    def __init__(
        self, parent: Path, limits: Mapping[int, int] | None = None, hold: bool = False
    ) -> None:
        self.parent = parent
        self.limits = dict(limits or {})
        self.hold = hold
        self.sent: list[int] = []
        """Bytes of each connection's answer, in order of arrival."""
        self.stalled = threading.Event()
        self.released = threading.Event()
        self._listener = socket.create_server(("127.0.0.1", 0))
        self._threads: list[threading.Thread] = []
        self._start(self._accept)

    @property
    def connections(self) -> int:
        return len(self.sent)

    def url(self, repository: str = "sample") -> str:
        return f"git://127.0.0.1:{self._listener.getsockname()[1]}/{repository}"

    def close(self) -> None:
        self.released.set()
        # A blocked accept does not notice a close; a shutdown wakes it.
        self._listener.shutdown(socket.SHUT_RDWR)
        for thread in list(self._threads):
            thread.join(10)
        self._listener.close()

    def _start(self, target, *arguments) -> None:
        thread = threading.Thread(target=target, args=arguments, daemon=True)
        self._threads.append(thread)
        thread.start()

    def _accept(self) -> None:
        while True:
            try:
                client, _ = self._listener.accept()
            except OSError:
                return
            self.sent.append(0)
            self._start(self._serve, client, len(self.sent))

    def _serve(self, client: socket.socket, number: int) -> None:
        ours, theirs = socket.socketpair()
        command = ["git", "daemon", "--inetd", "--export-all", "--log-destination=none"]
        command += [f"--base-path={self.parent}", str(self.parent)]
        daemon = subprocess.Popen(
            command, stdin=theirs, stdout=theirs, stderr=subprocess.DEVNULL
        )
        theirs.close()
        self._start(_copy, client, ours)
        limit = self.limits.get(number)
        with client, ours, contextlib.suppress(OSError):
            while data := ours.recv(1 << 16):
                if limit is not None and self.sent[number - 1] + len(data) > limit:
                    client.sendall(data[: limit - self.sent[number - 1]])
                    self.sent[number - 1] = limit
                    if self.hold:
                        self.stalled.set()
                        self.released.wait(WAIT_S)
                    break
                self.sent[number - 1] += len(data)
                client.sendall(data)
            # A close alone would wait for the other thread's read.
            for end in (client, ours):
                with contextlib.suppress(OSError):
                    end.shutdown(socket.SHUT_RDWR)
        daemon.wait(WAIT_S)


def _copy(source: socket.socket, target: socket.socket) -> None:
    with contextlib.suppress(OSError):
        while data := source.recv(1 << 16):
            target.sendall(data)
        target.shutdown(socket.SHUT_WR)


@contextmanager
def git_server(
    parent: Path, limits: Mapping[int, int] | None = None, hold: bool = False
) -> Iterator[GitServer]:
    """Serve the repositories in ``parent``; see ``GitServer``."""
    server = GitServer(parent, limits, hold)
    try:
        yield server
    finally:
        server.close()


@contextmanager
def silent_server() -> Iterator[int]:
    """Accept every connection on a port, and never answer."""
    with socket.create_server(("127.0.0.1", 0), backlog=16) as listener:
        yield int(listener.getsockname()[1])


@contextmanager
def deaf_server() -> Iterator[int]:
    """Swallow every packet to a port, as a firewall does: its backlog is full."""
    with contextlib.ExitStack() as stack:
        listener = stack.enter_context(socket.socket())
        listener.bind(("127.0.0.1", 0))
        listener.listen(0)
        for _ in range(4):
            waiting = stack.enter_context(socket.socket())
            waiting.setblocking(False)
            with contextlib.suppress(BlockingIOError):
                waiting.connect(listener.getsockname())
        yield int(listener.getsockname()[1])


class HttpServer(http.server.ThreadingHTTPServer):
    """Serves ``files`` by path, and remembers what was asked for."""

    daemon_threads = True

    def __init__(self, files: Mapping[str, bytes], status: int = 404) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.files = dict(files)
        self.missing_status = status
        self.asked: list[str] = []

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}"


class _Handler(http.server.BaseHTTPRequestHandler):
    server: HttpServer

    def do_GET(self) -> None:
        self.server.asked.append(self.path)
        body = self.server.files.get(self.path.partition("?")[0])
        self.send_response(self.server.missing_status if body is None else 200)
        if body is None and self.server.missing_status == 401:
            self.send_header("WWW-Authenticate", 'Basic realm="test"')
        is_page = self.path.endswith("/")
        kind = "text/html" if is_page else "application/octet-stream"
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body or b"")))
        self.end_headers()
        self.wfile.write(body or b"")

    def log_message(self, *_: object) -> None:
        pass


@contextmanager
def http_server(files: Mapping[str, bytes], status: int = 404) -> Iterator[HttpServer]:
    """Serve files over HTTP on loopback; ``status`` answers for everything else."""
    with HttpServer(files, status) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.05,))
        thread.start()
        try:
            yield server
        finally:
            server.shutdown()
            thread.join(10)
