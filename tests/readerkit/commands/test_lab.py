"""The labs as a learner meets them: measured for real, then held to account."""

from __future__ import annotations

import io
import json
import re
import shutil
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest
from rich.console import Console

from readerkit.app.catalog import shipped
from readerkit.commands import lab as lab_command
from readerkit.content.strict_yaml import parse_yaml
from readerkit.labs.lab import LABS
from readerkit.labs.predictions import predictions
from readerkit.labs.results import DdpResult, read_result
from readerkit.render.lab_figures import print_predictions, times
from readerkit.terminal import run_mini
from tests.helpers import ROOT, run, run_process

pytestmark = pytest.mark.sampled

PAGES = ROOT / "site" / "pages" / "labs"
MEASURED = ("01", "02", "04")


@pytest.fixture(params=MEASURED)
def measured(request, measure) -> tuple[str, Path]:
    """Each measured lab, and the folder with what its own run wrote."""
    return request.param, measure(request.param)


def check(capsys, lab: str, folder: Path) -> tuple[int, dict[str, str]]:
    result = run(capsys, "lab", lab, "--check", "--json", "--folder", str(folder))
    items = json.loads(result.out)["items"]
    return result.code, {item["what"]: item["state"] for item in items}


def test_a_run_is_checked_and_met(measured, capsys):
    lab, folder = measured
    code, states = check(capsys, lab, folder)
    assert set(states.values()) == {"met"}
    assert code == 0
    shown = run(capsys, "lab", lab, "--check", "--folder", str(folder))
    assert shown.out.rstrip().endswith(f"lab {lab}: all {len(states)} are met")


def test_lab_01_draws_one_rank_against_two(measure):
    svg = measure("01") / "35-lab-01.svg"
    root = ElementTree.fromstring(svg.read_text())
    bars = root.findall("{http://www.w3.org/2000/svg}rect")
    result = json.loads((svg.parent / "35-lab-01.json").read_text())
    assert len(bars) == 2 + len(result["steps"])  # the legend has two of its own
    words = root.findtext("{http://www.w3.org/2000/svg}desc")
    step = result["steps"][0]
    seconds = step["compute_s"] + step["all_reduce_s"] + step["update_s"]
    assert f"1 rank {step['sequences'] / seconds:,.0f}," in words


def test_lab_01_says_what_it_measured_of_what_was_asked(measure):
    folder = measure("01")
    printed = (folder / "printed").read_text()
    result = json.loads((folder / "35-lab-01.json").read_text())
    small, *_, large = (row["median_s"] for row in result["all_reduce"])
    assert re.search(
        rf"16 MiB, times one of 256 B +65,536x +{re.escape(times(large / small))}\n",
        printed,
    )
    for width in (64, 512):
        one, two = (
            row["sequences"]
            / (row["compute_s"] + row["all_reduce_s"] + row["update_s"])
            for row in result["steps"]
            if row["hidden_size"] == width
        )
        assert re.search(
            rf"at width {width}, times one rank's +2x +{re.escape(times(two / one))}\n",
            printed,
        )


def test_json_is_all_that_is_printed_or_is_refused(capsys):
    listed = json.loads(run(capsys, "lab", "--json").out)
    assert [each["lab"] for each in listed] == [f"{i:02}" for i in range(5)]
    for action in ((), ("--task",), ("--run",)):
        refused = run(capsys, "lab", "02", *action, "--json")
        assert (refused.code, refused.out) == (2, "")
        assert "--json lists or checks: add --check" in refused.err


@pytest.mark.parametrize("action", ["--check", "--run", "--task", "--solution"])
def test_what_is_of_one_lab_is_refused_without_its_number(action, capsys):
    done = run(capsys, "lab", action)
    assert (done.code, done.out) == (2, "")
    assert f"{action} is for one lab: name its NUMBER" in done.err


def test_guesses_stand_beside_what_was_measured(measure):
    [result] = measure("01").glob("*.json")
    found = predictions(read_result(DdpResult, "01", result), [100, None, 2])
    assert [answer.guess for answer in found] == [100, None, 2]
    screen = Console(width=40, file=io.StringIO())
    print_predictions(found, screen)
    words = screen.file.getvalue().split()
    assert "100x" in words and "65,536x" in words


@pytest.mark.parametrize(
    ("options", "asks"),
    [
        ((), True),
        (("--world", "2", "--backend", "nccl"), True),
        (("--world", "0"), False),
        (("--world", "two"), False),
        (("--wrold", "2"), False),
    ],
)
def test_nobody_is_asked_to_guess_what_cannot_run(options, asks, monkeypatch, tmp_path):
    asked = []
    monkeypatch.setattr(lab_command, "_ask_for_guesses", lambda: asked.append(1) or ())
    monkeypatch.setattr(run_mini, "run_module", lambda *_, **__: None)
    lab_command.measure(LABS["01"], tmp_path, options)
    assert bool(asked) is asks


def altered(
    lab: str, folder: Path, tmp_path: Path, change: Callable[[Any], object]
) -> Path:
    shutil.copytree(folder, tmp_path / "experiments")
    path = tmp_path / "experiments" / f"35-lab-{lab}.json"
    data = json.loads(path.read_text())
    change(data)
    path.write_text(json.dumps(data))
    return path.parent


def set_in(*keys: Any) -> Callable[[Any], None]:
    *path, last, value = keys

    def change(data: Any) -> None:
        for key in path:
            data = data[key]
        data[last] = value

    return change


# lab, what is altered, how, and the line of the checklist that notices
ALTERED = [
    (
        "01",
        "another mini",
        set_in("made_from", "mini_impls/ddp.py", "0" * 40),
        "measured with the mini",
    ),
    (
        "01",
        "a rank apart",
        set_in("training", "digests", 1, "f" * 8),
        "same parameters",
    ),
    (
        "01",
        "another loss",
        set_in("training", "losses", 3, 0.5),
        "those of one process",
    ),
    ("01", "no loss", set_in("training", "losses", []), "those of one process"),
    (
        "01",
        "parameters apart",
        set_in("training", "parameter_difference", 0.01),
        "those of one process",
    ),
    ("01", "few sizes", lambda d: d["all_reduce"].__delitem__(slice(4, None)), "size"),
    ("01", "no time", set_in("all_reduce", 0, "median_s", 0.0), "against size"),
    (
        "01",
        "one rank alone",
        lambda d: d.update(steps=[s for s in d["steps"] if s["world_size"] == 2]),
        "one rank beside",
    ),
    ("01", "no second rank", set_in("world_size", 1), "two ranks or more"),
    (
        "02",
        "a weight changed on the way",
        lambda d: d["curve"][-1]["arrived"][1].update(
            {"output_layer.weight": "0" * 16}
        ),
        "arrived as it left",
    ),
    ("02", "a rank did not look", lambda d: d["curve"][-1]["arrived"].pop(), "arrived"),
    ("02", "other text", set_in("curve", -1, "tokens", 9, 0), "same tokens"),
    ("02", "no curve", lambda d: d["curve"].__delitem__(slice(2, None)), "latency"),
    (
        "02",
        "no two ranks",
        lambda d: d.update(curve=[r for r in d["curve"] if r["world_size"] != 2]),
        "latency",
    ),
    ("04", "a world missing", lambda d: d["steps"].__delitem__(slice(0, 3)), "1 to N"),
    (
        "04",
        "one policy",
        lambda d: d.update(
            steps=[s for s in d["steps"] if s["policy"] == "each block"]
        ),
        "policies compared",
    ),
    (
        "04",
        "a gather too few",
        set_in("steps", 1, "collectives", "all_gather", 8),
        "those of the wrapping",
    ),
]


@pytest.mark.parametrize(
    ("lab", "change", "line"),
    [
        pytest.param(lab, how, line, id=f"{lab} {name}")
        for lab, name, how, line in ALTERED
    ],
)
def test_an_altered_result_is_noticed(measure, tmp_path, capsys, lab, change, line):
    folder = altered(lab, measure(lab), tmp_path, change)
    code, states = check(capsys, lab, folder)
    [state] = [state for what, state in states.items() if line in what]
    assert (code, state) == (1, "not met")


def of_two_ranks(data: Any) -> None:
    """Make of a result what the lab wrote when it ended at two ranks."""
    data["world_size"] = 2
    data["curve"] = [row for row in data["curve"] if row["world_size"] <= 2]


def test_a_result_of_two_ranks_is_a_part_of_the_curve(measure, tmp_path, capsys):
    folder = altered("02", measure("02"), tmp_path, of_two_ranks)
    code, states = check(capsys, "02", folder)
    latency = "latency a token on 1, 2 and 4 ranks, and its curve"
    missing = [what for what, state in states.items() if state == "not met"]
    assert (code, missing) == (1, [latency])
    shown = run(capsys, "lab", "02", "--check", "--json", "--folder", str(folder))
    [said] = [
        item["evidence"]
        for item in json.loads(shown.out)["items"]
        if item["what"] == latency
    ]
    assert said.startswith(
        f"nothing on 4 ranks: readerkit lab 02 --run --folder {folder} measures the "
        "whole curve; width 128"
    )
    assert "x on 2" in said


def test_on_two_gpus_two_ranks_are_the_whole_curve(measure, tmp_path, capsys):
    def on_gpus(data: Any) -> None:
        of_two_ranks(data)
        data["environment"].update(backend="nccl", devices=2)

    folder = altered("02", measure("02"), tmp_path, on_gpus)
    code, states = check(capsys, "02", folder)
    assert states["latency a token on 1 and 2 ranks, and its curve"] == "met"
    assert code == 0


def test_lab_02_prints_the_curve_and_what_fewer_cores_mean(measure, tmp_path, capsys):
    printed = (measure("02") / "printed").read_text()
    result = json.loads((measure("02") / "35-lab-02.json").read_text())
    assert {row["world_size"] for row in result["curve"]} == {1, 2, 4}
    for width in (128, 1024):
        one, _, four = (
            row["token_s"] for row in result["curve"] if row["hidden_size"] == width
        )
        quick = re.escape(times(one / four))
        assert re.search(rf"^ *{width:,} +4 .* +{quick}$", printed, re.MULTILINE)
    cores = result["environment"]["devices"]
    said = f"4 ranks shared {cores} core"
    assert (said in printed) == (cores < 4)
    folder = altered("02", measure("02"), tmp_path, set_in("environment", "devices", 4))
    shown = run(capsys, "lab", "02", "--check", "--folder", str(folder))
    assert shown.code == 0
    assert "ranks shared" not in shown.out


@pytest.mark.parametrize(
    "change",
    [
        set_in("made", 3),
        set_in("rounds", float("nan")),
        set_in("lab", "09"),
        lambda data: data.pop("environment"),
        lambda data: data.update(more=1),
        set_in("rounds", -1),
    ],
)
def test_what_no_run_writes_is_one_message(measured, tmp_path, capsys, change):
    lab, _ = measured
    folder = altered(*measured, tmp_path, change)
    result = run(capsys, "lab", lab, "--check", "--folder", str(folder))
    assert result.code == 1
    assert f"35-lab-{lab}.json:1:1: not a readable result: got " in result.err
    assert f"readerkit lab {lab} --run" in result.err


def test_the_solution_shows_after_an_attempt(measured, capsys, tmp_path):
    lab, folder = measured
    before = run(capsys, "lab", lab, "--solution", "--folder", str(tmp_path))
    assert before.code == 1
    assert "shows after an attempt: got none, expected" in before.err
    after = run(capsys, "lab", lab, "--solution", "--folder", str(folder))
    assert after.code == 0
    title = (PAGES / f"{lab}.solution.md").read_text().splitlines()[0].lstrip("# ")
    assert title in after.out


def test_a_lab_that_was_not_done_says_how(capsys, tmp_path):
    code, states = check(capsys, "01", tmp_path)
    assert code == 1
    assert states == {f"{tmp_path / '35-lab-01.json'} is handed in": "not met"}
    shown = run(capsys, "lab", "01", "--check", "--folder", str(tmp_path))
    assert "make it with readerkit lab 01 --run --folder" in shown.out
    assert "…" not in shown.out
    assert shown.out.endswith("lab 01: 1 of 1 is missing\n")
    usual = run(capsys, "lab", "01", "--check")
    assert "make it with readerkit lab 01 --run" in usual.out
    assert "--folder" not in usual.out


@pytest.mark.parametrize("lab", ["00", "01", "02", "03", "04"])
def test_each_lab_has_a_page_that_says_what_to_hand_in(capsys, lab):
    page = run(capsys, "lab", lab)
    assert page.code == 0
    for heading in ("What to do", "What to hand in", "How it is checked"):
        assert heading in page.out
    assert re.findall(" $", page.out, re.MULTILINE) == []  # nothing pads a pipe
    assert (PAGES / f"{lab}.solution.md").is_file()


def test_labs_are_listed(capsys):
    listed = run(capsys, "lab").out.splitlines()
    assert [line.split()[0] for line in listed] == ["00", "01", "02", "03", "04"]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["05"], "unknown lab: got '05', expected one of 00, 01, 02, 03, 04"),
        (["03", "--run"], "lab 03 has nothing to run"),
        (["01", "--task"], "lab 01 has no task.yaml"),
    ],
)
def test_what_no_lab_has_is_said(capsys, arguments, message):
    result = run(capsys, "lab", *arguments)
    assert result.code == 2
    assert message in result.err


@pytest.mark.further
@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--world", "1"], "a lab compares 1 rank with more: got --world 1"),
        pytest.param(
            ["--rounds", "2"],
            "a median needs 3 rounds or more: got 2",
            marks=pytest.mark.slow,
        ),
        pytest.param(
            ["--rounds", "10001"],
            "--rounds 10001 is above 10000",
            marks=pytest.mark.slow,
        ),
        pytest.param(
            ["--backend", "nccl"], "NCCL needs a GPU a rank", marks=pytest.mark.slow
        ),
    ],
)
def test_a_measurement_that_cannot_be_is_refused(tmp_path, arguments, message):
    ran = run_process("lab", "02", "--run", *arguments, "--folder", str(tmp_path))
    assert ran.code == 2
    assert message in ran.err
    assert list(tmp_path.iterdir()) == []


# --- lab 00: the budget ---


HAND_IN = """\
vendors:
  - {{vendor: one, gpu: A10, usd_per_hour: 0.75, source: its page, date: {day}}}
  - {{vendor: two, gpu: L4, usd_per_hour: "0.44", source: its page, date: {day}}}
  - {{vendor: three, gpu: L4, usd_per_hour: 0.5, source: its page, date: {day}}}
plan: {{instances: 2, usd_per_hour: 0.5, hours: 3}}
refused: over the ceiling of lab 00
preflight:
  ends_by_itself: autostop, then the guard
  set_up_minutes: 20
  data_out: sky logs
  keys: with the vendor's tool
  smallest_first: readerkit lab 04 --run
"""
TODAY = datetime.now(UTC).date()


def hand_in(folder: Path, text: str = HAND_IN, day: object = TODAY) -> None:
    (folder / "35-lab-00.yaml").write_text(text.format(day=day))


def test_a_budget_is_checked_with_the_guard_itself(tmp_path, capsys):
    hand_in(tmp_path)
    code, states = check(capsys, "00", tmp_path)
    assert code == 1  # there is no ledger yet
    assert states["the guard refuses a plan beyond the ceilings"] == "not met"
    assert run(capsys, "budget", "ledger", "--create").code == 0
    code, states = check(capsys, "00", tmp_path)
    assert (code, set(states.values())) == (0, {"met"})


@pytest.mark.parametrize(
    ("old", "new", "line"),
    [
        ("hours: 3", "hours: 5", "worst case"),  # $5.00 of $3.00
        ("usd_per_hour: 0.5, hours", "usd_per_hour: 0.01, hours", "worst case"),
        ("hours: 3", "hours: -1", "worst case"),
        ("instances: 2", "instances: two", "worst case"),
        ("instances: 2, ", "", "worst case"),
        ("vendor: two", "vendor: one", "3 vendors"),
        ("usd_per_hour: 0.75", "usd_per_hour: 0", "3 vendors"),
        ("usd_per_hour: 0.75", "usd_per_hour: .nan", "3 vendors"),
        ("source: its page, date", 'source: " ", date', "3 vendors"),
        ("refused: over the ceiling of lab 00", "refused: x", "written down"),
        ("data_out: sky logs", "data_out: x", "pre-flight"),
        ("  keys: with the vendor's tool\n", "", "pre-flight"),
    ],
)
def test_a_budget_that_does_not_hold_is_noticed(tmp_path, capsys, old, new, line):
    assert run(capsys, "budget", "ledger", "--create").code == 0
    assert old in HAND_IN
    hand_in(tmp_path, HAND_IN.replace(old, new))
    code, states = check(capsys, "00", tmp_path)
    assert code == 1
    assert [what for what, state in states.items() if state == "not met"] == [
        what for what in states if line in what
    ]


@pytest.mark.parametrize("days", [31, -2])
def test_a_price_of_another_time_is_noticed(tmp_path, capsys, days):
    assert run(capsys, "budget", "ledger", "--create").code == 0
    hand_in(tmp_path, day=TODAY - timedelta(days=days))
    assert check(capsys, "00", tmp_path)[0] == 1


def test_what_cannot_be_read_opens_no_solution(tmp_path, capsys):
    (tmp_path / "35-lab-01.json").write_text("{}")
    result = run(capsys, "lab", "01", "--solution", "--folder", str(tmp_path))
    assert result.code == 1
    assert "shows after an attempt that can be read" in result.err


@pytest.mark.parametrize("text", ["", "- 1", "vendors: []", "a: [", "plan: {{}}"])
def test_a_budget_of_another_shape_is_one_message(tmp_path, capsys, text):
    hand_in(tmp_path, text)
    result = run(capsys, "lab", "00", "--check", "--folder", str(tmp_path))
    assert result.code == 1
    assert "35-lab-00.yaml:" in result.err


# --- labs 02 and 04 on rented GPUs ---


@pytest.mark.parametrize("lab", ["02", "04"])
def test_a_task_runs_the_same_command_on_gpus(capsys, lab):
    task = parse_yaml(run(capsys, "lab", lab, "--task").out.encode(), "task").value
    assert f"readerkit lab {lab} --run" in task["run"]
    assert "--backend nccl" in task["run"]
    assert task["resources"]["autostop"]["down"] is True
    gpu = task["resources"]["accelerators"].partition(":")[0].lower()
    prices = parse_yaml(shipped("prices.yaml").read_bytes(), "prices").value["prices"]
    assert gpu.replace("-", "") in {p["gpu"].replace("-", "") for p in prices}
