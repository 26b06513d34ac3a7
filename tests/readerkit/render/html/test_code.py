"""Lines of source as HTML: coloured, numbered, linked, and harmless."""

from __future__ import annotations

import re
from html import unescape

import pytest

from readerkit.anchors.xref.names import collect_names
from readerkit.render.html.code import draw, link, numbered


def page(data, use=lambda chain, owner: (), definition=lambda name: None):
    data = data if isinstance(data, bytes) else data.encode()
    drawn = draw(data, collect_names(data))
    return link(b"".join(numbered(drawn, {2: "t1"})), use, definition).decode()


def text_of(html):
    """What a reader sees of each line: no markup, no numbers."""
    lines = re.findall(r"<div id=L\d+[^>]*>(.*?)</div>\n", html, re.S)
    return [unescape(re.sub(r"<[^>]*>", "", line)) for line in lines]


SOURCES = {
    "tokens": "import os\n\ndef f(a, *, b=1.5):\n    return not a  # why\n",
    "strings over lines": 'x = """one\n  two <b>\n"""\ny = 1\n',
    "an f-string": "def g(): ...\nx = f'{g()} & {g()!r:>{w}}'\n",
    "no end of line": "x = 1",
    "carriage returns": "x = 1\r\ny = '''a\r\nb'''\r\n",
    "markup in source": "x = '</script><img src=x onerror=alert(1)>' # <!-- & -->\n",
    "templates in source": "x = '{{7*7}}' # {% raw %} ${1}\n",
    "broken": "def f(:\n  ((( 'a\n",
    "empty": "",
}


@pytest.mark.parametrize("text", SOURCES.values(), ids=SOURCES)
def test_every_character_of_the_source_is_shown(text):
    lines = text.replace("\r\n", "\n").split("\n")
    assert text_of(page(text)) == (lines[:-1] if lines[-1] == "" else lines)


def test_source_brings_no_markup_of_its_own():
    html = page("x = '</script><img src=x onerror=alert(1)>'\n# <svg/onload=1>\n")
    assert not re.search(r"<(?!/?(?:div|em|[abiu])\b)", html)


@pytest.mark.parametrize(
    ("hidden", "name"),
    [
        ("\u202e", "U+202E"),
        ("\u200b", "U+200B"),
        ("\x1b", "U+001B"),
        ("\x01", "U+0001"),
        ("\x0c", "U+000C"),
        ("\u2028", "U+2028"),
        ("\ufeff", "U+FEFF"),
        ("\ufe0f", "U+FE0F"),
        ("\U000e0100", "U+E0100"),
    ],
)
def test_what_cannot_be_seen_is_spelt_out(hidden, name):
    html = page(f"x = 'a{hidden}b'  # c{hidden}d\n")
    assert html.count(f"<span class=hid>{name}</span>") == 2
    assert hidden not in html


def test_bytes_that_are_no_text_are_shown_as_such():
    assert "\ufffd" in page(b"x = '\xff\xfe'\n")


def test_marks_of_links_cannot_be_forged_by_source():
    forged = "x = '\1A\3b\4' # \2A\3b\4\n"
    html = page(forged, lambda chain, owner: [(0, "forged")], lambda name: f"to-{name}")
    assert "forged" not in html
    assert "to-A" not in html


def test_names_become_links_and_definitions_lead_to_their_uses():
    html = page(
        "import a.b as m\ndef f(): m.g.h()\nf()\n",
        lambda chain, owner: {
            "m.g.h": [(0, "there"), (1, "there#L1")],
            "f": [(0, "#L2")],
        }.get(chain, ()),
        lambda name: f"uses#{name}",
    )
    assert "<a href=there>m</a>.<a href=there#L1>g</a>.h()" in html
    assert "<a class=f href=uses#f>f</a>" in html
    assert "<a href=#L2>f</a>()" in html


def test_what_is_given_a_value_leads_to_its_uses_and_looks_as_before():
    linked = page("X = Y\n", definition="uses#{}".format)
    assert "<a href=uses#X>X</a> = Y" in linked
    assert "X = Y</div>" in page("X = Y\n")


def test_code_in_a_string_is_code():
    html = page(
        "def g(): ...\nx = f'a {g()!r:>{g}} b {g=}' rf'{d[\"k\"]}'\n",
        lambda chain, owner: {"g": [(0, "#L1")]}.get(chain, ()),
    )
    line = html.splitlines()[1]
    assert line.count("<a href=#L1>g</a>") == 3
    assert "<u>f'a {</u><a" in line
    assert """rf'{</u>d[<u>"k"</u>]""" in line


def test_lines_have_addresses_and_classes():
    html = page("a\nb\n")
    assert html == "<div id=L1>a</div>\n<div id=L2 class=t1>b</div>\n"


def test_one_endless_line_is_coloured_as_any_other():
    html = page("x = '" + "ab " * 33_000 + "'\nimport os\n")
    assert len(re.findall("<[bu]>", html)) == 2
    assert len(text_of(html)[0]) == 99_006


def test_code_that_does_not_parse_has_its_colours():
    html = page("def f(:\n    return 'a', f(  # why\n")
    assert "<b>def</b> <b class=f>f</b>(:" in html
    assert "<em># why</em>" in html


def test_keywords_side_by_side_are_one_element():
    assert "<b>return not</b> a" in page("def f(a):\n    return not a\n")


def test_an_address_stands_in_quotes_where_it_must():
    html = page("def f(): f()\n", lambda chain, owner: [(0, 'a=b"c.html')])
    assert '<a href="a=b&quot;c.html">f</a>()' in html
