"""Reading paths in two languages: a sidecar by id, and what of it is missing or old."""

from __future__ import annotations

import re

import pytest

from readerkit.app.interface_translation import say_in
from tests.helpers import make_book, run, write_files

pytestmark = pytest.mark.sampled

PATHS = """\
failures:
  - {id: hang, symptom: It hangs, cause: Nobody answers., notes: [close]}
  - {id: slow, symptom: It is slow, cause: Everybody waits., notes: []}
pairs:
  - {id: halves, memory: collectives, coordination: all-reduce, wire: In two halves.,
     notes: [whole-step]}
"""
SPANISH = """\
failures:
  hang: {symptom: Se cuelga, cause: Nadie *responde*.}
pairs:
  halves: {of: en-00000000, wire: En dos mitades.}
"""
MISSING = say_in("es")("Not translated yet: the English text.")
OUTDATED = say_in("es")("The English text changed after this one.")


def built(capsys, tmp_path, english=PATHS, spanish=SPANISH):
    book = make_book(tmp_path)
    pages = {"paths.yaml": english, "paths.es.yaml": spanish}
    write_files(book.root / "site" / "pages", pages)
    site = tmp_path / "site"
    options = ("--book", str(book.root), "--output", str(site))
    return site, run(capsys, "site", "build", *options)


def test_paths_hold_both_languages_and_mark_what_is_missing_or_old(capsys, tmp_path):
    site, result = built(capsys, tmp_path)
    assert result.code == 0, result.err
    html = (site / "paths.html").read_text()
    hang, slow, halves = re.findall(
        r'<section class="symptom"[^>]*>.*?</section>', html, re.S
    )
    assert "<span class=b lang=es>Se cuelga</span>" in hang
    assert "<span class=b lang=en>It hangs</span>" in hang
    assert "Nadie <em>responde</em>." in hang and "Nobody answers." in hang
    assert MISSING not in hang and OUTDATED not in hang
    assert 'id="hang"' in hang and 'href="#hang"' in hang  # a symptom has an address
    assert "Everybody waits." in slow and MISSING in slow
    assert "En dos mitades." in halves and OUTDATED in halves


def test_symptoms_of_which_the_same_is_wrong_stand_together(capsys, tmp_path):
    english = PATHS.replace(
        "pairs:",
        """\
  - {id: full, shows: memory, symptom: No room, cause: All is held., notes: []}
  - {id: nan, shows: numbers, symptom: No number, cause: It overflows., notes: []}
  - {id: late, shows: memory, symptom: No room later, cause: It grows., notes: []}
pairs:""",
    )
    site, result = built(capsys, tmp_path, english)
    assert result.code == 0, result.err
    for page in ("paths.html", "index.html"):
        html = (site / page).read_text()
        listed = re.findall(r'#(full|nan|late|hang|slow)">', html)
        assert listed[:5] == ["full", "late", "nan", "hang", "slow"], page
        assert "It runs out of memory" in html and "Se queda sin memoria" in html
    order = re.findall(r'<section class="symptom" id="(\w+)"><h([34])>', html_of(site))
    expected = [
        ("full", "4"),
        ("late", "4"),
        ("nan", "4"),
        ("hang", "3"),
        ("slow", "3"),
    ]
    assert order[:5] == expected


def html_of(site):
    return (site / "paths.html").read_text()


FAULTS = {
    "an id that no path has": (
        {"spanish": "failures:\n  hang: {}\n  hung: {}\npairs: {slow: {}}\n"},
        ["paths.es.yaml:3:3: unknown id: got 'hung', expected one of the failures",
         "paths.es.yaml:4:9: unknown id: got 'slow', expected one of the pairs"],
    ),
    "a key that no path has": (
        {"spanish": "failures:\n  hang: {wire: En dos}\n"},
        ["paths.es.yaml:2:10: unknown key: got 'wire', expected one of of, symptom"],
    ),
    "one id for two": (
        {"english": PATHS.replace("id: halves", "id: hang")},
        ["paths.yaml:5:5: a duplicate id: got 'hang'"],
    ),
    "no id": (
        {"english": PATHS.replace("id: hang, ", "")},
        ["paths.yaml:2:5: missing key 'id'"],
    ),
    "a list in place of a name": (
        {"english": PATHS.replace("[close]", "[[close]]")},
        ["paths.yaml:2:67: wrong type for this entry: got ['close'], expected string"],
    ),
    "words in place of an entry": (
        {"english": "failures: [it hangs]\n"},
        ["paths.yaml:1:12: wrong type for this entry: got 'it hangs', expected object"],
    ),
}  # fmt: skip


@pytest.mark.parametrize(("texts", "expected"), FAULTS.values(), ids=FAULTS)
def test_fault_of_a_path_is_told_where_it_stands(capsys, tmp_path, texts, expected):
    _, result = built(capsys, tmp_path, **texts)
    assert result.code == 1
    rows = result.err.splitlines()
    assert len(rows) == len(expected)
    for row, start in zip(rows, expected, strict=True):
        assert f"site/pages/{start}" in row
