"""The site's own words exist in both languages."""

from __future__ import annotations

import re

import pytest

from readerkit.content.vocabulary import LAYERS, PRESSURES
from readerkit.render.html.words import both, counted, label
from readerkit.render.spanish import SPANISH
from tests.helpers import ROOT

TEMPLATES = sorted((ROOT / "site" / "templates").glob("*.html"))


@pytest.mark.parametrize("template", TEMPLATES, ids=lambda path: path.name)
def test_every_word_of_a_template_has_a_spanish_one(template):
    text = template.read_text("utf-8")
    said = re.findall(r'"([^"]+)"\|say', text)
    for pair in re.findall(r'counted\("([^"]+)", "([^"]+)"\)', text):
        said += pair
    assert [word for word in said if word not in SPANISH] == []


@pytest.mark.parametrize("word", [*PRESSURES, *LAYERS])
def test_what_concepts_are_sorted_by_has_a_spanish_word(word):
    assert word in SPANISH


def test_a_word_is_shown_in_one_language_at_a_time():
    html = both(label("Why"))
    assert '<span class="b" lang="en">Why</span>' in html
    assert '<span class="b" lang="es">Por qué</span>' in html
    assert both(label("no such word <b>")) == "no such word &lt;b&gt;"


def test_one_is_not_said_as_several():
    assert ">note<" in counted(1, "note", "notes")
    assert ">notas<" in counted(2, "note", "notes")
    assert counted(1234, "no such", "no suches") == "1,234 no suches"
