"""The servers on standard input and output end when they are told to."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys

import pytest

from tests.terminals import WAIT_S

pytestmark = pytest.mark.sampled

NEEDS = {"lsp": "pygls", "mcp": "mcp"}
INITIALIZE = {
    "lsp": {"capabilities": {}},
    "mcp": {
        "protocolVersion": "2025-06-18",
        "capabilities": {},
        "clientInfo": {"name": "test", "version": "1"},
    },
}


@pytest.mark.parametrize("signum", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
@pytest.mark.parametrize("name", ["lsp", "mcp"])
def test_a_signal_ends_a_server_whose_client_is_silent(name, signum):
    pytest.importorskip(NEEDS[name])
    asked = {"jsonrpc": "2.0", "id": 1, "method": "initialize"}
    body = json.dumps({**asked, "params": INITIALIZE[name]}) + "\n"
    if name == "lsp":
        body = f"Content-Length: {len(body)}\r\n\r\n{body}"
    with subprocess.Popen(
        [sys.executable, "-m", "readerkit", name],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    ) as process:
        os.write(process.stdin.fileno(), body.encode())
        assert process.stdout.read(1)  # it answers, and waits for what comes next
        process.send_signal(signum)
        try:
            assert process.wait(WAIT_S) == -signum
            assert process.stderr.read() == b""
        finally:
            process.kill()
