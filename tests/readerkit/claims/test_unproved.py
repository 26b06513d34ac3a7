"""Sentences end where a reader ends them; what could be refuted is found."""

from __future__ import annotations

import pytest

from readerkit.claims.unproved import sentences_of, unproved
from readerkit.content.claims import Claim, one_spaced
from readerkit.content.mirrors import LeftOut

SPLIT = {
    "One. Two? Three!": 3,
    "Use `a. B` and `c! D`. Then stop.": 2,
    "It is 1.5 MiB, e.g. Two of them, i.e. Three. Done.": 2,
    "See vs. That of version 0.16.1 in section 4.2. Then more.": 2,
    "No capital follows here. so it is one": 1,
    '"It ends." So it does.': 2,
    "A title without a stop": 1,
    "One\nline. Two\n\nThree": 3,
    "Steps:\n- one\n- two. Two": 4,
    "": 0,
}


@pytest.mark.parametrize(("text", "count"), SPLIT.items())
def test_sentences_end_where_a_reader_ends_them(text, count):
    found = [*sentences_of(text)]
    assert len(found) == count
    whole = one_spaced(text)
    assert all(whole[at : at + len(each)] == each for at, each in found)


ASSERTS = {
    "It is off by default.": ["off", "default"],
    "Only then and never before.": ["Only", "never"],
    "The switch is on.": ["is on"],
    "It stays off unless asked.": ["stays off"],
    "Nothing, none, every and always.": ["Nothing", "none", "every", "always"],
    "The first of two, twice half.": ["first", "two", "twice", "half"],
    "It sends 4 MiB.": ["4"],
    "A cap of 25MiB.": ["25"],
    "Three buckets hold 1,024 bytes.": ["Three", "1,024"],
}
SILENT = [
    "It stands on the stream and goes off to the next.",
    "`only 3` and `never` are code.",
    "FSDP2 in fp32 beside ZeRO-3, 1F1B and H100.",
    "See section 4.2, figure 3 and § 7.",
    "Ranks 0 and 1, stage 2 of version 0.16.1.",
    "torch.distributed and _first_bucket and a.only_one.",
    "One of them is onward.",
]


def entry(text: str, *says: str) -> LeftOut:
    claims = tuple(Claim(words, undecided="because") for words in says)
    return LeftOut("What", text, claims=claims)


@pytest.mark.parametrize(("text", "words"), ASSERTS.items())
def test_words_that_a_program_could_refute_are_found(text, words):
    [found] = unproved(entry(text))
    assert found.sentence == text and found.field == "why"
    assert " ".join(words) in " ".join(found.words) or all(
        any(word in each for each in found.words) for word in words
    )


@pytest.mark.parametrize("text", SILENT)
def test_names_and_code_assert_nothing(text):
    assert not [*unproved(entry(text))]


def test_a_claim_proves_the_sentences_that_its_words_touch():
    text = "Only one way.\nIt never\n  ends. It never starts."
    left = [*unproved(entry(text, "never ends"))]
    assert [each.sentence for each in left] == ["Only one way.", "It never starts."]
    assert not [*unproved(entry(text, "Only one", "ends. It never starts"))]
