"""A file that does not fit its schema gets every fault, in the words of the file."""

from __future__ import annotations

import json

import jsonschema_rs
import pytest

from readerkit.content.annotations import ANNOTATIONS as NOTE_FILES
from readerkit.content.kind import Document
from readerkit.content.mirrors import MIRROR as MIRROR_FILE
from readerkit.content.parse_book import BY_NAME
from readerkit.content.schema import json_schema
from readerkit.content.strict_yaml import parse_yaml
from readerkit.content.translations import NOTE_TRANSLATION
from readerkit.content.validation import read_document
from readerkit.content.vocabulary import OPERATIONS
from readerkit.errors import ContentError
from tests.helpers import ANNOTATIONS, CONCEPTS, REFERENCES

KINDS = {
    kind.name: kind
    for kind in (NOTE_FILES, NOTE_TRANSLATION, MIRROR_FILE, *BY_NAME.values())
}


def read(text: str, kind: str) -> Document:
    return read_document(text.encode(), "a.yaml", KINDS[kind])


NOTE = """\
- id: one
  at: {file: a.py, symbol: f}
  kind: note
  title: T
  text: Words.
  concepts: [c]
"""
CITATION = """\
- id: one
  at: {file: a.py, symbol: f}
  kind: citation
  title: T
  decision: D
  why: W
  cost: C
  references: [{key: paper, section: "3"}]
  concepts: [c]
"""
MIRROR = """\
id: m
title: T
idea: I
sections:
- title: S
  relation: same
  upstream: [one]
  mini: [{file: mini.py, symbol: f}]
  leaves_out: [{what: W, why: Y}]
  events: [{comparisons: [ddp], phase: backward, op: all_reduce, group: dp}]
"""
CLAIMS = """\
  claims:
  - {says: words, default: {file: a.py, of: C.f, is: null}}
  - {says: words, default: {file: a.py, of: f.p, code: "g(...)"}}
  - {says: words, stands: {file: a.py, symbol: f, from: a, to: b}}
  - {says: words, absent: {name: f, in: ["a/**/*.py"]}}
  - {says: words, uses: {of: f, in: [a.py], are: ["a.py::g", "a.py"]}}
  - {says: words, order: {file: a.py, symbol: f, code: [a, b]}}
  - {says: words, guard: {file: a.py, code: "g()", unless: x}}
  - {says: words, run: {record: ddp, ran: false, file: a.py, symbol: f}}
  - {says: words, run: {record: ddp, operation: all_reduce, calls: 3}}
  - {says: words, value: {of: n * m, with: {n: 1.5, m: {file: a.py, of: M}}}}
  - {says: words, experiment: {name: buckets, prints: {sizes: [1, [2.5]]}}}
  - {says: words, undecided: A paper measured it.}
"""
KINDS_OF_CHECK = (
    "default, stands, absent, uses, order, guard, run, value, experiment, undecided"
)
CONCEPT = "- {id: c, title: T, summary: S, pressure: memory, layer: wire}\n"
REFERENCE = (
    "- {key: k, title: T, authors: A, year: 2020, url: 'https://a.org', sections: {}}\n"
)
PINNED = """\
- name: sample
  title: Sample
  url: https://example.org/sample
  tag: v1
  commit: 0123456789012345678901234567890123456789
  include: ["lib/**/*.py"]
  licence: {spdx: MIT, path: LICENSE, holder: Nobody}
  package: {name: sample, version: "1", wheel: {python: "3.11", platform: any}}
  installed: sample
"""
FOLDER = "- {name: minis, title: Minis, include: ['minis/*.py'], folder: minis}\n"
TRANSLATION = "one: {title: Título, text: Palabras.}\n"

SOUND = {
    "note": ("annotations", NOTE),
    "citation": ("annotations", CITATION),
    "annotations of the helpers": ("annotations", ANNOTATIONS),
    "nothing yet": ("annotations", "# notes to come\n"),
    "an empty list": ("annotations", "[]"),
    "every way to anchor": (
        "annotations",
        NOTE.replace("symbol: f", "symbol: f, code: x, nth: 1")
        + NOTE.replace("symbol: f", "from: a, to: b, nth: 1, to_nth: 2")
        + NOTE.replace("symbol: f", "query: q"),
    ),
    "mirror": ("mirror", MIRROR),
    "mirror without a mini": (
        "mirror",
        MIRROR.replace("same", "upstream-only").replace(
            "mini: [{file: mini.py, symbol: f}]", "why: W"
        ),
    ),
    "claims of each kind": ("annotations", NOTE + CLAIMS),
    "concepts": ("concepts", CONCEPTS),
    "references": ("references", REFERENCES),
    "pinned upstream": ("upstreams", PINNED),
    "folder": ("upstreams", FOLDER),
    "translation": ("translation", TRANSLATION),
    "empty translation": ("translation", ""),
    "translation of concepts": ("concept-translation", "one: {summary: Palabras.}\n"),
}  # fmt: skip


@pytest.mark.parametrize(("kind", "text"), SOUND.values(), ids=SOUND)
def test_file_that_fits_has_no_faults(kind, text):
    document = read(text, kind)
    assert (document.faults, document.refused, document.is_broken) == ([], set(), False)


def edited(text: str, old: str, new: str) -> str:
    assert old in text
    return text.replace(old, new)


ID = "^[a-z0-9]+(-[a-z0-9]+)*$"
FAULTS = {
    "unknown key": (
        "annotations", edited(NOTE, "title: T", "title: T\n  zzz: 1"),
        ["5:3: unknown key: got 'zzz', expected one of id, at, kind, title, concepts, "
         "decision, alternative, why, cost, text, references, starts, "
         "conditions, also, claims"],
    ),
    "misspelt key": (
        "annotations", edited(NOTE, "kind: note", "knd: note"),
        ["1:3: missing key 'kind' in one",
         "3:3: unknown key: got 'knd', expected 'kind', perhaps"],
    ),
    "line numbers in an anchor": (
        "annotations", edited(NOTE, "symbol: f", "lines: 3-4"),
        ["2:20: unknown key: got 'lines', expected one of file, symbol, code, from, "
         "to, query, nth, to_nth"],
    ),
    "missing keys": (
        "annotations", "- {}\n",
        [f"1:3: missing key '{key}'" for key in
         ("at", "concepts", "id", "kind", "title")],
    ),
    "a citation needs its parts": (
        "annotations", edited(NOTE, "kind: note", "kind: citation"),
        [f"1:3: missing key '{key}' in one" for key in
         ("cost", "decision", "references", "why")],
    ),
    "a citation cites": (
        "annotations", edited(CITATION, '[{key: paper, section: "3"}]', "[]"),
        ["8:15: wrong value for 'references': got [], expected at least 1 entry"],
    ),
    "a note has a text": (
        "annotations", edited(NOTE, "text: Words.", "why: W"),
        ["1:3: missing key 'text' in one"],
    ),
    "a pitfall has a text": (
        "annotations", edited(NOTE.replace("kind: note", "kind: pitfall"),
                              "text: Words.", "why: W"),
        ["1:3: missing key 'text' in one"],
    ),
    "an unknown kind says only that": (
        "annotations", edited(NOTE, "kind: note", "kind: remark"),
        ["3:9: wrong value for 'kind': got 'remark', expected one of citation, note, "
         "pitfall"],
    ),
    "id": (
        "annotations", edited(NOTE, "id: one", "id: One_1"),
        [f"1:7: wrong value for 'id': got 'One_1', expected text that fits {ID}"],
    ),
    "id with a line end": (
        "annotations", edited(NOTE, "id: one", 'id: "one\\n"'),
        [f"1:7: wrong value for 'id': got 'one\\n', expected text that fits {ID}"],
    ),
    "no text": (
        "annotations", edited(NOTE, "title: T", "title:"),
        ["4:9: wrong type for 'title': got None, expected string"],
    ),
    "blank text": (
        "annotations", edited(NOTE, "text: Words.", 'text: " \\n"'),
        ["5:9: wrong value for 'text': got ' \\n', expected some text"],
    ),
    "long title": (
        "annotations", edited(NOTE, "title: T", "title: " + "T" * 81),
        [f"4:10: wrong value for 'title': got '{'T' * 56}..., expected at most 80 "
         "characters"],
    ),
    "a number for a text": (
        "annotations", edited(CITATION, '"3"', "4.10"),
        ["8:38: wrong type for 'section': got 4.1, expected string (put it in quotes)"],
    ),
    "a truth for a text": (
        "annotations", edited(NOTE, "title: T", "title: True"),
        ["4:10: wrong type for 'title': got True, expected string (put it in quotes)"],
    ),
    "a list for a text": (
        "annotations", edited(NOTE, "text: Words.", "text: [Words]"),
        ["5:9: wrong type for 'text': got ['Words'], expected string"],
    ),
    "nth from zero": (
        "annotations", edited(NOTE, "symbol: f", "symbol: f, nth: 0"),
        ["2:36: wrong value for 'nth': got 0, expected at least 1"],
    ),
    "nth in words": (
        "annotations", edited(NOTE, "symbol: f", "symbol: f, to_nth: last"),
        ["2:39: wrong type for 'to_nth': got 'last', expected integer"],
    ),
    "nth of a half": (
        "annotations", edited(NOTE, "symbol: f", "symbol: f, nth: 1.5"),
        ["2:36: wrong type for 'nth': got 1.5, expected integer"],
    ),
    "no concepts": (
        "annotations", edited(NOTE, "[c]", "[]"),
        ["6:13: wrong value for 'concepts': got [], expected at least 1 entry"],
    ),
    "a concept twice": (
        "annotations", edited(NOTE, "[c]", "[c, c]"),
        ["6:13: wrong value for 'concepts': got ['c', 'c'], expected each entry once"],
    ),
    "entries that are none": (
        "annotations", NOTE + "- 3\n-\n",
        ["7:3: wrong type for this entry: got 3, expected object",
         "8:2: wrong type for this entry: got None, expected object"],
    ),
    "a mapping of notes": (
        "annotations", "one: {}\n",
        ["1:1: wrong type for this entry: got {'one': {}}, expected array"],
    ),
    "all faults of several entries": (
        "annotations",
        edited(NOTE, "kind: note", "kind: remark")
        + edited(NOTE, "symbol: f", "symbol: 3").replace("id: one", "id: two"),
        ["3:9: wrong value for 'kind': got 'remark', expected one of citation, note, "
         "pitfall",
         "8:28: wrong type for 'symbol': got 3, expected string (put it in quotes)"],
    ),
    "YAML's faults and the schema's at once": (
        "annotations", NOTE.replace("title: T", "title: T\n  title: U\n  zz: &a 1"),
        ["5:3: a duplicate key: got 'title', first at line 4, expected each key once",
         "6:3: unknown key: got 'zz', expected one of id, at, kind, title, concepts, "
         "decision, alternative, why, cost, text, references, starts, "
         "conditions, also, claims",
         "6:7: an anchor: got '&a', expected no YAML anchors"],
    ),
    "a stand-in is no second fault": (
        "annotations", NOTE.replace("title: T", "title: *t").replace("text:", "7:"),
        ["1:3: missing key 'text' in one",
         "4:10: an alias: got '*t', expected the value itself",
         "5:3: a key that is not a string: got int, expected a string"],
    ),
    "a claim has one check": (
        "annotations",
        NOTE + "  claims:\n  - {says: W}\n  - {default: {file: a, is: 1, of: b}}\n"
        "  - {says: W, stands: {file: a, symbol: f}, undecided: no program can say}\n",
        ["8:5: wrong value for this entry: got {'says': 'W'}, expected 'says' and "
         f"exactly one check: {KINDS_OF_CHECK}",
         "9:5: missing key 'says'",
         "9:5: wrong value for this entry: got {'default': {'file': 'a', 'is': 1, "
         f"'of': 'b'}}}}, expected 'says' and exactly one check: {KINDS_OF_CHECK}",
         "10:5: wrong value for this entry: got {'says': 'W', 'stands': {'file': 'a', "
         "'symbol': 'f'}, 'un..., expected 'says' and exactly one check: "
         f"{KINDS_OF_CHECK}"],
    ),
    "why no program decides it takes words": (
        "annotations", NOTE + "  claims: [{says: W, undecided: .}]\n",
        ["7:33: wrong value for 'undecided': got '.', expected a sentence that says "
         "why no program can"],
    ),
    "what a name of a formula stands for": (
        "annotations",
        NOTE + "  claims: [{says: W, value: {of: n, with: {n: many, m: {of: M}}}}]\n",
        ["7:47: wrong type for 'n': got 'many', expected number or object",
         "7:56: missing key 'file'"],
    ),
    "empty mirror": (
        "mirror", "", ["1:1: wrong type for this entry: got None, expected object"],
    ),
    "mirror without sections": (
        "mirror", "id: m\ntitle: T\nidea: I\nsections: []\n",
        ["4:11: wrong value for 'sections': got [], expected at least 1 entry"],
    ),
    "unknown relation says only that": (
        "mirror", edited(MIRROR, "relation: same", "relation: equal"),
        ["6:13: wrong value for 'relation': got 'equal', expected one of "
         "differs, same, simplified, upstream-only"],
    ),
    "a relation without its mini": (
        "mirror", edited(MIRROR, "  mini: [{file: mini.py, symbol: f}]\n", ""),
        ["5:3: missing key 'mini'"],
    ),
    "upstream-only has no mini and says why": (
        "mirror", edited(MIRROR, "relation: same", "relation: upstream-only"),
        ["5:3: missing key 'why'", "8:3: key 'mini' does not belong here"],
    ),
    "what is left out says why": (
        "mirror", edited(MIRROR, "{what: W, why: Y}", "{what: W}"),
        ["9:16: missing key 'why'"],
    ),
    "unknown events": (
        "mirror",
        edited(MIRROR, "backward, op: all_reduce", "night, op: sum, n: 1"),
        ["10:40: wrong value for 'phase': got 'night', expected one of "
         "backward, checkpoint, forward, optimizer, setup",
         "10:51: wrong value for 'op': got 'sum', expected one of "
         + ", ".join(sorted(OPERATIONS)),
         "10:56: unknown key: got 'n', expected one of comparisons, phase, op, group"],
    ),
    "concept": (
        "concepts", edited(CONCEPT, "layer: wire", "layer: cloud"),
        ["1:58: wrong value for 'layer': got 'cloud', expected one of "
         "activations, collective, gradients, hardware, job, model, optimizer, "
         "parameters, schedule, wire"],
    ),
    "reference": (
        "references",
        "- {key: k, title: T, authors: A, year: '2020', url: http://a.org,\n"
        "   sections: {3: x, '4': 5}}\n",
        ["1:40: wrong type for 'year': got '2020', expected integer",
         "1:53: wrong value for 'url': got 'http://a.org', expected text that fits "
         '^https://[^\\s"<>]+$',
         "2:15: a key that is not a string: got int, expected a string",
         "2:26: wrong type for '4': got 5, expected string (put it in quotes)"],
    ),
    "a pin is a full commit id": (
        "upstreams", edited(PINNED, "0123456789" * 4, "v1.0"),
        ["5:11: wrong value for 'commit': got 'v1.0', expected 40 digits "
         "of 0-9 and a-f"],
    ),
    "an upstream is pinned or a folder": (
        "upstreams", "- {name: x, title: T, include: [a]}\n",
        [f"1:3: missing key '{key}' in x" for key in ("commit", "licence", "url")],
    ),
    "a folder leads nowhere else": (
        "upstreams", edited(FOLDER, "folder: minis", "folder: ../x"),
        ["1:64: wrong value for 'folder': got '../x', expected the name of a folder "
         "beside annotations: letters, digits, - and _"],
    ),
    "a package is no option of pip": (
        "upstreams", edited(PINNED, "{name: sample, version", "{name: -r/x, version"),
        ["8:19: wrong value for 'name': got '-r/x', expected text that fits "
         "^[A-Za-z0-9][A-Za-z0-9._+!-]*$"],
    ),
    "translation": (
        "translation",
        "one: {titel: T, kind: note}\nTwo {x}: {}\nthree: 3\n",
        ["1:7: unknown key: got 'titel', expected 'title', perhaps",
         "1:17: unknown key: got 'kind', expected one of of, title, decision, "
         "alternative, why, cost, text, also",
         f"2:1: wrong key: got 'Two {{x}}', expected an id: {ID}",
         "3:8: wrong type for 'three': got 3, expected object"],
    ),
    "stamp of a translation": (
        "translation",
        "one: {of: why-12345678}\ntwo: {of: 12345678}\nthree: {of: why-1234567G}\n",
        ["2:11: wrong type for 'of': got 12345678, expected string (put it "
         "in quotes)",
         "3:13: wrong value for 'of': got 'why-1234567G', expected text that fits "
         "^[a-z_]+-[0-9a-f]{8}( [a-z_]+-[0-9a-f]{8})*$"],
    ),
}  # fmt: skip


@pytest.mark.parametrize(("kind", "text", "expected"), FAULTS.values(), ids=FAULTS)
def test_every_fault_is_told_with_its_place(kind, text, expected):
    document = read(text, kind)
    assert [str(fault) for fault in sorted(document.faults)] == [
        f"a.yaml:{fault}" for fault in expected
    ]


SOUND_ENTRIES = {
    "an entry": ("annotations", NOTE + "- 3\n" + NOTE, {(0,), (2,)}),
    "two entries": ("annotations", "- {}\n- {}\n", set()),
    "deep in an entry": ("annotations", edited(NOTE, "[c]", "[c, 3]") + NOTE, {(1,)}),
    "the whole file": ("annotations", "x: 1\n", None),
    "a translation": ("translation", "one: {}\ntwo: 2\nT o: {}\n", {("one",)}),
    "a duplicate key breaks nothing": ("annotations", NOTE + "  title: T\n", {(0,)}),
    "an alias breaks its entry": ("annotations", edited(NOTE, "[c]", "*x"), set()),
    "an anchor that contradicts itself": (
        "annotations", NOTE + edited(NOTE, "symbol: f", "from: x"), {(0,)},
    ),
}  # fmt: skip


@pytest.mark.parametrize(
    ("kind", "text", "sound"), SOUND_ENTRIES.values(), ids=SOUND_ENTRIES
)
def test_only_entries_with_faults_are_left_out(kind, text, sound):
    document = read(text, kind)
    assert document.faults
    assert document.is_broken == (sound is None)
    assert {*document.entries} == (sound or set())


def test_what_is_left_out_keeps_its_name():
    text = edited(NOTE, "id: one", "id: two") + edited(NOTE, "[c]", "[]") + "- 3\n"
    assert read(text, "annotations").refused == {"one"}


def test_what_is_no_yaml_is_refused_as_a_whole():
    with pytest.raises(ContentError, match=r"^a\.yaml:1:5: not valid YAML"):
        read("a: b: c", "annotations")


@pytest.mark.parametrize("kind", KINDS)
def test_schema_for_editors_is_a_valid_one_that_says_what_the_loader_says(kind):
    schema = json.loads(json.dumps(json_schema(KINDS[kind])))
    jsonschema_rs.meta.validate(schema)
    validator = jsonschema_rs.Draft202012Validator(schema)
    for same, text in [(kind, t) for kind, t in SOUND.values()]:
        if same == kind:
            value = parse_yaml(text.encode(), "a.yaml").value
            assert value is None or validator.is_valid(value)
    for same, text, _ in FAULTS.values():
        if same == kind:
            value = parse_yaml(text.encode(), "a.yaml").value
            assert not validator.is_valid(value) or "duplicate" in text


def test_schema_for_editors_offers_the_ids_of_the_book():
    schema = json_schema(NOTE_FILES, concepts=["b", "a"], references=["r"])
    validator = jsonschema_rs.Draft202012Validator(schema)

    def is_valid(text: str) -> bool:
        return validator.is_valid(parse_yaml(text.encode(), "a").value)

    good = edited(CITATION, "[c]", "[a, b]").replace("key: paper", "key: r")
    assert is_valid(good)
    assert not is_valid(edited(good, "[a, b]", "[a, c]"))
    assert not is_valid(edited(good, "key: r", "key: s"))
    assert json_schema(NOTE_FILES) != schema


def test_offering_ids_leaves_the_loaders_schema_alone():
    json_schema(NOTE_FILES, concepts=["only"], references=["only"])
    assert read(CITATION, "annotations").faults == []
    assert read(CONCEPT, "concepts").faults == []
    assert read(REFERENCE, "references").faults == []


@pytest.mark.parametrize("key", ["place: [a, 1, 1]", "mine: true", "upstream: other"])
def test_what_a_book_adds_to_an_entry_cannot_be_written(key):
    [fault] = read(edited(NOTE, "title: T", f"title: T\n  {key}"), "annotations").faults
    assert fault.what == "unknown key"
