"""The command, from its arguments to its exit status; real launches, upstream's too."""

import os
import re

import pytest

from mini_impls.compare import command
from mini_impls.compare.command import main
from readerkit.evidence.record import Record
from tests.helpers import ROOT
from tests.terminals import READERKIT, Terminal


@pytest.mark.parametrize(
    "argv", [["ddp", "--upstream", "nothing"], ["ddp", "--timeout", "inf"]]
)
def test_a_mistake_is_one_line_and_status_two(capsys, argv):
    assert main(argv) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert len(err.splitlines()) == 1


@pytest.mark.parametrize(
    ("target", "says"),
    [
        ("file", "--save file is a file: name a folder"),
        ("file/below", "file is a file, expected a folder"),
        ("/dev/null", "--save /dev/null is a file: name a folder"),
        ("closed/new", "closed cannot be written"),
    ],
)
def test_a_folder_that_takes_no_record_is_told_before_anything_runs(
    tmp_path, target, says, monkeypatch, capfd
):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "file").touch()
    (tmp_path / "closed").mkdir()
    is_open = os.access
    monkeypatch.setattr(
        os, "access", lambda path, how: "closed" not in str(path) and is_open(path, how)
    )

    def never(*args, **kwargs):
        raise AssertionError("no process may start")

    monkeypatch.setattr(command, "compare", never)
    assert main(["ddp", "--save", target]) == 2
    said = capfd.readouterr()
    assert says in said.err
    assert (said.out, said.err.count("\n")) == ("", 1)


@pytest.mark.slow
def test_on_a_narrow_terminal_what_is_watched_breaks_between_words(real_cache):
    run = (*READERKIT, "compare", "ddp", "--steps", "6", "--watch")
    with Terminal(*run, columns=60, cwd=ROOT) as terminal:
        assert terminal.close() == 0
        _, _, told = terminal.shown.replace("\r\n", "\n").partition("\nmini:\n")
    lines = [line for line in told.splitlines() if "\x1b" not in line]
    assert max(map(len, lines)) <= 60
    assert re.search(r"\nthe model: the sum (.|\n)* [µm]?s\s+a\s+call, ", told)


def test_help_names_every_comparison(capsys):
    with pytest.raises(SystemExit):
        main(["--help"])
    assert "tensor_parallel --upstream megatron" in capsys.readouterr().out


@pytest.mark.slow
# A rank is forked from here, filters and all, and Megatron imports what is deprecated.
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_a_comparison_prints_its_record_and_nothing_else(
    capfd, tmp_path, monkeypatch, real_cache
):
    monkeypatch.setenv("OMP_NUM_THREADS", "1")
    arguments = ["ddp", "--upstream", "megatron", "--steps", "6", "--json"]
    assert main([*arguments, "--save", str(tmp_path)]) == 0
    printed = capfd.readouterr().out
    record = Record.parse(printed, "printed")
    saved = tmp_path / "ddp_megatron.json"
    assert Record.parse(saved.read_text(), saved.name) == record
    assert record.agrees
    assert set(record.pins) == {"megatron"}
    assert record.blobs["megatron"]
    assert record.clocks
    assert "mini_impls/ddp.py" in record.blobs["minis"]
    assert [shim.name for shim in record.shims] == ["current_device"]


@pytest.mark.further
@pytest.mark.parametrize(
    ("mini", "upstream", "rows"),
    [
        ("context_parallel", "torch_ring", 4),  # a call that sends all to one rank
        ("muon", "torch", 2),  # upstream's gathers have no formula
        ("checkpoint", "torch", 0),  # files are written, too
    ],
)
def test_what_is_due_by_formula_is_that_of_all_calls(
    real_cache, capfd, mini, upstream, rows
):
    assert main([mini, "--upstream", upstream, "--steps", "6", "--watch"]) == 0
    told = capfd.readouterr().out
    found = re.findall(r"by formula \((\S+) times\)(.*)", told)
    assert len(found) == rows
    assert all(float(times) < 1.05 or "all-reduces" in why for times, why in found)
