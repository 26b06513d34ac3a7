"""Notes and chapters as HTML: what people write cannot act."""

from __future__ import annotations

import re

import pytest

from readerkit.render.html.markdown import FormulaError, line, prose, title

HOSTILE = [
    "<script>alert(1)</script>",
    "<img src=x onerror=alert(1)>",
    "[x](javascript:alert(1))",
    "[x](JaVaScRiPt:alert(1))",
    "[x](&#106;avascript:alert(1))",
    "[x](java\tscript:alert(1))",
    "[x](data:text/html,<script>1</script>)",
    "[x](vbscript:1)",
    "[x]: javascript:alert(1)\n\n[x]",
    "<javascript:alert(1)>",
    "![x](javascript:alert(1))",
    "<svg/onload=alert(1)>",
    "<a href=x onclick=alert(1)>x</a>",
    '[x](https://a.b "\\" onmouseover=alert(1)")',
    "$\\href{javascript:alert(1)}{x}$",
    "$\\text{<script>alert(1)</script>}$",
    "`</code><script>alert(1)</script>`",
    "[x](//evil.example/)",
    "[x](&#47;/evil.example/)",
    "<iframe src=//x></iframe><base href=//x><meta http-equiv=refresh>",
]


@pytest.mark.parametrize("text", HOSTILE)
def test_nothing_acts(text):
    try:
        html = prose(text)
    except FormulaError:
        return
    tags = re.findall(r"<[^>]+>", html)
    assert not [
        tag for tag in tags if re.match(r"</?(script|img|svg|iframe|base|meta)", tag)
    ]
    assert not [
        tag for tag in tags if re.search(r"\son\w+\s*=", re.sub(r'"[^"]*"', "", tag))
    ]
    assert not [tag for tag in tags if re.search(r'href="(?!https?://)', tag)]


def test_a_title_may_stand_in_a_link():
    assert title("[a](https://a.example) `b` $x^2$") == line("a `b` $x^2$")


def test_templates_are_text():
    assert "{{7*7}}" in prose("{{7*7}}")


def test_hidden_characters_are_spelt_out():
    assert "U+202E" in prose("a\u202eb")


def test_markdown_that_notes_use():
    assert line("`a<b` and *c*") == "<code>a&lt;b</code> and <em>c</em>"
    assert "<p>one</p>" in prose("one\n\ntwo")


def test_formulas_become_mathml():
    assert "<mfrac>" in prose("It costs $\\frac{2(N-1)}{N}$ each.")
    assert "<math" not in prose("Between $3 and $4.")


def test_a_formula_that_is_none_is_refused():
    with pytest.raises(FormulaError, match=r"\$\\foo\$.*[Uu]nknown command"):
        prose("$\\foo$")
