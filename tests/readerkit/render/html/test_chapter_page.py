"""A chapter in two languages: the words in both, everything else once."""

from __future__ import annotations

import re

import pytest

from tests.helpers import make_book, run, write_files

pytestmark = pytest.mark.sampled

ENGLISH = """\
# Two ranks

Sum it.

```note close
```

```let
held = 2 * 16
```

One holds {= held | B }.

Then wait.

```schedule gpipe 2 4
```
"""
SPANISH = """\
# Dos ranks

Súmelo.

```note close
```

```let
held = 2 * 16
```

Uno guarda {= held | B }.

Luego espere.

```schedule gpipe 2 4
```
"""


def built(tmp_path, capsys, spanish: str, more: str = ""):
    book = make_book(tmp_path)
    texts = {"01-two.md": ENGLISH + more} | (
        {"01-two.es.md": spanish} if spanish else {}
    )
    write_files(
        book.root, {f"site/pages/chapters/{name}": texts[name] for name in texts}
    )
    site = tmp_path / "site"
    where = ("--book", str(book.root), "--output", str(site))
    return site / "chapters" / "two.html", run(capsys, "site", "build", *where)


def test_words_stand_in_both_languages_and_what_is_shown_stands_once(tmp_path, capsys):
    page, done = built(tmp_path, capsys, SPANISH)
    assert done.code == 0, done.err
    html = page.read_text()
    for english, spanish in [
        ("<p>Sum it.</p>", "<p>Súmelo.</p>"),
        ("One holds", "Uno guarda"),
        ("bubble 25.00% of ideal", "burbuja: 25.00% del ideal"),
        ("Two ranks", "Dos ranks"),
    ]:
        assert re.search(rf'lang="?en"?>\s*[^"]*{re.escape(english)}', html), english
        assert re.search(rf'lang="?es"?>\s*[^"]*{re.escape(spanish)}', html), spanish
    assert html.count('class="excerpt"') == 1
    assert html.count("<svg ") == 1
    assert html.count('<span class="computed">32 B</span>') == 2
    ids = re.findall(r'\bid="([^"]+)"', html)
    assert len(ids) == len(set(ids))


def test_without_a_spanish_text_the_english_one_stays(tmp_path, capsys):
    page, done = built(tmp_path, capsys, "")
    assert done.code == 0, done.err
    html = page.read_text()
    article = html.partition("<article")[2].partition("</article>")[0]
    assert article.count("Aún sin traducir") == 2  # the text, and the note in it
    assert '<div lang="en"><p>' in article  # English alone says so
    assert "<p>Sum it.</p>" in article


def test_a_chapter_lists_its_sections_in_each_language(tmp_path, capsys):
    spanish = SPANISH + "".join(f"\n## Parte *{n}*\n\nx\n" for n in "abc")
    more = "".join(f"\n## Part *{n}*\n\nx\n" for n in "abc")
    page, done = built(tmp_path, capsys, spanish, more)
    assert done.code == 0, done.err
    html = page.read_text()
    contents = html.partition('<nav class="on-page"')[2].partition("</nav>")[0]
    english, spanish = re.findall(r"<ol class=b lang=..>(.*?)</ol>", contents, re.S)
    assert re.findall(r">([^<]+)</a>", english)[-3:] == ["Part a", "Part b", "Part c"]
    assert re.findall(r">([^<]+)</a>", spanish)[-1] == "Parte c"
    for address in re.findall(r'href="#([^"]+)"', contents):
        assert html.count(f'<h2 id="{address}">') == 1


OTHER = {
    "another note": (
        SPANISH.replace("note close", "note whole-step"),
        ":5:1: not what the English text shows here: got 'note whole-step', "
        "expected 'note close'",
    ),
    "a number": (
        SPANISH.replace("2 *", "3 *"),
        ":8:1: not what the English text shows here: got 'let  held = 3 * 16', "
        "expected 'let  held = 2 * 16'",
    ),
    "less": (
        SPANISH.partition("```schedule")[0],
        ":10:1: the English text shows more: expected 'schedule gpipe 2 4'",
    ),
    "more": (
        SPANISH + "\n```note close\n```\n",
        ":19:1: not what the English text shows here: got 'note close', "
        "expected the end",
    ),
    "a formula that cannot be set": (
        SPANISH.replace("Luego", r"$\nada$"),
        ":14:1: formula $\\nada$",
    ),
}


@pytest.mark.parametrize(("spanish", "said"), OTHER.values(), ids=OTHER)
def test_spanish_that_shows_something_else_is_a_fault_where_it_stands(
    tmp_path, capsys, spanish, said
):
    _, done = built(tmp_path, capsys, spanish)
    assert done.code == 1
    assert f"site/pages/chapters/01-two.es.md{said}" in done.err


def test_a_formula_that_cannot_be_set_is_named_at_its_line(tmp_path, capsys):
    spanish = SPANISH.replace(
        "Luego espere.", "Uno.\n\nDos $x$,\ny tres $\\foo$.\n\nLuego espere."
    )
    _, done = built(tmp_path, capsys, spanish)
    assert done.code == 1
    line = spanish.split("\n").index("y tres $\\foo$.") + 1
    assert f"01-two.es.md:{line}:8: formula" in done.err


def test_a_link_in_a_title_does_not_cut_the_links_of_lists(tmp_path, capsys):
    linked = SPANISH.replace("# Dos ranks", "# Dos [ranks](https://a.example)")
    page, done = built(tmp_path, capsys, linked)
    assert done.code == 0, done.err
    assert "a.example" not in (page.parent / "index.html").read_text()
    assert "Dos ranks" in (page.parent / "index.html").read_text()


def test_a_page_with_lines_of_an_upstream_says_whose_they_are(tmp_path, capsys):
    page, done = built(tmp_path, capsys, "")
    assert done.code == 0, done.err
    assert "Nobody" in page.read_text().partition("<footer")[2]
