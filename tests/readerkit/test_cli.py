import json
import os
import re
import shlex
import signal
import subprocess
import sys
import tomllib
from functools import partial

import click
import pytest

import readerkit
from readerkit.cli import cli
from readerkit.errors import (
    ContentFault,
    GivenFileError,
    ReaderkitError,
    WrongUseError,
)
from tests.helpers import ROOT, run, run_process
from tests.terminals import Terminal

pytestmark = pytest.mark.sampled

CONTEXT = click.Context(cli)
COMMANDS = cli.list_commands(CONTEXT)
README = (ROOT / "README.md").read_text()

USAGE = """\
Usage: readerkit fail [OPTIONS]
Try 'readerkit fail --help' for help.

"""
HEAVY = {
    "git",
    "jinja2",
    "jsonschema_rs",
    "numpy",
    "pypi_simple",
    "requests",
    "rich",
    "torch",
    "tree_sitter",
    "yaml",
}


@pytest.fixture
def failing(monkeypatch):
    """Add a subcommand that ends with an exception."""

    def add(error: BaseException) -> None:
        def fail() -> None:
            raise error

        monkeypatch.setitem(cli.commands, "fail", click.Command("fail", callback=fail))

    return add


# --- how a command ends ---


@pytest.mark.parametrize(
    ("error", "code", "message"),
    [
        pytest.param(
            ReaderkitError("the file is not there"),
            1,
            "readerkit: the file is not there\n",
            id="mistake",
        ),
        pytest.param(
            WrongUseError("no such name"), 2, "readerkit: no such name\n", id="name"
        ),
        pytest.param(
            GivenFileError([ContentFault("/here", 1, 2, "no list")]),
            2,
            "readerkit: /here:1:2: no list\n",
            id="file",
        ),
        pytest.param(
            OSError(28, "No space left on device", "/here"),
            1,
            "readerkit: cannot write /here: No space left on device\n",
            id="full-disk",
        ),
        pytest.param(
            click.UsageError("no such thing"), 2, "Error: no such thing\n", id="usage"
        ),
        pytest.param(
            KeyboardInterrupt(), 130, "\nreaderkit: interrupted\n", id="interrupt"
        ),
        pytest.param(click.Abort(), 130, "readerkit: interrupted\n", id="abort"),
        pytest.param(click.exceptions.Exit(7), 7, "", id="code-of-its-own"),
    ],
)
def test_failure_is_one_message_and_a_code(error, code, message, failing, capsys):
    failing(error)
    done = run(capsys, "fail")
    assert (done.code, done.out) == (code, "")
    assert done.err.removeprefix(USAGE) == message


@pytest.mark.parametrize(
    "error", [RuntimeError("oops"), FileNotFoundError(2, "No such file", "/here")]
)
def test_a_bug_is_a_traceback_and_says_so(error, failing, capsys):
    failing(error)
    done = run(capsys, "fail")
    assert (done.code, done.out) == (3, "")
    assert done.err.startswith("Traceback (most recent call last):")
    assert f"{type(error).__name__}: " in done.err
    assert done.err.endswith(
        "readerkit: this is a bug: please report it with the lines above\n"
    )


def test_nothing_in_a_message_reaches_the_terminal_as_an_order(failing, capsys):
    failing(ReaderkitError("one\x1b]0;title\x07\u202etwo"))
    assert run(capsys, "fail").err == (
        "readerkit: one<U+001B>]0;title<U+0007><U+202E>two\n"
    )


@pytest.mark.parametrize("columns", [30, 80, 100, 200])
@pytest.mark.parametrize("is_terminal", [True, False])
def test_words_of_a_message_stay_whole_on_a_terminal_of_any_width(
    columns, is_terminal, failing, capsys, monkeypatch
):
    monkeypatch.setenv("COLUMNS", str(columns))
    monkeypatch.setattr(sys.stderr, "isatty", lambda: is_terminal)
    message = "expected one of these: " + ", ".join(["layers"] * 40)
    failing(ReaderkitError(message))
    err = run(capsys, "fail").err
    assert err.split() == f"readerkit: {message}".split()
    rows = err.splitlines()
    assert max(map(len, rows)) <= columns if is_terminal else len(rows) == 1


def test_success_is_zero(capsys, real_cache):
    assert run(capsys, "annotate", "megatron").code == 0


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([], "Usage: readerkit"),
        (["anotate"], "No such command 'anotate'"),
        (["--loud"], "No such option '--loud'"),
        (["annotate", "--loud"], "No such option '--loud'"),
        (["review"], "Missing argument"),
    ],
)
def test_wrong_use_is_two_and_goes_to_stderr(arguments, message, capsys):
    done = run(capsys, *arguments)
    assert (done.code, done.out) == (2, "")
    assert message in done.err
    assert "Traceback" not in done.err


def commands_below(group, *names):
    """Yield every command with the words that lead to it."""
    for name in group.list_commands(CONTEXT):
        command = group.get_command(CONTEXT, name)
        if isinstance(command, click.Group):
            yield from commands_below(command, *names, name)
        else:
            yield (*names, name), command


def test_every_number_with_a_point_has_to_be_finite():
    kinds = {
        (names, each.name): each.type
        for names, command in commands_below(cli)
        for each in command.params
        if isinstance(each.type, type(click.FLOAT))
    }
    assert (("quiz", "take"), "minutes") in kinds
    for where, kind in kinds.items():
        for given in ("nan", "inf", "-inf"):
            refused = f"got '{given}', expected a finite number"
            with pytest.raises(click.BadParameter, match=refused):
                pytest.fail(f"{where} takes {kind.convert(given, None, None)}")


# --- help and version ---


def test_version_is_the_package_version(capsys):
    done = run(capsys, "--version")
    assert (done.code, done.err) == (0, "")
    assert done.out == f"readerkit, version {readerkit.__version__}\n"


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_has_help_with_an_example_of_itself(name, capsys):
    done = run(capsys, name, "--help")
    assert (done.code, done.err) == (0, "")
    assert run(capsys, name, "-h").out == done.out
    _, _, example = done.out.partition("  Example:\n")
    assert example.startswith(f"      readerkit {name}")
    command = cli.get_command(CONTEXT, name)
    for option in command.params:
        if isinstance(option, click.Option):
            assert option.help, option.name


def test_list_of_commands_cuts_no_sentence(capsys):
    out = run(capsys, "--help").out
    _, _, listed = out.partition("Commands:\n")
    assert [line.split()[0] for line in listed.splitlines()] == COMMANDS
    assert "..." not in listed


@pytest.mark.parametrize("name", COMMANDS)
def test_list_says_of_a_command_what_it_says_of_itself(name, capsys):
    command = cli.get_command(CONTEXT, name)
    assert command.name == name
    listed = run(capsys, "--help").out
    assert re.search(
        rf"^  {name} +{re.escape(command.get_short_help_str(limit=200))}$", listed, re.M
    )


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_stands_in_the_readme(name):
    assert re.search(rf"\breaderkit {name}\b", README)


def speaks_spanish(command: click.Command) -> bool:
    if isinstance(command, click.Group):
        names = command.list_commands(CONTEXT)
        return any(speaks_spanish(command.get_command(CONTEXT, n)) for n in names)
    options = {option for each in command.params for option in each.opts}
    return "--lang" in options | {*getattr(command, "forwards", ())}


def test_readme_says_which_commands_speak_spanish():
    said = re.search(r"`--lang es` goes with (.+?):", README, re.DOTALL)
    spanish = {n for n in COMMANDS if speaks_spanish(cli.get_command(CONTEXT, n))}
    assert {*re.findall(r"`(\w+)`", said[1])} == spanish


READING = ("annotate", "start", "path", "note", "fetch", "estimate", "export")


def examples(text: str) -> list[str]:
    """Return the commands of a help text or of the README that only read."""
    text = text.replace("\\\n", " ")  # a command that goes on in the next line
    found = re.findall(r"^[ $]*readerkit ((?:[^#\n]|\S#)+)", text, re.MULTILINE)
    commands = [command.strip() for command in found]
    return [
        command + (" --print" if command.startswith("note ") else "")
        for command in commands
        if command.split()[0] in READING
        and "~" not in command
        and "../" not in command
        and not command.startswith("estimate lint")  # what it finds is exit 1
        and command != "fetch"  # all of them: more than the tests have brought
    ]


GROUPS = [
    [],
    *(
        [name]
        for name in COMMANDS
        if isinstance(cli.get_command(CONTEXT, name), click.Group)
    ),
]


@pytest.mark.parametrize("group", GROUPS, ids=" ".join)
def test_a_group_says_all_of_what_each_command_does(group, capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    shown = run(capsys, *group, "--help").out
    cut = [
        line for line in shown.partition("Commands:")[2].split("\n") if "..." in line
    ]
    assert cut == []


def helps(command: click.Command) -> list[str]:
    if not isinstance(command, click.Group):
        return [command.help or ""]
    inner = map(partial(command.get_command, CONTEXT), command.list_commands(CONTEXT))
    return [command.help or "", *(text for each in inner for text in helps(each))]


HELP = "\n".join(helps(cli))


EXAMPLES = {*examples(HELP), *examples(README)}
CHECKS = {command for command in EXAMPLES if command.startswith("annotate --check")}
"""Each looks at all of the book: one process does what all of them do."""


@pytest.mark.parametrize("command", sorted(EXAMPLES - CHECKS))
def test_what_help_and_readme_say_to_type_works(
    command, real_cache, capsys, tmp_path, monkeypatch
):
    monkeypatch.chdir(tmp_path)  # some of them write a file
    done = run(capsys, *shlex.split(command))
    assert (done.code, done.err) == (0, "")


# --- starting up ---


def run_importing(*arguments: str) -> tuple[set[str], object, str]:
    """Return the top-level modules that a run brings in, its code and its stderr."""
    code = (
        "import sys, json\nfrom readerkit.cli import main\n"
        "try:\n    main(sys.argv[1:])\n"
        "except SystemExit as ended:\n    code = ended.code\n"
        "names = sorted({name.split('.')[0] for name in sys.modules})\n"
        "print(json.dumps([names, code]))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, *arguments],
        capture_output=True,
        text=True,
        check=True,
        timeout=600,
    )
    names, ended = json.loads(done.stdout.splitlines()[-1])
    return set(names), ended, done.stderr


def imported(*arguments: str) -> set[str]:
    """Return the top-level modules that a run of the command brings in."""
    return run_importing(*arguments)[0]


@pytest.mark.parametrize(
    "arguments",
    [["--help"], ["--version"], *[[name, "--help"] for name in COMMANDS], ["--wrong"]],
    ids=" ".join,
)
def test_help_and_version_import_nothing_heavy(arguments):
    assert imported(*arguments) & HEAVY == set()


def test_reading_from_the_cache_imports_no_git_and_no_network(own_memory):
    run_process("annotate", "megatron")
    needless = HEAVY - {"tree_sitter"}
    assert imported("annotate", "megatron") & needless == set()
    needless.discard("rich")
    assert imported("annotate", "megatron", "tp-row-forward") & needless == set()


def test_torch_is_imported_by_no_command(real_cache):
    for arguments in (["start"], ["fetch", "pytorch"]):
        assert "torch" not in imported(*arguments)


@pytest.mark.further
def test_the_book_is_checked_as_help_and_readme_say_and_without_torch(real_cache):
    [most] = [each for each in CHECKS if all(each.startswith(c) for c in CHECKS)]
    names, code, err = run_importing(*most.split())
    assert (code, err) == (0, "")
    assert "torch" not in names


def test_module_and_function_are_the_same_command(capsys):
    assert run_process("--help").out == run(capsys, "--help").out


INSIDE_A_TEXT = """\
from readerkit import cli
@cli.cli.command("loop")
def loop(): exec("raise KeyboardInterrupt")
cli.main(["loop"])
"""


def test_an_interrupt_while_a_text_is_executed_is_one_as_any_other(tmp_path):
    (tmp_path / "inside.py").write_text(INSIDE_A_TEXT)
    command = [sys.executable, "-m", "inside"]
    done = subprocess.run(command, capture_output=True, check=False, cwd=tmp_path)
    assert (done.returncode, b"interrupted" in done.stderr) == (130, True)


STRUCK = """\
import atexit, os, signal, sys
def strike(): os.kill(os.getpid(), signal.SIGINT)
class Finder:
    def find_spec(name, *more):
        if name == "{name}": strike()
sys.meta_path.insert(0, Finder)
if "{name}" == "the end": atexit.register(strike)
"""


@pytest.mark.parametrize("moment", ["readerkit.cli", "click", "the end"])
@pytest.mark.parametrize("way", ["module", "script"])
def test_an_interrupt_before_or_after_the_command_ends_it_in_silence(
    moment, way, tmp_path
):
    (tmp_path / "sitecustomize.py").write_text(STRUCK.format(name=moment))
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    module, _, function = project["scripts"]["readerkit"].partition(":")
    command = {
        "module": ["-m", "readerkit"],
        "script": ["-c", f"from {module} import {function}; {function}()"],
    }[way]
    done = subprocess.run(
        [sys.executable, *command, "--version"],
        env={**os.environ, "PYTHONPATH": f"{tmp_path}:{ROOT}"},
        capture_output=True,
        check=False,
    )
    said = b"" if moment != "the end" else f"{readerkit.__version__}\n".encode()
    # What a shell calls 130.
    assert (done.returncode, done.stderr) == (-signal.SIGINT, b"")
    assert done.stdout.endswith(said)


HALF_A_LINE = """\
import signal, click, readerkit.cli as cli
@cli.cli.command("wait")
def wait():
    print("half a line", end="")
    click.echo("it waits", err=True)
    signal.pause()
cli.main(["wait"])
"""


def test_text_that_no_terminal_is_left_for_changes_no_exit_code(tmp_path):
    (tmp_path / "inside.py").write_text(HALF_A_LINE)
    with Terminal(sys.executable, "-m", "inside", cwd=tmp_path) as terminal:
        terminal.read_until("it waits")
        terminal.hang_up()
        assert terminal.close() == 128 + signal.SIGHUP
