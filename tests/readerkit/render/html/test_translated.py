"""Notes and mirrors in Spanish: what is missing is marked, and what is outdated."""

from __future__ import annotations

import re

import pytest

from readerkit.app.interface_translation import say_in
from tests.helpers import make_book, run, write_files
from tests.snapshots.book import FILES, MINIS, add_upstream

pytestmark = pytest.mark.sampled

MISSING = say_in("es")("Not translated yet: the English text.")
OUTDATED = say_in("es")("The English text changed after this one.")


def marks(tmp_path, capsys, sidecar: str) -> dict[str, list[str]]:
    """Return the marks of each note on the page of the sample."""
    book = make_book(tmp_path, more={"sample/linear.es.yaml": sidecar})
    site = tmp_path / "site"
    where = ("--book", str(book.root), "--output", str(site))
    done = run(capsys, "site", "build", *where)
    assert done.code == 0, done.err
    html = (site / "read" / "sample" / "lib" / "linear.py.html").read_text()
    notes = re.findall(r'<aside class="note[^>]*id="([\w-]+)".*?</aside>', html, re.S)
    shown = re.split(r'<aside class="note', html)[1:]
    return {
        name: re.findall(r'<p class="only-es" lang="es">(.*?)</p>', part)
        for name, part in zip(notes, shown, strict=True)
    }


def test_note_without_a_translation_is_marked(tmp_path, capsys):
    found = marks(tmp_path, capsys, "close: {title: El cierre}\n")
    assert found == {"close": [], "whole-step": [MISSING]}


def test_note_whose_english_changed_since_is_marked(tmp_path, capsys):
    sidecar = "close: {of: en-00000000, title: El cierre}\n"
    found = marks(tmp_path, capsys, sidecar)
    assert found == {"close": [OUTDATED], "whole-step": [MISSING]}


# --- side-by-side pages ---

SPANISH = """\
closing:
  title: Cómo se cierra un bloque
  idea: "Sumar al final: $y = \\\\sum_r y_r$."
  sections:
    The sum:
      title: La suma
      why: Un colectivo, sin conmutador.
      leaves_out: [{what: paralelismo de secuencia, why: Lo tiene otro mini.}]
"""


@pytest.fixture
def beside(tmp_path, capsys):
    """Build a site whose mirror has this sidecar; return two pages of it."""

    def build(sidecar: str) -> tuple[str, str]:
        more = {"mirrors/closing.es.yaml": sidecar} if sidecar else {}
        book = make_book(tmp_path, more=more)
        write_files(book.root, FILES)
        add_upstream(book, MINIS)
        site = tmp_path / "site"
        where = ("--book", str(book.root), "--output", str(site))
        done = run(capsys, "site", "build", *where)
        assert done.code == 0, done.err
        pages = ("beside/closing.html", "beside/index.html")
        return tuple((site / page).read_text("utf-8") for page in pages)

    return build


def spanish(html: str) -> list[str]:
    found = re.findall(r"<\w+ class=b lang=es>(.*?)</(?:span|div)>", html, re.S)
    return [re.sub(r"<math.*?</math>|<[^>]+>", "", each).strip() for each in found]


def missing(html: str) -> list[str]:
    main = html[html.index("<main") :]
    return re.findall(r'<p class="only-es" lang="es">(.*?)</p>', main)


def test_a_mirror_is_shown_in_both_languages(beside):
    page, index = beside(SPANISH)
    said = spanish(page)
    for text in (
        "Cómo se cierra un bloque",
        "La suma",
        "Un colectivo, sin conmutador.",
        "paralelismo de secuencia",
        "Lo tiene otro mini.",
    ):
        assert text in said, text
    assert any(each.startswith("Sumar al final:") for each in said)
    assert "Cómo se cierra un bloque" in spanish(index)
    assert MISSING not in missing(page)[:1] and missing(index) == []
    [title] = re.findall(r"<title[^>]*>.*?</title>", page)
    assert 'data-es="Cómo se cierra un bloque · readerkit"' in title


@pytest.mark.parametrize(
    ("sidecar", "marked", "listed"),
    [
        ("", [MISSING], [MISSING]),
        (
            SPANISH.replace("      why: Un colectivo, sin conmutador.\n", ""),
            [MISSING],
            [],
        ),
        (SPANISH.replace(", why: Lo tiene otro mini.", ""), [MISSING], []),
        (
            SPANISH.replace("  idea:", "  of: idea-00000000\n  idea:"),
            [OUTDATED],
            [OUTDATED],
        ),
        (
            SPANISH.replace("      why:", "      of: why-00000000\n      why:"),
            [OUTDATED],
            [],
        ),
    ],
    ids=["no sidecar", "a reason", "an omission", "an older idea", "an older section"],
)
def test_what_a_mirror_lacks_in_spanish_is_marked(beside, sidecar, marked, listed):
    page, index = beside(sidecar)
    own = page[: page.index('<div class="columns">')]
    assert (missing(own), missing(index)) == (marked, listed)
