"""An anchor with ``nth``: which of its equals it names once lines came or went."""

from __future__ import annotations

import json

import pytest
import yaml

from readerkit.anchors import Anchor, SourceFile, resolve
from readerkit.model.git_names import TreePath
from tests.helpers import git
from tests.readerkit.commands.test_living import Kept, kept  # noqa: F401  a fixture

CODE = """\
def start(a, b):
    if a:
        return None
    setup(a)
    close(b)
    if b:
        return None
    close(b)
    return b


def repeat():
    push(1)
    push(2)
    push(2)
    push(2)
    pull(3)
"""
AT = {
    "none": {"symbol": "start", "code": "return None", "nth": 2},
    "close": {"symbol": "start", "code": "close(b)", "nth": 2},
    "leave": {"symbol": "start", "from": "if b:", "to": "return ...", "to_nth": 2},
    "push": {"symbol": "repeat", "code": "push(2)", "nth": 2},
}
NOTES = [
    {"id": name, "at": {"file": "src/app.py", **at}, "kind": "note", "title": name}
    | {"text": "It is so.", "concepts": ["idea"]}
    for name, at in AT.items()
]


@pytest.fixture
def equal(kept: Kept) -> Kept:  # noqa: F811
    kept.app.write_text(CODE)
    notes = kept.book / "annotations/app/notes.yaml"
    notes.write_text(yaml.safe_dump(NOTES, sort_keys=False))
    git(kept.root, "add", "--all")
    git(kept.root, "commit", "--quiet", "--message=equals")
    assert kept("annotate", "--update-lock").code == 0
    assert kept("review", *AT).code == 0
    return kept


def told(desk: Kept) -> list[str]:
    found = json.loads(desk("annotate", "--check", "--json").out)
    return sorted(each["id"] for each in found["edited"])


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("def start", "import os\n\n\ndef start"),
        ("    setup(a)\n", "    setup(a, 1)\n    log(a)\n"),
        ("    return b\n", "    log(b)\n    return b\n"),
        ("    if b:\n", "    if b and a:\n"),
        ("    push(1)\n", "    push(0)\n    push(1)\n"),
    ],
)
def test_lines_around_equals_may_change(equal, old, new):
    equal.edit(old, new)
    assert set(told(equal)) <= {"leave"}  # whose own lines one of these is


@pytest.mark.parametrize(
    ("old", "new", "others"),
    [
        ("    if a:\n", "    if not a:\n        return None\n    if a:\n", ["none"]),
        ("    setup(a)\n", "    close(b)\n    setup(a)\n", ["close"]),
        ("    push(1)\n    push(2)\n", "    push(1)\n", ["push"]),
        ("    push(1)\n", "    push(1)\n    push(2)\n", ["push"]),
    ],
)
def test_another_of_its_equals_is_told(equal, old, new, others):
    equal.edit(old, new)
    before = equal.locked["anchors"]
    assert [each for each in told(equal) if each != "leave"] == others
    red = equal("annotate", "--check")
    assert red.code == 1
    assert "is one of several equal places, and may be another" in red.err
    # No update of the lock makes it the place that was read.
    assert equal("annotate", "--update-lock").code == 0
    assert equal.locked["anchors"][others[0]] == before[others[0]]
    assert others[0] in told(equal)
    assert equal("review", others[0]).code == 0
    assert others[0] not in told(equal)


def test_drift_follows_the_one_that_was_read(equal):
    equal.edit(
        "    if a:\n",
        "    if not a:\n        return None\n    close(b)\n    if a:\n",
    )
    found = json.loads(equal("drift", "app", "--json").out)
    rows = {row["id"]: row for row in found["notes"]}
    assert rows["none"]["to"] == {"path": "src/app.py", "first": 10, "last": 10}
    assert rows["close"]["to"] == {"path": "src/app.py", "first": 11, "last": 11}
    assert rows["none"]["anchor"]["nth"] == 3

    assert equal("drift", "app", "--apply").code == 0
    held = equal("annotate", "--check", "--strict")
    assert (held.code, held.err) == (0, "")
    written = yaml.safe_load((equal.book / "annotations/app/notes.yaml").read_text())
    at = {note["id"]: Anchor.parse(note["at"]) for note in written}
    source = SourceFile(TreePath("src/app.py"), equal.app.read_bytes())
    assert resolve(at["none"], source).first == 10
    assert resolve(at["close"], source).first == 11
