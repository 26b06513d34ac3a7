"""Questions, minis and tours in a chapter: shown, in both languages, or a fault."""

from __future__ import annotations

import base64
import json
import re

import pytest

from tests.helpers import make_book, run, write_files
from tests.readerkit.commands.test_tours import TOUR
from tests.served_quiz import make_quiz_book
from tests.snapshots.book import FILES, MINIS, add_upstream, record_of

pytestmark = pytest.mark.sampled

FENCES = """\
```predict pick
```

```question bytes
```

```mini sums The sum
```

```tour a-step
```
"""
ENGLISH = f"# All\n\nOne.\n\n{FENCES}"
SPANISH = f"# Todo\n\nUno.\n\n{FENCES}"


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    folder = tmp_path_factory.mktemp("fences")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("READERKIT_CACHE", str(folder / "cache"))
        patch.setenv("READERKIT_DATA", str(folder / "data"))
        patch.setenv("READERKIT_SCHEMES", "file")
        book = make_quiz_book(folder)
        add_upstream(book, MINIS)
        record = {
            "annotations/records/sums_sample.json": record_of(book, "sums_sample")
        }
        chapter = {"site/pages/chapters/01-all.md": ENGLISH}
        chapter["site/pages/chapters/01-all.es.md"] = SPANISH
        tour = {"annotations/tours/a-step.yaml": TOUR}
        write_files(book.root, {**FILES, **record, **chapter, **tour})
        from readerkit.app.library import open_library
        from readerkit.site.build import BuildCache, make_site
        from readerkit.site.inputs import find_inputs

        library = open_library(book.root, quiet=True)
        made = make_site(library, find_inputs(book.root), BuildCache())
        return {at: make for at, make in made.items()}


@pytest.fixture(scope="module")
def html(site):
    return site["chapters/all.html"]().decode()


def test_a_prediction_has_a_button_for_each_choice_and_its_key_folded(html):
    asked = html.partition('id="q-pick"')[2].partition('class="asked"')[0]
    assert len(re.findall(r'data-choose="[a-z]"', asked)) == asked.count("data-choose")
    assert asked.count("data-choose") > 1
    assert "Prediga" in asked
    assert asked.count('data-key="') == 1  # one variant
    key = json.loads(base64.b64decode(re.search(r'data-key="([^"]+)"', asked)[1]))
    assert {len(answer) for answer in key["answers"]} == {1}
    assert '<details class="solution">' in asked  # what stands without scripts


def test_a_question_is_asked_as_the_quiz_asks_it(html, site):
    own = site["quiz/7/all.html"]().decode()
    form = re.compile(r'id="q-bytes".*?(<form.*?</form>)', re.S)
    assert form.search(html)[1] == form.search(own)[1]
    assert 'data-phase="7"' in html
    assert "theme/asked.js" in html
    assert "theme/marks.js" not in html  # fetched once somebody answers


def test_a_mini_leads_to_its_file_its_pages_and_its_commands(html):
    card = html.partition('aria-label="mini_impls/sums.py"')[2].partition("</aside>")[0]
    for part in (
        'href="../read/minis/mini_impls/sums.py.html"',
        'href="../beside/closing.html"',
        'href="../beside/closing.html#r-sums_sample"',
        '<div class="code">',  # the lines of the section
        "<code>readerkit compare sums</code>",
    ):
        assert part in card, part


def test_a_tour_leads_to_its_page(html):
    card = html.partition('href="../tours/a-step.html"')[2].partition("</aside>")[0]
    assert "One step and its end" in card
    assert "readerkit annotate --tour a-step" in card


def test_ids_are_unique(html):
    ids = re.findall(r'\bid="([^"]+)"', html)
    assert len(ids) == len(set(ids))


@pytest.mark.parametrize(
    ("fence", "said"),
    [
        ("question bytes", "no question 'bytes': this book has no quiz"),
        ("predict pick", "no question 'pick': this book has no quiz"),
        ("mini ddp", "this book has no minis"),
        ("tour a-step", "unknown tour: got a-step"),
    ],
)
def test_a_book_without_quiz_minis_and_tours_says_so(tmp_path, capsys, fence, said):
    book = make_book(tmp_path)
    write_files(book.root, {"site/pages/chapters/01-a.md": f"# A\n\n```{fence}\n```\n"})
    for words in (
        ("annotate", "--check"),
        ("site", "build", "--output", str(tmp_path / "site")),
    ):
        done = run(capsys, *words, "--book", str(book.root))
        assert done.code == 1
        assert f"chapters/01-a.md:3:1: {said}" in done.err


@pytest.mark.parametrize(
    ("fence", "said"),
    [
        ("question pic", "no question 'pic'"),
        ("question nada", "'nada'"),
        ("predict bytes", "no prediction: bytes: got numeric, expected a question"),
    ],
)
def test_a_question_that_a_text_cannot_ask_is_a_fault(tmp_path, capsys, fence, said):
    book = make_quiz_book(tmp_path)
    write_files(book.root, {"site/pages/chapters/01-a.md": f"# A\n\n```{fence}\n```\n"})
    done = run(capsys, "annotate", "--check", "--book", str(book.root))
    assert done.code == 1
    [line] = [each for each in done.err.splitlines() if "01-a.md:3:1:" in each]
    assert said in line
