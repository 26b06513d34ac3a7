"""Diagrams in two languages: one drawing, the words in it translated."""

from __future__ import annotations

import shutil

import pytest

from readerkit.app.interface_translation import say_in
from tests.helpers import make_book, run, write_files

pytestmark = pytest.mark.sampled

DRAWN = 'flowchart LR\n  a["a sum"] --> b["its half"]\n'
PAGES = {
    "chapters/01-sums.md": "# Sums\n\n```diagram d\n```\n",
    "diagrams/d.mmd": DRAWN,
    "diagrams/d.yaml": "title: A sum\nalternative: A sum goes.\nclaims: []\n",
}
SPANISH = {
    "diagrams/d.es.mmd": 'flowchart LR\n  a["una suma"] --> b["su mitad"]\n',
    "diagrams/d.es.yaml": "title: Una suma\nalternative: Va una suma.\n",
}
MISSING = say_in("es")("Not translated yet: the English text.")
OUTDATED = say_in("es")("The English text changed after this one.")


def built(capsys, tmp_path, pages):
    book = make_book(tmp_path)
    write_files(book.root / "site" / "pages", pages)
    site = tmp_path / "site"
    options = ("--book", str(book.root), "--output", str(site))
    return site, run(capsys, "site", "build", *options)


def test_a_diagram_is_drawn_in_both_languages(capsys, tmp_path):
    site, result = built(capsys, tmp_path, PAGES | SPANISH)
    assert result.code == 0, result.err
    html = (site / "chapters" / "sums.html").read_text()
    figure = html.partition('<figure class="drawing">')[2].partition("</figure>")[0]
    english, _, spanish = figure.partition("<div class=b lang=es>")
    assert 'src="../diagrams/d.light.svg" alt="A sum goes."' in english
    assert 'src="../diagrams/d.es.dark.svg" alt="Va una suma."' in spanish
    assert "<figcaption><span class=b lang=en>A sum</span>" in figure
    assert MISSING not in figure and OUTDATED not in figure
    drawn = (site / "diagrams" / "d.es.light.svg").read_text()
    assert "su mitad" in drawn and "its half" not in drawn
    assert "its half" in (site / "diagrams" / "d.light.svg").read_text()


MARKED = {
    "no translation": (PAGES, MISSING),
    "a translation of other words": (
        PAGES | SPANISH | {"diagrams/d.es.yaml": "of: en-00000000\n"
                           "title: Una suma\nalternative: Va una suma.\n"},
        OUTDATED,
    ),
}  # fmt: skip


@pytest.mark.parametrize(("pages", "mark"), MARKED.values(), ids=MARKED)
def test_a_diagram_that_is_not_in_spanish_is_marked(capsys, tmp_path, pages, mark):
    site, result = built(capsys, tmp_path, pages)
    assert result.code == 0, result.err
    html = (site / "chapters" / "sums.html").read_text()
    figure = html.partition('<figure class="drawing">')[2].partition("</figure>")[0]
    assert f'<span class="only-es" lang="es">{mark}</span>' in figure


FAULTS = {
    "another arrow": (
        {"diagrams/d.es.mmd": 'flowchart LR\n  b["su mitad"] --> a["una suma"]\n'},
        'diagrams/d.es.mmd:2:1: another drawing: got \'b[""] --> a[""]\', expected '
        '\'a[""] --> b[""]\', as in English',
    ),
    "a line too few": (
        {"diagrams/d.es.mmd": "flowchart LR\n"},
        "diagrams/d.es.mmd:2:1: another drawing: got ''",
    ),
    "no words": (
        {"diagrams/d.es.yaml": "title: Una suma\n"},
        "diagrams/d.es.yaml:1:1: missing key 'alternative'",
    ),
    "nothing": (
        {"diagrams/d.es.yaml": "# nothing yet\n"},
        "diagrams/d.es.yaml:1:1: wrong type for this entry: got None",
    ),
}


@pytest.mark.parametrize(("changes", "said"), FAULTS.values(), ids=FAULTS)
def test_fault_of_a_translation_is_told_where_it_stands(
    capsys, tmp_path, changes, said
):
    _, result = built(capsys, tmp_path, PAGES | SPANISH | changes)
    assert result.code == 1
    assert said in result.err


DAMAGED = {
    "half of it": lambda kept: kept[: len(kept) // 2],
    "nothing": lambda kept: b"",
    "one byte more": lambda kept: kept + b"\n",
    "one byte other": lambda kept: kept[:-9] + b"X" + kept[-8:],
    "no digest": lambda kept: kept.partition(b"\n")[2],
    "another drawing": lambda kept: kept.partition(b"\n")[0] + b"\n<svg></svg>",
}


@pytest.mark.further
def test_drawing_that_is_not_whole_in_the_cache_is_drawn_anew(capsys, tmp_path):
    site, result = built(capsys, tmp_path, PAGES)
    assert result.code == 0, result.err
    drawn = {path: path.read_bytes() for path in (site / "diagrams").iterdir()}
    kept = {path: path.read_bytes() for path in tmp_path.glob("cache/diagrams/*")}
    assert len(kept) == 2
    options = ("--book", str(tmp_path / "book"), "--output", str(site))
    names = iter(DAMAGED)
    for pair in zip(names, names, strict=True):
        for name, path in zip(pair, kept, strict=True):
            path.write_bytes(DAMAGED[name](kept[path]))
        shutil.rmtree(site)
        assert run(capsys, "site", "build", *options).code == 0
        assert {path: path.read_bytes() for path in drawn} == drawn, pair
        assert {path: path.read_bytes() for path in kept} == kept, name
