"""The ledger: ceilings, concurrency, damage, kills, and any sequence of operations."""

import os
import resource
import signal
import sqlite3
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from readerkit.budget import Ceilings, Ledger
from readerkit.budget.running_entries import hold
from readerkit.errors import BudgetError
from tests.readerkit.budget.jobs import job, new_ledger
from tests.terminals import WAIT_S

RESERVE = """
import sys
from pathlib import Path
from readerkit.budget import Ledger
from readerkit.errors import BudgetError
from tests.readerkit.budget.jobs import job
ledger = Ledger(Path(sys.argv[1]))
try:
    print(ledger.reserve(job(int(sys.argv[2])), "true"))
except BudgetError as error:
    print(error)
"""


@pytest.fixture
def ledger(tmp_path):
    return new_ledger(tmp_path)


# --- ceilings ---


def test_the_tighter_ceiling_rules_and_is_named(ledger):
    assert [room.name for room in ledger.rooms("02")] == ["lab 02", "phase 35"]
    ledger.reserve(job(250, "02"), "true")
    with pytest.raises(BudgetError, match=r"ceiling of lab 02: got a cost of \$0.51"):
        ledger.reserve(job(51, "02"), "true")
    ledger.reserve(job(200, "04"), "true")
    # The phase has 50 cents left now, as lab 02 has: lab 04 has a dollar.
    with pytest.raises(BudgetError, match="ceiling of phase 35") as error:
        ledger.reserve(job(51, "04"), "true")
    assert "expected at most $0.50 ($5.00, of which $4.50" in str(error.value)
    assert ledger.reserve(job(50), "true") == 3


def test_a_refusal_leaves_no_trace(ledger):
    with pytest.raises(BudgetError):
        ledger.reserve(job(501), "true")
    assert ledger.entries() == []


def test_what_a_run_did_not_cost_is_free_again(ledger):
    entry = ledger.reserve(job(500), "true")
    with pytest.raises(BudgetError, match="over the ceiling"):
        ledger.reserve(job(1), "true")
    ledger.settle(entry, 120, seconds=3.5, exit_code=0)
    assert ledger.rooms(None)[0].left_cents == 380
    [kept] = ledger.entries()
    assert (kept.actual_cents, kept.seconds, kept.exit_code) == (120, 3.5, 0)


def test_a_run_that_cost_more_than_planned_is_recorded_as_it_was(ledger):
    ledger.settle(ledger.reserve(job(400), "true"), 700)
    assert ledger.rooms(None)[0].left_cents == -200
    with pytest.raises(BudgetError, match=r"expected at most \$0.00"):
        ledger.check(job(1))


@pytest.mark.parametrize(("entry", "cents"), [(1, -1), (2, 5), (1, True), (1, 10**12)])
def test_what_cannot_be_settled_is_named(ledger, entry, cents):
    ledger.reserve(job(100), "true")
    with pytest.raises(BudgetError, match="got"):
        ledger.settle(entry, cents)
    assert ledger.entries()[0].actual_cents is None


def test_a_second_settling_corrects_the_first_and_keeps_what_it_said(ledger):
    entry = ledger.reserve(job(100), "true")
    ledger.settle(entry, 50, seconds=3.0, exit_code=1, note="seen")
    ledger.settle(entry, 80, note="the bill")
    [kept] = ledger.entries()
    assert (kept.actual_cents, kept.seconds, kept.exit_code) == (80, 3.0, 1)
    assert kept.note == "the bill; corrected from $0.50; seen"
    ledger.settle(entry, 70)
    assert ledger.entries()[0].note == (
        "corrected from $0.80; the bill; corrected from $0.50; seen"
    )


def test_what_still_runs_is_not_settled(ledger):
    entry = ledger.reserve(job(100), "true")
    held = hold(ledger.path, entry)
    with pytest.raises(BudgetError, match="entry 1: got a run that is still going"):
        ledger.settle(entry, 0)
    assert ledger.rooms(None)[0].counted_cents == 100
    os.close(held)  # as the kernel does at the end of the process
    ledger.settle(entry, 0)
    assert [path.name for path in ledger.path.parent.iterdir()] == ["budget.sqlite"]


def test_a_ledger_is_never_replaced(ledger):
    ledger.reserve(job(100), "true")
    with pytest.raises(BudgetError, match="expected none; it keeps what was spent"):
        new_ledger(ledger.path.parent)
    assert len(ledger.entries()) == 1
    assert [path.name for path in ledger.path.parent.iterdir()] == ["budget.sqlite"]


@pytest.mark.parametrize("higher", [{"phase_cents": 501}, {"lab_cents": 301}])
def test_higher_ceilings_need_a_reason_which_is_kept(tmp_path, higher):
    for reason in (None, "  "):
        with pytest.raises(BudgetError, match=r"at most \$5.00 and \$3.00; to spend"):
            new_ledger(tmp_path, raised_because=reason, **higher)
    assert list(tmp_path.iterdir()) == []
    ledger = new_ledger(tmp_path, raised_because="a grant", **higher)
    kept = ledger.ceilings()
    assert kept == Ceilings(raised_because="a grant", **higher)


def test_higher_ceilings_written_past_the_door_do_not_count(ledger):
    with sqlite3.connect(ledger.path) as other:
        other.execute("UPDATE ceilings SET phase_cents = 100000, lab_cents = 100000")
    other.close()
    assert ledger.ceilings() == Ceilings()
    with pytest.raises(BudgetError, match="over the ceiling of phase 35"):
        ledger.reserve(job(501), "true")


# --- a ledger that refuses ---


def operations(ledger):
    return [
        lambda: ledger.reserve(job(1), "true"),
        lambda: ledger.settle(1, 1),
        lambda: ledger.check(job(1)),
        lambda: ledger.entries(),
    ]


def test_a_missing_ledger_refuses_and_is_not_made(tmp_path):
    missing = Ledger(tmp_path / "budget.sqlite")
    for operation in operations(missing):
        with pytest.raises(BudgetError, match="got no ledger, expected one"):
            operation()
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("cut", [0, 10, 100, 4096, 8000])
def test_a_cut_ledger_refuses(ledger, cut):
    for _ in range(40):
        ledger.reserve(job(1), "x" * 300)
    data = ledger.path.read_bytes()
    ledger.path.write_bytes(data[:cut])
    for operation in operations(ledger):
        with pytest.raises(BudgetError, match="damaged"):
            operation()


def test_overwritten_pages_refuse(ledger):
    for _ in range(40):
        ledger.reserve(job(1), "x" * 300)
    data = bytearray(ledger.path.read_bytes())
    data[4096:] = b"\xff" * (len(data) - 4096)
    ledger.path.write_bytes(data)
    with pytest.raises(BudgetError, match="damaged"):
        ledger.reserve(job(1), "true")


def test_another_database_is_no_ledger(tmp_path):
    path = tmp_path / "budget.sqlite"
    with sqlite3.connect(path) as other:
        other.execute("CREATE TABLE entries (id)")
    other.close()
    with pytest.raises(BudgetError, match="expected the ledger's"):
        Ledger(path).reserve(job(1), "true")


def test_a_held_ledger_refuses_after_a_while(ledger):
    holder = sqlite3.connect(ledger.path, isolation_level=None)
    holder.execute("BEGIN EXCLUSIVE")
    try:
        with pytest.raises(
            BudgetError, match="got a ledger that another process holds"
        ):
            ledger.reserve(job(1), "true")
    finally:
        holder.close()
    assert ledger.reserve(job(1), "true") == 1


def test_a_full_disk_refuses_and_leaves_the_ledger_whole(ledger):
    for _ in range(20):
        ledger.reserve(job(1), "x" * 300)
    before = len(ledger.entries())
    full = ledger.path.stat().st_size
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (full, limits[1]))
    try:
        with pytest.raises(BudgetError, match=r"got a (disk that refuses|full disk)"):
            for _ in range(60):
                ledger.reserve(job(1), "x" * 300)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    # What was reserved before the disk was full is there, and room is counted by it.
    entries = ledger.entries()
    assert before <= len(entries) < before + 60
    assert ledger.rooms(None)[0].counted_cents == len(entries)


# --- several at once, and kills ---


def run_script(path, cents):
    return subprocess.run(
        [sys.executable, "-c", RESERVE, str(path), str(cents)],
        capture_output=True,
        text=True,
        check=True,
        timeout=WAIT_S,
    ).stdout.strip()


def test_processes_at_once_cannot_pass_a_ceiling_together(tmp_path):
    ledger = new_ledger(tmp_path)
    with ThreadPoolExecutor(8) as pool:
        said = list(pool.map(lambda _: run_script(ledger.path, 100), range(8)))
    numbers = sorted(int(line) for line in said if line.isdigit())
    assert numbers == [1, 2, 3, 4, 5]
    refused = [line for line in said if not line.isdigit()]
    assert len(refused) == 3
    assert all("over the ceiling of phase 35" in line for line in refused)


LOOP = """
import sys
from pathlib import Path
from readerkit.budget import Ledger
from tests.readerkit.budget.jobs import job
while True:
    print(Ledger(Path(sys.argv[1])).reserve(job(1), "true"), flush=True)
"""


def test_kills_at_any_moment_lose_nothing_that_was_said(tmp_path):
    ledger = new_ledger(tmp_path, phase_cents=100_000, raised_because="a test")
    said = 0
    for delay in (0.0, 0.003, 0.007, 0.012, 0.02):
        process = subprocess.Popen(
            [sys.executable, "-c", LOOP, str(ledger.path)],
            stdout=subprocess.PIPE,
            text=True,
        )
        assert process.stdout is not None
        process.stdout.readline()
        time.sleep(delay)
        os.kill(process.pid, signal.SIGKILL)
        rest = process.stdout.read().splitlines()
        process.wait()
        process.stdout.close()
        said += 1 + len(rest)
        kept = len(ledger.entries())
        # The last one may have been reserved without a chance to say so.
        assert said <= kept <= said + 1
        said = kept


# --- any sequence ---

OPERATIONS = st.lists(
    st.one_of(
        st.tuples(
            st.just("reserve"),
            st.integers(1, 400),
            st.sampled_from([None, "00", "02", "04"]),
        ),
        st.tuples(st.just("settle"), st.integers(0, 12), st.integers(0, 400)),
    ),
    max_size=14,
)


@settings(
    max_examples=40,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(operations=OPERATIONS)
def test_any_sequence_keeps_every_ceiling(operations, tmp_path_factory):
    ledger = new_ledger(tmp_path_factory.mktemp("ledger"))
    model: dict[int, tuple[str | None, int, bool]] = {}  # lab, counted, settled
    for operation in operations:
        if operation[0] == "reserve":
            _, cents, lab = operation
            spent = sum(counted for _, counted, _ in model.values())
            of_lab = sum(c for each, c, _ in model.values() if each == lab)
            fits = spent + cents <= 500 and (lab is None or of_lab + cents <= 300)
            if fits:
                model[ledger.reserve(job(cents, lab), "true")] = (lab, cents, False)
            else:
                with pytest.raises(BudgetError, match="over the ceiling"):
                    ledger.reserve(job(cents, lab), "true")
        else:
            _, entry, cents = operation
            if entry in model:
                cents = min(cents, model[entry][1])
                ledger.settle(entry, cents)
                model[entry] = (model[entry][0], cents, True)
            else:
                with pytest.raises(BudgetError, match="got none of this number"):
                    ledger.settle(entry, cents)
        kept = {
            entry.id: (entry.lab, entry.counted_cents, entry.actual_cents is not None)
            for entry in ledger.entries()
        }
        assert kept == model
        assert sum(counted for _, counted, _ in kept.values()) <= 500
        for room in ledger.rooms("02"):
            assert room.left_cents >= 0
