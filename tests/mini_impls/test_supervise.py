"""What becomes of ranks and their launcher when a signal ends one of them."""

import multiprocessing
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from ranks import GONE_S

from mini_impls.supervise import _Watched
from readerkit.system.children import left_to_parent

ROOT = Path(__file__).parents[2]


WAITING = """
import os, torch
import torch.distributed as dist
from mini_impls import launch, limits, supervise
def demo(rank, args):
    rank.say_each(f"pid {os.getpid()}")
    dist.recv(torch.ones(1), 1 - rank.rank, group=rank.group)
if __name__ == "__main__":
    raise SystemExit(launch.main(demo, description="waits"))
"""


def is_dead(pid):
    return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "Z"


def started(script, text, **how):
    """Start a script that launches ranks; its output is read line by line."""
    script.write_text(text)
    return subprocess.Popen(
        [sys.executable, script],
        env={**os.environ, "PYTHONPATH": str(ROOT), "TMPDIR": str(script.parent)},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        **how,
    )


def test_what_is_no_signal_is_left_to_nobody(monkeypatch):
    monkeypatch.setenv("READERKIT_LEFT", "x 2 -1 1.5")
    assert left_to_parent() == {2}


@pytest.mark.slow
@pytest.mark.parametrize("killed", [0, 1])
def test_a_killed_rank_is_named_though_its_neighbour_ended_before_the_launcher_looked(
    tmp_path, killed
):
    with started(tmp_path / "waiting.py", WAITING) as process:
        pids = [int(process.stdout.readline().split()[-1]) for _ in range(2)]
        process.send_signal(signal.SIGSTOP)
        os.kill(pids[killed], signal.SIGKILL)
        deadline = time.monotonic() + GONE_S
        while not all(map(is_dead, pids)):
            assert time.monotonic() < deadline, "the neighbour felt nothing"
            time.sleep(0.05)
        process.send_signal(signal.SIGCONT)
        _, err = process.communicate(timeout=GONE_S)
    assert process.returncode == 1
    assert f"rank {killed} failed first: it ended by SIGKILL before it was done" in err


SCRIPT = """
import os, signal, time
from mini_impls import launch, limits, supervise
def demo(rank, args):
    blocked = signal.pthread_sigmask(signal.SIG_BLOCK, [])
    rank.say_each(f"blocked {signal.SIGINT in blocked} pid {os.getpid()}")
    time.sleep(60)
if __name__ == "__main__":
    raise SystemExit(launch.main(demo, description="sleeps"))
"""


@pytest.mark.parametrize(
    ("signum", "status"),
    [
        (signal.SIGKILL, -9),
        pytest.param(signal.SIGINT, 130, marks=pytest.mark.slow),
    ],
)
def test_no_rank_outlives_its_launcher(tmp_path, signum, status):
    with started(tmp_path / "sleeper.py", SCRIPT, start_new_session=True) as process:
        lines = [process.stdout.readline().split() for _ in range(2)]
        assert [line[3] for line in lines] == ["True", "True"], "^C is the launcher's"
        pids = [int(line[-1]) for line in lines]
        if signum == signal.SIGINT:  # what a terminal does: the whole group gets it
            os.killpg(process.pid, signum)
        else:
            process.send_signal(signum)
        assert process.wait(GONE_S) == status
        deadline = time.monotonic() + GONE_S
        while any(Path(f"/proc/{pid}").exists() for pid in pids):
            assert time.monotonic() < deadline, "a rank is still there"
            time.sleep(0.05)
        if signum == signal.SIGINT:
            assert process.stderr.read() == ""


TOLD = """
import os, signal
from torch.distributed.elastic.multiprocessing import SignalException
from mini_impls import launch
forks = 0
def tell():
    global forks
    forks += 1
    if forks == 2:  # the first rank is there, the second is not
        print("told", flush=True)
        os.kill(os.getpid(), signal.SIGTERM)
os.register_at_fork(before=tell)
def work(rank):
    raise AssertionError("it was told to end before")
if __name__ == "__main__":
    try:
        launch.run(work, world_size=2)
    except SignalException as error:
        raise SystemExit(128 + error.sigval)
"""


@pytest.mark.further
def test_a_launcher_that_is_told_to_end_between_two_ranks_ends_the_first(tmp_path):
    with started(tmp_path / "told.py", TOLD) as process:
        assert process.stdout.readline() == "told\n"
        _, err = process.communicate(timeout=GONE_S)
    assert (process.returncode, err) == (128 + signal.SIGTERM, "")


LATE = """
import os, time
from mini_impls import launch, limits, supervise
def be_late():  # the first rank that comes here is slow to start
    try:
        os.mkdir(os.environ["LATE"])
    except FileExistsError:
        pass
    else:
        time.sleep(4)
os.register_at_fork(after_in_child=be_late)
def demo(rank, args):
    rank.say_each("is there")
if __name__ == "__main__":
    raise SystemExit(launch.main(demo, description="starts slowly"))
"""


@pytest.mark.slow
def test_timeout_is_for_collectives_and_not_for_a_rank_that_starts_late(tmp_path):
    script = tmp_path / "late.py"
    script.write_text(LATE)
    done = subprocess.run(
        [sys.executable, script, "--timeout", "1"],
        env={**os.environ, "PYTHONPATH": str(ROOT), "LATE": str(tmp_path / "late")},
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout == "[rank 0] is there\n[rank 1] is there\n"


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
def test_a_rank_that_goes_on_again_is_stopped_no_more(tmp_path):
    rank = multiprocessing.Process(target=time.sleep, args=(60,))
    rank.start()
    watched = _Watched({0: rank}, tmp_path, 60.0)
    try:
        for signum, ranks in ((signal.SIGSTOP, {0}), (signal.SIGCONT, set())):
            os.kill(rank.pid, signum)
            deadline = time.monotonic() + GONE_S
            while set(watched.stopped()) != ranks:
                assert time.monotonic() < deadline
                time.sleep(0.01)
    finally:
        rank.kill()
        rank.join()
