"""A setting in a chapter: its items as the commands print them, and its controls."""

from __future__ import annotations

import json
import re
from html import unescape

import pytest

from tests.helpers import make_book, run, write_files

pytestmark = pytest.mark.sampled

ENGLISH = """\
# A setting

```setting model=llama-2-70b dp=8 tp=8 zero=3 flash=true
dials: zero dp flash
memory: weights = what the *weights* take
memory: total = all of it, of {= gpu("h100-80gb", "memory") | GB }
comm: dp in all = what data parallelism sends
```
"""
SPANISH = """\
# Una configuración

```setting model=llama-2-70b dp=8 tp=8 zero=3 flash=true
dials: zero dp flash
memory: weights = lo que ocupan los *pesos*
memory: total = todo, de {= gpu("h100-80gb", "memory") | GB }
comm: dp in all = lo que envía el paralelismo de datos
```
"""
ARGUMENTS = ("--model", "llama-2-70b", "--dp", "8", "--tp", "8", "--zero", "3")


def built(tmp_path, capsys, english=ENGLISH, spanish=SPANISH):
    book = make_book(tmp_path)
    folder = "site/pages/chapters"
    texts = {f"{folder}/01-s.md": english, f"{folder}/01-s.es.md": spanish}
    write_files(book.root, {at: text for at, text in texts.items() if text})
    where = ("--book", str(book.root), "--output", str(tmp_path / "site"))
    return tmp_path / "site", run(capsys, "site", "build", *where)


def test_items_are_those_of_the_commands(tmp_path, capsys):
    site, done = built(tmp_path, capsys)
    assert done.code == 0, done.err
    html = (site / "chapters" / "s.html").read_text()
    said = json.loads(run(capsys, "estimate", "memory", *ARGUMENTS, "--json").out)
    parts = [item for each in said["estimates"] for item in each["items"]]
    items = {each["name"]: each for each in parts}
    for name in ("weights", "total"):
        row = html.partition(f'data-item="{name}"')[2].partition("</tr>")[0]
        assert items[name]["substitution"] in unescape(re.sub("<[^>]+>", "", row))
    for part in (
        "what the <em>weights</em> take",
        "lo que ocupan los <em>pesos</em>",
        '<span class="computed">80 GB</span>',
        "pesos</span>",
        "readerkit estimate memory --model llama-2-70b --gpu h100-80gb --dp 8 --tp 8",
        "readerkit estimate comm --model llama-2-70b --dp 8 --tp 8 --zero 3",
        'href="../estimates.html#model=llama-2-70b&amp;dp=8&amp;tp=8&amp;zero=3"',
    ):
        assert part in html, part
    form = html.partition('class="set-here"')[2].partition("</form>")[0]
    assert re.findall(r' name="(\w+)"', form) == ["zero", "dp", "flash"]
    assert (site / "theme" / "estimates.js").is_file()


def test_what_a_page_fetches_before_anybody_touches_it_is_small(tmp_path, capsys):
    site, done = built(tmp_path, capsys)
    assert done.code == 0, done.err
    html = (site / "chapters" / "s.html").read_text()
    scripts = re.findall(r'<script src="\.\./([^"]+)"', html)
    assert "theme/dials.js" in scripts
    assert sum((site / each).stat().st_size for each in scripts) < 60_000


WRONG = {
    "no dial": ("wings=2", "memory: total = x", 3, "'wings'"),
    "no value": ("dp", "memory: total = x", 3, "got 'dp', expected KEY=VALUE"),
    "not whole": ("dp=two", "memory: total = x", 3, "dp: got 'two'"),
    "refused": ("tp=3", "memory: total = x", 4, "heads"),
    "no question": ("dp=2", "wings: total = x", 4, "'wings'"),
    "no item": ("dp=2", "memory: wings = x", 4, "'wings'"),
    "no row": ("dp=2", "memory total", 4, "not a row of a setting"),
    "no items": ("dp=2", "dials: dp", 3, "a setting of no items"),
    "no dial to turn": ("dp=2", "dials: wings\nmemory: total = x", 4, "'wings'"),
    "no number": ("dp=2", "memory: total = {= nada }", 4, "unknown name 'nada'"),
}


@pytest.mark.parametrize(("words", "rows", "line", "said"), WRONG.values(), ids=WRONG)
def test_a_setting_that_says_nothing_is_a_fault_at_its_line(
    tmp_path, capsys, words, rows, line, said
):
    book = make_book(tmp_path)
    text = f"# S\n\n```setting {words}\n{rows}\n```\n"
    write_files(book.root, {"site/pages/chapters/01-s.md": text})
    done = run(capsys, "annotate", "--check", "--book", str(book.root))
    assert done.code == 1
    [fault] = [each for each in done.err.splitlines() if "01-s.md:" in each]
    assert f"01-s.md:{line}:1:" in fault
    assert said in fault


def test_spanish_has_the_same_setting(tmp_path, capsys):
    _, done = built(
        tmp_path, capsys, spanish=SPANISH.replace("memory: total", "memory: left")
    )
    assert done.code == 1
    assert "01-s.es.md:3:1: not what the English text shows here" in done.err
