"""Experiments: what they print proves a sentence; what goes wrong is one message."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from readerkit.app.library import open_library
from readerkit.site.build import BuildCache, make_site
from readerkit.site.inputs import find_inputs
from tests.helpers import (
    ANNOTATIONS,
    ROOT,
    WAIT_S,
    make_book,
    run,
    run_unread,
    write_files,
)
from tests.terminals import READERKIT, Terminal

pytestmark = pytest.mark.sampled

CLAIM = """\
  claims:
  - {says: Forward, experiment: {name: try, prints: {total: 3}}}
"""
HEAD = '"""Tries."""\nimport os, signal, socket, subprocess, sys, time\n# total\n'
TWO = HEAD + "RANKS = 2\n"
SLEEP = 'subprocess.Popen(["sleep", "3123"]{})\nprint("total = 3")\n'
HANGS = "\nwhile True:\n    time.sleep(1)\n"


def book_of(tmp_path: Path, program: str, claims: str = CLAIM) -> str:
    experiment = {"experiments/try.py": program}
    made = make_book(tmp_path, annotations=ANNOTATIONS + claims, more=experiment)
    return str(made.root)


def sleepers() -> list[str]:
    found = []
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            command = (folder / "cmdline").read_bytes().split(b"\0")
        except OSError:
            continue
        if b"3123" in command or any(b"experiments/try" in w for w in command):
            found.append(f"{folder.name} {command}")
    return found


@pytest.fixture(autouse=True)
def nothing_is_left():
    yield
    assert not sleepers()


def test_figures_stand_beside_what_the_sentence_needs(tmp_path, capsys):
    more = CLAIM + "  - {says: backward, experiment: {name: try, prints: {it: [1.5]}}}"
    program = TWO + (
        'rank = int(os.environ["RANK"])\n'
        'print("total =", 3 + rank)\nprint("it = [1.5]")\nprint("other words")\n'
        'assert os.environ["MASTER_ADDR"] == "127.0.0.1" and __name__ == "__main__"\n'
    )
    book = book_of(tmp_path, program, more)
    done = run(capsys, "prove", "whole", "--book", book)
    assert done.code == 0, done.err
    assert (
        "  lib/linear.py:21-24\n    | def step(model, batch):\n    |     loss"
        in done.out
    )
    assert "    total = 3   as expected\n" in done.out
    assert "    it = [1.5]   as expected\n" in done.out
    assert done.out.count("experiments/try.py") == 1
    assert done.out.endswith("proved: 2 of 2 sentences\n")
    listed = run(capsys, "prove", "--book", book)
    assert listed.out == "whole-step\tForward\nwhole-step\tbackward\n"
    plain = json.loads(run(capsys, "prove", "--json", "--book", book).out)
    assert [row["says"] for row in plain] == ["Forward", "backward"]
    assert run(capsys, "prove", "--timeout", "nan", "--book", book).code == 2
    rows = json.loads(run(capsys, "prove", "--all", "--json", "--book", book).out)
    assert [row["figures"][0]["ok"] for row in rows] == [True, True]


def test_a_wrong_figure_fails_with_what_was_printed(tmp_path, capsys):
    book = book_of(tmp_path, HEAD + 'print("total = 4")\n')
    done = run(capsys, "prove", "--all", "--book", book)
    assert done.code == 1
    assert "    total = 4   expected 3   WRONG\n" in done.out
    assert done.err == (
        "readerkit: annotations/sample/linear.yaml:19:5: whole-step: 'Forward' is not "
        "true: got total = 4, expected total = 3\n"
    )


def give_spanish(book: str) -> None:
    """Have a note of another English: that makes it a book in two languages."""
    [file] = Path(book, "annotations").rglob("linear.yaml")
    spanish = file.with_name("linear.es.yaml")
    spanish.write_text("whole-step: {of: title-00000000, title: Uno}\n")


def test_what_prove_says_by_itself_is_in_spanish_where_that_was_asked_for(
    tmp_path, capsys
):
    more = CLAIM + "  - {says: backward, experiment: {name: try, prints: {it: 1}}}\n"
    book = book_of(tmp_path, HEAD + 'print("total = 4")\nprint("it = 1")\n', more)
    words = ("prove", "--all", "--lang", "es", "--book", book)
    give_spanish(book)
    done = run(capsys, *words)
    assert done.code == 1
    assert "    total = 4   se esperaba 3   FALSO\n" in done.out
    assert done.out.endswith("demostrado: 1 de 2 frases\n")
    assert "whole-step: '[en] Forward' no es cierto: salió total = 4" in done.err
    kept = run(capsys, *words, "--keep")
    assert "conservado: 1 salida, annotations/experiments/printed.json\n" in kept.out


SPANISH_FAULTS = {
    "hangs": (HEAD + HANGS, ":6: no había terminado tras 8 s"),
    "prints nothing": (HEAD, ":2: no imprime ninguna cifra: se esperaban líneas"),
    "raises": (HEAD + "\n1 / 0\n", ":5: ZeroDivisionError: division by zero"),
    "is killed": (HEAD + "os.kill(os.getpid(), 9)\n", ": lo terminó la señal 9"),
    "is on two ranks": (
        TWO + "raise ValueError('{x}')\n",
        ":5: ValueError: {x} (rank ",
    ),
    "leaves a process": (HEAD + SLEEP.format(""), ": dejó 1 proceso en ejecución"),
    "connects beyond this machine": (
        HEAD + "socket.getaddrinfo('somewhere.invalid', 80)\nprint('total = 3')\n",
        ":4: se conecta más allá de esta máquina: somewhere.invalid",
    ),
    "has no docstring": ("total = 3\n", ": no dice en ninguna parte qué prueba"),
}


@pytest.mark.parametrize(
    ("program", "said"), SPANISH_FAULTS.values(), ids=SPANISH_FAULTS
)
@pytest.mark.further
def test_what_goes_wrong_with_a_program_is_said_in_spanish(
    program, said, tmp_path, capsys
):
    words = ("prove", "--all", "--timeout", "8", "--lang", "es")
    book = book_of(tmp_path, program)
    give_spanish(book)
    done = run(capsys, *words, "--book", book)
    assert done.code == 1
    fault = f"annotations/experiments/try.py{said}"
    assert fault in done.out
    assert f"readerkit: {fault}" in done.err and ": sin demostrar: " in done.err


def test_a_site_that_is_made_again_knows_what_was_kept_since(tmp_path, capsys):
    book = Path(book_of(tmp_path, HEAD + 'print("total = 3")\n'))
    build_cache = BuildCache()

    def page() -> str:
        made = make_site(open_library(book), find_inputs(book), build_cache)
        return made["read/sample/lib/linear.py.html"]().decode()

    before = page()
    assert run(capsys, "prove", "--all", "--keep", "--book", str(book)).code == 0
    after = page()
    kept = "<pre class=printed>total = 3"
    assert (kept in before, kept in after) == (False, True)
    assert page() == after


@pytest.mark.parametrize("how", [[], ["--json"]])
def test_where_nobody_reads_a_wrong_figure_is_no_success(how, tmp_path):
    book = book_of(tmp_path, HEAD + 'print("total = 4")\n')
    done = run_unread("prove", "--all", *how, "--book", book)
    assert (done.code, "is not true: got total = 4" in done.err) == (1, True)


BAD = {
    "raises": (HEAD + "\n1 / 0\n", ":5: ZeroDivisionError: division by zero"),
    "hangs": (HEAD + HANGS, ":6: had not ended after 8 s"),
    "does not heed that it is to end": (
        HEAD + "signal.signal(signal.SIGTERM, signal.SIG_IGN)" + HANGS,
        ": had not ended after 8 s",
    ),
    "prints nothing": (HEAD, ":2: prints no figure: expected lines 'name = value'"),
    "prints no JSON": (
        HEAD + 'print("total = None")\n',
        ":4: prints no figure: expected",
    ),
    "prints a figure twice": (
        HEAD + 'print("total = 3\\nmore\\ntotal = 3")\n',
        ":4: prints the figure 'total' twice: lines 1 and 3 of what it printed",
    ),
    "leaves before its end": (
        HEAD + 'print("total = 3", flush=True)\nos._exit(0)\n',
        ": ended by os._exit, not at its end",
    ),
    "ends itself": (HEAD + "sys.exit(3)\n", ":4: SystemExit: 3"),
    "is killed": (HEAD + "os.kill(os.getpid(), 9)\n", ": was ended by signal 9"),
    "prints for ever": (HEAD + "while True:\n    print('x' * 4095)\n", ":5: OSError: "),
    "leaves a process": (HEAD + SLEEP.format(""), ": left 1 process running"),
    "leaves one of another session": (
        HEAD + SLEEP.format(", start_new_session=True"),
        ": left 1 process running",
    ),
    "leaves one in a hurry": (
        HEAD + SLEEP.format("") + "os.kill(os.getpid(), 9)\n",
        ": was ended by signal 9",
    ),
    "connects beyond this machine": (
        HEAD + "try:\n    socket.create_connection(('192.0.2.1', 80), 1)\n"
        "except BaseException: pass\nprint('total = 3')\n",
        ":5: connects beyond this machine: 192.0.2.1",
    ),
    "looks up a name": (
        HEAD + "socket.getaddrinfo('somewhere.invalid', 80)\nprint('total = 3')\n",
        ":4: connects beyond this machine: somewhere.invalid",
    ),
    "asks for a GPU": (
        HEAD + "import torch\ntorch.ones(1, device='cuda')\nprint('total = 3')\n",
        ":5: ",
    ),
    "one rank fails, and the other waits": (
        TWO
        + "if os.environ['RANK'] == '1':\n    raise ValueError(7)\ntime.sleep(99)\n",
        ":6: ValueError: 7 (rank 1)",
    ),
}


@pytest.mark.parametrize(("program", "said"), BAD.values(), ids=BAD)
def test_what_goes_wrong_is_one_message_with_its_place(program, said, tmp_path, capsys):
    more = "  - {says: backward, experiment: {name: try, prints: {total: 4}}}"
    book = book_of(tmp_path, program, CLAIM + more)
    seconds = "8" if "ended after" in said else "60"
    done = run(capsys, "prove", "--all", "--timeout", seconds, "--book", book)
    assert done.code == 1
    assert len(done.err.splitlines()) == 1
    assert done.err.startswith(f"readerkit: annotations/experiments/try.py{said}")
    assert ": not proved: whole-step: 'Forward' (annotations/sample/l" in done.err
    assert done.out.count(done.err.partition(": not pr")[0][11:]) == 1


@pytest.mark.further
def test_ranks_meet_and_send(tmp_path, capsys):
    program = TWO + (
        "import torch, torch.distributed as dist\n"
        'dist.init_process_group("gloo")\n'
        "tensor = torch.tensor([1 + dist.get_rank()])\n"
        'dist.all_reduce(tensor)\nprint("total =", int(tensor))\n'
    )
    assert run(capsys, "prove", "--all", "--book", book_of(tmp_path, program)).code == 0


@pytest.mark.further
def test_the_program_that_people_read_runs(tmp_path, capsys):
    page = (ROOT / "annotations" / "README.md").read_text()
    [program] = re.findall(r"```python\n((?s:.+?))```", page)
    claims = CLAIM.replace("total: 3", "sum: 3.0")
    book = book_of(tmp_path, program, claims)
    assert run(capsys, "prove", "--all", "--book", book).code == 0


def test_a_program_imports_the_minis_of_its_book(tmp_path, capsys):
    program = HEAD + 'from mini_impls import ddp, fsdp\nprint("total =", ddp.TOTAL)\n'
    book = Path(book_of(tmp_path, program))
    write_files(book, {"mini_impls/ddp.py": "TOTAL = 3\n"})
    path = book / "annotations/upstreams.yaml"
    own = {"name": "minis", "title": "Minis", "folder": "mini_impls"}
    own |= {"include": ["mini_impls/*.py"]}
    path.write_text(json.dumps([*json.loads(path.read_text()), own]))
    done = run(capsys, "prove", "--all", "--book", str(book))
    assert done.code == 0, done.err


def test_a_program_sees_the_upstreams_that_it_names_and_no_other(tmp_path, capsys):
    look = "any(os.path.isdir(f'{p}/%s') for p in sys.path)"
    seen = f"print('total =', {look % 'one'} + 2 * ({look % 'two'}))\n"
    claims = "  claims:\n" + "".join(
        f"  - {{says: Forward, experiment: {{name: {name}, prints: {{total: {n}}}}}}}\n"
        for n, name in enumerate(("one", "two"), 1)
    )
    book = Path(book_of(tmp_path, HEAD, claims))
    path = book / "annotations/upstreams.yaml"
    upstreams = json.loads(path.read_text())
    for name in ("one", "two"):
        own = {"name": name, "title": name, "folder": name, "include": [f"{name}/*.py"]}
        upstreams.append(own)
        program = f"{HEAD}UPSTREAMS = ['{name}']\n{seen}"
        write_files(book / "annotations", {f"experiments/{name}.py": program})
        write_files(book, {f"{name}/code.py": "X = 1\n"})
    path.write_text(json.dumps(upstreams))
    done = run(capsys, "prove", "--all", "--book", str(book))
    assert done.code == 0, done.err


def test_where_the_command_is_killed_nothing_is_left(tmp_path):
    book = book_of(tmp_path, TWO + SLEEP.format("") + HANGS)
    process = subprocess.Popen(
        [sys.executable, "-m", "readerkit", "prove", "--all", "--book", book],
        env={**os.environ, "TMPDIR": str(tmp_path)},
    )
    until = time.monotonic() + WAIT_S
    while sum("3123" in each for each in sleepers()) < 2 and time.monotonic() < until:
        time.sleep(0.05)
    assert sum("3123" in each for each in sleepers()) >= 2
    process.kill()
    process.wait()
    while sleepers() and time.monotonic() < until:
        time.sleep(0.05)
    assert not sleepers()


def test_what_listens_on_this_machine_may_be_reached(tmp_path, capsys):
    program = HEAD + (
        "server = socket.create_server(('127.0.0.1', 0))\n"
        "socket.create_connection(server.getsockname()).close()\nprint('total = 3')\n"
    )
    assert run(capsys, "prove", "--all", "--book", book_of(tmp_path, program)).code == 0


def test_names_that_are_none_are_refused(tmp_path, capsys):
    book = book_of(tmp_path, HEAD)
    done = run(capsys, "prove", "closed", "--book", book)
    assert (done.code, "expected one of whole-step" in done.err) == (2, True)
    assert run(capsys, "prove", "whole-step", "--all", "--book", book).code == 2
    assert run(capsys, "prove", "--keep", "--book", book).code == 2


def test_an_entry_without_an_experiment_says_what_proves_it_instead(tmp_path, capsys):
    both = "  - {says: backward, undecided: Nobody has looked there.}\n" * 2
    for claims, instead in (
        (
            "  claims:\n" + both,
            "and is held by undecided (2): readerkit",
        ),
        ("", "and no claim at all"),
    ):
        book = book_of(tmp_path / instead[4:6], HEAD, claims)
        done = run(capsys, "prove", "whole", "--book", book)
        assert done.code == 2
        assert f"whole-step has no experiment, {instead}" in done.err


def test_what_was_printed_is_kept_and_shown_with_the_sentence(tmp_path, capsys):
    told = tmp_path / "told"
    told.write_text("3")
    program = TWO + f'print("total =", open({str(told)!r}).read())\nprint("beside")\n'
    book = book_of(tmp_path, program)
    assert run(capsys, "annotate", "--update-lock", "--book", book).code == 0

    def held() -> dict:
        done = run(capsys, "annotate", "--check", "--json", "--book", book)
        return {"faults": done.err, **json.loads(done.out)["claims"]}

    assert "no output is kept: readerkit prove --all" in held()["open"][0]["why"]
    kept = run(capsys, "prove", "whole-step", "--keep", "--book", book)
    assert (kept.code, "kept: 1 output, " in kept.out) == (0, True), kept.err
    assert (held()["held"], held()["open"]) == (1, [])
    shown = run(capsys, "annotate", "whole-step", "--claims", "--book", book).out
    lines = "printed on torch -\ttotal = 3\n"
    assert "holds\tForward\t" in shown and lines in shown
    site = tmp_path / "site"
    assert run(capsys, "site", "build", "--output", site, "--book", book).code == 0
    page = (site / "read/sample/lib/linear.py.html").read_text()
    assert page.count("total = 3") == 1
    assert "<pre class=printed>total = 3</pre>" in page
    assert '"""Tries."""' in page
    assert 'href="#whole-step-claim-1"' in page

    told.write_text("[3.0]")
    done = run(capsys, "prove", "--all", "--book", book)
    assert "is not true: got total = [3.0], expected total = 3" in done.err
    assert run(capsys, "prove", "--all", "--keep", "--book", book).code == 1
    assert "'Forward' is not true: got annotations" in held()["faults"]
    told.write_text("3")
    done = run(capsys, "prove", "--all", "--book", book)
    assert "prints other figures than are kept: got total = 3, expec" in done.err

    experiment = Path(book, "annotations/experiments/try.py")
    experiment.write_text(program + "# more\n")
    stale = "what programs printed is stale, annotations/experiments/try.py has changed"
    assert stale in held()["open"][0]["why"]
    shown = run(capsys, "annotate", "whole-step", "--claims", "--book", book).out
    assert "open\tForward\t" in shown and stale in shown
    assert run(capsys, "prove", "--all", "--book", book).code == 0
    kept_file = experiment.with_name("printed.json")
    kept_file.write_text(kept_file.read_text().replace("torch", "touch"))
    done = run(capsys, "annotate", "--check", "--book", book)
    assert (
        "annotations/experiments/printed.json:1:1: not a readable file of" in done.err
    )


@pytest.mark.skipif(sys.platform != "linux", reason="watches /proc")
def test_a_stop_stops_the_ranks_and_an_interrupt_later_ends_them(tmp_path):
    beats = tmp_path / "beats"
    beat = (
        f"while True:\n    open({str(beats)!r}, 'a').write('.')\n    time.sleep(.05)\n"
    )
    book = book_of(tmp_path, TWO + beat)

    def wait_until(done) -> None:
        until = time.monotonic() + WAIT_S
        while not done():
            assert time.monotonic() < until
            time.sleep(0.05)

    def states() -> list[str]:
        command = ["ps", "-e", "-o", "pgid=,stat="]
        rows = subprocess.run(command, check=True, capture_output=True, text=True)
        pairs = map(str.split, rows.stdout.splitlines())
        return [state[0] for group, state in pairs if group == str(terminal.pid)]

    command = (*READERKIT, "prove", "--all", "--timeout", "600", "--book", book)
    with Terminal(*command) as terminal:
        wait_until(beats.exists)
        terminal.stop()
        wait_until(lambda: {*states()} == {"T"})
        assert len(states()) == 4, "the command, what forks the ranks, and they"
        before = beats.stat().st_size
        terminal.resume()
        wait_until(lambda: beats.stat().st_size > before)
        terminal.interrupt()
        assert terminal.close() == 130, terminal.shown


def test_an_interrupt_ends_the_program_and_what_it_started(tmp_path):
    book = book_of(tmp_path, TWO + SLEEP.format("") + HANGS)
    process = subprocess.Popen(
        [sys.executable, "-m", "readerkit", "prove", "--all", "--book", book],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env={**os.environ, "TMPDIR": str(tmp_path)},
    )
    until = time.monotonic() + WAIT_S
    while sum("3123" in each for each in sleepers()) < 2 and time.monotonic() < until:
        time.sleep(0.05)
    process.send_signal(signal.SIGINT)
    _, error = process.communicate(timeout=WAIT_S)
    assert (process.returncode, b"Traceback" in error) == (130, False)
    assert not [*tmp_path.glob("readerkit-prove-*")]
