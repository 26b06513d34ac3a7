"""What claims must look like, and that their words are words of their entry."""

from __future__ import annotations

import pytest

from readerkit.content.chapters import ChapterText
from readerkit.content.parse_book import BookFile, read_book
from tests.helpers import ANNOTATIONS, CONCEPTS, REFERENCES

NOTE = ANNOTATIONS.partition("- id: whole-step")[0]
UPSTREAMS = """\
- name: sample
  title: Sample
  include: ["lib/**/*.py"]
  folder: lib
"""
MIRROR = """\
id: m
title: T
idea: An idea of sorts.
claims: [{says: An idea, undecided: W}, {says: an idea, undecided: W}]
sections:
- title: S
  relation: same
  upstream: [close]
  why: The why.
  claims: [{says: The why, undecided: W}, {says: The idea, undecided: W}]
  mini: [{file: lib/mini.py, symbol: f}]
  leaves_out:
  - {what: A, why: Two, claims: [{says: Two, undecided: W}, {says: Six, undecided: W}]}
  differences:
  - comparisons: [ddp]
    what: order
    at_most: 3
    why: Because.
    claims: [{says: Because, undecided: W}, {says: The why, undecided: W}]
""".replace("undecided: W", "undecided: It is a view.")
COMPARISONS = "- {name: ddp, mini: ddp, upstream: torch, title: DDP}\n"


def faults_of(
    claims: str = "", concepts: str = CONCEPTS, mirror: str = ""
) -> list[str]:
    files = {
        "upstreams.yaml": UPSTREAMS,
        "concepts.yaml": concepts,
        "references.yaml": REFERENCES,
        "comparisons.yaml": COMPARISONS,
        "sample/linear.yaml": NOTE + (f"  claims:\n{claims}" if claims else ""),
    }
    if mirror:
        files["mirrors/m.yaml"] = mirror
    given = [BookFile(f"annotations/{n}", t.encode()) for n, t in files.items()]
    return [str(fault).removeprefix("annotations/") for fault in read_book(given)[1]]


ASKED = {
    "default: {file: a.py, of: f, is: 1, code: g}":
        "keys that exclude each other: got 'is' and 'code', expected one of 'is', "
        "'code'",
    "absent: {in: [a.py], name: torch.dist}":
        "a name that stands nowhere at all: got 'torch.dist', expected an identifier, "
        "without dots; 'code' takes expressions",
    "uses: {of: all reduce, in: [a.py], count: 0}":
        "'of' is no name: got 'all reduce', expected a name, dotted or not",
    "absent: {in: [a.py]}":
        "a key missing: got none of them, expected one of 'code', 'name', 'text'",
    "uses: {of: f, in: [a.py], are: [], count: 1}":
        "keys that exclude each other: got 'are' and 'count', expected one of 'are', "
        "'count'",
    "guard: {file: a.py, code: g}":
        "a key missing: got none of them, expected one of 'under', 'unless'",
    "run: {record: ddp, ran: true}":
        "'ran' without lines: got no 'file', expected an anchor",
    "run: {record: ddp, calls: 3}":
        "'calls' without a call: got no 'operation', expected the name of a collective",
    "stands: {file: a.py}":
        "anchor: got a file alone, expected a symbol, code, from and to, or a query",
}  # fmt: skip


@pytest.mark.parametrize(("check", "fault"), ASKED.items(), ids=ASKED)
def test_a_check_says_exactly_what_it_asks_for(check, fault):
    [found] = faults_of(f"  - {{says: One switch, {check}}}\n")
    assert found.startswith("sample/linear.yaml:13:") and found.endswith(fault)


def test_words_of_a_claim_stand_in_a_text_of_its_entry_white_space_apart():
    assert (
        faults_of("  - {says: Always  all-reduce, undecided: no program can say}\n")
        == []
    )
    assert faults_of(
        "  - {says: One switch picked it, undecided: no program can say}\n"
    ) == [
        "sample/linear.yaml:13:5: 'says' what no text says: got 'One switch picked it' "
        "('One switch' stands, and not what follows), expected words of title, "
        "decision, alternative, why, cost, exactly as they stand"
    ]


def test_concepts_and_every_part_of_a_mirror_carry_claims():
    why = "undecided: It is a view."
    claims = f"{{says: gets the sum, {why}}}, {{says: the title, {why}}}"
    concepts = CONCEPTS.replace(
        "[collectives]}", f"[collectives], claims: [{claims}]}}"
    )
    found = faults_of(concepts=concepts, mirror=MIRROR)
    assert [fault.partition(" (")[0].partition(", expected")[0] for fault in found] == [
        "concepts.yaml:4:129: 'says' what no text says: got 'the title'",
        "mirrors/m.yaml:4:53: 'says' what no text says: got 'an idea'",
        "mirrors/m.yaml:10:55: 'says' what no text says: got 'The idea'",
        "mirrors/m.yaml:13:73: 'says' what no text says: got 'Six'",
        "mirrors/m.yaml:19:57: 'says' what no text says: got 'The why'",
    ]


def test_the_indented_rest_of_an_item_belongs_to_its_paragraph():
    text = "# Title\n\n- **One**: it holds\n  only the first.\n- Two.\n\n    code\n"
    found = [each.text for each in ChapterText("title", "01-title.md", text).claimed()]
    assert found == ["- **One**: it holds\n  only the first.\n- Two."]
