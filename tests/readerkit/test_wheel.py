"""The wheel, installed alone and run away from the checkout."""

from __future__ import annotations

import json
import os
import shlex
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from tests.helpers import ROOT, WAIT_S

pytestmark = [pytest.mark.network, pytest.mark.slow]


@pytest.fixture(scope="module")
def wheel(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("wheel")
    subprocess.run(
        [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(folder)],
        cwd=ROOT,
        check=True,
        capture_output=True,
        timeout=WAIT_S,
    )
    [path] = folder.glob("*.whl")
    return path


@pytest.fixture(scope="module")
def installed(wheel, tmp_path_factory) -> Path:
    """The ``readerkit`` of an environment that holds the wheel and what it needs."""
    root = tmp_path_factory.mktemp("environment")
    subprocess.run(
        [sys.executable, "-m", "venv", "--without-pip", str(root)], check=True
    )
    pip = [sys.executable, "-m", "pip", "--python", str(root / "bin" / "python")]
    pip += ["--disable-pip-version-check", "install", "--no-input", "--no-compile"]
    subprocess.run([*pip, str(wheel)], check=True, capture_output=True, timeout=300)
    return root / "bin" / "readerkit"


@pytest.fixture
def elsewhere(tmp_path) -> Path:
    folder = tmp_path / "elsewhere"
    folder.mkdir()
    return folder


def run_installed(command: Path, folder: Path, *arguments: str):
    # Some of these read the whole book, without bytecode: seconds of a processor, and
    # minutes where many others share it.
    env = {k: v for k, v in os.environ.items() if not k.startswith("PYTHON")}
    return subprocess.run(
        [str(command), *arguments],
        cwd=folder,
        env=env,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )


def test_wheel_holds_the_code_the_minis_and_the_book(wheel):
    names = set(zipfile.ZipFile(wheel).namelist())
    for name in (
        "readerkit/cli.py",
        "readerkit/data/annotations/upstreams.yaml",
        "readerkit/data/annotations/megatron.lock",
        "readerkit/catalog/models.yaml",
        "readerkit/catalog/hardware.yaml",
        "readerkit/catalog/prices.yaml",
        "readerkit/catalog/runs.yaml",
        "readerkit/data/annotations/megatron/tensor_parallel.yaml",
        "readerkit/data/quizzes/35/keys.lock",
        "readerkit/data/site/words.es.yaml",
        "mini_impls/__init__.py",
    ):
        assert name in names
    annotations = ROOT / "annotations"
    book = [path for path in annotations.rglob("*") if path.is_file()]
    for path in book:
        assert f"readerkit/data/{path.relative_to(ROOT).as_posix()}" in names
    tops = {name.split("/")[0] for name in names if ".dist-info" not in name}
    assert tops == {"readerkit", "mini_impls"}


def test_wheel_has_the_name_that_the_readme_installs(wheel):
    assert f"pip install dist/{wheel.name}\n" in (ROOT / "README.md").read_text()
    [info] = [n for n in zipfile.ZipFile(wheel).namelist() if n.endswith("/METADATA")]
    words = zipfile.ZipFile(wheel).read(info).decode()
    assert words.splitlines()[1:3] == ["Name: readerkit-distributed", "Version: 0.1.0"]


def test_without_torch_the_command_that_brings_it_is_named(installed, elsewhere):
    done = run_installed(installed, elsewhere, "run", "ddp")
    assert (done.returncode, done.stdout) == (1, "")
    python, *words = shlex.split(done.stderr.splitlines()[1])
    assert Path(python) == installed.parent / "python"
    assert words[:4] == ["-m", "pip", "install", "torch==2.13.0"]
    assert "readerkit" not in words


def test_version_runs_from_any_directory(installed, elsewhere):
    done = run_installed(installed, elsewhere, "--version")
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith("readerkit, version ")


def test_a_rebuilt_section_is_graded_without_the_tests_that_no_wheel_has(
    wheel, tmp_path
):
    zipfile.ZipFile(wheel).extractall(tmp_path / "site")
    env = {**os.environ, "PYTHONPATH": str(tmp_path / "site")}

    def rebuild(*words):
        return subprocess.run(
            [sys.executable, "-P", "-m", "readerkit", "rebuild", *words],
            cwd=tmp_path,
            env=env,
            capture_output=True,
            text=True,
            check=False,
        )

    shown = rebuild("fsdp_state", "norm", "--solution").stdout.splitlines()
    assert rebuild("fsdp_state", "norm").returncode == 0
    [copy] = (tmp_path / "data").rglob("fsdp_state.py")
    lines = copy.read_text().splitlines()
    at = next(i for i, line in enumerate(lines) if "NotImplementedError" in line)
    copy.write_text("\n".join([*lines[:at], *shown[1:], *lines[at + 1 :], ""]))
    graded = rebuild("fsdp_state", "norm", "--check")
    assert graded.returncode == 0, graded.stdout + graded.stderr
    said = " ".join(graded.stdout.split())
    assert (
        "? it passes the mini's own tests left out: the tests are in readerkit's "
        "repository, and this is no clone of it" in said
    )
    assert "what ? stands before cannot be checked here" in said


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["annotate", "megatron"], "tp-row-forward"),
        (["annotate", "--check"], "megatron: "),
        (["annotate", "tp-row-forward", "--lang", "es"], "En lugar de"),
        (["start"], "Which collective closes the layer?"),
    ],
    ids=["annotate", "check", "spanish", "start"],
)
def test_book_that_ships_is_read(arguments, words, installed, elsewhere, real_cache):
    done = run_installed(installed, elsewhere, *arguments)
    assert (done.returncode, done.stderr) == (0, "")
    assert words in done.stdout
    assert str(ROOT) not in done.stdout


def test_quiz_that_ships_is_taken(installed, elsewhere, real_cache):
    done = run_installed(
        installed, elsewhere, "quiz", "35", "--only", "tp-close-line", "--json"
    )
    assert (done.returncode, done.stderr) == (0, "")
    question = json.loads(done.stdout.splitlines()[1])
    assert "def forward(self, input_):" in question["search"]["lines"][0]
    lint = run_installed(installed, elsewhere, "quiz", "lint")
    assert (lint.returncode, lint.stderr) == (0, "")
    refused = run_installed(installed, elsewhere, "quiz", "lint", "--update-lock")
    assert refused.returncode == 1
    assert "inside the installed package" in refused.stderr


def test_no_file_of_the_checkout_is_opened(installed, elsewhere, real_cache):
    code = (
        "import sys; opened = []\n"
        "sys.addaudithook(lambda event, args: opened.append(str(args[0]))"
        " if event == 'open' else None)\n"
        "from readerkit.cli import main\n"
        "try:\n    main(['start'])\nexcept SystemExit as ended:\n"
        "    code = ended.code\n"
        "print('\\n'.join(opened), file=sys.stderr)\nsys.exit(code)\n"
    )
    done = run_installed(installed.parent / "python", elsewhere, "-c", code)
    assert done.returncode == 0
    opened = [Path(name) for name in done.stderr.splitlines()]
    assert any(path.name == "upstreams.yaml" for path in opened)
    assert not [path for path in opened if path.is_relative_to(ROOT)]


def test_book_of_the_package_is_not_written_to(installed, elsewhere, real_cache):
    place = "megatron/core/tensor_parallel/layers.py:1289-1292"
    done = run_installed(installed, elsewhere, "note", place, "--into", "book")
    assert (done.returncode, done.stdout) == (1, "")
    root = installed.parent.parent / "lib"
    assert done.stderr.startswith(f"readerkit: {root}/")
    assert "site-packages/readerkit/data is the copy inside" in done.stderr
    assert "use --into mine" in done.stderr


def test_review_does_not_write_into_the_package(installed, elsewhere, real_cache):
    lock = next((installed.parent.parent / "lib").rglob("megatron.lock"))
    before = lock.read_bytes()
    done = run_installed(installed, elsewhere, "review", "tp-row-forward")
    assert done.returncode == 1
    assert "inside the installed package" in done.stderr
    assert lock.read_bytes() == before


def test_own_note_goes_to_the_overlay_by_default(
    installed, elsewhere, real_cache, tmp_path, monkeypatch
):
    editor = tmp_path / "editor"
    editor.write_text(
        "#!/bin/sh\nsed -i -e 's/title:/title: Mine/' -e 's/text: >-/text: Words./' "
        '-e "s/concepts: \\[\\]/concepts: [tensor-parallel]/" "$1"\n'
    )
    editor.chmod(0o755)
    monkeypatch.setenv("EDITOR", str(editor))
    place = "megatron/core/tensor_parallel/layers.py:1289-1292"
    done = run_installed(installed, elsewhere, "note", place, "--kind", "note")
    assert (done.returncode, done.stderr) == (0, "")
    own = tmp_path / "data" / "book" / "annotations" / "megatron" / "my-notes.yaml"
    assert done.stdout.startswith(f"wrote {own}\n")
    again = run_installed(installed, elsewhere, "annotate", "my-note")
    assert "Words." in again.stdout
