"""``readerkit cache``: what is kept, whether it is whole, and that it can go."""

import json
import re
from pathlib import Path

import pytest

from readerkit.upstreams.store import BlobStore, blob_id
from tests.helpers import SAMPLE, run, run_on_terminal, write_files
from tests.readerkit.commands.test_note import tree
from tests.terminals import READERKIT, Terminal

SIZE = len(SAMPLE.encode())


@pytest.fixture
def cache(tmp_path) -> Path:
    return tmp_path / "cache"


@pytest.fixture
def fetched(locked, tmp_path):
    """The sample book with its upstream in the cache, and an answer of the reader's."""
    write_files(tmp_path / "data", {"quiz.sqlite3": "answers"})
    return locked


def file_of(cache: Path) -> Path:
    return BlobStore(cache).path(blob_id(SAMPLE.encode()))


def test_it_says_where_it_is_and_how_much_of_each_upstream(fetched, cache, tmp_path):
    done = fetched.run("cache")
    assert (done.code, done.err) == (0, "")
    lines = done.out.splitlines()
    assert lines[0].startswith(f"{cache}  ")
    assert lines[1].startswith(f"  sample: 1 of 1 file, {SIZE} B; from git file:")
    assert f"{tmp_path / 'data'}  7 B" in lines
    assert "never removed" in lines[-1]


def test_a_program_is_told_the_same(fetched, cache, tmp_path):
    told = json.loads(fetched.run("cache", "--json").out)
    assert (told["cache"], told["own"]) == (str(cache), str(tmp_path / "data"))
    [row] = told["upstreams"]
    assert (row["name"], row["files"], row["present"]) == ("sample", 1, 1)
    assert row["size_bytes"] == SIZE
    assert row["came_from"]["source"] == "git"
    everything = sum(p.stat().st_size for p in cache.rglob("*") if p.is_file())
    assert told["bytes"] == everything


def test_an_empty_file_of_another_upstream_is_nothing_fetched(capsys, cache):
    BlobStore(cache).write(b"")
    [row] = json.loads(run(capsys, "cache", "megatron", "--json").out)["upstreams"]
    assert (row["present"], row["size_bytes"]) == (0, 0)
    assert "megatron: not fetched" in run(capsys, "cache", "megatron").out


def test_what_is_of_other_books_is_not_of_this_book_s_other_upstreams(
    real_cache, capsys
):
    whole, one = (
        json.loads(run(capsys, "cache", *names, "--json").out)
        for names in ((), ("deepspeed",))
    )
    assert len(whole["upstreams"]) > len(one["upstreams"]) == 1
    assert one["other_bytes"] == whole["other_bytes"]


def test_what_was_not_fetched_is_said_and_no_fault(desk):
    for arguments in ([], ["--verify"]):
        done = desk.run("cache", *arguments)
        assert (done.code, done.err) == (0, "")
        assert "sample: not fetched: readerkit fetch sample" in done.out


def test_verifying_reads_every_byte(fetched, cache):
    done = fetched.run("cache", "--verify")
    assert (done.code, done.err) == (0, "")
    assert "every byte is as the lock says" in done.out
    file_of(cache).write_text(SAMPLE.replace("loss", "lass"))
    done = fetched.run("cache", "--verify", "--json")
    assert done.code == 1
    [row] = json.loads(done.out)["upstreams"]
    assert (row["altered"], row["present"]) == (["lib/linear.py"], 0)
    assert "readerkit fetch sample" in done.err
    assert not file_of(cache).exists()
    assert fetched.run("fetch").code == 0
    assert fetched.run("cache", "--verify").code == 0


def test_an_upstream_is_removed_and_comes_back(fetched, cache, tmp_path):
    own = tree(tmp_path / "data")
    done = fetched.run("cache", "sample", "--remove", "--yes")
    assert (done.code, done.err) == (0, "")
    assert done.out == f"removed {SIZE} B from {cache}\n"
    assert not file_of(cache).exists()
    assert "not fetched" in fetched.run("cache").out
    assert tree(tmp_path / "data") == own
    assert fetched.run("annotate", "sample").code == 0
    assert file_of(cache).exists()


def test_all_of_it_is_removed_and_what_others_put_there_stays(fetched, cache, tmp_path):
    write_files(cache, {"theirs/photo.jpg": "not ours"})
    own = tree(tmp_path / "data")
    before = sum(p.stat().st_size for p in cache.rglob("*") if p.is_file())
    told = json.loads(fetched.run("cache", "--remove", "--yes", "--json").out)
    assert told == {"cache": str(cache), "removed_bytes": before - len("not ours")}
    left = {p.relative_to(cache).as_posix() for p in cache.rglob("*") if p.is_file()}
    assert left == {"theirs/photo.jpg"}
    assert tree(tmp_path / "data") == own
    (cache / "theirs" / "photo.jpg").unlink()
    (cache / "theirs").rmdir()
    assert fetched.run("cache", "--remove", "--yes").code == 0
    assert not cache.exists()


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (["nothing"], 2, "unknown upstream: got 'nothing', expected one of sample"),
        (["--verify", "--remove"], 2, "--verify and --remove exclude each other"),
        (["--yes"], 2, "--yes is for --remove"),
        (["sam", "--remove", "--yes"], 2, "expected a whole name: sample"),
        (["sample", "--remove"], 2, "got no terminal to ask on, expected --yes"),
        (["--remove", "--json"], 2, "got no terminal to ask on, expected --yes"),
    ],
)
def test_wrong_use_is_one_message(arguments, code, message, fetched, cache):
    before = tree(cache)
    done = fetched.run("cache", *arguments)
    assert (done.code, done.out) == (code, "")
    assert message in done.err
    assert tree(cache) == before


@pytest.mark.parametrize("names", [["sample"], []], ids=["one", "all"])
def test_a_person_is_asked_with_how_much_goes(names, fetched, cache):
    at = ("--book", str(fetched.book.root))
    for answer, code in (("n\n", 130), ("\x03", 130), ("y\n", 0)):
        assert file_of(cache).exists()
        with Terminal(*READERKIT, "cache", *names, "--remove", *at) as terminal:
            asked = terminal.read_until("[y/N]")
            assert re.search(r"\d [kM]?i?B, from", " ".join(asked.split()))
            terminal.type(answer)
            assert terminal.close() == code
            assert ("nothing was removed" in terminal.shown) == (answer == "n\n")
    assert not file_of(cache).exists()


def test_a_folder_of_the_book_is_not_in_the_cache(capsys):
    done = run(capsys, "cache", "minis", "--remove")
    assert (done.code, done.out) == (2, "")
    assert "nothing of it is in the cache" in done.err


def test_on_a_narrow_terminal_lines_break_between_words(fetched):
    shown = run_on_terminal(40, "cache", "--book", str(fetched.book.root))
    assert all(len(line) <= 40 for line in shown.split("\n") if " " in line.strip())
