"""Comparisons that are killed: real processes, real signals, nothing left behind."""

import os
import signal
import subprocess
import sys
from contextlib import contextmanager

import pytest

from readerkit.evidence.record import Record
from tests.helpers import ROOT
from tests.processes import children, is_gone, is_training, wait_for

pytestmark = pytest.mark.slow

MODULE = [sys.executable, "-m", "mini_impls.compare"]
COMMAND = [sys.executable, "-m", "readerkit", "compare"]


@contextmanager
def training(command, tmp_path):
    """Start a comparison that would go on for long; yield it and its ranks' pids."""
    with subprocess.Popen(
        [*command, "ddp", "--upstream", "torch", "--steps", "10000"],
        env={**os.environ, "PYTHONPATH": str(ROOT), "TMPDIR": str(tmp_path)},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    ) as process:
        try:

            def both():
                assert process.poll() is None, process.stderr.read()
                pids = [pid for pid in children(process.pid) if is_training(pid)]
                return pids if len(pids) == 2 else None

            ranks = wait_for(both, 120)
            yield process, sorted(ranks)
        finally:
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGKILL)


def test_a_killed_rank_ends_all_and_is_named(tmp_path, real_cache):
    with training(MODULE, tmp_path) as (process, ranks):
        everyone = children(process.pid)
        os.kill(ranks[1], signal.SIGKILL)
        _, err = process.communicate(timeout=60)
        assert process.returncode == 1
        assert "rank 1 failed first: it ended by SIGKILL" in err
        assert "Traceback" not in err
        wait_for(lambda: all(map(is_gone, everyone)), 30)


@pytest.mark.parametrize(
    ("command", "signum", "to_group", "status"),
    [
        pytest.param(MODULE, signal.SIGKILL, False, -9, id="launcher killed"),
        pytest.param(MODULE, signal.SIGTERM, False, 143, id="launcher ended"),
        pytest.param(COMMAND, signal.SIGKILL, False, -9, id="command killed"),
        pytest.param(COMMAND, signal.SIGINT, True, 130, id="^C on the command"),
    ],
)
def test_nothing_outlives_what_started_it(
    tmp_path, real_cache, command, signum, to_group, status
):
    with training(command, tmp_path) as (process, _):
        everyone = children(process.pid)
        (os.killpg if to_group else os.kill)(process.pid, signum)
        _, err = process.communicate(timeout=30)
        assert process.returncode == status
        assert "Traceback" not in err
        wait_for(lambda: all(map(is_gone, everyone)), 30)


def test_torchrun_makes_one_record(tmp_path, real_cache):
    ended = subprocess.run(
        [
            *(sys.executable, "-m", "torch.distributed.run", "--nproc-per-node", "2"),
            *("-m", "mini_impls.compare", "ddp", "--upstream", "torch"),
            *("--steps", "6", "--json", "--save", str(tmp_path)),
        ],
        env={**os.environ, "PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1"},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert ended.returncode == 0, ended.stderr
    record = Record.parse(ended.stdout, "printed")
    assert record.agrees
    assert (record.world_size, len(record.events)) == (2, 2)
    assert (set(record.pins), record.shims) == ({"pytorch"}, ())
    both = [(clock.side, clock.rank) for clock in record.clocks]
    assert both == [("mini", 0), ("mini", 1), ("upstream", 0), ("upstream", 1)]
    saved = (tmp_path / "ddp_torch.json").read_text()
    assert Record.parse(saved, "saved") == record
