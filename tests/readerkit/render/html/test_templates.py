"""What a template puts into a page is escaped, and nothing in it stays unseen."""

from __future__ import annotations

from html.parser import HTMLParser

from markupsafe import Markup

from readerkit.render.html.environment import Templates
from readerkit.render.html.words import Words

HIDDEN = 'a\u202eb" onclick="x'


class Tags(HTMLParser):
    """Keeps every tag with its attributes, and the text between them."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, list[str]]] = []
        self.text = ""
        self.feed(html)

    def handle_starttag(self, tag, attrs):
        self.tags.append((tag, [name for name, _ in attrs]))

    def handle_data(self, data):
        self.text += data


def test_plain_text_is_spelt_out_in_text_and_ends_no_attribute():
    template = '<p title="{{ page }}">{{ page }}</p>'
    for are_ours in (True, False):
        templates = Templates({"a.html": template}, Words(), are_ours=are_ours)
        read = Tags(templates.render("a.html", "a.html", HIDDEN))
        assert read.tags == [("p", ["title"]), ("span", ["class"])]
        assert read.text == 'aU+202Eb" onclick="x'


def test_markup_stays_and_an_attribute_may_be_given_plainly():
    template = '<p title="{{ page.text|plain }}">{{ page.markup }}</p>'
    page = {"text": HIDDEN, "markup": Markup("<b>1</b>")}
    html = Templates({"a.html": template}, Words()).render("a.html", "a.html", page)
    assert "a&lt;U+202E&gt;b&#34; onclick" in html and "<b>1</b>" in html


def test_a_template_that_was_compiled_says_the_words_of_today():
    text = {"a.html": '{{ "line"|say }}'}
    said = [
        Templates(text, Words({"line": spanish}), are_ours=True).render(
            "a.html", "", None
        )
        for spanish in ("renglón", "línea")
    ]
    assert "renglón" in said[0]
    assert "línea" in said[1]
