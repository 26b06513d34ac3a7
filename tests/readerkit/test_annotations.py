"""Parsed YAML becomes values that know where they were written."""

from __future__ import annotations

import re

import pytest
from msgspec.structs import replace

from readerkit.content.annotations import (
    ANNOTATIONS,
    CONCEPTS,
    REFERENCES,
    TEXT_FIELDS,
    Annotation,
    Citation,
)
from readerkit.content.kind import E, Kind, Place
from readerkit.content.mirrors import MIRROR as MIRROR_FILE
from readerkit.content.mirrors import Mirror, MirroredEvent
from readerkit.content.validation import read_document
from readerkit.errors import ContentFault
from readerkit.model.anchor import Anchor


def entries(text: str, kind: Kind[E]) -> list[E]:
    document = read_document(text.encode(), "a.yaml", kind)
    assert document.faults == []
    return [*document.entries.values()]


def faults(text: str, kind: Kind[E]) -> list[ContentFault]:
    return read_document(text.encode(), "a.yaml", kind).faults


def notes(text: str) -> list[Annotation]:
    return entries(text, ANNOTATIONS)


def mirror_of(text: str) -> Mirror:
    [mirror] = entries(text, MIRROR_FILE)
    return mirror


NOTES = """\
- id: first
  at: {file: lib/a.py, symbol: A.f, from: x = 1, to: "y(...)", nth: 2, to_nth: 3}
  kind: citation
  title: The first
  decision: >
    One switch
    picks it.
  alternative: Two.
  why: |
    Half the bytes.
  cost: A gather.
  references: [{key: paper, section: "4.1"}, {key: other}]
  concepts: [all-reduce, groups]
- id: second
  at:
    file: lib/b.py
    query: (call) @anchor
  kind: pitfall
  title: The second
  text: " Mind the gap.\\n"
  concepts: [groups]
"""


def test_every_part_of_an_annotation_is_kept():
    assert notes(NOTES)[0] == Annotation(
        id="first",
        anchor=Anchor(
            "lib/a.py", symbol="A.f", start="x = 1", stop="y(...)", nth=2, to_nth=3
        ),
        kind="citation",
        title="The first",
        place=Place("a.yaml", 1, 3),
        decision="One switch picks it.",
        alternative="Two.",
        why="Half the bytes.",
        cost="A gather.",
        references=(Citation("paper", "4.1"), Citation("other")),
        concepts=("all-reduce", "groups"),
    )


def test_what_is_not_written_is_empty():
    note = notes(NOTES)[1]
    assert note.text == "Mind the gap."
    assert (note.decision, note.why, note.references) == ("", "", ())
    assert note.place == Place("a.yaml", 14, 3)


def test_translation_replaces_only_what_it_translates():
    note = notes(NOTES)[0]
    spanish = note.with_texts({"title": "La primera", "why": "La mitad."})
    assert (spanish.title, spanish.why) == ("La primera", "La mitad.")
    assert (spanish.decision, spanish.anchor) == (note.decision, note.anchor)
    assert note.title == "The first"


def test_stamp_is_of_the_words_of_a_note_and_of_nothing_else():
    note = notes(NOTES)[0]
    names = ("title", "decision", "alternative", "why", "cost")
    assert re.fullmatch(" ".join(f"{n}-[0-9a-f]{{8}}" for n in names), note.stamp)
    assert replace(note, why="Half  the\nbytes.").stamp == note.stamp
    assert replace(note, anchor=Anchor("lib/b.py"), concepts=()).stamp == note.stamp
    changes = [{field: "New."} for field in ("title", *TEXT_FIELDS)]
    moved = {"why": note.cost, "cost": note.why}
    stamps = {replace(note, **texts).stamp for texts in [*changes, moved, {}]}
    assert len(stamps) == len(changes) + 2


LEAVING = {
    "up": "../a.py",
    "up from below": "lib/../../a.py",
    "up behind a name": "lib/..",
    "absolute": "/etc/passwd",
    "backslashes": "lib\\\\a.py",
    "up with backslashes": "..\\\\a.py",
    "a drive": "C:/a.py",
    "an address": "file:///etc/passwd",
    "a dot": "./lib/a.py",
    "two slashes": "lib//a.py",
    "a slash at the end": "lib/",
    "a null byte": "lib/a.py\\0",
    "a line end": "lib/a.py\\nlib/b.py",
}


@pytest.mark.parametrize("path", LEAVING.values(), ids=LEAVING)
def test_path_that_could_leave_its_upstream_is_a_fault_where_it_stands(path):
    text = NOTES.replace("file: lib/b.py", f'file: "{path}"')
    [fault] = faults(text, ANNOTATIONS)
    assert (fault.file, fault.line, fault.column) == ("a.yaml", 16, 5)
    assert fault.what.startswith("anchor: path ")
    assert "expected a path inside the upstream" in fault.what


CONTRADICTING = {
    "nothing but a file": ("", "got a file alone"),
    "code and query": ("code: x", "got code and query together"),
    "from alone": ("from: x", "expected 'to' beside it"),
    "to_nth without to": ("to_nth: 2", "got 'to_nth' without 'to'"),
}


@pytest.mark.parametrize(("key", "message"), CONTRADICTING.values(), ids=CONTRADICTING)
def test_anchor_that_contradicts_itself_is_a_fault_where_it_stands(key, message):
    query = "" if not key or key.startswith("from") else "query: (call) @anchor"
    text = NOTES.replace("    query: (call) @anchor\n", f"    {query}\n    {key}\n")
    [fault] = faults(text, ANNOTATIONS)
    assert str(fault).startswith("a.yaml:16:5: anchor: ")
    assert message in fault.what


MIRROR = """\
id: closing
title: Closing
idea: " Sum at the end. "
concepts: [all-reduce]
sections:
- title: The sum
  relation: simplified
  upstream: [first, second]
  mini:
  - {file: tensor.py, symbol: f}
  - {file: tensor.py, code: all_reduce(...)}
  leaves_out: [{what: Overlap, why: Clarity.}]
  events: [{comparisons: [tp], phase: forward, op: all_reduce}]
- {title: Rest, relation: upstream-only, upstream: [second], why: " No mini. "}
"""


def test_every_part_of_a_mirror_is_kept():
    mirror = mirror_of(MIRROR)
    assert (mirror.id, mirror.title) == ("closing", "Closing")
    assert (mirror.idea, mirror.concepts) == ("Sum at the end.", ("all-reduce",))
    assert mirror.place == Place("a.yaml", 1, 1)
    both, rest = mirror.sections
    assert both.mini == (
        Anchor("tensor.py", symbol="f"),
        Anchor("tensor.py", code="all_reduce(...)"),
    )
    assert both.places == (Place("a.yaml", 10, 5), Place("a.yaml", 11, 5))
    (left,) = both.leaves_out
    assert (left.what, left.why) == ("Overlap", "Clarity.")
    assert both.events == (MirroredEvent(("tp",), "forward", "all_reduce"),)
    assert (both.relation, both.upstream) == ("simplified", ("first", "second"))
    assert (rest.mini, rest.places, rest.why) == ((), (), "No mini.")
    assert rest.place == Place("a.yaml", 14, 3)


def test_every_bad_mini_anchor_of_a_mirror_is_told():
    text = MIRROR.replace("{file: tensor.py, symbol: f}", "{file: tensor.py}")
    text = text.replace("tensor.py, code", "../tensor.py, code")
    first, second = map(str, faults(text, MIRROR_FILE))
    assert first.startswith("a.yaml:10:5: anchor: got a file alone")
    assert second.startswith("a.yaml:11:5: anchor: path '../tensor.py' leaves")


def test_concept_keeps_its_links():
    text = (
        "- {id: c, title: C, summary: ' S. ', pressure: time, layer: job,\n"
        "   requires: [a], recurs: [b], references: [{key: paper}]}\n"
        "- {id: d, title: D, summary: S, pressure: time, layer: job}\n"
    )
    first, second = entries(text, CONCEPTS)
    assert (first.requires, first.recurs) == (("a",), ("b",))
    assert (first.references, first.summary) == ((Citation("paper"),), "S.")
    assert (second.requires, second.references) == ((), ())
    assert second.place == Place("a.yaml", 3, 3)


def test_reference_keeps_its_sections():
    text = (
        "- {key: p, title: P, authors: A, year: 2020, url: 'https://a.org',\n"
        "   sections: {'4.1': Results, '5': ''}}\n"
    )
    [work] = entries(text, REFERENCES)
    assert work.sections == {"4.1": "Results", "5": ""}
    assert (work.key, work.year, work.place) == ("p", 2020, Place("a.yaml", 1, 3))
