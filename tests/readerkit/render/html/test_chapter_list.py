"""The list of chapters says what each has, counted from its text and its claims."""

from __future__ import annotations

import re

from tests.helpers import make_book, run, write_files

TEXT = """\
# Two

One two three {= 2 * 3 } five.

```note close
```

```let
held = 2 * 16
```

## Six seven

Never `all_reduce` twice.
"""
CLAIMS = """\
claims:
  - says: Never `all_reduce` twice
    undecided: A figure of speech.
"""


def test_a_chapter_has_its_words_minutes_notes_and_claims(tmp_path, capsys):
    book = make_book(tmp_path)
    long = "# Long\n\n" + "word " * 1_000 + "\n"
    folder = "site/pages/chapters"
    texts = {"01-two.md": TEXT, "01-two.yaml": CLAIMS, "02-long.md": long}
    write_files(book.root, {f"{folder}/{name}": text for name, text in texts.items()})
    site = tmp_path / "site"
    done = run(capsys, "site", "build", "--book", str(book.root), "--output", str(site))
    assert done.code == 0, done.err
    html = (site / "chapters" / "index.html").read_text()
    rows = re.findall(r'<p class="facts">(.*?)</p>', html)
    english = [re.sub(r"<span class=b lang=es>.*?</span>", "", row) for row in rows]
    told = [re.sub("<[^>]+>", "", row) for row in english]
    assert told == ["1 minute · 11 words · 1 note · 1 claim", "5 minutes · 1,000 words"]
