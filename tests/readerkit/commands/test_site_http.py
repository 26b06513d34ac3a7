"""The served site under its own name alone; no request ends in a traceback."""

from __future__ import annotations

import contextlib
import re
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.helpers import make_book

LIMIT = 60
"""Seconds that an answer may take on a machine with much else to do."""


class Served:
    """A server in a process of its own, and what it wrote to stderr."""

    def __init__(self, port: int, stderr: Path) -> None:
        self.port = port
        self.name = f"127.0.0.1:{port}"
        self._stderr = stderr

    def send(self, request: str | bytes) -> str:
        """Send bytes as they are, and return the head of the answer, if any."""
        data = request.encode("latin-1") if isinstance(request, str) else request
        data = data.replace(b"<own>", self.name.encode())
        data = data.replace(b"%p", str(self.port).encode())
        with socket.create_connection(("127.0.0.1", self.port), LIMIT) as client:
            answer = b""
            # Who is refused before all is sent may find the connection gone.
            with contextlib.suppress(ConnectionError):
                client.sendall(data)
                while b"\r\n\r\n" not in answer and (part := client.recv(1 << 16)):
                    answer += part
        return answer.decode("utf-8", "replace")

    def status(self, request: str | bytes) -> int:
        found = re.match(r"HTTP/1.1 (\d+)", self.send(request))
        return int(found[1]) if found else 0

    def get(self, path: str = "/", *headers: str) -> int:
        lines = (f"GET {path} HTTP/1.1", *headers, "Connection: close", "", "")
        return self.status("\r\n".join(lines))

    def post(self, body: str, *headers: str) -> int:
        lines = ("POST /-/read HTTP/1.1", *headers, "Connection: close", "", body)
        return self.status("\r\n".join(lines))

    def said(self) -> str:
        return self._stderr.read_text()


@contextmanager
def serve(folder: Path) -> Iterator[Served]:
    book = make_book(folder)
    command = ("site", "serve", "--port", "0", "--book", str(book.root))
    with (folder / "stderr").open("wb") as stderr:
        process = subprocess.Popen(
            [sys.executable, "-m", "readerkit", *command],
            stdout=subprocess.PIPE,
            stderr=stderr,
            text=True,
        )
        try:
            assert process.stdout is not None
            found = re.search(r":(\d+)/", process.stdout.readline())
            assert found, (folder / "stderr").read_text()
            yield Served(int(found[1]), folder / "stderr")
        finally:
            process.terminate()
            process.communicate(timeout=LIMIT)


@pytest.fixture(scope="module")
def served(tmp_path_factory) -> Iterator[Served]:
    folder = tmp_path_factory.mktemp("served")
    with pytest.MonkeyPatch.context() as patch:
        for name in ("CACHE", "DATA"):
            patch.setenv(f"READERKIT_{name}", str(folder / name.lower()))
        patch.setenv("READERKIT_SCHEMES", "file")
        with serve(folder) as server:
            yield server
    assert "Traceback" not in server.said()
    assert "Exception" not in server.said()


# --- the name ---

OWN = ["127.0.0.1:%p", "localhost:%p", "LOCALHOST:%p", "LocalHost:%p"]
OTHERS = [
    *("", "127.0.0.1", "localhost", "127.0.0.1:", "localhost:", "localhost:1"),
    *("127.0.0.1:80", "127.0.0.1:1%p", "127.0.0.1:%p0", "127.0.0.1:0%p"),
    *(
        "localhost.:%p",
        "localhost:%p.",
        "localhost:<port>:%p",
        "localhost:%p/",
    ),
    *("evil.example", "evil.example:%p", "localhost.evil.example:%p"),
    *("127.0.0.1.evil.example:%p", "evil.localhost:%p", "127.0.0.2:%p"),
    *(
        "127.1:%p",
        "0:%p",
        "0.0.0.0:%p",
        "2130706433:%p",
        "0x7f000001:%p",
    ),
    *(
        "[::1]:%p",
        "[::]:%p",
        "::1:%p",
        "[::ffff:127.0.0.1]:%p",
        "[::1]",
        "[",
    ),
    *("user@127.0.0.1:%p", "127.0.0.1:%p, evil", "127.0.0.1:%p evil"),
    *(
        "http://127.0.0.1:%p",
        "127.0.0.1:%p#",
        "127.0.0.1:%p?",
        "*",
        "\xff\xfe",
    ),
]


@pytest.mark.parametrize("host", OWN)
def test_own_names_are_answered(served, host):
    assert served.get("/", f"Host: {host}") == 200
    assert served.get("/-/read", f"Host: {host}") == 200


@pytest.mark.parametrize("host", OTHERS)
def test_any_other_name_is_refused_for_reading_and_for_writing(served, host):
    assert served.get("/", f"Host: {host}") == 400
    body = '["close"]'
    sized = f"Content-Length: {len(body)}"
    for origin in (f"http://{host}", "http://<own>"):
        assert served.post(body, f"Host: {host}", f"Origin: {origin}", sized) == 400


@pytest.mark.parametrize(
    "request_line",
    [
        *("GET / HTTP/1.1\r\n\r\n", "GET / HTTP/1.0\r\n\r\n"),
        "GET / HTTP/1.1\r\nHost: <own>\r\nHost: <own>\r\n\r\n",
        "GET / HTTP/1.1\r\nHost: <own>\r\nHost: evil\r\n\r\n",
        "GET / HTTP/1.0\r\nHost: <own>\r\nHost: evil\r\n\r\n",
        *(
            f"{line} HTTP/1.1\r\nHost: <own>\r\nConnection: close\r\n\r\n"
            for line in (
                *(
                    "GET http://<own>/",
                    "GET http://evil.example/",
                    "GET https://<own>/",
                ),
                *("GET <own>/", "GET index.html", "OPTIONS *", "CONNECT <own>"),
                *("CONNECT evil.example:443", "GET file:///etc/passwd"),
            )
        ),
    ],
)
def test_name_that_is_missing_twice_or_in_the_first_line_is_refused(
    served, request_line
):
    assert served.status(request_line) == 400


@pytest.mark.parametrize(
    "origins",
    [
        [],
        ["null"],
        [""],
        ["http://evil.example"],
        ["https://<own>"],
        ["http://127.0.0.1"],
        ["http://localhost:1"],
        ["http://localhost:%p"],
        ["http://<own>/"],
        ["http://<own>", "http://evil.example"],
        ["http://<own>", "http://<own>"],
        ["http://<own> http://evil.example"],
        ["http://user@<own>"],
    ],
)
def test_only_own_pages_may_write(served, origins):
    body = '["close"]'
    given = [f"Origin: {origin}" for origin in origins]
    sized = f"Content-Length: {len(body)}"
    assert served.post(body, "Host: <own>", *given, sized) == 403
    assert served.post(body, "Host: <own>", "Origin: http://<own>", sized) == 200


# --- malformed ---

POST = "POST /-/read HTTP/1.1\r\nHost: <own>\r\nOrigin: http://<own>\r\n"
MALFORMED = [
    *(b"\0\1\2\r\n\r\n", b"\x16\x03\x01\x02\0\1", b"GET\r\n\r\n", b"\r\n\r\n"),
    b"GET / HTTP/1.1\r\nHost <own>\r\n\r\n",
    b"GET / HTTP/1.1\r\nHost: <own>\r\n folded: x\r\n\r\n",
    b"GET /\xff\xfe HTTP/1.1\r\nHost: <own>\r\n\r\n",
    b"GET / HTTP/1.1\r\nHost: <own>\r\nX: a\0b\r\n\r\n",
    b"GET / HTTP/one\r\nHost: <own>\r\n\r\n",
    b"G\xc3\x89T / HTTP/1.1\r\nHost: <own>\r\n\r\n",
    b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
    *(
        POST.encode() + rest
        for rest in (
            b"Content-Length: abc\r\n\r\n",
            b"Content-Length: -5\r\n\r\n",
            b"Content-Length: 99999999999999999999999\r\n\r\n",
            b"Content-Length: 5\r\nContent-Length: 6\r\n\r\n[]",
            b"Content-Length: 2\r\n\r\n[]GARBAGE\r\n\r\n",
            b"Transfer-Encoding: chunked\r\n\r\nzz\r\n",
            b"Transfer-Encoding: gzip\r\n\r\n",
            b"Content-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n\r\n",
            b"\r\n",
        )
    ),
    b"POST /-/quiz/7 HTTP/1.1\r\nHost: <own>\r\nOrigin: http://<own>\r\n"
    b"Content-Length: 3\r\n\r\n\xff\xff\xff",
    b"GET /-/changes?page=%ff%00 HTTP/1.1\r\nHost: evil\r\n\r\n",
    b"GET /" + b"a" * 200_000 + b" HTTP/1.1\r\nHost: <own>\r\n\r\n",
    b"GET / HTTP/1.1\r\nHost: <own>\r\n" + b"X: y\r\n" * 60_000,
]


@pytest.mark.parametrize("data", MALFORMED, ids=lambda data: repr(data[:40]))
def test_malformed_request_is_refused_and_the_server_goes_on(served, data):
    assert served.send(data).partition("\r\n")[0][:12] in (
        *("", "HTTP/1.1 400", "HTTP/1.1 403", "HTTP/1.1 404", "HTTP/1.1 413"),
        *("HTTP/1.1 200", "HTTP/1.1 431", "HTTP/1.1 501"),
    )
    assert served.get("/", "Host: <own>") == 200
    assert "Traceback" not in served.said()


@pytest.mark.parametrize(
    "data",
    [
        *("", "GET", "GET / HTTP/1.1\r\nHost: H", "GET /-/changes HTTP/1.1\r\n"),
        f"{POST}Content-Length: 100\r\n\r\n[",
        f"{POST}Content-Length: 100\r\n\r\n",
        f"{POST}Transfer-Encoding: chunked\r\n\r\n5\r\nab",
    ],
)
def test_client_that_leaves_in_the_middle_is_no_error(served, data):
    with socket.create_connection(("127.0.0.1", served.port), LIMIT) as client:
        client.sendall(data.replace("<own>", served.name).encode())
    assert served.get("/", "Host: <own>") == 200
    assert "Traceback" not in served.said()
