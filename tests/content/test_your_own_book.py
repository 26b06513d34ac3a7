"""The page about a book of one's own, run as it stands: what is typed, what comes."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
from collections.abc import Iterator

import pytest

from tests.helpers import ROOT, WAIT_S
from tests.terminals import READERKIT

PAGE = ROOT / "docs" / "your-own-book.md"
MARK = "\x1e"


def steps() -> Iterator[tuple[str, list[str]]]:
    """Yield each command of the page, with the lines that it shows."""
    for block in re.findall(r"^```console\n(.*?)^```$", PAGE.read_text(), re.M | re.S):
        lines = block.splitlines()
        while lines:
            line = lines.pop(0)
            assert line.startswith("$ "), line
            typed = [line.removeprefix("$ ")]
            if "<<'END'" in line:
                while typed[-1] != "END":
                    typed.append(lines.pop(0))
            shown = []
            while lines and not lines[0].startswith("$ "):
                shown.append(lines.pop(0))
            yield "\n".join(typed), shown


@pytest.fixture(scope="module")
def outputs(tmp_path_factory) -> list[tuple[str, list[str], str]]:
    """Every command with what it is to show and what it said, in one shell."""
    folder = tmp_path_factory.mktemp("own")
    every = [*steps()]
    script = [f'readerkit() {{ {shlex.join(READERKIT)} "$@"; }}']
    for typed, _ in every:
        script.append(f"{{ {typed}\n}} 2>&1; echo -n '{MARK}'$?'{MARK}'")
    env = {k: v for k, v in os.environ.items() if not k.startswith(("GIT_", "READER"))}
    env |= {
        "GIT_CONFIG_GLOBAL": os.devnull,
        "GIT_CONFIG_NOSYSTEM": "1",
        "READERKIT_CACHE": str(folder / "cache"),
        "READERKIT_DATA": str(folder / "data"),
    }
    done = subprocess.run(
        ["bash", "-c", "\n".join(script)],
        cwd=folder,
        env=env,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        timeout=WAIT_S,
        check=False,
    )
    said = done.stdout.decode().split(MARK)
    pairs = zip(said[::2], said[1::2], strict=False)
    found = [text + (f"[{code}]\n" if code != "0" else "") for text, code in pairs]
    assert len(found) == len(every), said[-3:]
    return [(*step, text) for step, text in zip(every, found, strict=True)]


def pattern(shown: list[str]) -> str:
    """Return what an output is to be like: … stands for anything, alone for lines."""
    rows = [
        r"(?:.*\n)*?" if line == "…" else re.escape(line).replace("…", ".*") + r"\n"
        for line in shown
    ]
    return "".join(rows)


@pytest.mark.further
def test_every_command_says_what_the_page_shows(outputs):
    wrong = [
        f"$ {typed}\n{text}"
        for typed, shown, text in outputs
        if not re.fullmatch(pattern(shown), text)
    ]
    assert not wrong, "\n".join(wrong)


def test_it_goes_from_green_to_red_and_back(outputs):
    checks = [
        "[1]" in text for typed, _, text in outputs if "annotate --check" in typed
    ]
    assert checks == [False, False, True, True, False, True, False, True]


def test_it_tells_the_hook_as_it_is():
    hooks = (ROOT / ".pre-commit-hooks.yaml").read_text()
    [named] = re.findall(r"hooks: \[\{id: ([\w-]+),", PAGE.read_text())
    assert f"- id: {named}\n" in hooks
