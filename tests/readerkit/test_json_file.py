"""Files of JSON that are made to hurt: one clear message, and nothing has grown."""

from __future__ import annotations

import json
from typing import Any

import pytest

from readerkit.errors import ContentError
from readerkit.evidence.record import Record
from readerkit.quiz.lockfile import QuizLock
from readerkit.upstreams import Lock
from tests.helpers import ROOT

TEXTS = {
    "empty": "",
    "too large": " " * 20_000_001,
    "nested lists": "[" * 1_000_000,
    "nested maps": '{"a":' * 200_000,
    "a deep value": '{"format": 1, "files": ' + "[" * 100_000,
    "a long number": '{"format": ' + "9" * 1_000_000 + "}",
    "no number": '{"format": NaN}',
    "a long string": '{"format": "' + "x" * 1_000_000 + '"}',
    "a long key": '{"' + "x" * 1_000_000 + '": 1}',
    "many entries": "[" + "{}," * 1_000_000 + "{}]",
    "a list": "[]",
    "a number": "1",
    "control characters": '"\0"',
}


@pytest.mark.parametrize("kind", [Lock, QuizLock, Record])
@pytest.mark.parametrize("text", TEXTS.values(), ids=TEXTS)
def test_text_that_is_no_such_file_is_one_short_fault(kind, text):
    with pytest.raises(ContentError) as refused:
        kind.parse(text, "file.json")
    [fault] = refused.value.faults
    assert (fault.file, fault.column) == ("file.json", 1)
    assert len(str(fault)) < 500


def record_with(keys: tuple[str | int, ...], value: Any) -> str:
    path = ROOT / "annotations" / "records" / "ddp_torch.json"
    data = at = json.loads(path.read_text())
    for key in keys[:-1]:
        at = at[key]
    at[keys[-1]] = value
    return json.dumps(data)


@pytest.mark.parametrize(
    "lines",
    [
        *("1-99999999999", "0-1000000", "1-600000,1-600000", "7-3", "-5", "1-", "x"),
        *("1--2", "1-2-3", "1.5", "1 2", "1e9", "9" * 5000),
    ],
)
@pytest.mark.parametrize("keys", [("lit", 0, "setup"), ("lit", 0, "steps", "0")])
def test_lines_that_no_code_has_are_no_record(keys, lines):
    with pytest.raises(ContentError, match="not a readable record"):
        Record.parse(record_with(keys, lines), "r.json")


@pytest.mark.parametrize("steps", ["0-99999999999", "x", "-1", "5-1", "99"])
def test_steps_that_nobody_watched_are_no_record(steps):
    with pytest.raises(ContentError, match="not a readable record"):
        Record.parse(record_with(("lit", 0, "steps"), {steps: "1"}), "r.json")


def test_steps_without_end_are_no_record():
    text = record_with(("watched_steps",), 10**15)
    Record.parse(text, "r.json")  # a number alone makes nothing grow
    with pytest.raises(ContentError, match="not a readable record"):
        Record.parse(text.replace(f"{10**15}", "-1"), "r.json")
