"""Concepts in two languages: on their page, as hover cards, in the search."""

from __future__ import annotations

import re

import pytest

from readerkit.app.interface_translation import say_in
from tests.helpers import CONCEPTS, make_book, read_search_index, run

SPANISH = """\
all-reduce: {title: Suma entre todos, summary: "Todos reciben la *suma*, $x^2$."}
"""
OUTDATED = say_in("es")("The English text changed after this one.")
MARK = '<{0} class="only-es" lang="es">'


def built(capsys, tmp_path, more):
    book = make_book(tmp_path, more=more)
    site = tmp_path / "site"
    options = ("--book", str(book.root), "--output", str(site))
    return site, run(capsys, "site", "build", *options)


@pytest.fixture
def site(capsys, tmp_path):
    site, result = built(capsys, tmp_path, {"concepts.es.yaml": SPANISH})
    assert result.code == 0, result.err
    return site


def part(html: str, start: str, end: str) -> str:
    """Return what stands between two marks, the first of which must be there once."""
    assert html.count(start) == 1
    return html.partition(start)[2].partition(end)[0]


def test_a_concept_page_holds_both_languages_and_marks_what_is_missing(site):
    html = (site / "concepts.html").read_text()
    there = part(html, '<section class="concept" id="all-reduce">', "</section>")
    assert "<span class=b lang=en>All-reduce</span>" in there
    assert "<span class=b lang=es>Suma entre todos</span>" in there
    spanish = part(there, "<div class=b lang=es>", "</div>")
    assert "la <em>suma</em>" in spanish and "<msup>" in spanish
    english = part(there, "<div class=b lang=en>", "</div>")
    assert "Everyone gets the sum." in english
    assert MARK.format("p") not in there
    missing = part(html, '<section class="concept" id="collectives">', "</section>")
    assert MARK.format("p") in missing


def test_a_hover_card_holds_both_languages_and_marks_what_is_missing(site):
    html = (site / "read" / "sample" / "lib" / "linear.py.html").read_text()
    chip = part(html, 'id="card-close-all-reduce">', "</p>")
    assert "<span class=b lang=es>Todos reciben la <em>suma</em>" in chip
    assert "<span class=b lang=en>Everyone gets the sum.</span>" in chip
    assert MARK.format("span") not in chip
    missing = part(html, 'id="card-whole-step-collectives">', "</p>")
    assert missing.startswith(MARK.format("span"))


def test_a_concept_whose_english_changed_since_is_marked(capsys, tmp_path):
    old = "all-reduce: {of: en-00000000, summary: Todos suman.}\n"
    site, result = built(capsys, tmp_path, {"concepts.es.yaml": old})
    assert result.code == 0, result.err
    html = (site / "concepts.html").read_text()
    there = part(html, '<section class="concept" id="all-reduce">', "</section>")
    assert MARK.format("p") + OUTDATED in there
    html = (site / "read" / "sample" / "lib" / "linear.py.html").read_text()
    chip = part(html, 'id="card-close-all-reduce">', "</p>")
    assert chip.startswith(MARK.format("span") + OUTDATED)


def test_the_name_of_a_concept_is_translated_where_pages_link_to_it(site):
    html = (site / "paths.html").read_text()
    assert re.search(r'#all-reduce">.*<span class=b lang=es>Suma entre', html)


def test_a_concept_is_found_by_its_spanish_text(site):
    found, said = read_search_index(site)["concepts.html#all-reduce"]
    assert {"everyone", "reciben"} <= said  # "sum" is what its Spanish title says
    assert (found[1], found[4]) == ("All-reduce", "Suma entre todos")


def test_a_name_alone_is_no_translation(capsys, tmp_path):
    only = "all-reduce: {title: Suma entre todos}\n"
    site, result = built(capsys, tmp_path, {"concepts.es.yaml": only})
    assert result.code == 0, result.err
    html = (site / "concepts.html").read_text()
    there = part(html, '<section class="concept" id="all-reduce">', "</section>")
    assert "Suma entre todos" in there and MARK.format("p") in there


FORMULAS = {
    "in English": (
        "concepts.yaml",
        CONCEPTS.replace("Everyone gets the sum.", r"Sum $\nosuch x$."),
        "all-reduce: formula",
    ),
    "in Spanish": (
        "concepts.es.yaml",
        r"all-reduce: {summary: Suma $\nosuch x$.}",
        "all-reduce: in its translation (es): formula",
    ),
}


@pytest.mark.parametrize(("name", "text", "said"), FORMULAS.values(), ids=FORMULAS)
def test_a_formula_that_cannot_be_set_is_told_where_its_concept_stands(
    capsys, tmp_path, name, text, said
):
    _, result = built(capsys, tmp_path, {name: text})
    assert result.code == 1
    assert f"annotations/concepts.yaml:3:3: {said} $\\nosuch x$" in result.err
