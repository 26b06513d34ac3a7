"""Sentences end where a reader ends them; what could be refuted is found."""

from __future__ import annotations

import pytest

from readerkit.claims.unproved import sentences_of, unproved
from readerkit.content.claims import Claim, one_spaced
from readerkit.content.mirrors import LeftOut
from readerkit.model.anchor import Anchor

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
    "1. One.\n2. Two. Three": 3,
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
    "The trainer turns it on, too.": ["turns it on"],
    "The flag has no check.": ["has no"],
    "They turn off what is there.": ["turn off"],
    "Sent once per step, and a dozen times.": ["once", "dozen"],
    "It is 5-fold, and must be so in the second step.": ["must be", "second"],
    "Neither goes anywhere, exactly one leads nowhere.": ["Neither", "exactly one"],
}
SILENT = [
    "It stands on the stream and goes off to the next.",
    "`only 3` and `never` are code.",
    "FSDP2 in fp32 beside ZeRO-3, 1F1B and H100.",
    "See section 4.2, figure 3 and § 7.",
    "Ranks 0 and 1, stage 2 of version 0.16.1.",
    "torch.distributed and _first_bucket and a.only_one.",
    "One of them is onward.",
    "Are there only two, as always?",
    "2. Look up what it costs.",
    "It says not only why.",
    "It needs no more and is no longer here; let no hook pass.",
    "They leave at once, once a second one asks.",
]


def entry(text: str, *says: str) -> LeftOut:
    claims = tuple(Claim(words, undecided="it is an opinion") for words in says)
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


STANDS = Anchor("a.py", "f")
COVERED = {
    ("Only one way, two at most.", "two at most", None): ["Only"],
    ("Only one way, two at most.", "Only one", None): [],
    ("Only one way, two at most.", "Only one", STANDS): ["Only"],
    ("Two of four take it.", "Two", None): [],
    ("Two of four take it.", "Two", STANDS): [],
    ("Two of four take it, so half is left.", "Two", None): ["half"],
    ("Two take it: three, `a; b`, and four.", "and four", None): ["Two"],
    ("Off by default, in two ways.", "two ways", None): ["default"],
    ("Off by default, in two ways.", "Off by default", STANDS): [],
    ("It\n  never ends. It starts.", "never ends. It starts", None): [],
    ("It never ends. It never starts.", "never ends", None): ["never"],
}


@pytest.mark.parametrize(("written", "words"), COVERED.items())
def test_what_a_claim_has_to_say_to_prove_a_word(written, words):
    """All or none: the word itself, and no lines that stand; a count: its clause."""
    text, says, stands = written
    how = {"stands": stands} if stands else {"undecided": "it is an opinion"}
    part = LeftOut("What", text, claims=(Claim(says, **how),))
    assert [word for each in unproved(part) for word in each.words] == words
