import json
import shutil
from importlib.util import source_hash

import pytest

from tests.helpers import (
    ANNOTATIONS,
    ROOT,
    SAMPLE,
    make_book,
    run,
    run_process,
    write_files,
)

pytestmark = pytest.mark.sampled


@pytest.fixture
def memo(desk, tmp_path):
    """The one file of parsed content, after a first run."""
    assert desk.run("annotate").code == 0
    [path] = (tmp_path / "cache" / "parsed").glob("*.parsed")
    return path


@pytest.fixture
def places(desk, tmp_path):
    """The one file of places found, after a first run."""
    assert desk.run("annotate").code == 0
    [path] = (tmp_path / "cache" / "parsed").glob("*.places")
    return path


def forge(places, change):
    """Rewrite what is remembered, so that it is whole but for what it says."""
    kept = json.loads(places.read_bytes().partition(b"\n")[2])
    change(kept)
    body = json.dumps(kept).encode()
    places.write_bytes(source_hash(body).hex().encode() + b"\n" + body)


def elsewhere(kept):
    kept["places"] = {key: [1, 2, "nowhere"] for key in kept["places"]}


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


def test_what_other_code_remembered_is_parsed_anew(desk, tmp_path):
    for package in ("readerkit", "mini_impls"):
        shutil.copytree(ROOT / package, tmp_path / "code" / package)
    code = {"PYTHONPATH": str(tmp_path / "code"), "PYTHONPROFILEIMPORTTIME": "1"}

    def parses() -> bool:
        at = ("--book", str(desk.book.root))
        done = run_process("annotate", *at, environment=code, cwd=tmp_path / "code")
        assert done.code == 0
        return "readerkit.content.strict_yaml" in done.err

    assert parses() and not parses()
    model = tmp_path / "code" / "readerkit" / "content" / "annotations.py"
    model.write_text(model.read_text() + "# another model\n")
    assert parses() and not parses()


# --- places ---


def test_known_places_are_shown_again_without_a_parser(desk, places):
    written = places.stat().st_mtime_ns
    first = desk.run("annotate").out
    at = ("--book", str(desk.book.root))
    again = run_process("annotate", *at, environment={"PYTHONPROFILEIMPORTTIME": "1"})
    assert (again.code, again.out) == (0, first)
    assert "readerkit.content.book" in again.err and "tree_sitter" not in again.err
    assert places.stat().st_mtime_ns == written


def test_an_edited_anchor_is_found_anew(desk, places):
    path = desk.book.path("sample/linear.yaml")
    path.write_text(ANNOTATIONS.replace("symbol: step", "symbol: Linear.__init__"))
    assert "lib/linear.py:7-8\tLinear.__init__" in desk.run("annotate").out


def test_an_edited_file_is_searched_anew(tmp_path, capsys):
    notes = ANNOTATIONS.replace("lib/", "ours/")
    book = make_book(
        tmp_path, more={"ours/linear.yaml": notes, "sample/linear.yaml": ""}
    )
    source = write_files(book.root, {"ours/linear.py": SAMPLE}) / "ours" / "linear.py"
    pins = book.path("upstreams.yaml")
    ours = {"name": "ours", "title": "Ours", "folder": "ours", "include": ["ours/*.py"]}
    pins.write_text(json.dumps([*json.loads(pins.read_text()), ours]))
    at = ("annotate", "ours", "--book", str(book.root))
    for before, lines in (("", "14-17"), ("# one\n", "15-18"), ("# two\n\n", "16-19")):
        source.write_text(before + SAMPLE)
        assert f"ours/linear.py:{lines}" in run(capsys, *at).out


def test_places_that_other_code_found_count_for_nothing(desk, places):
    expected = desk.run("annotate").out
    forge(places, elsewhere)
    assert "nowhere" in desk.run("annotate").out  # what follows is no accident
    forge(places, lambda kept: kept.update(made_by="another version"))
    assert desk.run("annotate").out == expected


def test_what_is_held_against_a_lock_is_found_anew(locked, tmp_path):
    assert locked.run("annotate").code == 0
    [places] = (tmp_path / "cache" / "parsed").glob("*.places")
    forge(places, elsewhere)
    assert locked.run("annotate", "--check").code == 0
    before = locked.lock().read_bytes()
    assert locked.run("annotate", "--update-lock").code == 0
    assert locked.lock().read_bytes() == before
