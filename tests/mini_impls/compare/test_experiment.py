"""The process that runs experiments, where a kernel denies it what it asks for."""

from __future__ import annotations

import json
import subprocess
import sys

DENIED = """\
from mini_impls.compare import experiment
experiment.SIOCSIFFLAGS = 1  # what no interface knows
experiment.main()
"""
PROGRAM = """\
import socket
server = socket.create_server(("127.0.0.1", 0))
socket.create_connection(server.getsockname()).close()
print("figure = 1")
"""


def test_where_no_loopback_can_be_raised_the_network_stays(tmp_path):
    (tmp_path / "try.py").write_text(PROGRAM)
    (tmp_path / "run").mkdir()
    asked = {
        "path": str(tmp_path / "try.py"),
        "ranks": 1,
        "tree": "",
        "shims": False,
        "minis": "",
        "timeout_s": 60.0,
        "folder": str(tmp_path / "run"),
    }
    done = subprocess.run(
        [sys.executable, "-c", DENIED],
        input=json.dumps(asked) + "\n",
        capture_output=True,
        text=True,
        check=False,
    )
    assert json.loads(done.stdout)["printed"] == ["figure = 1\n"], done.stderr
