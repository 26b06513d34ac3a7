"""The command, from its arguments to its exit status; real launches, upstream's too."""

import pytest

from mini_impls.compare.command import main
from readerkit.evidence.record import Record


@pytest.mark.parametrize(
    "argv", [["ddp", "--upstream", "nothing"], ["ddp", "--timeout", "inf"]]
)
def test_a_mistake_is_one_line_and_status_two(capsys, argv):
    assert main(argv) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert len(err.splitlines()) == 1


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
