"""Marks of proved sentences: where they stand, and what they lead to."""

from __future__ import annotations

import re

import pytest

from readerkit.claims.proof_marks import with_marks
from tests.helpers import ANNOTATIONS, make_book, run

ENGLISH = "One is so.\nTwo, too;\n  `a. b` three. Four."


@pytest.mark.parametrize(
    ("text", "says", "marked"),
    [
        (ENGLISH, ["One"], ENGLISH.replace("so.", "so.⟦1⟧")),
        (
            ENGLISH,
            ["too; `a. b`", "Four"],
            ENGLISH.replace("three.", "three.⟦1⟧") + "⟦2⟧",
        ),
        (
            ENGLISH,
            ["", "is so. Two"],
            "One is so.⟦2⟧\nTwo, too;\n  `a. b` three.⟦2⟧ Four.",
        ),
        (ENGLISH, ["nobody says this"], ENGLISH),
        ("Uno. Dos `a. b`. Tres.", ["Four"], "Uno. Dos `a. b`. Tres.⟦1⟧"),
        ("Uno. Dos.", ["Four"], "Uno. Dos."),
    ],
)
def test_a_mark_stands_behind_each_proved_sentence(text, says, marked):
    assert with_marks(text, ENGLISH, says) == marked


CLAIMS = """\
  claims:
  - {says: Forward, stands: {file: lib/linear.py, symbol: step, code: model(batch)}}
  - {says: then backward, undecided: Nobody has looked there.}
"""
MORE = """\
  claims:
  - {says: Forward, stands: {file: lib/linear.py, symbol: step, code: model(batch)}}
  - {says: backward, stands: {file: lib/linear.py, symbol: step}}
"""


def site_page(tmp_path, capsys, annotations: str) -> tuple[str, str]:
    """Return a book, and the page of its file on the site that is built of it."""
    book = str(make_book(tmp_path, annotations=annotations).root)
    assert run(capsys, "annotate", "--update-lock", "--book", book).code == 0
    site = tmp_path / "site"
    done = run(capsys, "site", "build", "--output", str(site), "--book", book)
    assert done.code == 0, done.err
    return book, (site / "read/sample/lib/linear.py.html").read_text()


def test_all_that_proves_a_sentence_opens_at_once_and_leads_back(tmp_path, capsys):
    _, page = site_page(tmp_path, capsys, ANNOTATIONS + MORE)
    mark = '<a class=proved id="whole-step-at-1" href="#whole-step-claim-1">'
    assert page.count(mark) == 1
    [passage] = re.findall(r'(?s)<li id="whole-step-claim-\d">(.*?)</li>', page)
    assert (
        len(re.findall(r"<q\b", passage)) == 2 and 'href="#whole-step-at-1"' in passage
    )
    assert "<pre class=printed>22  loss = model(batch)</pre>" in passage
    assert "<details" not in passage


def test_a_mark_leads_to_the_check_and_its_lines(tmp_path, capsys):
    book, page = site_page(tmp_path, capsys, ANNOTATIONS + CLAIMS)
    links = re.findall(r'class=proved .*?href="#([^"]+)"', page)
    assert links == ["whole-step-claim-1"]
    [proof] = re.findall(r'(?s)<li id="whole-step-claim-1">(.*?)</li>', page)
    assert re.search(
        r"<q[^>]*>Forward</q>", proof
    ) and 'href="linear.py.html#L22"' in proof.replace("../../../read/sample/lib/", "")
    told = run(capsys, "annotate", "whole-step", "--claims", "--book", book).out
    assert "holds\tForward\t`model(batch)` stands in `step`\tlib/linear.py:22\n" in told
    assert (
        "open\tthen backward\tno program decides this: Nobody has looked there.\n"
        in told
    )
    told = run(capsys, "annotate", "whole-step", "--book", book).out
    assert "Forward, then backward.✓" in told
    assert "Proved  ✓ 2 passages, shown by readerkit annotate whole-step --c" in told
