"""Notes in Spanish: what is missing is marked, and what is of an older English."""

from __future__ import annotations

import re

from readerkit.app.interface_words import say_in
from tests.helpers import make_book, run

MISSING = say_in("es")("Not translated yet: the English text.")
OUTDATED = say_in("es")("The English text changed after this one.")


def marks(tmp_path, capsys, sidecar: str) -> dict[str, list[str]]:
    """Return the marks of each note on the page of the sample."""
    book = make_book(tmp_path, more={"sample/linear.es.yaml": sidecar})
    site = tmp_path / "site"
    where = ("--book", str(book.root), "--output", str(site))
    done = run(capsys, "site", "build", *where)
    assert done.code == 0, done.err
    html = (site / "read" / "sample" / "lib" / "linear.py.html").read_text()
    notes = re.findall(r'<aside class="note[^>]*id="([\w-]+)".*?</aside>', html, re.S)
    shown = re.split(r'<aside class="note', html)[1:]
    return {
        name: re.findall(r'<p class="only-es" lang="es">(.*?)</p>', part)
        for name, part in zip(notes, shown, strict=True)
    }


def test_note_without_a_translation_is_marked(tmp_path, capsys):
    found = marks(tmp_path, capsys, "close: {title: El cierre}\n")
    assert found == {"close": [], "whole-step": [MISSING]}


def test_note_whose_english_changed_since_is_marked(tmp_path, capsys):
    sidecar = "close: {of: en-00000000, title: El cierre}\n"
    found = marks(tmp_path, capsys, sidecar)
    assert found == {"close": [OUTDATED], "whole-step": [MISSING]}
