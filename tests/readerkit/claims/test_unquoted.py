"""Which words of an entry no claim says."""

from __future__ import annotations

import pytest

from readerkit.claims.unquoted import WordCount, unquoted
from readerkit.content.claims import Claim
from readerkit.content.mirrors import LeftOut

TEXT = "It starts two ranks, `a b` and more.\n\n- They wait; then\n  they end."
LEFT = {
    (): ["It starts two ranks, `a b` and more.", "- They wait; then they end."],
    ("two ranks",): ["It starts", ", `a b` and more.", "- They wait; then they end."],
    ("It starts two ranks, `a b` and more",): ["- They wait; then they end."],
    ("more. - They wait", "`a b` and"): ["It starts two ranks,", "; then they end."],
    ("starts two", "two ranks"): [
        "It",
        ", `a b` and more.",
        "- They wait; then they end.",
    ],
}


@pytest.mark.parametrize(("says", "words"), LEFT.items())
def test_what_no_claim_says_is_left(says, words):
    claims = tuple(Claim(each, undecided="it is an opinion") for each in says)
    part = LeftOut("What", TEXT, claims=claims)
    found = [*unquoted(part)]
    assert [each.words for each in found if each.field == "why"] == words
    left = [word for each in words for word in each.split() if word.strip("-.,;`")]
    assert WordCount.of([part]) == WordCount(14, len(left) + 1)
