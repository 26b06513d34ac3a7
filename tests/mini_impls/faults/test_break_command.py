"""The command, from its arguments to what it prints; real launches."""

import json
import os
import pty
import select
import subprocess
import sys
import time

import pytest

from mini_impls.faults.__main__ import main
from mini_impls.faults.known import FAULTS
from readerkit.cli import main as readerkit
from tests.helpers import ROOT


def test_without_a_fault_the_faults_are_listed(capsys):
    assert main([]) == 0
    rows = capsys.readouterr().out.splitlines()
    assert [row.split()[:2] for row in rows] == [[f.mini, f.name] for f in FAULTS]
    assert main(["zero"]) == 0
    rows = capsys.readouterr().out.splitlines()
    assert [row.split()[1] for row in rows] == ["unsharded-state", "stale-shard"]
    assert main(["--json"]) == 0
    rows = json.loads(capsys.readouterr().out)
    assert [(row["mini"], row["fault"]) for row in rows] == [
        (f.mini, f.name) for f in FAULTS
    ]


@pytest.mark.parametrize(
    ("argv", "message"),
    [
        (["ddp", "nope"], "ddp has no fault 'nope': expected one of no-sync, sum-"),
        (["model"], "model has no faults: got 'model', expected one of ddp, zero"),
        (["ddp", "no-sync", "--world", "3"], "shown on 2 or 4 ranks, not on 3"),
        (["ddp", "no-sync", "--timeout", "inf"], "--timeout inf is above 31536000"),
        (["ddp", "no-sync", "--predict", "5"], "--predict 5 is not one of 1 to 4"),
    ],
)
def test_a_mistake_is_one_line_and_status_one(argv, message, capsys):
    assert main(argv) == 1
    out, err = capsys.readouterr()
    assert out == ""
    assert message in err
    assert len(err.splitlines()) == 1


@pytest.mark.slow
def test_json_alone_is_printed(capfd, real_cache):
    assert main(["zero", "unsharded-state", "--json", "--predict", "2"]) == 0
    found = json.loads(capfd.readouterr().out)
    assert found["symptoms"] == ["memory"]
    assert (found["shown"], found["prediction"]) == ([2], 2)
    held = [rank["bytes of optimizer state"] for rank in found["measured_right"]]
    full = {rank["bytes of optimizer state"] for rank in found["measured_wrong"]}
    assert len(full) == 1
    # Two moments of everything; the step counts go with the tensors.
    assert sum(held) == full.pop()
    source = (ROOT / found["path"]).read_text().splitlines()
    assert source[found["first"] - 1 : found["last"]] == found["right"]
    assert found["wrong"] == ["        return list(params)"]
    assert found["guards"][0]["upstream"] == "pytorch"


@pytest.mark.slow
def test_a_deadlock_ends_and_is_told(capfd, real_cache):
    argv = ["pipeline", "send-order", "--timeout", "5", "--predict", "1"]
    assert main(argv) == 0
    out = capfd.readouterr().out
    assert "Timed out waiting 5000ms" in out
    assert "the ranks wait for one another" in out
    assert "it stood in communicate" in out
    assert "You said 1: wrong." in out
    assert "Shown: 3  It hangs" in out
    assert "reqs = torch.distributed.batch_isend_irecv(ops)" in out


@pytest.mark.slow
def test_a_person_is_asked_before_anything_runs(real_cache):
    ours, theirs = pty.openpty()
    command = [sys.executable, "-m", "readerkit", "break", "fsdp", "stale-shard"]
    process = subprocess.Popen(
        command, stdin=theirs, stdout=theirs, stderr=subprocess.STDOUT, cwd=ROOT
    )
    os.close(theirs)
    seen = b""
    deadline = time.monotonic() + 300
    while time.monotonic() < deadline:
        if not select.select([ours], [], [], 1.0)[0]:
            continue
        try:
            got = os.read(ours, 4096)
        except OSError:  # the terminal's last reader has gone
            break
        if not got:
            break
        asked = b"go on without" in seen
        seen += got
        if not asked and b"go on without" in seen:
            assert b"measured, right" not in seen
            os.write(ours, b"9\n4\n")
    assert process.wait(10) == 0
    os.close(ours)
    text = seen.decode()
    assert "9 is not in the range" in text
    assert "You said 4: right." in text


def test_the_alias_of_a_mini_works_through_readerkit(capfd):
    with pytest.raises(SystemExit) as ended:
        readerkit(["break", "tp", "--json"])
    assert not ended.value.code
    rows = json.loads(capfd.readouterr().out)
    assert {row["mini"] for row in rows} == {"tensor_parallel"}
    with pytest.raises(SystemExit) as ended:
        readerkit(["break", "--json"])
    assert not ended.value.code
    assert len(json.loads(capfd.readouterr().out)) == len(FAULTS)
