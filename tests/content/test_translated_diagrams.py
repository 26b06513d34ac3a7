"""The Spanish diagrams: every word of them, and of the English of today."""

from __future__ import annotations

import re

import pytest

from readerkit.content.diagrams import Diagram, in_spanish
from readerkit.content.strict_yaml import parse_yaml
from readerkit.content.translations import DIAGRAM_TRANSLATION
from readerkit.content.validation import read_document
from tests.content.test_translations import PAGES, changed

FOLDER = PAGES / "diagrams"
NAMES = sorted(
    path.stem for path in FOLDER.glob("*.mmd") if not path.name.endswith(".es.mmd")
)
KEPT = {"MLP", "GELU", "all-reduce", "all-gather", "reduce-scatter"}
"""Words of a drawing that are the same in both languages."""


def diagram(name: str) -> Diagram:
    claims = parse_yaml((FOLDER / f"{name}.yaml").read_bytes(), "").value
    drawn, told = (
        (FOLDER / f"{name}{language}.mmd").read_text("utf-8")
        for language in ("", ".es")
    )
    words = " ".join(claims["alternative"].split())
    english = Diagram(name, drawn, claims["title"], words)
    data = (FOLDER / f"{name}.es.yaml").read_bytes()
    texts = read_document(data, f"{name}.es.yaml", DIAGRAM_TRANSLATION)
    assert texts.value.of == english.stamp, "look at both, then write this stamp"
    return in_spanish(english, told, f"{name}.es.mmd", texts)


@pytest.mark.parametrize("name", NAMES)
def test_spanish_diagram_says_what_the_english_of_today_says(name):
    english = diagram(name)
    spanish = english.spanish
    assert spanish is not None and not english.is_outdated
    assert changed(english.title, spanish.title) == []
    assert changed(english.alternative, spanish.alternative) == []
    words = [re.findall('"([^"]*)"', each.mermaid) for each in (english, spanish)]
    for ours, theirs in zip(*words, strict=True):
        assert changed(ours, theirs) == [] or (ours == theirs and ours in KEPT)
