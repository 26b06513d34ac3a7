"""Names completed by the shell: click's own protocol, and real shells."""

import os
import re
import shutil
import subprocess
import sys
from importlib import import_module
from pathlib import Path

import pytest

from tests.helpers import WAIT_S, Result, git, make_book, run, run_process
from tests.readerkit.commands.test_living import kept  # noqa: F401  a fixture
from tests.terminals import Terminal

pytestmark = pytest.mark.sampled

LINES = {
    "annotate tp-d": ["tp-dgrad-overlap"],
    "annotate megatron tp-dg": ["tp-dgrad-overlap"],
    "annotate pytorch tp-": [],
    "annotate py": ["pytorch"],
    "annotate fsdp2-roo": ["fsdp2-root-stays-gathered"],
    "annotate --concept ring": ["ring-all-reduce"],
    "annotate --topic optim": ["optimizer"],
    "annotate --kind pit": ["pitfall"],
    "review tp-row-f": ["tp-row-forward"],
    "fetch meg": ["megatron", "megatron-training"],
    "run fsdp_s": ["fsdp_state"],
    "run fsdp2": ["fsdp2"],
    "compare zer": ["zero", "zero_bubble"],
    "compare tensor_parallel --upstream d": ["dtensor"],
    "break ddp no-": ["no-sync", "no-overlap"],
    "break zer": ["zero", "zero_bubble"],
    "quiz 3": ["35"],
    "quiz rev": ["review"],
    "quiz 35 --topic tensor": ["tensor_parallel"],
    "lab 0": ["00", "01", "02", "03", "04"],
    "path silent-h": ["silent-hang"],
    "path fail": ["failure"],
    "estimate memory --model mixtral-8x7": ["mixtral-8x7b"],
    "estimate memory --gpu h100-8": ["h100-80gb"],
    "estimate plan --cluster dgx-h1": ["dgx-h100"],
    "annotate --file megatron/core/optimizer/distrib": [
        "megatron/core/optimizer/distrib_optimizer.py"
    ],
    "annotate --lang e": ["en", "es"],
    "export --file megatron/core/optimizer/distrib": [
        "megatron/core/optimizer/distrib_optimizer.py"
    ],
    "note --topic optim": ["optimizer"],
    "import --topic optim": ["optimizer"],
    "fetch --source ins": ["installed"],
    "quiz list --kind num": ["numeric"],
    "budget estimate --gpu rtx-4": ["rtx-4090"],
    "budget run --vendor run": ["runpod"],
    "budget run --lab 0": ["00", "01", "02", "03", "04"],
    "estimate memory --zero ": ["0", "ddp", "1", "2", "3", "fsdp", "1/2"],
    "estimate memory --recompute s": ["selective", "shared_experts"],
    "estimate memory --recompute core_attn,la": ["core_attn,layernorm"],
    "progress 35 --waive tp": ["tp-curve"],
    "progress --unwaive rung-1": ["rung-10", "rung-11"],
    "estimate flops --recompute s": ["selective"],
    "estimate memory --norm r": ["rmsnorm"],
    "estimate memory --precision fp8": ["fp8-13", "fp8lm-7"],
    "estimate memory --offload opt": ["optimizer-cpu", "optimizer-nvme"],
    "estimate memory --weights nv": ["nvfp4"],
    "estimate memory --expert-weights nv": ["nvfp4"],
    "estimate memory --convention cook": ["cookbook"],
    "estimate memory --cp-kind u": ["ulysses"],
    "estimate bubble --schedule zb-h": ["zb-h1", "zb-h2"],
    "estimate plan --schedule 1f1b,dual": ["1f1b,dualpipe"],
    "estimate plan --offload none,states-c": ["none,states-cpu"],
    "estimate comm all-to": ["all-to-all"],
    "estimate comm --algorithm hier": ["hierarchical"],
    "estimate comm --baseline bf": ["bf16"],
    "estimate flops --attention c": ["causal"],
    "estimate nccl --operation all-g": ["all-gather"],
    "estimate nccl --link p": ["pci"],
    "estimate nccl --cpu a": ["amd"],
    "comple": ["completion"],
    "completion in": ["install"],
    "site s": ["serve"],
}


def asked(line: str) -> dict[str, str | None]:
    """Return what a shell says of a line, as variables."""
    words = ["readerkit", *line.split(" ")]
    return {
        "_READERKIT_COMPLETE": "bash_complete",
        "COMP_WORDS": " ".join(words),
        "COMP_CWORD": str(len(words) - 1),
    }


def names_in(done: Result) -> list[str]:
    assert done.code == 0
    return [row.partition(",")[2] for row in done.out.splitlines() if row]


def completed(line: str, **environment: str | None) -> tuple[list[str], str]:
    done = run_process(environment={**asked(line), **environment})
    return names_in(done), done.err


@pytest.mark.parametrize("line", LINES)
def test_names_are_completed(line, real_cache, monkeypatch, capsys):
    for name, value in asked(line).items():
        monkeypatch.setenv(name, value)
    done = run(capsys)
    found = [each for each in names_in(done) if not each.startswith("-")]
    assert (found, done.err) == (LINES[line], "")


FORWARDED = {
    "run": ("readerkit.commands.run", "mini_impls.ddp"),
    "compare": ("readerkit.commands.compare", "mini_impls.compare"),
    "break": ("readerkit.commands.break_", "mini_impls.faults"),
    "lab": ("readerkit.commands.lab", "mini_impls.demos.lab_ddp"),
}


@pytest.mark.parametrize(
    "name",
    [
        pytest.param(name, marks=() if name == "break" else pytest.mark.slow)
        for name in FORWARDED
    ],
)
def test_options_of_what_a_command_runs_are_completed_as_its_own(name):
    module, runs = FORWARDED[name]
    command = getattr(import_module(module), module.rpartition(".")[2])
    helped = subprocess.run(
        [sys.executable, "-P", "-m", runs, "--help"],
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    there_are = {*re.findall(r"^ +(?:-h, )?(--[a-z-]+)", helped, re.MULTILINE)}
    assert {*command.forwards} <= there_are
    assert {*completed(f"{name} x --")[0]} >= {*command.forwards}


def test_names_are_those_of_the_book_on_the_line(tmp_path):
    book = make_book(tmp_path)
    assert completed(f"annotate --book {book.root} whole") == (["whole-step"], "")


def test_a_revision_of_ones_own_repository_is_completed(kept):  # noqa: F811
    git(kept.root, "branch", "before")
    git(kept.root, "tag", "v2")
    book = f"--book {kept.book}"
    assert completed(f"drift {book} --to bef") == (["before"], "")
    assert completed(f"drift app {book} --to v") == (["v1", "v2"], "")


def test_where_no_name_fits_the_shell_completes_folders(tmp_path):
    for option in ("--to", "--from"):
        done = run_process(environment=asked(f"drift {option} ../some"))
        assert done.out == "dir,../some\n"


def test_no_name_needs_the_network_or_heavy_imports(own_memory):
    for line, heavy in (
        ("annotate tp-d", ("tree_sitter", "rich", "jinja2", "git", "torch")),
        ("run fsdp_s", ("readerkit.content.book", "yaml", "rich", "torch")),
        ("comp", ("readerkit.commands.annotate", "readerkit.content.book")),
    ):
        completed(line)  # what is parsed once is remembered
        _, imported = completed(line, PYTHONPROFILEIMPORTTIME="1")
        loaded = {row.rpartition("|")[2].strip() for row in imported.splitlines()}
        assert "click" in loaded and not loaded & {*heavy}


@pytest.mark.parametrize(
    "harm",
    [
        {"READERKIT_BOOK": "/nowhere"},
        {"READERKIT_CACHE": "/dev/null/cache"},
        {"HOME": None, "READERKIT_DATA": "relative"},
    ],
    ids=["no-book", "no-cache", "no-home"],
)
def test_whatever_is_wrong_nothing_is_said(harm, real_cache):
    assert completed("annotate zzz", **harm) == ([], "")


@pytest.mark.parametrize("fault", ["- [", "x" * 2_000_000], ids=["no-yaml", "large"])
def test_a_book_with_faults_completes_nothing_and_says_nothing(fault, tmp_path):
    book = make_book(tmp_path, more={"sample/more.yaml": fault})
    assert completed(f"annotate --book {book.root} clo") == ([], "")


# --- setting it up ---


@pytest.fixture
def home(tmp_path, monkeypatch):
    """A home of its own, in which ``readerkit`` is this one."""
    tools = tmp_path / "bin"
    tools.mkdir()
    command = tools / "readerkit"
    command.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m readerkit "$@"\n')
    command.chmod(0o755)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("PATH", f"{tools}{os.pathsep}{os.environ['PATH']}")
    monkeypatch.delenv("ZDOTDIR", raising=False)
    monkeypatch.delenv("XDG_CONFIG_HOME", raising=False)
    return tmp_path


STARTS = {"bash": ".bashrc", "zsh": ".zshrc", "fish": None}


@pytest.mark.parametrize("shell", STARTS)
def test_what_is_installed_is_removed_and_nothing_else(
    shell, home, capsys, monkeypatch
):
    monkeypatch.setenv("SHELL", f"/usr/bin/{shell}")
    if shutil.which("bash") is None:
        pytest.skip("no bash here")
    start = home / STARTS[shell] if STARTS[shell] else None
    if start:
        start.write_bytes(b"alias ll='ls -l'  # \xff")
        start.chmod(0o600)
    for _ in range(2):  # twice is as good as once
        done = run(capsys, "completion", "install")
        assert (done.code, done.err) == (0, "")
    script = Path(done.out.splitlines()[0].removeprefix("wrote "))
    assert "_READERKIT_COMPLETE" in script.read_text()
    if start:
        assert start.read_bytes().count(b"readerkit") == 3  # one line names it thrice
        assert start.stat().st_mode & 0o777 == 0o600
    assert run(capsys, "completion", "remove").code == 0
    assert not script.exists()
    if start:
        assert start.read_bytes().strip() == b"alias ll='ls -l'  # \xff"


def test_what_was_installed_for_any_shell_is_removed(home, capsys, monkeypatch):
    monkeypatch.setenv("SHELL", "/bin/tcsh")
    wrote = [
        run(capsys, "completion", "install", "--shell", shell).out.splitlines()[0]
        for shell in STARTS
    ]
    first = run(capsys, "completion", "remove", "--shell", "zsh")
    rest = run(capsys, "completion", "remove")
    removed = [line.replace("wrote", "removed") for line in wrote]
    assert {line for line in removed if line in first.out} == {removed[1]}
    assert {line for line in removed if line in rest.out} == {removed[0], removed[2]}
    again = run(capsys, "completion", "remove")
    assert (again.code, again.err) == (0, "")
    assert again.out == "nothing is set up for bash or zsh or fish\n"
    left = [path for path in home.rglob("*") if path.is_file()]
    assert left == [home / "bin" / "readerkit"]


def test_an_unknown_shell_is_asked_for(home, capsys, monkeypatch):
    monkeypatch.setenv("SHELL", "/bin/tcsh")
    done = run(capsys, "completion", "install")
    assert (done.code, done.out) == (2, "")
    assert (
        "got SHELL=tcsh, expected one of bash, zsh, fish: add --shell NAME" in done.err
    )


@pytest.mark.parametrize("shell", ["bash", "zsh"])
def test_a_real_shell_completes_what_is_typed(shell, home, real_cache):
    if shutil.which(shell) is None:
        pytest.skip(f"no {shell} here")
    assert run_process("completion", "install", "--shell", shell).code == 0
    start = home / STARTS[shell]
    prompt = "PS1='at your command: '; unset PROMPT_COMMAND RPS1\n"
    start.write_text(prompt + start.read_text())
    completed("annotate tp-dg")  # what is parsed once is remembered
    options = ["--noprofile", "-i"] if shell == "bash" else ["-i"]
    environment = {"READERKIT_CACHE": str(real_cache), "SHELL": shutil.which(shell)}
    with Terminal(
        str(shutil.which(shell)), *options, columns=200, environment=environment
    ) as person:
        person.read_until("at your command: ")
        person.type("readerkit annotate megatron tp-dg\t")
        person.read_until("tp-dgrad-overlap")
        person.type("\x15exit\r")
        assert person.close() == 0


@pytest.mark.skipif(shutil.which("fish") is None, reason="no fish here")
def test_fish_completes_what_is_asked(home, real_cache):
    assert run_process("completion", "install", "--shell", "fish").code == 0
    asked = 'complete -C "readerkit annotate megatron tp-dg"'
    done = subprocess.run(
        ["fish", "-c", asked],
        capture_output=True,
        text=True,
        check=True,
        timeout=WAIT_S,
    )
    assert done.stdout.split()[0] == "tp-dgrad-overlap"
