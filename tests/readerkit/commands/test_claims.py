"""A claim through its life: held, locked, and told when the pinned code moves."""

from __future__ import annotations

import json

import pytest

from tests.helpers import ANNOTATIONS, make_book, write_files
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
    "absent": f"{{{IN}, name: all_reduce}}",
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


FALSE = {
    "default": ("ready: bool = False", "ready: bool = True", "Config.ready is True"),
    "stands": ("self.start(batch)", "self.begin(batch)", "no match for 'self.start"),
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


@pytest.mark.parametrize(("kind", "change"), FALSE.items(), ids=FALSE)
def test_each_kind_is_told_once_the_code_makes_it_false(kind, change, claimed):
    old, new, found = change
    move(claimed, old, new)
    done = claimed.run("annotate", "--check")
    assert done.code == 1
    told = [row for row in done.err.splitlines() if f"'{SAYS[kind]}' is no" in row]
    assert len(told) == 1, done.err
    assert "sample/linear.yaml:" in told[0] and " is no longer true: " in told[0]
    assert found in told[0]
    refused = claimed.run("annotate", "--update-lock")
    assert refused.code == 1 and "is no longer true" in refused.err


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
        words = f"what '{kind}' was proved by has changed, and it is still true: "
        assert words in done.err
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
    assert "unproved: 2 sentences" in done.out
    strict = claimed.run("annotate", "--check", "--claims", "--strict")
    assert "a sentence without a claim ('Half'): got 'Half the bytes.'" in strict.err
    assert claimed.run("annotate", "--claims").code == 2
