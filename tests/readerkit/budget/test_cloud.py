"""What ``sky launch`` may start: only what was priced, and it is taken down again."""

import os
import signal
import subprocess
import sys
from dataclasses import replace
from fractions import Fraction

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

TASK = "resources:\n  accelerators: RTX4090:2\n  use_spot: true\n"


@pytest.fixture
def ledger(tmp_path):
    return new_ledger(tmp_path)


@pytest.fixture
def sky(tmp_path):
    """A program of that name which writes down what it was asked."""
    program = tmp_path / "sky"
    program.write_text(
        f'#!/bin/sh\necho "$@" >> {tmp_path}/asked\n'
        f'[ "$1" = down ] && exit 0\nexec sleep "$(cat {tmp_path}/lasts)"\n'
    )
    program.chmod(0o755)
    (tmp_path / "lasts").write_text("0")
    return str(program)


def two_gpus(hours="1"):
    one = job(100, "02", hours)
    price = replace(one.price, gpu="rtx-4090", usd_per_hour=Fraction(1, 2))
    return replace(one, price=price, instances=2)


def launched(sky, tmp_path, task=TASK, *, name="task.yaml"):
    (tmp_path / name).write_text(task)
    return [sky, "launch", "-c", "lab-02", "--yes", str(tmp_path / name)]


def test_a_machine_is_taken_down_and_its_cost_stays_open(sky, ledger, tmp_path):
    guard = BudgetGuard(ledger)
    receipt = guard.run(two_gpus(), launched(sky, tmp_path))
    assert (receipt.exit_code, receipt.actual_cents) == (0, None)
    asked = (tmp_path / "asked").read_text().splitlines()
    assert asked == [
        f"launch -c lab-02 --yes {tmp_path}/task.yaml",
        "down --yes lab-02",
    ]
    [entry] = ledger.entries()
    assert (entry.actual_cents, entry.counted_cents, entry.exit_code) == (None, 100, 0)
    assert entry.note == "the machine's cost is known from the vendor's bill alone"
    ledger.settle(1, 60)
    assert ledger.rooms(None)[0].counted_cents == 60


def test_at_the_time_limit_the_machine_is_taken_down(sky, ledger, tmp_path):
    (tmp_path / "lasts").write_text("60")
    guard = BudgetGuard(ledger, grace_seconds=0.2)
    receipt = guard.run(two_gpus("0.0012"), launched(sky, tmp_path))  # 4 s, 2 of them
    assert receipt.timed_out
    assert (tmp_path / "asked").read_text().endswith("down --yes lab-02\n")
    assert ledger.entries()[0].note.startswith("ended at its time limit; ")


@pytest.mark.parametrize(
    ("task", "message"),
    [
        (TASK.replace("RTX4090", "H100"), "got H100, expected rtx-4090"),
        (TASK.replace(":2", ":8"), "got 8, expected 2, which was priced"),
        (TASK.replace(":2", ""), "got 1, expected 2"),
        (TASK + "num_nodes: 2\n", "got 4, expected 2"),
        (TASK + "num_nodes: many\n", "num_nodes: got 'many'"),
        (TASK.replace("true", "false"), "got on-demand, expected spot"),
        (TASK + "  any_of: []\n", "got resources.any_of"),
        ("resources:\n  use_spot: true\n", "accelerators: got None"),
        (TASK.replace("RTX4090:2", "[RTX4090:2, H100:8]"), "expected a name and a"),
        ("run: true\n", "got no resources"),
        ("[]\n", "got no mapping"),
        ("a: [\n", "task.yaml:"),
        ("a: 1\n---\nb: 2\n", "task.yaml:"),
    ],
)
def test_a_task_that_rents_something_else_never_starts(
    task, message, sky, ledger, tmp_path
):
    with pytest.raises(BudgetError) as error:
        BudgetGuard(ledger).run(two_gpus(), launched(sky, tmp_path, task))
    assert message in str(error.value)
    assert not (tmp_path / "asked").exists()
    assert ledger.entries() == []


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ("launch task.yaml", "expected -c NAME"),
        ("launch -c --yes task.yaml", "got the cluster '--yes'"),
        ("launch -c lab-02", "got no task"),
        ("launch -c lab-02 nvidia-smi", "got nvidia-smi"),
        ("launch -c lab-02 no-such.yaml", "no-such.yaml: cannot be read"),
        ("launch -c lab-02 --gpus H100:8 task.yaml", "got the option --gpus"),
        ("launch -c lab-02 --num-nodes=9 task.yaml", "got the option --num-nodes=9"),
        ("jobs launch task.yaml", "sky jobs', expected sky launch"),
        ("", "sky', expected sky launch"),
    ],
)
def test_a_launch_that_cannot_be_checked_never_starts(
    arguments, message, sky, ledger, tmp_path, monkeypatch
):
    monkeypatch.chdir(tmp_path)
    launched(sky, tmp_path)
    with pytest.raises(BudgetError) as error:
        BudgetGuard(ledger).run(two_gpus(), [sky, *arguments.split()])
    assert message in str(error.value)
    assert ledger.entries() == []


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux adopts orphans")
@pytest.mark.parametrize("stays", ["sleep 0.3", "sleep 60"])
def test_children_in_sessions_of_their_own_end_too(stays, ledger, tmp_path):
    pid = tmp_path / "pid"
    left = f"setsid {lasting(pid)} & {stays}"
    guard = BudgetGuard(ledger, grace_seconds=0.2)
    guard.run(job(100, "02", "0.00056"), ["sh", "-c", left])  # 2 s
    wait_until(lambda: has_ended(pid))


GUARDED = """
import sys
from pathlib import Path
from readerkit.budget import BudgetGuard, Ledger
from tests.readerkit.budget.jobs import job
guard = BudgetGuard(Ledger(Path(sys.argv[1])), grace_seconds=0.2)
receipt = guard.run(job(100, "02"), ["sh", "-c", sys.argv[2]])
print(receipt.note, receipt.exit_code)
"""


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
def test_a_guard_that_is_told_to_end_ends_its_job_and_says_so(number, ledger, tmp_path):
    pid = tmp_path / "pid"
    process = subprocess.Popen(
        [sys.executable, "-c", GUARDED, str(ledger.path), lasting(pid)],
        stdout=subprocess.PIPE,
        text=True,
    )
    wait_until(pid.exists)
    os.kill(process.pid, number)
    said, _ = process.communicate(timeout=WAIT_S)
    name = f"ended by {number.name}"
    assert said == f"{name} 143\n"
    wait_until(lambda: has_ended(pid))
    [entry] = ledger.entries()
    assert (entry.actual_cents, entry.note) == (1, name)
