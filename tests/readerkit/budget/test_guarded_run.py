"""The guard: time limits, kills between every two steps, and what it refuses."""

import os
import signal
import subprocess
import sys
from contextlib import suppress
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from readerkit.budget import BudgetGuard
from readerkit.errors import BudgetError
from tests.readerkit.budget.jobs import (
    has_ended,
    job,
    lasting,
    new_ledger,
    wait_until,
)
from tests.terminals import WAIT_S

STEPS = ["checked", "reserved", "started", "ended", "settled"]


@pytest.fixture
def ledger(tmp_path):
    return new_ledger(tmp_path)


def lasts(hours: str):
    return job(100, "02", hours)


def test_a_run_is_reserved_before_it_starts_and_settled_after(ledger, tmp_path):
    told, seen = [], tmp_path / "seen"
    guard = BudgetGuard(ledger, on_step=told.append)
    code = (
        "import sys; from pathlib import Path; from readerkit.budget import Ledger\n"
        "[entry] = Ledger(Path(sys.argv[1])).entries()\n"
        "Path(sys.argv[2]).write_text(f'{entry.reserved_cents} {entry.actual_cents}')\n"
        "sys.exit(7)"
    )
    command = [sys.executable, "-c", code, str(ledger.path), str(seen)]
    receipt = guard.run(lasts("1"), command)
    assert told == STEPS
    assert seen.read_text() == "100 None"
    assert (receipt.exit_code, receipt.timed_out) == (7, False)
    assert receipt.actual_cents == 1
    [entry] = ledger.entries()
    assert (entry.actual_cents, entry.exit_code, entry.note) == (1, 7, None)
    assert entry.command.startswith(sys.executable)


def test_a_command_and_its_children_end_when_the_time_is_over(ledger, tmp_path):
    pid = tmp_path / "pid"
    guard = BudgetGuard(ledger, grace_seconds=0.3)
    # 2 s; the child ignores being asked.
    command = f"(trap '' TERM; {lasting(pid)}) & wait"
    receipt = guard.run(lasts("0.00056"), ["sh", "-c", command])
    assert (receipt.exit_code, receipt.timed_out) == (124, True)
    assert ledger.entries()[0].note == "ended at its time limit"
    wait_until(lambda: has_ended(pid))


def test_children_left_behind_are_ended_with_the_command(ledger, tmp_path):
    pid = tmp_path / "pid"
    begun = f"until test -e {pid}; do sleep 0.05; done"
    BudgetGuard(ledger).run(lasts("1"), ["sh", "-c", f"{lasting(pid)} & {begun}"])
    assert pid.exists()
    wait_until(lambda: has_ended(pid))


KILLED = """
import os, signal, sys
from pathlib import Path
from readerkit.budget import BudgetGuard, Ledger
from tests.readerkit.budget.jobs import job
def step(name):
    if name == sys.argv[2]:
        os.kill(os.getpid(), signal.SIGKILL)
guard = BudgetGuard(Ledger(Path(sys.argv[1])), on_step=step, grace_seconds=0.2)
guard.run(job(100, "02", sys.argv[4]), ["sh", "-c", sys.argv[3]])
"""


def run_and_kill(ledger, step, command="true", hours="1"):
    done = subprocess.run(
        [sys.executable, "-c", KILLED, str(ledger.path), step, command, hours],
        timeout=WAIT_S,
        check=False,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    assert done.returncode == -signal.SIGKILL


def is_settled(ledger, entry, cents):
    """Settle, unless the watchdog of a killed guard takes a moment more to end."""
    with suppress(BudgetError):
        ledger.settle(entry, cents)
        return True
    return False


@pytest.mark.parametrize("step", STEPS)
def test_a_kill_between_any_two_steps_never_frees_what_may_be_spent(step, ledger):
    run_and_kill(ledger, step)
    entries = ledger.entries()
    if step == "checked":
        assert entries == []  # nothing was reserved, and nothing was started
    elif step == "settled":
        assert entries[0].actual_cents == 1
    else:
        assert [entry.actual_cents for entry in entries] == [None]
        assert ledger.rooms(None)[0].counted_cents == 100
        wait_until(lambda: is_settled(ledger, entries[0].id, 40))
        assert ledger.rooms(None)[0].counted_cents == 40


def test_the_limit_holds_when_the_guard_is_killed(ledger, tmp_path):
    pid = tmp_path / "pid"
    run_and_kill(ledger, "started", lasting(pid), "0.00056")  # 2 s
    with pytest.raises(BudgetError, match="entry 1: got a run that is still going"):
        ledger.settle(1, 0)
    wait_until(pid.exists)
    wait_until(lambda: has_ended(pid))
    assert ledger.entries()[0].actual_cents is None
    wait_until(lambda: is_settled(ledger, 1, 90))


def test_an_interrupted_run_ends_its_command_and_is_settled(ledger, tmp_path):
    pid = tmp_path / "pid"
    process = subprocess.Popen(
        [sys.executable, "-c", KILLED, str(ledger.path), "never", lasting(pid), "1"],
        stderr=subprocess.DEVNULL,
    )
    wait_until(pid.exists)
    os.kill(process.pid, signal.SIGINT)
    process.wait(WAIT_S)
    wait_until(lambda: has_ended(pid))
    [entry] = ledger.entries()
    assert (entry.actual_cents, entry.note) == (1, "interrupted")


def test_what_cannot_be_found_reserves_nothing(ledger):
    with pytest.raises(BudgetError, match="got 'no-such-program-here'"):
        BudgetGuard(ledger).run(lasts("1"), ["no-such-program-here"])
    with pytest.raises(BudgetError, match="command: got none"):
        BudgetGuard(ledger).run(lasts("1"), [])
    assert ledger.entries() == []


@pytest.mark.parametrize(("days", "fits"), [(0, True), (30, True), (31, False)])
def test_a_price_older_than_30_days_is_not_used_unseen(ledger, days, fits):
    old = datetime.now(UTC).date() - timedelta(days=days)
    one = lasts("1")
    one = replace(one, price=replace(one.price, dated=old))
    if fits:
        assert BudgetGuard(ledger).run(one, ["true"]).exit_code == 0
        return
    with pytest.raises(BudgetError, match=f"got one of {old}, 31 days old"):
        BudgetGuard(ledger).run(one, ["true"])
    assert ledger.entries() == []


def test_a_job_over_its_ceiling_never_starts(ledger, tmp_path):
    ran = tmp_path / "ran"
    with pytest.raises(BudgetError, match="over the ceiling of lab 02"):
        BudgetGuard(ledger).run(job(301, "02"), ["touch", str(ran)])
    assert not ran.exists()
