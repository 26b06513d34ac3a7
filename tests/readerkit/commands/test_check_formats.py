"""What a check found, for reviews and for programs; how it serves a hook."""

from __future__ import annotations

import json
import os
import re
import resource
import shlex
import subprocess
from pathlib import Path

import pytest
import yaml

from tests.helpers import ROOT, git, run_process, write_files
from tests.readerkit.commands.test_living import Kept, kept  # noqa: F401
from tests.terminals import READERKIT


@pytest.fixture
def red(kept: Kept) -> Kept:  # noqa: F811
    """Lines moved, and one of them edited."""
    kept.app.write_text("# moved\n" + kept.app.read_text())
    kept.edit("tries=3", "tries=5")
    return kept


def test_github_shows_it_at_the_lines_that_changed(red):
    told = red("annotate", "--check", "--format", "github")
    assert told.code == 1
    commands = told.out.splitlines()
    assert len(commands) == 2
    match = re.fullmatch(r"::error ([^:]*)::(.*)", commands[0])
    assert match
    parts = dict(part.split("=") for part in match[1].split(","))
    title = parts.pop("title")
    assert parts == {"file": "src/app.py", "line": "5", "endLine": "5"}
    assert title == "readerkit%3A tries"
    assert "Jane Doe reviewed it on" in match[2]
    assert "%0A    5: def fetch_page(url, tries=5):%0A" in match[2]
    assert "file=book/annotations/app/notes.yaml," in commands[1]
    assert "is no longer true" in commands[1]


def test_sarif_names_lines_and_note_and_knows_a_finding_again(red):
    def results() -> list[dict]:
        told = red("annotate", "--check", "--format", "sarif")
        assert told.code == 1
        log = json.loads(told.out)
        assert log["version"] == "2.1.0"
        [run] = log["runs"]
        rules = [rule["id"] for rule in run["tool"]["driver"]["rules"]]
        assert all(rules[r["ruleIndex"]] == r["ruleId"] for r in run["results"])
        return run["results"]

    first, claim = results()
    place = first["locations"][0]["physicalLocation"]
    assert place["artifactLocation"]["uri"] == "src/app.py"
    assert place["region"] == {"startLine": 5, "endLine": 5}
    [note] = first["relatedLocations"]
    written = note["physicalLocation"]["artifactLocation"]["uri"]
    assert written == "book/annotations/app/notes.yaml"
    assert claim["ruleId"] == "fault"
    known = [each["partialFingerprints"] for each in (first, claim)]
    red.app.write_text("# moved again\n" + red.app.read_text())
    assert [each["partialFingerprints"] for each in results()] == known


def test_json_is_the_same_by_both_names(red):
    one = red("annotate", "--check", "--format", "json")
    other = red("annotate", "--check", "--json")
    assert one.code == other.code == 1
    assert json.loads(one.out) == json.loads(other.out)


@pytest.mark.parametrize("form", ["github", "sarif", "json", "text"])
def test_nothing_found_is_success(kept, form):  # noqa: F811
    held = kept("annotate", "--check", "--format", form)
    assert (held.code, held.err) == (0, "")
    if form == "sarif":
        assert json.loads(held.out)["runs"][0]["results"] == []
    if form == "github":
        assert held.out == ""


@pytest.mark.parametrize(
    "words", [["--format", "sarif"], ["--check", "--json", "--format", "github"]]
)
def test_a_format_is_for_a_check_and_one(kept, words):  # noqa: F811
    assert kept("annotate", *words).code == 2


def test_a_hook_is_over_within_a_second_on_500_files(kept):  # noqa: F811
    text = kept.app.read_text() * 20
    files = {f"src/part{n // 50}/file{n}.py": f"N = {n}\n{text}" for n in range(500)}
    write_files(kept.root, files)
    note = "- id: part-{n}\n  at: {{file: src/part{d}/file{n}.py, code: N = {n}}}\n"
    note += "  kind: note\n  title: A part\n  text: It has a number.\n"
    note += "  concepts: [idea]\n"
    parts = "".join(note.format(n=n, d=n // 50) for n in range(0, 500, 25))
    write_files(kept.book, {"annotations/app/parts.yaml": parts})
    assert kept("annotate", "--update-lock").code == 0

    def seconds() -> float:
        used = resource.getrusage(resource.RUSAGE_CHILDREN)
        return used.ru_utime + used.ru_stime

    took = []
    for _ in range(3):
        before = seconds()
        held = run_process("annotate", "--check", "--book", str(kept.book))
        took.append(seconds() - before)
        assert (held.code, held.err) == (0, "")
    assert "22 anchors" in held.out
    assert min(took) < 1, took


def hook() -> dict:
    [declared] = yaml.safe_load((ROOT / ".pre-commit-hooks.yaml").read_text())
    return declared


def test_the_hook_stops_a_commit(kept, tmp_path):  # noqa: F811
    """What pre-commit would start, started by git itself."""
    words = shlex.split(hook()["entry"])
    assert words[0] == "readerkit"
    line = shlex.join([*READERKIT, *words[1:]])
    script = f"#!/bin/sh\nexport READERKIT_BOOK={shlex.quote(str(kept.book))}\n{line}\n"
    file = write_files(kept.root / ".git/hooks", {"pre-commit": script}) / "pre-commit"
    file.chmod(0o755)
    git(kept.root, "add", "book/annotations")
    git(kept.root, "commit", "--quiet", "--message=lock")
    kept.edit("tries=3", "tries=5")
    with pytest.raises(subprocess.CalledProcessError) as stopped:
        git(kept.root, "commit", "--all", "--message=five")
    assert b"tries: the code under it changed" in stopped.value.stderr


def test_the_action_says_what_it_found(red, tmp_path):
    """The last step of the action, run as GitHub runs it."""
    action = yaml.safe_load((ROOT / "action.yml").read_text())
    step = action["runs"]["steps"][-1]
    program = tmp_path / "readerkit/bin/readerkit"
    line = shlex.join([*READERKIT])
    write_files(program.parent, {program.name: f'#!/bin/sh\nexec {line} "$@"\n'})
    program.chmod(0o755)
    given = {name: each["default"] for name, each in action["inputs"].items()}
    given |= {"book": str(red.book), "sarif": str(tmp_path / "found.sarif")}
    env = {
        name: re.sub(r"\$\{\{ inputs\.(\w+) \}\}", lambda m: given[m[1]], value)
        for name, value in step["env"].items()
    }
    done = subprocess.run(
        ["bash", "-e", "-o", "pipefail", "-c", step["run"]],
        env={**os.environ, **env, "RUNNER_TEMP": str(tmp_path)},
        cwd=red.root,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 1
    assert done.stdout.startswith("::error file=src/app.py,")
    assert len(json.loads(Path(given["sarif"]).read_text())["runs"][0]["results"]) == 2
