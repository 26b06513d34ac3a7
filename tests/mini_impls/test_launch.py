"""Starting ranks, and saying who failed."""

import errno
import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest
import torch
import torch.distributed as dist
from ranks import GONE_S
from torch.distributed.elastic.multiprocessing import PContext

from mini_impls import failures, launch, limits, supervise, torchrun
from mini_impls.failures import RankFailedError
from mini_impls.traffic import Call, CollectiveCounter

ROOT = Path(__file__).parents[2]


def sum_of_ranks(rank, extra):
    total = torch.tensor([rank.rank + extra])
    dist.all_reduce(total, group=rank.group)
    return rank.rank, int(total), os.environ["GLOO_SOCKET_IFNAME"], os.getppid()


def test_run_returns_each_ranks_value_and_restores_the_signals():
    before = signal.getsignal(signal.SIGINT)
    values = launch.run(sum_of_ranks, (10,), world_size=2)
    assert values == [(r, 21, "lo", os.getpid()) for r in range(2)]
    assert signal.getsignal(signal.SIGINT) is before


def misbehave(rank, how, clock):
    if rank.rank == 1:
        clock.write_text(str(time.monotonic()))
        if how == "raise":
            raise ValueError("9 heads are not divisible by 2")
        if how == "kill":
            os.kill(os.getpid(), signal.SIGKILL)
        if how == "exit":
            os._exit(0)
        time.sleep(120)
    dist.all_reduce(torch.ones(1), group=rank.group)


@pytest.mark.parametrize(
    ("how", "message"),
    [
        ("raise", r"rank 1 failed first: ValueError: 9 heads are not divisible by 2"),
        pytest.param(
            "kill",
            r"rank 1 failed first: it ended by SIGKILL before it was done",
            marks=pytest.mark.slow,
        ),
        pytest.param(
            "exit",
            r"rank 1 failed first: it ended by exit status 0 before it was done",
            marks=pytest.mark.slow,
        ),
        (
            "hang",
            r"(?s)rank 0 failed first: .*[Tt]imed out.*"
            r"rank 1 is missing: it stands at .*in misbehave: time.sleep\(120\)",
        ),
    ],
)
def test_first_failed_rank_is_named_with_its_own_error(tmp_path, how, message):
    clock = tmp_path / "clock"
    with pytest.raises(RankFailedError, match=message):
        launch.run(misbehave, (how, clock), world_size=2, timeout_s=1.0)
    assert time.monotonic() - float(clock.read_text()) < GONE_S
    for thread in threading.enumerate():
        if thread.name.endswith("(_end_those_that_stay)"):
            thread.join(5)
            assert not thread.is_alive()


def take_turns(rank):
    time.sleep(2.0 * rank.rank)
    return rank.rank


@pytest.mark.further
def test_a_rank_may_work_for_long_after_another_is_done(monkeypatch):
    # Whoever outlives the work of all is killed a second after it.
    monkeypatch.setattr(supervise, "END_S", -3.0)
    assert launch.run(take_turns, world_size=2, timeout_s=4.0) == [0, 1]


def hang_in_a_group(rank):
    group = dist.new_group([0, 1])
    if rank.rank == 1:
        time.sleep(120)
    dist.all_reduce(torch.ones(1), group=group)


@pytest.mark.slow
def test_the_timeout_holds_in_groups_that_are_made_later():
    message = (
        r"(?s)rank 0 failed first: .*[Tt]imed out.*"
        r"rank 1 is missing: it stands at .*in hang_in_a_group: time.sleep\(120\)"
    )
    with pytest.raises(RankFailedError, match=message):
        launch.run(hang_in_a_group, world_size=2, timeout_s=1.0)


def return_early(rank):
    if rank.rank == 0:
        dist.all_reduce(torch.ones(1), group=rank.group)


@pytest.mark.slow
def test_a_rank_that_returned_early_is_missing():
    message = r"(?s)rank 0 failed first: .*rank 1 is missing: it had already returned"
    with pytest.raises(RankFailedError, match=message):
        launch.run(return_early, world_size=2, timeout_s=1.0)


def leave_a_thread(rank, clock):
    if rank.rank == 1:
        threading.Thread(target=time.sleep, args=(60,)).start()
    clock.with_suffix(f".{rank.rank}").write_text(str(time.monotonic()))


@pytest.mark.slow
def test_a_rank_that_returned_and_does_not_end_is_named(tmp_path, monkeypatch):
    monkeypatch.setattr(supervise, "END_S", 1.0)
    clock = tmp_path / "clock"
    message = r"^rank 1 does not end: still there 3 s after all work was done$"
    with pytest.raises(RankFailedError, match=message):
        launch.run(leave_a_thread, (clock,), world_size=2, timeout_s=2.0)
    took = time.monotonic() - float(clock.with_suffix(".1").read_text())
    assert 3 < took < GONE_S


def stand_still(rank, clock):
    if rank.rank == 1:
        clock.write_text(str(time.monotonic()))
        os.kill(os.getpid(), signal.SIGSTOP)
    dist.all_reduce(torch.ones(1), group=rank.group)


@pytest.mark.slow
def test_a_rank_that_cannot_take_a_signal_does_not_hold_up_the_end(
    tmp_path, monkeypatch
):
    clock = tmp_path / "clock"
    poll = PContext.wait

    def late(ranks, *args, **kwargs):
        # On a busy machine a rank may end between two looks of the launcher.
        time.sleep(0.5)
        return poll(ranks, *args, **kwargs)

    monkeypatch.setattr(PContext, "wait", late)
    message = (
        r"^rank 1 failed first: a signal stopped it\n"
        r"rank 0 waited for it: .*[Tt]imed out"
    )
    with pytest.raises(RankFailedError, match=message):
        launch.run(stand_still, (clock,), world_size=2, timeout_s=1.0)
    assert time.monotonic() - float(clock.read_text()) < GONE_S


def wait_for_one_another(rank, own_words, slow, seconds):
    """Wait for what never comes; rank 0 gives up, which closes its connections."""
    time.sleep(rank.rank)
    try:
        dist.recv(torch.ones(1), 1 - rank.rank, group=rank.group)
    except RuntimeError as error:
        if rank.rank == slow:
            time.sleep(seconds)
        if own_words and rank.rank == 0:
            raise ValueError("no message came") from error
        raise


@pytest.mark.slow
@pytest.mark.parametrize(
    ("own_words", "slow", "seconds", "message"),
    [
        pytest.param(
            *(False, 1, 0.3, r"(?s)rank 0 failed first: .*[Tt]imed out"),
            id="timeout said first",
        ),
        pytest.param(
            *(False, 0, launch.GRACE_S + 0.5),
            r"(?s)rank 0 failed first: .*[Tt]imed out",
            id="timeout said last",
        ),
        pytest.param(
            *(True, 0, 0.3, "rank 0 failed first: ValueError: no message came"),
            id="own error said last",
        ),
    ],
)
def test_a_lost_neighbour_is_no_cause_whoever_says_so_first(
    own_words, slow, seconds, message
):
    args = (own_words, slow, seconds)
    with pytest.raises(RankFailedError, match=message):
        launch.run(wait_for_one_another, args, world_size=2, timeout_s=2.0)


def come_late(rank):
    launch.GRACE_S = 6.0  # in this rank alone, so that the late one has time to come
    time.sleep(3.0 * rank.rank)
    dist.all_reduce(torch.ones(1), group=rank.group)  # what rank 1 comes late to


@pytest.mark.slow
def test_a_rank_that_came_too_late_is_shown_where_it_came_to():
    message = r"rank 1 failed as well, at .*in come_late: .*# what rank 1 comes late to"
    with pytest.raises(RankFailedError, match=message) as caught:
        launch.run(come_late, world_size=2, timeout_s=1.0)
    assert str(caught.value).startswith("rank 0 failed first: ")


def give_up():
    raise RuntimeError("Timed out waiting 1000ms")  # where it gave up


def test_a_rank_that_failed_as_well_is_shown_where_its_own_code_stood(tmp_path):
    for rank in range(2):
        try:
            give_up()
        except RuntimeError as error:
            failures.write_report(tmp_path, rank, error)
    (tmp_path / "2.done").touch()
    found = failures.explain(tmp_path, 3, codes={})
    _, other, gone = found.said.splitlines()
    assert other.startswith("rank 1 failed as well, at ")
    assert other.endswith("# where it gave up")
    assert gone == "rank 2 is missing: it had already returned"
    assert found.missing == {2}
    stopped, waited, *_ = failures.explain(tmp_path, 4, {}, [3]).said.splitlines()
    assert stopped == "rank 3 failed first: a signal stopped it"
    assert waited.startswith("rank 0 waited for it: ")
    # One that was stopped behind its own failure is not held by the signal.
    failed = failures.explain(tmp_path, 3, {}, [0, 1])
    assert failed.missing == {2} and "a signal stopped" not in failed.said


@pytest.mark.parametrize(
    ("number", "is_full"), [(errno.ENOSPC, True), (errno.ENOENT, False)]
)
def test_a_disk_that_takes_no_more_is_the_fault_of_no_line(tmp_path, number, is_full):
    failures.write_report(tmp_path, 0, OSError(number, os.strerror(number), "t.json"))
    said = str(failures.explain(tmp_path, 2, codes={}))
    assert said.startswith("rank 0 failed first: ") and "'t.json'" in said
    assert ("\n" not in said) == is_full


DEMO = f"{sys.executable} -m mini_impls.tensor_parallel --steps 1"


def shell(script, **more):
    """Return how a line of shell ended, run from the repository."""
    return subprocess.run(
        ["sh", "-c", script], capture_output=True, text=True, cwd=ROOT, **more
    )


@pytest.mark.sampled
@pytest.mark.parametrize(
    "run",
    [
        DEMO,
        f"{DEMO} --help",
        f"{sys.executable} -m torch.distributed.run --nproc-per-node 1 "
        "-m mini_impls.tensor_parallel --steps 1",
    ],
    ids=["ranks", "help", "torchrun"],
)
@pytest.mark.further
def test_an_output_that_takes_no_more_is_one_message(run):
    ended = shell(f"{run} > /dev/full")
    assert ended.returncode == 1
    told = [line for line in ended.stderr.splitlines() if "mini_impls." in line]
    full = os.strerror(errno.ENOSPC)
    name = "python -m mini_impls.tensor_parallel"
    assert told[0] == f"{name}: cannot write the output: {full}"
    assert "torch" in run or ended.stderr.splitlines() == told


def test_a_rank_that_lost_one_that_had_returned_has_waited_in_vain(tmp_path):
    failures.write_report(tmp_path, 0, RuntimeError("Connection closed by peer"))
    (tmp_path / "1.done").touch()
    found = failures.explain(tmp_path, 2, codes={})
    assert found.hung and found.missing == {1}


@pytest.mark.slow
def test_the_longest_timeout_does_not_overflow():
    values = launch.run(sum_of_ranks, (10,), world_size=2, timeout_s=limits.LONGEST_S)
    assert [value[1] for value in values] == [21, 21]


def never(rank, args):
    raise AssertionError("no process may start")


def refuse(args):
    raise ValueError(f"4 heads are not divisible by {args.world}")


@pytest.mark.parametrize(
    ("argv", "options", "message"),
    [
        (["--world", "3"], {"check": refuse}, "4 heads are not divisible by 3"),
        (["--timeout", "inf"], {}, "--timeout inf is above 31536000, a year"),
        (["--timeout", "1e300"], {}, "--timeout 1e+300 is above 31536000, a year"),
        (["--timeout", "nan"], {}, "--timeout nan is not above 0"),
        pytest.param(
            ["--backend", "nccl", "--world", "64"],
            {},
            "NCCL needs a GPU a rank: 64 ranks",
            id="more ranks than GPUs",
        ),
    ],
)
def test_what_does_not_fit_is_one_line(capfd, argv, options, message):
    assert launch.main(never, description="never", argv=argv, **options) == 2
    captured = capfd.readouterr()
    assert message in captured.err
    assert captured.err.count("\n") == 1


def test_under_torchrun_the_environment_wins(monkeypatch, capfd):
    monkeypatch.setenv("TORCHELASTIC_RUN_ID", "x")
    monkeypatch.setenv("WORLD_SIZE", "4")
    monkeypatch.setenv("RANK", "0")
    assert launch.main(never, description="never", argv=["--world", "2"]) == 2
    assert "--world 2 under torchrun with 4" in capfd.readouterr().err


@pytest.mark.parametrize(("rank", "lines"), [("0", 1), ("1", 0)])
def test_torchruns_ranks_leave_it_to_the_first_to_say_what_all_find(
    monkeypatch, capfd, rank, lines
):
    monkeypatch.setenv("TORCHELASTIC_RUN_ID", "x")
    monkeypatch.setenv("WORLD_SIZE", "4")
    monkeypatch.setenv("RANK", rank)
    monkeypatch.setattr(torchrun, "SPEAK_S", 0.0)
    assert launch.main(never, description="never", argv=["--world", "2"]) != 0
    assert capfd.readouterr().err.count("\n") == lines


@pytest.mark.slow
def test_sizes_that_do_not_fit_are_said_once_under_torchrun():
    torchrun = [sys.executable, "-m", "torch.distributed.run", "--nproc-per-node", "3"]
    done = subprocess.run(
        [*torchrun, "-m", "mini_impls.tensor_parallel"],
        env={**os.environ, "PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 1
    assert done.stderr.count("python -m mini_impls.tensor_parallel: ") == 1
    assert done.stderr.count("not divisible by 3") == 1


def count_everything(rank):
    w, group = rank.world_size, rank.group
    with CollectiveCounter() as sent:
        small, large = torch.ones(3), torch.ones(3 * w)
        dist.all_reduce(small, group=group)
        dist.all_gather_single(large, small, group=group)
        dist.reduce_scatter_single(small, large, group=group)
        dist.broadcast(small, src=0, group=group)
        dist.all_to_all_single(torch.empty(w), torch.ones(w), group=group)
        dist.all_gather(list(large.chunk(w)), small, group=group)
        peer = (rank.rank + 1) % w
        work = dist.isend(small.double(), peer, group=group)
        dist.recv(torch.empty(3).double(), (rank.rank - 1) % w, group=group)
        work.wait()
    return sent.counts(), sent.payload_bytes()


def test_what_was_counted_is_told_and_where_nothing_was_that():
    sent = CollectiveCounter()
    assert sent.told() == "nothing"
    sent.calls += [Call("all_gather", torch.float32, 600)] * 2
    sent.calls.append(Call("send", torch.float32, 24))
    assert sent.told() == "2 all_gather (1,200 bytes), 1 send (24 bytes)"


def test_counter_sees_every_call_and_its_payload(pool):
    w = pool.world_size
    for counts, payload in pool.run(count_everything):
        assert counts == {
            "all_reduce": 1,
            "all_gather": 2,
            "reduce_scatter": 1,
            "broadcast": 1,
            "all_to_all": 1,
            "send": 1,
            "recv": 1,
        }
        assert payload == {
            "all_reduce": 12,
            "all_gather": 2 * 12 * w,
            "reduce_scatter": 12 * w,
            "broadcast": 12,
            "all_to_all": 4 * w,
            "send": 24,
            "recv": 24,
        }
