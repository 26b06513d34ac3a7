"""``readerkit budget`` as a person uses it, before, during and after a job."""

import json
import os
import re
import subprocess
import sys
from datetime import UTC, datetime
from pathlib import Path

import pytest

from readerkit.commands.budget import budget
from tests.helpers import ROOT, WAIT_S, run, run_on_terminal, run_process, write_files

pytestmark = pytest.mark.sampled

README = (ROOT / "README.md").read_text()
TODAY = datetime.now(UTC).date().isoformat()
PRICES = """\
prices:
  - {{vendor: runpod, gpu: rtx-4090, kind: spot, usd_per_hour: "{price}",
     dated: "{dated}", source: a test}}
"""


@pytest.fixture
def prices(tmp_path):
    def write(price="0.35", dated=TODAY):
        path = tmp_path / "prices.yaml"
        path.write_text(PRICES.format(price=price, dated=dated))
        return "--prices", str(path), "--gpu", "rtx-4090"

    return write


@pytest.fixture
def ledger(capsys):
    done = run(capsys, "budget", "ledger", "--create")
    assert (done.code, done.err) == (0, "")
    return done.out.removeprefix("made ").strip()


def test_a_ledger_that_is_there_is_not_replaced(capsys, ledger):
    again = run(capsys, "budget", "ledger", "--create")
    assert (again.code, "got a ledger that exists" in again.err) == (2, True)


def test_the_sentence_and_what_is_left(capsys, prices, ledger):
    job = (*prices(), "--instances", "2", "--hours", "3", "--setup-hours", "0.5")
    done = run(capsys, "budget", "estimate", *job, "--lab", "02")
    assert (done.code, done.err) == (0, "")
    assert done.out.splitlines() == [
        "This will rent 2 × rtx-4090 (spot) at runpod for $0.35/h each = $0.70/h, for "
        "3 h (set-up: 0.5 h) = $2.10 at worst.",
        "Ceiling of lab 02: $3.00, of which $3.00 are left; after it $0.90 (the "
        "tighter one, which rules).",
        "Ceiling of phase 35: $5.00, of which $5.00 are left; after it $2.90.",
        f"Price of {TODAY}, from a test (yours: {job[1]}).",
    ]
    done = run(capsys, "budget", "estimate", *job, "--json")
    assert json.loads(done.out)["cost_cents"] == 210
    narrow = run_on_terminal(40, "budget", "estimate", *job, "--lab", "02")
    wide = [row for row in narrow.splitlines() if len(row) > 40]
    assert [row for row in wide if " " in row.strip()] == []


def budget_examples() -> dict[str, list[str]]:
    """Return the commands of the README's section and of each help, as they stand."""
    section = README.partition("## Nothing that costs money")[2].partition("\n## ")[0]
    texts = {"README": section} | {
        name: command.help or ""
        for name, command in {"budget": budget, **budget.commands}.items()
    }
    told = r"^[ $]*(readerkit (?:budget|lab) (?:[^#\n\\]|\\\n)+)"
    return {
        name: re.findall(told, text, re.MULTILINE)
        for name, text in texts.items()
        if name != "ledger"
    }


@pytest.mark.parametrize("where", ["README", "budget", "estimate", "run"])
def test_examples_work_as_they_are_typed(where, tmp_path):
    """In their order, in a shell; a script in the place of sky writes what it got."""
    bin_folder = tmp_path / "bin"
    write_files(bin_folder, {"sky": f'#!/bin/sh\necho "$@" >> {tmp_path}/asked\n'})
    (bin_folder / "sky").chmod(0o755)
    path = f"{bin_folder}:{Path(sys.executable).parent}:{os.environ['PATH']}"
    commands = budget_examples()[where]
    assert commands
    if "ledger --create" not in commands[0]:
        commands.insert(0, "readerkit budget ledger --create")
    for command in commands:
        done = subprocess.run(
            ["sh", "-c", command],
            cwd=tmp_path,
            env={**os.environ, "PATH": path},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=WAIT_S,
        )
        assert done.returncode == 0, (command, done.stderr)
    if where != "estimate":
        asked = (tmp_path / "asked").read_text()
        assert asked.startswith("launch -c lab-02 --yes --down lab-02.yaml\n")


def test_a_job_from_its_price_to_its_record(capsys, prices, ledger, tmp_path):
    job = (*prices("1"), "--hours", "2", "--lab", "02")
    done = run_process("budget", "run", *job, "--", "sh", "-c", "echo ran; exit 5")
    assert (done.code, done.out) == (5, "ran\n")
    # One cent pays for 36 s; that of a busy machine may be more than none.
    said = re.fullmatch(
        r"readerkit: entry 1: ended after (\d+) s; \$0\.01 of \$2\.00\n", done.err
    )
    assert said and int(said[1]) <= 36
    shown = run(capsys, "budget", "ledger").out
    gpu = "1 × rtx-4090 (spot) at runpod"
    assert f"$0.01 of $2.00  lab 02, {gpu}: {said[1]} s" in shown
    assert "$0.01 of $5.00 are spent or reserved in phase 35; $4.99 left." in shown
    [entry] = json.loads(run(capsys, "budget", "ledger", "--json").out)["entries"]
    assert (entry["exit_code"], entry["actual_cents"]) == (5, 1)
    page = tmp_path / "experiments" / "35-cloud-budget.md"
    assert run(capsys, "budget", "ledger", "--export", str(page)).code == 0
    assert (
        "| 02 | 1 × rtx-4090 (spot) at runpod | `sh -c 'echo ran; exit 5'` | $2.00 |"
        in (page.read_text())
    )
    assert run(capsys, "budget", "ledger", "--export", str(tmp_path)).code == 0
    [line] = (tmp_path / "spend.jsonl").read_text().splitlines()
    assert json.loads(line) == entry


def test_the_record_has_a_place_by_default(capsys, ledger, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    done = run(capsys, "budget", "ledger", "--export")
    assert (done.code, done.out) == (0, "wrote experiments/35-cloud-budget.md\n")
    assert (tmp_path / "experiments" / "35-cloud-budget.md").is_file()


def test_time_is_over_and_what_was_open_is_settled(capsys, prices, ledger):
    done = run_process(
        "budget", "run", *prices(), "--hours", "0.0003", "--", "sleep", "30"
    )
    assert done.code == 124
    assert "ended at its time limit" in done.err
    done = run(capsys, "budget", "ledger", "--settle", "1", "--cost", "0.10")
    assert done.code == 0
    assert "corrected from $0.01; ended at its time limit" in done.out
    done = run(capsys, "budget", "ledger", "--settle", "2", "--cost", "0.10")
    assert done.code == 2
    assert "entry 2: got none of this number" in done.err


def test_an_old_price_is_confirmed_by_the_price_of_today(capsys, prices, ledger):
    old = (*prices(dated="2020-01-01"), "--hours", "1")
    done = run(capsys, "budget", "estimate", *old)
    assert done.code == 1
    assert "got one of 2020-01-01" in done.err
    assert "--confirm-price" in done.err
    done = run(capsys, "budget", "estimate", *old, "--confirm-price", "0.40")
    assert done.code == 0
    assert "for $0.40/h each" in done.out
    assert "confirmed by hand" in done.out
    # The shipped prices are dated as well, and old by now or soon.
    shipped = ("--gpu", "rtx-4090", "--hours", "1", "--confirm-price", "0.4")
    assert run(capsys, "budget", "estimate", *shipped).code == 0


def test_other_ceilings_are_said_once_when_the_ledger_is_made(capsys, prices):
    done = run(
        capsys, "budget", "ledger", "--create", "--phase-ceiling", "1",
        "--lab-ceiling", "0.50",
    )  # fmt: skip
    assert done.code == 0
    job = (*prices("0.60"), "--hours", "1")
    assert run(capsys, "budget", "estimate", *job).code == 0
    done = run(capsys, "budget", "estimate", *job, "--lab", "02")
    assert done.code == 1
    assert (
        "over the ceiling of lab 02: got a cost of $0.60, expected at most $0.50"
        in (done.err)
    )


def test_ceilings_are_raised_only_for_a_reason_that_the_record_shows(capsys, tmp_path):
    create = ("budget", "ledger", "--create", "--phase-ceiling", "1000")
    done = run(capsys, *create)
    assert (done.code, done.out) == (1, "")
    assert "got $1,000.00 for the phase" in done.err
    assert "--raise-because REASON" in done.err
    assert run(capsys, *create, "--raise-because", "a grant").code == 0
    assert "The ceilings were raised: a grant" in run(capsys, "budget", "ledger").out
    page = tmp_path / "record.md"
    run(capsys, "budget", "ledger", "--export", str(page))
    assert "The ceilings were raised: a grant" in page.read_text()


@pytest.mark.parametrize(
    ("price", "arguments", "code", "message"),
    [
        ("nan", "--hours 1", 2, "wrong value for 'usd_per_hour'"),
        ("-1", "--hours 1", 2, "wrong value for 'usd_per_hour'"),
        ("0", "--hours 1", 2, "price of rtx-4090 at runpod: got 0"),
        ("0.35", "--hours nan", 2, "hours: got 'nan'"),
        ("0.35", "--hours 1 --instances 0", 2, "instances: got 0"),
        ("0.35", "--hours 1 --vendor lambda", 2, "no price: got lambda rtx-4090 spot"),
        ("0.35", "--hours 1 --kind free", 2, "'free' is not one of"),
        ("0.35", "--hours 1 --lab a/b", 2, "lab: got 'a/b'"),
        ("0.35", "--hours 1 --confirm-price nan", 2, "confirmed price: got 'nan'"),
        ("0.35", "", 2, "Missing option '--hours'"),
        ("0.35", "--hours 20", 1, "over the ceiling of phase 35"),
    ],
)
def test_bad_input_gets_one_message(
    price, arguments, code, message, capsys, prices, ledger
):
    done = run(capsys, "budget", "estimate", *prices(price), *arguments.split())
    assert (done.code, done.out) == (code, "")
    assert message in done.err


def test_without_a_ledger_nothing_runs(capsys, prices, tmp_path):
    ran = tmp_path / "ran"
    job = (*prices(), "--hours", "1", "--", "touch", str(ran))
    done = run(capsys, "budget", "run", *job)
    assert done.code == 1
    assert "got no ledger, expected one" in done.err
    assert "readerkit budget ledger --create" in done.err
    assert not ran.exists()


@pytest.mark.parametrize("lab", ["02", "04"])
def test_a_labs_task_is_launched_as_it_was_priced(
    capsys, prices, ledger, tmp_path, lab
):
    sky, task = tmp_path / "sky", tmp_path / "lab.yaml"
    sky.write_text("#!/bin/sh\n")
    sky.chmod(0o755)
    task.write_text(run(capsys, "lab", lab, "--task").out)
    job = (*prices(), "--hours", "1", "--lab", lab)
    launch = ("--", str(sky), "launch", "-c", "lab", str(task))
    done = run_process("budget", "run", *job, *launch)
    assert done.code == 1
    assert f"{task}: got 2, expected 1, which was priced" in done.err
    done = run_process("budget", "run", *job, "--instances", "2", *launch)
    assert done.code == 0
    assert "all $0.70 stay reserved until you settle what was billed" in done.err
    assert "ledger --settle 1 --cost USD" in done.err
    shown = run(capsys, "budget", "ledger").out
    assert "reserved, not settled; the machine's cost is known from" in shown


def test_settling_by_hand(capsys, prices, ledger):
    from pathlib import Path

    from readerkit.budget import Ledger
    from tests.readerkit.budget.jobs import job

    Ledger(Path(ledger)).reserve(job(200), "killed")
    assert "reserved, not settled" in run(capsys, "budget", "ledger").out
    done = run(
        capsys, "budget", "ledger", "--settle", "1", "--cost", "$0.80", "--note", "seen"
    )
    assert done.code == 0
    assert "$0.80 of $5.00 are spent" in done.out
    assert "settled by hand; seen" in done.out
    assert " 0 s" not in done.out
    done = run(capsys, "budget", "ledger", "--settle", "1", "--cost", "-1")
    assert (done.code, done.out) == (2, "")
    assert "cost: got '-1', expected dollars, 0 or more" in done.err
    assert run(capsys, "budget", "ledger", "--settle", "1", "--cost", "0").code == 0
    for wrong in (("--settle", "1"), ("--cost", "1"), ("--settle", "1", "--create")):
        assert run(capsys, "budget", "ledger", *wrong).code == 2
