"""A claim through its life: held, locked, and told when the pinned code moves."""

from __future__ import annotations

import json
import re
import textwrap

import pytest
import yaml

from readerkit.content.claims import CHECKS
from tests.helpers import ANNOTATIONS, ROOT, make_book, run_unread, write_files
from tests.quick import quick_each
from tests.readerkit.commands.conftest import Desk
from tests.readerkit.commands.test_annotate import repin

TRAIN = '''\
"""Training."""
LIMIT = 4 * 1024


class Config:
    ready: bool = False


class Trainer:
    def train(self, batch):
        if batch is None:
            return None
        self.start(batch)
        for each in batch:
            self.stop(each)
        return batch


def main():
    Trainer().train([])
'''
FILE = "file: lib/train.py"
IN = "in: [lib/train.py]"
CLAIMS = {
    "default": f"{{{FILE}, of: Config.ready, is: false}}",
    "stands": f"{{{FILE}, symbol: Trainer.train, code: self.start(...)}}",
    "absent": f"{{{IN}, name: all_reduce, symbol: Trainer.train}}",
    "uses": f"{{{IN}, of: train, are: ['lib/train.py::main']}}",
    "order": f"{{{FILE}, code: [self.start(...), self.stop(...)]}}",
    "guard": f"{{{FILE}, symbol: Trainer.train, code: self.start(...), "
    "unless: batch is None}",
    "value": f"{{of: limit / 1024, with: {{limit: {{{FILE}, of: LIMIT}}}}}}",
}
NOTE = """\
- id: train
  at: {file: lib/train.py, symbol: Trainer}
  kind: note
  title: Training
  text: default, stands, absent, uses, order, guard, a value of 4 KiB.
  concepts: [collectives]
  claims:
"""
SAYS = {kind: kind for kind in CLAIMS} | {"value": "a value of 4 KiB"}
NOTES = NOTE + "".join(
    f"  - {{says: {SAYS[kind]}, {kind}: {check}}}\n" for kind, check in CLAIMS.items()
)


@pytest.fixture
def claimed(tmp_path, capsys) -> Desk:
    files = {"lib/train.py": TRAIN}
    book = make_book(tmp_path, files=files, annotations=ANNOTATIONS + NOTES)
    desk = Desk(book, capsys)
    done = desk.run("annotate", "--update-lock")
    assert done.out.endswith("sample: 3 anchors and 7 claims locked\n")
    return desk


def move(desk: Desk, old: str, new: str) -> None:
    """Move the pin to a commit whose code differs, and lock its files."""
    assert old in TRAIN
    write_files(desk.book.repository, {"lib/train.py": TRAIN.replace(old, new, 1)})
    repin(desk.book)
    assert desk.run("fetch", "--update-lock").code == 0


def test_what_holds_is_counted(claimed):
    done = claimed.run("annotate", "--check")
    assert (done.code, done.err) == (0, "")
    assert done.out.endswith("claims: 7 sentences held\n")


NO_LONGER_TRUE = {
    "default": ("ready: bool = False", "ready: bool = True", "Config.ready is True"),
    "absent": ("self.stop(each)", "all_reduce(each)", "it stands in lib/train.py:15"),
    "uses": ("def main", "def more():\n    x.train(1)\n\n\ndef main", "::more too"),
    "order": (
        "        self.start(batch)\n        for each in batch:\n"
        "            self.stop(each)\n",
        "        self.stop(batch)\n        self.start(batch)\n",
        "self.stop(batch) before lib/train.py:14: self.start(batch)",
    ),
    "guard": ("return None", "batch = []", "not unless 'batch is None'"),
    "value": ("4 * 1024", "8 * 1024", "limit / 1024 is 8, and the words print 4 KiB"),
}
NOT_HELD = {
    "default": ("ready:", "prepared:", "no field of Config is called 'ready'"),
    "stands": ("self.start(batch)", "self.begin(batch)", "no match for 'self.start"),
    "absent": ("def train", "def fit", "no file of lib/train.py has Trainer.train"),
    "uses": ("def main", "def start_all", "no symbol 'main'"),
    "order": ("self.stop(each)", "self.end(each)", "no match for 'self.stop(...)'"),
    "guard": ("if batch is None", "if not batch", "no match for 'batch is None'"),
    "value": ("LIMIT =", "BOUND =", "no constant of this module is called 'LIMIT'"),
}
NEVER_OF_SOURCE = {"run", "experiment", "undecided"}
"""A record that differs or is of other code: claims/test_run.py; programs:
commands/test_prove.py; what nobody decides is neither."""
MOVED = [
    (verdict, kind, *change)
    for verdict, changes in {
        "not_true": NO_LONGER_TRUE,
        "not_held": NOT_HELD,
    }.items()
    for kind, change in changes.items()
]


def test_each_kind_has_both_verdicts():
    assert {*CHECKS} == {*NOT_HELD} | NEVER_OF_SOURCE
    assert {*NOT_HELD} == {*NO_LONGER_TRUE, "stands"}  # it finds no contrary


@pytest.mark.parametrize(
    ("verdict", "kind", "old", "new", "found"), quick_each(MOVED, lambda c: c[0])
)
def test_a_moved_pin_tells_the_contrary_from_what_is_not_there(
    verdict, kind, old, new, found, claimed
):
    move(claimed, old, new)
    done = claimed.run("annotate", "--check")
    assert done.code == 1
    words = {"not_true": "is no longer true: ", "not_held": "cannot be held here: "}
    told = [row for row in done.err.splitlines() if f": '{SAYS[kind]}' " in row]
    assert len(told) == 1, done.err
    assert "annotations/sample/linear.yaml:" in told[0]
    assert f"'{SAYS[kind]}' {words[verdict]}" in told[0] and found in told[0]
    claims = json.loads(claimed.run("annotate", "--check", "--json").out)["claims"]
    [row] = (row for row in claims[verdict] if row["says"] == SAYS[kind])
    assert row["check"] == kind and found in row["found"] and row["was_true"]
    assert (row["was_at"] or "lib/train.py:").startswith("lib/train.py:")
    refused = claimed.run("annotate", "--update-lock")
    assert refused.code == 1 and words[verdict] in refused.err


def test_what_cannot_be_held_says_where_it_was_and_what_is_near(claimed):
    move(claimed, "self.start(batch)", "self.restart(batch)")
    done = claimed.run("annotate", "--check")
    assert "\n    it was at lib/train.py:13\n" in done.err
    assert "\n    near: line 13: self.restart(batch)\n" in done.err
    assert "3 sentences cannot be held here, and may still be so: read" in done.err
    claims = json.loads(claimed.run("annotate", "--check", "--json").out)["claims"]
    row = next(row for row in claims["not_held"] if row["check"] == "stands")
    assert row["was_at"] == "lib/train.py:13"
    assert row["near"][0] == "near: line 13: self.restart(batch)"
    assert claims["not_true"] == []


PAGE = (ROOT / "annotations" / "README.md").read_text()
PAGE = PAGE[PAGE.index("## When the pin moves") :]


def test_the_example_of_the_page_gets_the_verdicts_that_it_shows(tmp_path, capsys):
    blocks = re.findall("```(diff|text)\n(.+?)```", PAGE, re.DOTALL)
    (_, diff), (_, shown) = blocks[:2]
    [claims] = re.findall("(?m)^    claims:\n(?:    .+\n)+", PAGE)
    rows = [row for row in diff.splitlines() if row[:2] not in ("--", "++", "@@")]
    before, after = (
        "".join(row[1:] + "\n" for row in rows if row[:1] != other) for other in "+-"
    )
    claims = textwrap.indent(textwrap.dedent(claims), "  ")
    says = [each["says"] for each in yaml.safe_load(claims)["claims"]]
    note = NOTE.replace("symbol: Trainer", "symbol: train").partition("  claims:")[0]
    note = note.replace("default, stands", f"{'; '.join(says)}; default")
    files = {"lib/train.py": before}
    book = make_book(tmp_path, files=files, annotations=ANNOTATIONS + note + claims)
    desk = Desk(book, capsys)
    assert desk.run("annotate", "--update-lock").code == 0
    write_files(book.repository, {"lib/train.py": after})
    repin(book)
    assert desk.run("fetch", "--update-lock").code == 0
    told = desk.run("annotate", "--check").err
    told = re.sub(r"annotations/sample/linear.yaml:\d+:\d+: train: ", "", told)
    flat = " ".join(told.split())
    for part in shown.strip().split("\n\n"):
        assert " ".join(part.split()) in flat, told


def test_code_that_only_moved_says_nothing_of_the_sentences(claimed):
    move(claimed, '"""Training."""\n', '"""Training."""\n# more\n\n')
    done = claimed.run("annotate", "--check")
    assert "train: its place has changed" in done.err
    assert "proved by" not in done.err and "true" not in done.err
    assert claimed.run("annotate", "--update-lock").code == 0
    assert claimed.run("annotate", "--check").code == 0


def test_a_sentence_that_is_still_true_on_other_grounds_is_to_be_read_again(claimed):
    move(claimed, "self.start(batch)", "self.start(batch, 1)")
    done = claimed.run("annotate", "--check")
    for kind in ("stands", "order", "guard"):
        words = f"'{kind}' is still true, and its code changed: lib/train.py:13: "
        assert words in done.err
    assert "; it was at lib/train.py:13" in done.err
    report = json.loads(claimed.run("annotate", "--check", "--json").out)
    moved = {row["check"]: row for row in report["claims"]["still_true"]}
    assert {*moved} == {"stands", "order", "guard"}
    assert moved["stands"]["changed"] == ["its code"]
    assert moved["stands"]["was_at"] == moved["stands"]["places"] == "lib/train.py:13"
    assert "'default'" not in done.err
    assert claimed.run("annotate", "--update-lock").code == 0
    assert claimed.run("annotate", "--check").code == 0


def test_a_new_claim_is_held_and_said_to_be_in_no_lock(claimed):
    path = claimed.book.path("sample/linear.yaml")
    path.write_text(path.read_text().replace("name: all_reduce", "name: all_gather"))
    done = claimed.run("annotate", "--check")
    assert "7 sentences held, 1 not locked yet: readerkit annotate" in done.out
    report = json.loads(claimed.run("annotate", "--check", "--json").out)
    assert report["claims"]["not_locked"] == 1


def test_sentences_without_a_claim_are_listed(claimed):
    done = claimed.run("annotate", "--check", "--claims")
    assert "linear.yaml:1: close, title" not in done.out
    assert "linear.yaml:1: close, decision (One)" not in done.out
    assert "close, alternative (Always): Always all-reduce." in done.out
    assert "unproved: 2 sentences\nsaid by no claim: " in done.out
    words = json.loads(claimed.run("annotate", "--check", "--json").out)["claims"]
    assert "said by no claim: {unquoted} of {all} words".format(**words["words"]) in (
        done.out
    )
    strict_check = ("--check", "--claims", "--strict")
    strict = claimed.run("annotate", *strict_check)
    assert "a sentence without a claim ('Half'): got 'Half the bytes.'" in strict.err
    assert claimed.run("annotate", "--claims").code == 2
    unread = run_unread("annotate", *strict_check, "--book", str(claimed.book.root))
    assert (unread.code, unread.err) == (1, strict.err)


def test_words_that_no_claim_says_stand_behind_the_claims(claimed):
    shown = claimed.run("annotate", "close", "--claims").out.splitlines()
    assert "unquoted\tAlways all-reduce.\talternative" in shown
    plain = json.loads(claimed.run("annotate", "close", "--claims", "--json").out)
    told = [f"unquoted\t{each['words']}\t{each['field']}" for each in plain["unquoted"]]
    assert told == shown[-len(told) :]
    assert not [each for each in shown[: -len(told)] if each.startswith("unquoted")]
