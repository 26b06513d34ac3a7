"""What the README shows of a command is what the command prints, shortened at each …"""

from __future__ import annotations

import re
import shlex

import pytest

from tests.helpers import ROOT, run

README = (ROOT / "README.md").read_text()
BLOCKS = re.findall(r"^```console\n(.*?)^```$", README, re.MULTILINE | re.DOTALL)


def shown() -> dict[str, str]:
    """Return what stands below each command of the book or of the estimates."""
    return {
        command: told
        for block in BLOCKS
        for command, told in re.findall(
            r"^\$ readerkit (.+)\n((?:(?!\$ ).*\n)+)", block, re.MULTILINE
        )
        if command.split()[0] in ("start", "estimate")
    }


def test_two_commands_are_shown_with_what_they_print():
    assert {command.split()[0] for command in shown()} == {"start", "estimate"}


@pytest.mark.parametrize("command", shown())
def test_readme_shows_what_is_printed(command, real_cache, capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    rest = " ".join(run(capsys, *shlex.split(command)).out.split())
    pieces = (" ".join(piece.split()) for piece in shown()[command].split("…"))
    for piece in filter(None, pieces):
        _, found, rest = rest.partition(piece)
        assert found == piece
