import json
import re
import time

import pytest

from tests.helpers import SAMPLE, git, write_files

OTHER = "- {id: other, at: {file: lib/linear.py, symbol: Linear}, kind: note, "
OTHER += "title: Other, text: Words., concepts: [all-reduce]}\n"


def states(desk) -> dict[str, str]:
    return {
        note["id"]: note["state"]
        for note in json.loads(desk.run("annotate", "--json").out)
    }


def repin(desk, source: str) -> None:
    """Move the pin to a commit with another ``lib/linear.py``, locks and all."""
    book = desk.book
    write_files(book.repository, {"lib/linear.py": source})
    git(book.repository, "commit", "--all", "--quiet", "--message=next")
    git(book.repository, "tag", "--force", "--annotate", "--message=next", "v1")
    commit = git(book.repository, "rev-parse", "HEAD")
    path = book.path("upstreams.yaml")
    old = json.loads(path.read_text())[0]["commit"]
    path.write_text(path.read_text().replace(old, commit))
    assert desk.run("fetch", "--update-lock").code == 0
    assert desk.run("annotate", "--update-lock").code == 0


def test_review_marks_one_note_and_says_where_it_stands(locked):
    before = json.loads(locked.lock().read_text())["anchors"]
    done = locked.run("review", "close", "--by", "Ada  Reader")
    assert (done.code, done.err) == (0, "")
    assert done.out == "close: reviewed at lib/linear.py:14-17\n"
    assert states(locked) == {"close": "reviewed", "whole-step": "unreviewed"}
    after = json.loads(locked.lock().read_text())["anchors"]
    before["close"]["reviewed"] = before["close"]["fingerprint"]["code"]
    before["close"] |= {"by": "Ada Reader", "on": time.strftime("%Y-%m-%d")}
    assert after == before
    table = locked.run("annotate").out
    assert re.search(r"^close\t.*\treviewed$", table, re.M)
    assert re.search(r"^whole-step\t.*\tunreviewed$", table, re.M)
    check = locked.run("annotate", "--check")
    assert (check.code, "close" in check.out) == (0, False)


def test_review_of_several_notes_is_one_lock(locked):
    done = locked.run("review", "whole-step", "close", "whole-step")
    assert done.out.splitlines() == [
        "close: reviewed at lib/linear.py:14-17",
        "whole-step: reviewed at lib/linear.py:21-24",
    ]
    assert set(states(locked).values()) == {"reviewed"}
    assert locked.run("annotate", "--check").out == (
        "sample: 2 anchors, all as the lock says\n"
    )


def test_review_locks_a_note_that_was_not(desk):
    assert desk.run("review", "close").code == 0
    assert states(desk) == {"close": "reviewed", "whole-step": "unlocked"}


@pytest.mark.parametrize(
    ("old", "new"),
    [
        pytest.param("loss.backward()", "loss.sum().backward()", id="another-call"),
        pytest.param("    return loss", "    loss.step()\n    return loss", id="more"),
        pytest.param("model(batch)\n", "model(batch)\n    if loss:\n    ", id="nested"),
    ],
)
def test_edited_code_asks_for_a_new_review_and_moved_code_does_not(old, new, locked):
    locked.run("review", "close", "whole-step")
    assert SAMPLE.count(old) == 1
    repin(locked, "# a new first line\n" + SAMPLE.replace(old, new))
    assert states(locked) == {"close": "reviewed", "whole-step": "changed"}
    table = locked.run("annotate").out
    assert re.search(r"^whole-step\t.*\tchanged$", table, re.M)
    assert "! its code, or what is around it, changed since its review" in table
    shown = locked.run("annotate", "whole-step").out
    assert (
        "these lines, or those around them, changed since the note was reviewed"
        in shown
    )
    assert "not reviewed against this code yet: whole-step" in (
        locked.run("annotate", "--check").out
    )
    assert locked.run("review", "whole-step").code == 0
    assert set(states(locked).values()) == {"reviewed"}


def test_one_of_equal_places_that_may_be_another_asks_for_a_review(locked):
    again = "\n\ndef again(a, b):\n    go(1)\n    if a:\n        go(1)\n    end(b)\n"
    path = locked.book.path("sample/linear.yaml")
    at = "{file: lib/linear.py, symbol: again, code: go(1), nth: 2}"
    other = OTHER.replace("{file: lib/linear.py, symbol: Linear}", at)
    path.write_text(path.read_text() + other)
    repin(locked, SAMPLE + again)
    assert locked.run("review", "other").code == 0
    repin(locked, "# a new first line\n" + SAMPLE + again)
    assert states(locked)["other"] == "reviewed"
    repin(
        locked,
        SAMPLE + again.replace("    go(1)\n    if", "    go(1)\n    go(1)\n    if"),
    )
    assert states(locked)["other"] == "unreviewed"
    assert locked.run("review", "other").code == 0
    assert states(locked)["other"] == "reviewed"


def test_a_statement_that_leaves_its_branch_asks_for_a_review(locked):
    inside = SAMPLE.replace(
        "(batch)\n", "(batch)\n    if loss:\n        loss.log()\n    "
    )
    repin(locked, inside)
    assert locked.run("review", "whole-step").code == 0
    outside = inside.replace("        loss.backward()", "    loss.backward()")
    assert [len(text.split()) for text in (inside, outside)] == [
        len(inside.split())
    ] * 2
    repin(locked, outside)
    assert states(locked)["whole-step"] == "changed"


def test_comments_and_white_space_do_not_ask_for_a_review(locked):
    locked.run("review", "close", "whole-step")
    repin(locked, SAMPLE.replace("    loss.back", "    # now\n\n    loss.back"))
    assert set(states(locked).values()) == {"reviewed"}


@pytest.mark.parametrize(
    ("ids", "unknown"),
    [
        (["clsoe"], ["clsoe"]),
        (["close", "no-such", "nor-this"], ["no-such", "nor-this"]),
    ],
)
def test_unknown_ids_are_listed_and_nothing_is_marked(ids, unknown, locked):
    before = locked.lock().read_bytes()
    done = locked.run("review", *ids)
    assert (done.code, done.out) == (2, "")
    rows = done.err.removeprefix("readerkit: ").splitlines()
    assert [row.partition(", ")[0] for row in rows] == [
        f"unknown note: got '{name}'" for name in unknown
    ]
    assert locked.lock().read_bytes() == before


def test_review_of_nothing_is_wrong_use(locked):
    done = locked.run("review")
    assert (done.code, done.out) == (2, "")
    assert "Missing argument 'ID...'" in done.err


def test_note_whose_anchor_names_no_place_cannot_be_reviewed(locked):
    path = locked.book.path("sample/linear.yaml")
    path.write_text(path.read_text().replace("symbol: step", "symbol: stpe"))
    before = locked.lock().read_bytes()
    done = locked.run("review", "whole-step")
    assert (done.code, done.out) == (1, "")
    assert "no symbol 'stpe'\n    did you mean step?" in done.err
    assert locked.lock().read_bytes() == before


def test_review_of_an_own_note_stays_in_the_overlay(locked, tmp_path):
    write_files(tmp_path / "data/book/annotations/sample", {"mine.yaml": OTHER})
    before = locked.lock().read_bytes()
    assert locked.run("review", "other").code == 0
    assert locked.lock().read_bytes() == before
    own = json.loads((tmp_path / "data/book/annotations/sample.lock").read_text())
    assert list(own["anchors"]) == ["other"]
    assert own["files"] == {}
    assert states(locked)["other"] == "reviewed"


def test_misspelt_id_names_the_nearest(locked):
    done = locked.run("review", "clsoe")
    assert (done.code, done.out) == (2, "")
    assert done.err.endswith(": did you mean close?\n")
