import pytest

from tests.helpers import ANNOTATIONS


@pytest.fixture
def memo(desk, tmp_path):
    """The one file of parsed content, after a first run."""
    assert desk.run("annotate").code == 0
    [path] = (tmp_path / "cache" / "parsed").iterdir()
    return path


def test_second_run_shows_the_same_and_writes_nothing(desk, memo):
    written = memo.stat().st_mtime_ns
    first = desk.run("annotate", "--json").out
    assert desk.run("annotate", "--json").out == first
    assert memo.stat().st_mtime_ns == written


def test_edited_file_is_parsed_anew(desk, memo):
    path = desk.book.path("sample/linear.yaml")
    path.write_text(ANNOTATIONS.replace("One step", "Another title"))
    assert "Another title" in desk.run("annotate").out


def test_faults_are_found_again_on_every_run(desk, memo):
    path = desk.book.path("sample/linear.yaml")
    path.write_text(ANNOTATIONS.replace("kind: note", "kind: remark"))
    for _ in range(2):
        done = desk.run("annotate")
        assert done.code == 1
        assert "'remark'" in done.err


def test_place_of_a_remembered_entry_is_still_known(desk, memo):
    path = desk.book.path("concepts.yaml")
    path.write_text(path.read_text().replace("all-reduce,", "all-gather,"))
    done = desk.run("annotate")
    assert done.err == (
        "readerkit: annotations/sample/linear.yaml:11:14: unknown concept: "
        "got 'all-reduce', expected a known concept\n"
    )


@pytest.mark.parametrize(
    "damage",
    [
        pytest.param(lambda data: data[: len(data) // 2], id="cut-off"),
        pytest.param(lambda data: b"", id="empty"),
        pytest.param(lambda data: b"[" * 100_000, id="deep"),
        pytest.param(lambda data: b"\xff" + data, id="not-utf8"),
        pytest.param(lambda data: data.replace(b"One step", b"Two step"), id="altered"),
    ],
)
def test_damaged_memory_is_as_good_as_none(damage, desk, memo):
    expected = desk.run("annotate", "--json").out
    whole = memo.read_bytes()
    memo.write_bytes(damage(whole))
    done = desk.run("annotate", "--json")
    assert (done.code, done.out, done.err) == (0, expected, "")
    assert memo.read_bytes() == whole
