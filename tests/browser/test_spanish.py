"""On a page in Spanish all that is still English says so, where it stands.

What reads the same in both languages is a name, or English that nobody translated: a
voice would read it with the sounds of Spanish, and a reader not know why.
"""

from __future__ import annotations

import re

import pytest
from playwright.sync_api import expect

from tests.browser.barriers import barriers
from tests.browser.test_pages import KINDS
from tests.browser.test_valid import MECHANISMS
from tests.quick import quick_first, quick_third

pytestmark = pytest.mark.sampled

OPEN_ALL = """() => {
  document.querySelectorAll("details").forEach(each => { each.open = true; });
  return new Promise(done => requestAnimationFrame(() => setTimeout(done)));
}"""
"""What is filled when it is opened is so a moment later."""
TEXTS = """() => {
  const texts = new Set();
  const put = (text, element) => {
    const language = element.closest("[lang]").getAttribute("lang");
    const isCode = element.closest("code, pre, kbd, samp, math, .code");
    if (language === document.documentElement.lang && !isCode)
      texts.add(text.trim().replace(/\\s+/g, " "));
  };
  const root = document.documentElement;
  const walk = document.createTreeWalker(root, NodeFilter.SHOW_TEXT);
  while (walk.nextNode()) {
    const at = walk.currentNode.parentElement;
    if (at.closest("script, style, template, noscript")) continue;
    const isSeen = !at.closest("head") && at.checkVisibility();
    if (isSeen || at.matches("title, desc")) put(walk.currentNode.data, at);
  }
  for (const name of ["aria-label", "title", "placeholder", "alt"])
    document.querySelectorAll(`[${name}]`).forEach(each => {
      if (each.checkVisibility()) put(each.getAttribute(name), each);
    });
  return Array.from(texts);
}"""
SENTENCE = re.compile(r"[A-Za-z][a-z']+,? (?:[A-Za-z]+,? )*[a-z]{2,}")
"""Two words of prose beside each other: no path, no symbol, no product."""
MEASURED = re.compile(
    r"\d (?:(?:year|month|week|day|hour|minute|time|step|sequence|element|parameter)s?"
    r"|GPUs)\b"
)
MORE = ("chapters/a-run-of-weeks.html", "beside/fsdp.html")
SAME = (
    "Language · Idioma",
    "the PyTorch contributors",  # whose licence names them so
    "Megatron-LM trainer",
    "queries, keys, values",
    "BSD-3-Clause AND Apache-2.0",
)


def english(page):
    """Return what stands unmarked in Spanish as it does in English."""
    said = {}
    for language in ("en", "es"):
        page.locator(f"#lang-{language} + label").click()
        expect(page.locator("html")).to_have_attribute("lang", language)
        page.evaluate(OPEN_ALL)
        said[language] = {*page.evaluate(TEXTS)}
    return sorted(
        text
        for text in said["en"] & said["es"]
        if (SENTENCE.search(text) or MEASURED.search(text))
        and not any(name in text for name in SAME)
    )


@pytest.mark.parametrize(
    "page",
    [*quick_third(KINDS.values()), *quick_first(MECHANISMS), "labs/00.html", *MORE],
    ids=str,
)
def test_what_is_english_on_a_spanish_page_is_marked(site, open_page, page):
    assert english(open_page(f"file://{site}/{page}")) == []


def test_unmarked_english_is_found_wherever_it_stands(open_page, small_site):
    page = open_page(f"file://{small_site}/index.html")
    assert english(page) == []
    page.evaluate("""() => {
        const main = document.querySelector("main");
        main.insertAdjacentHTML("beforeend", `<p>some plain words</p>
          <p>356 years</p>
          <p lang="en">some marked words</p><p><code>some code words</code></p>
          <button aria-label="words of a button">x</button>
          <svg role="img"><title>words of a drawing</title><text y="9">words drawn in it
          </text></svg>`);
        document.title = "words of the title";
        delete document.querySelector("title").dataset.es;
        document.querySelector("title").removeAttribute("lang");
    }""")
    assert english(page) == [
        "356 years",
        "some plain words",
        "words drawn in it",
        "words of a button",
        "words of a drawing",
        "words of the title",
    ]


def test_the_title_of_a_files_uses_is_told(site):
    html = (site / KINDS["uses"]).read_text()
    assert '<title data-es="Usos de mlp.py · readerkit">Uses of mlp.py' in html


@pytest.mark.further
def test_a_way_back_to_a_sentence_looks_like_a_link(site, open_page):
    page = open_page(f"file://{site}/beside/offload.html")
    page.locator("#lang-es + label").click()
    page.evaluate(OPEN_ALL)
    assert page.locator("a.back:visible").count() > 5
    assert barriers(page, "link-in-text-block") == ""


def test_titles_and_names_follow_the_language(site, open_page):
    page = open_page(f"file://{site}/mechanisms/ring-all-reduce.html")
    ways = page.locator("nav.around")
    english_title = page.title()
    drawn = page.locator("svg.stage title")
    expect(ways).to_have_attribute("aria-label", "On the way")
    page.locator("#lang-es + label").click()
    expect(ways).to_have_attribute("aria-label", "En el camino")
    expect(page).not_to_have_title(english_title)
    expect(page).to_have_title(f"{drawn.text_content()} · readerkit")
    page.reload()  # the choice is kept, and is there from the start
    expect(ways).to_have_attribute("aria-label", "En el camino")
    page.locator("#lang-en + label").click()
    expect(page).to_have_title(english_title)
    expect(ways).to_have_attribute("aria-label", "On the way")
