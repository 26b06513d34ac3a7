"""The shipped book: every claim holds, and ever fewer sentences have none."""

from __future__ import annotations

import json

from tests.helpers import ROOT, run

UNPROVED_AT_MOST = 0
"""Sentences that say default, only, never, a count or a number, and that no claim
backs. It only goes down: ``readerkit annotate --check --claims`` lists them."""
OF_QUIZZES_AT_MOST = 49
"""The same of what questions say is so: explanations, right options, refutations."""


def test_no_sentence_is_added_that_nothing_proves(real_cache, capsys):
    done = run(capsys, "annotate", "--check", "--json", "--book", str(ROOT))
    claims = json.loads(done.out)["claims"]
    asked = [each["file"].startswith("quizzes/") for each in claims["unproved"]]
    assert asked.count(False) <= UNPROVED_AT_MOST
    assert asked.count(True) <= OF_QUIZZES_AT_MOST
