"""A book is read as a whole: every fault of every file at once, or no book."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from itertools import pairwise

import pytest

from readerkit.anchors import Fingerprint, Span
from readerkit.content.book import Book
from readerkit.content.mirrors import NAMES
from readerkit.content.parse_book import BookFile, read_book
from readerkit.content.translations import TranslatedConcept, TranslatedNote
from readerkit.errors import ContentError
from readerkit.upstreams import Lock, LockedAnchor
from tests.helpers import ANNOTATIONS, CONCEPTS, REFERENCES

UPSTREAMS = """\
- name: sample
  title: Sample
  url: https://example.org/sample
  commit: 0123456789012345678901234567890123456789
  include: ["lib/**/*.py"]
  licence: {spdx: MIT, path: LICENSE, holder: Nobody}
- {name: minis, title: Minis, include: ["minis/*.py"], folder: minis}
"""
MIRROR = """\
id: closing
title: Closing
idea: Sum at the end.
concepts: [all-reduce]
sections:
- title: The sum
  relation: same
  upstream: [close]
  mini: [{file: minis/tensor.py, symbol: f}]
"""
FILES = {
    "upstreams.yaml": UPSTREAMS,
    "references.yaml": REFERENCES,
    "concepts.yaml": CONCEPTS,
    "sample/linear.yaml": ANNOTATIONS,
    "sample/linear.es.yaml": "close: {of: en-12345678, title: El cierre}\n",
    "concepts.es.yaml": "all-reduce: {of: en-87654321, summary: Todos suman.}\n",
    "mirrors/closing.yaml": MIRROR,
}


def files(changes: Mapping[str, str | bytes]) -> list[BookFile]:
    """Return the sample's files with some of them changed or added."""
    texts = {**FILES, **changes}
    return [
        BookFile(
            f"annotations/{name}", text if isinstance(text, bytes) else text.encode()
        )
        for name, text in sorted(texts.items())
    ]


def parse_book(read: Iterable[BookFile]) -> Book:
    """Return the book of some files; ContentError with every fault of theirs."""
    book, faults = read_book(read)
    if faults:
        raise ContentError(faults)
    return book


def faults(changes: Mapping[str, str | bytes]) -> list[str]:
    with pytest.raises(ContentError) as caught:
        parse_book(files(changes))
    assert str(caught.value) == "\n".join(map(str, caught.value.faults))
    return [str(fault).removeprefix("annotations/") for fault in caught.value.faults]


def test_book_joins_all_files():
    book = parse_book(files({}))
    assert list(book.upstreams) == ["sample", "minis"]
    assert list(book.annotations) == ["close", "whole-step"]
    assert list(book.mirrors) == ["closing"]
    assert list(book.concepts) == ["collectives", "all-reduce"]
    assert list(book.references) == ["paper"]
    note = TranslatedNote(title="El cierre", of="en-12345678")
    assert book.translations == {"es": {"close": note}}
    concept = TranslatedConcept(summary="Todos suman.", of="en-87654321")
    assert book.concept_translations == {"es": {"all-reduce": concept}}
    assert book.annotations["close"].upstream == "sample"
    assert book.minis_beside("close") == ("tensor",)
    assert book.minis_beside("whole-step") == ()


def test_translation_is_outdated_when_it_says_that_it_is_of_other_words():
    note = parse_book(files({})).annotations["close"]
    of = "close: {{{}title: El cierre}}\n"
    for said, is_outdated in [("", False), (f"of: {note.stamp}, ", False),
                              ("of: en-12345678, ", True)]:  # fmt: skip
        book = parse_book(files({"sample/linear.es.yaml": of.format(said)}))
        assert book.translated(note, "es").is_outdated(note.stamp) == is_outdated
        assert not book.translated(book.annotations["whole-step"], "es").texts
        assert not book.translated(note, "pt").texts


def test_a_note_and_a_concept_of_the_same_id_are_translated_apart():
    also = ANNOTATIONS.replace("id: close", "id: all-reduce")
    changes = {
        "sample/linear.yaml": also,
        "sample/linear.es.yaml": "all-reduce: {title: La nota}\n",
        "concepts.es.yaml": "all-reduce: {title: La idea}\n",
        "mirrors/closing.yaml": MIRROR.replace("[close]", "[all-reduce]"),
    }
    book = parse_book(files(changes))
    note, concept = book.annotations["all-reduce"], book.concepts["all-reduce"]
    assert book.translated(note, "es").texts == {"title": "La nota"}
    assert book.translated(concept, "es").texts == {"title": "La idea"}


def test_a_mirror_in_a_language_is_english_where_that_has_no_text():
    both = """  leaves_out:
  - {what: Slices., why: They are equal.}
  - {what: Dropout., why: It is off.}
  differences:
  - {comparisons: [tp], what: order, at_most: 1, why: It sums later.}
"""
    spanish = """closing:
  title: El cierre
  sections:
    The sum:
      leaves_out: [{what: Porciones.}]
      differences: [Suma más tarde.]
"""
    names = "[{name: tp, mini: tp, upstream: sample, title: A}]"
    changes = {"mirrors/closing.yaml": MIRROR + both, "comparisons.yaml": names}
    book = parse_book(files({**changes, "mirrors/closing.es.yaml": spanish}))
    mirror = book.mirror_in("closing", "es")
    assert (mirror.title, mirror.idea) == ("El cierre", "Sum at the end.")
    [section] = mirror.sections
    assert section.title == "The sum"
    assert [(each.what, each.why) for each in section.leaves_out] == [
        ("Porciones.", "They are equal."),
        ("Dropout.", "It is off."),
    ]
    assert book.reason_in("closing", "It sums later.", "es") == "Suma más tarde."
    assert book.reason_in("closing", "It sums later.", "pt") == "It sums later."
    assert book.reason_in("closing", "It sums.", "es") == ""
    assert book.reason_in("gone", "It sums later.", "es") == ""
    assert book.mirror_in("closing", "pt") == book.mirrors["closing"]
    own = book.mirrors["closing"]
    assert book.texts_in("closing", own, "es") == {"title": "El cierre"}
    assert book.texts_in("closing", own.sections[0], "es") == {}


def test_known_differences_have_a_bound_for_each_comparison_and_event():
    differences = """  differences:
    - comparisons: [tp_sample, tp_other]
      what: only-mini
      why: It is small.
      events:
        - {phase: forward, op: send, at_most: 2 * (world - 1)}
        - {phase: backward, op: recv, at_most: 3}
"""
    both = "[{name: tp_sample, mini: tp, upstream: sample, title: A}, "
    both += "{name: tp_other, mini: tp, upstream: other, title: B}]"
    changes = {"mirrors/closing.yaml": MIRROR + differences, "comparisons.yaml": both}
    book = parse_book(files(changes))
    assert book.comparisons["tp_other"].title == "B"
    [(mirror, first), (_, second)] = book.differences("tp_other")
    assert (mirror, first.what, first.phase, first.op) == (
        "closing",
        "only-mini",
        "forward",
        "send",
    )
    assert first.why == "It is small."
    assert first.at_most.evaluate({"world": 4}) == 6
    assert second.at_most.evaluate({}) == 3
    assert len(book.differences("tp_sample")) == 2


def test_empty_files_are_no_faults():
    empty = dict.fromkeys(FILES, "# nothing yet\n") | {"mirrors/closing.yaml": MIRROR}
    del empty["mirrors/closing.yaml"]
    book = parse_book(
        BookFile(f"annotations/{n}", t.encode()) for n, t in empty.items()
    )
    assert (book.annotations, book.concepts, book.upstreams) == ({}, {}, {})


def edited(name: str, old: str, new: str) -> dict[str, str]:
    assert old in FILES[name]
    return {name: FILES[name].replace(old, new)}


COMPARISONS = "[{name: tp_sample, mini: tp, upstream: sample, title: Both}]"
NOTE = ANNOTATIONS[ANNOTATIONS.index("- id: whole-step") :]
FAULTS = {
    "unknown reference": (
        edited("sample/linear.yaml", "{key: paper,", "{key: papre,"),
        ["sample/linear.yaml:10:22: unknown reference: got 'papre' (did you mean "
         "'paper'?), expected a known reference"],
    ),
    "unknown section": (
        edited("sample/linear.yaml", 'section: "3"', 'section: "4.2"'),
        ["sample/linear.yaml:10:38: unknown section: got '4.2' of paper, expected one "
         "of 3, 4.1 (add it to references.yaml)"],
    ),
    "unknown concept": (
        edited("sample/linear.yaml", "[collectives]", "[colectives, all-reduce]"),
        ["sample/linear.yaml:17:14: unknown concept: got 'colectives' (did you mean "
         "'collectives'?), expected a known concept"],
    ),
    "unknown concept and reference of a concept": (
        edited(
            "concepts.yaml",
            "requires: [collectives]",
            "requires: [x], recurs: [y], references: [{key: z}]",
        ),
        ["concepts.yaml:4:58: unknown concept: got 'x', expected a known concept",
         "concepts.yaml:4:71: unknown concept: got 'y', expected a known concept",
         "concepts.yaml:4:94: unknown reference: got 'z', expected a known reference"],
    ),
    "unknown annotation in a mirror": (
        edited("mirrors/closing.yaml", "[close]", "[close, clothe]"),
        ["mirrors/closing.yaml:8:21: unknown annotation: got 'clothe' (did you mean "
         "'close'?), expected a known annotation"],
    ),
    "unknown comparison of an event": (
        {"mirrors/closing.yaml": MIRROR + """  events:
    - {comparisons: [tp_sampel], phase: forward, op: all_reduce}
""", "comparisons.yaml": COMPARISONS},
        ["mirrors/closing.yaml:11:22: unknown comparison: got 'tp_sampel' (did you "
         "mean 'tp_sample'?), expected a known comparison"],
    ),
    "a difference without a bound that can be computed": (
        {"mirrors/closing.yaml": MIRROR + """  differences:
    - {comparisons: [tp_sample], what: order, at_most: ranks - 1, why: so}
""", "comparisons.yaml": COMPARISONS},
        ["mirrors/closing.yaml:11:7: wrong value for 'at_most': got 'ranks - 1', "
         f"expected a formula of numbers and the names {', '.join(NAMES)} "
         f"(unknown name 'ranks': expected one of {', '.join(NAMES)})"],
    ),
    "wrong values upstream that no known note tells of": (
        {"mirrors/closing.yaml": MIRROR + """  differences:
    - {comparisons: [tp_sample], what: values, at_most: 1, why: so, note: clsoe}
""", "comparisons.yaml": COMPARISONS},
        ["mirrors/closing.yaml:11:75: unknown annotation: got 'clsoe' (did you mean "
         "'close'?), expected a known annotation"],
    ),
    "wrong values upstream without a note": (
        {"mirrors/closing.yaml": MIRROR + """  differences:
    - {comparisons: [tp_sample], what: values, at_most: 1, why: so}
""", "comparisons.yaml": COMPARISONS},
        ["mirrors/closing.yaml:11:7: missing key 'note'"],
    ),
    "unknown concept in a mirror": (
        edited("mirrors/closing.yaml", "[all-reduce]", "[reduce]"),
        ["mirrors/closing.yaml:4:12: unknown concept: got 'reduce' (did you mean "
         "'all-reduce'?), expected a known concept"],
    ),
    "unknown annotation in a translation": (
        {"sample/linear.es.yaml": "close: {}\n\nclsoe:\n  title: T\n"},
        ["sample/linear.es.yaml:3:1: unknown annotation: got 'clsoe' (did you mean "
         "'close'?), expected a known annotation"],
    ),
    "a translation twice": (
        {"sample/other.es.yaml": "# more\nclose: {why: Si}\n"},
        ["sample/other.es.yaml:2:1: a duplicate translation: got 'close', first at "
         "annotations/sample/linear.es.yaml:1, expected each id once"],
    ),
    "unknown concept in a translation": (
        {"concepts.es.yaml": "close: {}\nall-reduce: {}\nall-redcue: {title: T}\n"},
        ["concepts.es.yaml:1:1: unknown concept: got 'close', expected a known concept",
         "concepts.es.yaml:3:1: unknown concept: got 'all-redcue' (did you mean "
         "'all-reduce'?), expected a known concept"],
    ),
    "a key that no concept has in a translation": (
        {"concepts.es.yaml": "all-reduce: {sumary: Todos, text: Suma}\n"},
        ["concepts.es.yaml:1:14: unknown key: got 'sumary', expected 'summary', "
         "perhaps",
         "concepts.es.yaml:1:29: unknown key: got 'text', expected one of of, title, "
         "summary"],
    ),
    "unknown mirror in a translation": (
        {"mirrors/closing.es.yaml": "closing: {}\nclosin: {title: T}\n"},
        ["mirrors/closing.es.yaml:2:1: unknown mirror: got 'closin' (did you mean "
         "'closing'?), expected a known mirror"],
    ),
    "unknown section in a translation": (
        {"mirrors/closing.es.yaml": "closing:\n sections:\n    The summ: {title: T}\n"},
        ["mirrors/closing.es.yaml:3:5: unknown section of closing: got 'The summ' (did "
         "you mean 'The sum'?), expected a known section of closing"],
    ),
    "more reasons in a translation": (
        {"mirrors/closing.es.yaml": "closing:\n  sections:\n    The sum:\n"
         "      leaves_out: [{what: Uno}]\n      differences: [Dos]\n"},
        ["mirrors/closing.es.yaml:4:7: more texts in 'leaves_out' than in English: got "
         "1, expected at most 0",
         "mirrors/closing.es.yaml:5:7: more texts in 'differences' than in English: "
         "got 1, expected at most 0"],
    ),
    "a key that no section has in a translation": (
        {"mirrors/closing.es.yaml": "closing: {sections: {The sum: {idea: T}}}\n"},
        ["mirrors/closing.es.yaml:1:32: unknown key: got 'idea', expected one of of, "
         "title, why, leaves_out, differences"],
    ),
    "a mirror translated twice": (
        {"mirrors/closing.es.yaml": "closing: {title: T}\n",
         "mirrors/other.es.yaml": "closing: {title: T}\n"},
        ["mirrors/other.es.yaml:1:1: a duplicate translation: got 'closing', first at "
         "annotations/mirrors/closing.es.yaml:1, expected each id once"],
    ),
    "a translation of a file that has none": (
        {"references.es.yaml": "paper: {title: Un trabajo}\n"},
        ["references.es.yaml:1:1: a file nobody reads: expected comparisons.yaml, "
         "concepts.yaml, concepts.<language>.yaml, conditions.yaml, "
         "conditions.<language>.yaml, references.yaml, upstreams.yaml, "
         "<upstream>/<topic>.yaml, mirrors/<idea>.yaml or tours/<tour>.yaml"],
    ),
    "unknown upstream": (
        {"simple/linear.yaml": NOTE.replace("whole-step", "other")},
        ["simple/linear.yaml:1:3: unknown upstream: got folder 'simple', expected one "
         "of sample, minis"],
    ),
    "duplicate id in one file": (
        {"sample/linear.yaml": ANNOTATIONS + NOTE},
        ["sample/linear.yaml:18:3: a duplicate id: got 'whole-step', first at "
         "annotations/sample/linear.yaml:12, expected each id once"],
    ),
    "duplicate id across files": (
        {"minis/other.yaml": "\n" + NOTE},
        ["sample/linear.yaml:12:3: a duplicate id: got 'whole-step', first at "
         "annotations/minis/other.yaml:2, expected each id once"],
    ),
    "duplicate mirror, concept, reference and upstream": (
        {
            "mirrors/other.yaml": MIRROR,
            "concepts.yaml": CONCEPTS + CONCEPTS[: CONCEPTS.index("- {id: all-r")],
            "references.yaml": REFERENCES * 2,
            "upstreams.yaml": UPSTREAMS + UPSTREAMS[UPSTREAMS.index("- {") :],
        },
        ["concepts.yaml:5:3: a duplicate id: got 'collectives', first at "
         "annotations/concepts.yaml:1, expected each id once",
         "mirrors/other.yaml:1:1: a duplicate id: got 'closing', first at "
         "annotations/mirrors/closing.yaml:1, expected each id once",
         "references.yaml:7:3: a duplicate id: got 'paper', first at "
         "annotations/references.yaml:1, expected each id once",
         "upstreams.yaml:8:3: a duplicate upstream: got 'minis', expected each once"],
    ),
    "a path that leaves the upstream": (
        edited("sample/linear.yaml", "{file: lib/linear.py, symbol: step}",
               "{file: ../../etc/passwd, symbol: step}"),
        ["sample/linear.yaml:13:7: anchor: path '../../etc/passwd' leaves its "
         "upstream: expected a path inside the upstream, such as "
         "src/pages.py"],
    ),
    "a mini anchor that contradicts itself": (
        edited("mirrors/closing.yaml", "symbol: f", "from: x"),
        ["mirrors/closing.yaml:9:10: anchor: got 'from' alone, expected 'to' beside "
         "it"],
    ),
    "a concept that requires itself": (
        edited("concepts.yaml", "requires: [collectives]", "requires: [all-reduce]"),
        ["concepts.yaml:3:3: concepts that require each other: got all-reduce -> "
         "all-reduce, expected no cycle"],
    ),
    "a file nobody reads": (
        {"notes.yaml": "[]"},
        ["notes.yaml:1:1: a file nobody reads: expected comparisons.yaml, "
         "concepts.yaml, concepts.<language>.yaml, conditions.yaml, "
         "conditions.<language>.yaml, references.yaml, upstreams.yaml, "
         "<upstream>/<topic>.yaml, mirrors/<idea>.yaml or tours/<tour>.yaml"],
    ),
    "a lock of another version": (
        {"sample.lock": '{"format": 2}'},
        ["sample.lock:1:1: a lock of another version: got format 2, expected 1"],
    ),
}  # fmt: skip


@pytest.mark.parametrize(("changes", "expected"), FAULTS.values(), ids=FAULTS)
def test_fault_is_told_where_it_stands(changes, expected):
    assert faults(changes) == expected


def test_every_fault_of_every_file_is_told_at_once():
    changes = {
        **edited("sample/linear.yaml", "kind: note", "kind: remark"),
        **edited("mirrors/closing.yaml", "[close]", "[close, whole-step, other]"),
        **edited("concepts.yaml", "{id: all-reduce", "{id: all-reduce, id: b"),
        "sample/more.yaml": NOTE.replace("step\n", "one\n", 1).replace("[coll", "[col")
        + "- id: two\n  id: three\n",
        "references.yaml": REFERENCES.replace("{", "["),
        "sample.lock": "[]",
    }
    assert [fault.split(": got")[0] for fault in faults(changes)] == [
        "concepts.yaml:3:20: a duplicate key",
        "mirrors/closing.yaml:8:33: unknown annotation",
        "references.yaml:6:41: not valid YAML",
        "sample.lock:1:1: not a readable lock",
        "sample/linear.yaml:14:9: wrong value for 'kind'",
        "sample/more.yaml:6:14: unknown concept",
        "sample/more.yaml:7:3: missing key 'at' in two",
        "sample/more.yaml:7:3: missing key 'concepts' in two",
        "sample/more.yaml:7:3: missing key 'kind' in two",
        "sample/more.yaml:7:3: missing key 'title' in two",
        "sample/more.yaml:8:3: a duplicate key",
    ]


UNREAD = {
    "concepts": {"concepts.yaml": "- ["},
    "references": {"references.yaml": b"\xff"},
    "annotations": {"sample/linear.yaml": "a: b"},
    "upstreams": {"upstreams.yaml": "- {name: sample, name: sample"},
}


@pytest.mark.parametrize("changes", UNREAD.values(), ids=UNREAD)
def test_what_a_broken_file_names_is_not_called_unknown(changes):
    assert not [fault for fault in faults(changes) if "unknown" in fault]


def test_what_a_broken_entry_names_is_not_called_unknown():
    changes = {
        **edited("sample/linear.yaml", "title: The closing collective", "title: 3"),
        **edited("concepts.yaml", "title: All-reduce", "title: 3"),
        **edited("references.yaml", "title: A paper", "title: 3"),
        **edited("upstreams.yaml", "title: Sample", "title: 3"),
    }
    assert [fault.split(":")[0] for fault in faults(changes)] == sorted(changes)


def test_every_cycle_is_told_in_the_order_of_its_steps():
    changes = {
        "concepts.yaml": CONCEPTS
        + "".join(
            f"- {{id: {name}, title: T, summary: S, pressure: time, layer: job, "
            f"requires: [{required}]}}\n"
            for name, required in [
                ("a", "b"),
                ("b", "c"),
                ("c", "a"),
                ("d", "e, a"),
                ("e", "d"),
                ("f", "a"),
            ]
        )
    }
    got = [fault.split("got ")[1] for fault in faults(changes)]
    assert len(got) == 2
    for cycle, steps in zip(sorted(got), ["abc", "de"], strict=True):
        names = cycle.split(", expected")[0].split(" -> ")
        assert sorted(set(names)) == list(steps) and names[0] == names[-1]
        pairs = {"a": "b", "b": "c", "c": "a", "d": "e", "e": "d"}
        assert all(pairs[x] == y for x, y in pairwise(names))


def test_shared_prerequisites_are_no_cycle():
    more = "- {id: x, title: T, summary: S, pressure: time, layer: job,\n   "
    changes = {
        "concepts.yaml": CONCEPTS + more + "requires: [collectives, all-reduce]}"
    }
    assert len(parse_book(files(changes)).concepts) == 3


# --- the reader's overlay ---

MARKS = Fingerprint("aa", ("bb",), "cc", "dd", "ee")


def locked(**anchors: int) -> bytes:
    places = {
        name.replace("_", "-"): LockedAnchor(Span("lib/a.py", line, line), MARKS)
        for name, line in anchors.items()
    }
    return Lock("c" * 40, {}, places).to_text().encode()


def test_overlay_adds_its_notes_and_its_part_of_the_lock():
    shared = Lock("c" * 40, {"lib/a.py": "d" * 40}).to_text()
    book = parse_book(
        [
            *files({"sample.lock": shared}),
            BookFile("annotations/sample.lock", locked(my_note=3), mine=True),
            BookFile(
                "annotations/sample/my-notes.yaml",
                NOTE.replace("whole-step", "my-note").encode(),
                shown="/home/me/my-notes.yaml",
                mine=True,
            ),
        ]
    )
    assert book.annotations["my-note"].mine and not book.annotations["close"].mine
    assert book.annotations["my-note"].place.file == "/home/me/my-notes.yaml"
    assert book.locks["sample"].files == {"lib/a.py": "d" * 40}
    assert book.locks["sample"].anchors["my-note"].span.first == 3


def test_faults_of_the_overlay_name_its_own_file():
    mine = BookFile("annotations/notes.yaml", b"[]", shown="/home/me/notes.yaml")
    with pytest.raises(ContentError, match=r"^/home/me/notes\.yaml:1:1: a file nobody"):
        parse_book([*files({}), mine])


def test_overlay_cannot_take_an_id_of_the_book():
    mine = BookFile("annotations/sample/m.yaml", NOTE.encode(), shown="m.yaml")
    with pytest.raises(ContentError, match=r"m\.yaml:1:3: a duplicate id: got 'whole"):
        parse_book([*files({}), mine])
