"""How to install it, wherever that is said: the bare name is a stranger's project."""

from __future__ import annotations

import ast
import re
import shlex
import sys
import tomllib

import pytest

from tests.helpers import ROOT, git, run

PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
BARE = r"readerkit(?:\[[\w,]*\])?(?:[=<>~!]=[\w.]+)?(?![\w/.-])"
COMMAND = re.compile(
    r"\b(?:pip|pip3|pipx|uv|uvx|conda)\s+(?:[\w-]+\s+){0,3}?"
    r"(?:install|download|add|wheel|run)(?:[ \t]+[^\s.;]\S*(?<![.;:])){0,6}?"
    rf"\s+{BARE}"
)
ADVICE = re.compile(rf"(?<!completion )\binstall\s+{BARE}", re.IGNORECASE)


def suggests_the_stranger(text: str) -> str | None:
    """Return what installs the bare name, whatever quotes a text puts around words."""
    words = re.sub(r"[`'\",\\+$(]+", " ", text)
    found = COMMAND.search(words) or ADVICE.search(words)
    return found and found.group()


@pytest.mark.parametrize(
    "text",
    [
        "pip install readerkit",
        "python -m pip install 'readerkit[torch]'",
        "pip install --upgrade readerkit==0.1.0",
        '["pip", "install", "--quiet", "readerkit"]',
        "uv pip install readerkit",
        "pipx run readerkit",
        "pip install torch numpy readerkit",
        "install readerkit with its extra 'torch'",
        "install\nreaderkit again",
    ],
)
def test_every_form_of_it_is_seen(text):
    assert suggests_the_stranger(text)


@pytest.mark.parametrize(
    "text",
    [
        "pip install readerkit-distributed",
        "pip install dist/readerkit_distributed-0.1.0-py3-none-any.whl",
        "pip install '.[torch]'\n~/venv/bin/readerkit lab 04",
        "pip install torch==2.13.0. Then readerkit run",
        "readerkit completion install\nreaderkit completion remove",
    ],
)
def test_what_installs_something_else_is_left_alone(text):
    assert suggests_the_stranger(text) is None


@pytest.mark.further
def test_no_text_here_installs_the_project_that_has_the_bare_name():
    bad = []
    for name in git(ROOT, "ls-files").splitlines():
        path = ROOT / name
        if path.suffix in (".png", ".json", ".lock") or "test_installing" in name:
            continue
        texts = [path.read_text()]
        if path.suffix == ".py":  # a message is one text, on however many lines
            texts += [
                node.value
                for node in ast.walk(ast.parse(texts[0]))
                if isinstance(node, ast.Constant) and isinstance(node.value, str)
            ]
        bad += [
            (name, found) for text in texts if (found := suggests_the_stranger(text))
        ]
    assert bad == []


def test_distribution_has_a_name_of_its_own_and_the_command_keeps_its():
    assert PROJECT["name"] == "readerkit-distributed"
    assert PROJECT["scripts"] == {"readerkit": "readerkit.__main__:main"}


@pytest.mark.parametrize("command", [["run", "ddp"], ["compare", "ddp"]])
def test_missing_torch_is_one_message_with_the_command_that_brings_it(
    command, monkeypatch, capsys
):
    monkeypatch.setitem(sys.modules, "torch", None)  # Python's own: not importable
    done = run(capsys, *command)
    assert (done.code, done.out) == (1, "")
    assert shlex.split(done.err.splitlines()[1]) == [
        *(sys.executable, "-m", "pip", "install"),
        *PROJECT["optional-dependencies"]["torch"],
    ]


def test_readme_installs_the_wheel_with_its_extra():
    readme = (ROOT / "README.md").read_text()
    name = PROJECT["name"].replace("-", "_")
    for extra in ("", "[torch]"):
        assert re.search(rf"pip install '?dist/{name}-[\d.]+-py3-none-any\.whl", readme)
        assert f".whl{extra}" in readme
