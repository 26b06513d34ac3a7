"""What notes presume: named once, held once, shown wherever a note is read."""

from __future__ import annotations

import json

import pytest

from tests.helpers import ANNOTATIONS, make_book, run

ENGLISH = """\
- {id: several-ranks, title: its group has more than one rank}
- id: sequence-parallel
  title: "`sequence_parallel` is set, and forward asks for it"
  claims:
  - says: forward asks for it
    stands: {file: lib/linear.py, code: "if self.sequence_parallel: ..."}
"""
SPANISH = """\
several-ranks: {title: su grupo tiene más de un rank}
"""
NOTES = ANNOTATIONS.replace(
    "  concepts: [all-reduce]\n",
    "  concepts: [all-reduce]\n  conditions: [several-ranks, sequence-parallel]\n",
)
WORDS = "its group has more than one rank; sequence_parallel is set, and forward asks"


@pytest.fixture
def book(tmp_path):
    more = {
        "conditions.yaml": ENGLISH,
        "conditions.es.yaml": SPANISH,
        "sample/linear.es.yaml": "close: {title: El cierre}\n",
    }
    return make_book(tmp_path, annotations=NOTES, more=more)


def readerkit(capsys, book, *arguments):
    return run(capsys, *arguments, "--book", str(book.root))


def test_a_note_says_where_it_holds_in_the_language_of_its_reader(capsys, book):
    assert WORDS in " ".join(readerkit(capsys, book, "annotate", "close").out.split())
    spanish = readerkit(capsys, book, "annotate", "close", "--lang", "es").out
    assert "Vale donde  su grupo tiene más de un rank; sequence_parallel" in spanish
    plain = json.loads(readerkit(capsys, book, "annotate", "close", "--json").out)
    assert plain["conditions"] == ["several-ranks", "sequence-parallel"]
    assert "Holds where" not in readerkit(capsys, book, "annotate", "whole-step").out


def test_what_is_always_presumed_stands_beside_every_note_of_the_book(capsys, book):
    eager = "- {id: eager, title: nothing is compiled, always: true}\n"
    book.path("conditions.yaml").write_text(ENGLISH + eager)
    for note, before in (("close", "forward asks for it; "), ("whole-step", "where ")):
        out = " ".join(readerkit(capsys, book, "annotate", note).out.split())
        assert f"{before}nothing is compiled" in out.replace("where  ", "where ")
    found = readerkit(capsys, book, "annotate", "--condition", "eager").out
    assert "close" in found and "whole-step" in found
    readerkit(capsys, book, "site", "build", "--output", str(book.root / "site"))
    page = (book.root / "site" / "conditions.html").read_text()
    assert "Every note presumes this" in page.partition('id="eager"')[2]
    note = (book.root / "site" / "read/sample/lib/linear.py.html").read_text()
    assert note.count('href="../../../conditions.html#eager"') == 2


def test_notes_are_found_by_what_they_presume(capsys, book):
    found = readerkit(capsys, book, "annotate", "--condition", "several-ranks").out
    assert "close" in found and "whole-step" not in found
    wrong = readerkit(capsys, book, "annotate", "--condition", "many-ranks")
    assert wrong.code == 2 and "did you mean several-ranks?" in wrong.err


def test_a_note_keeps_its_conditions_where_it_leaves_the_book(capsys, book):
    out = readerkit(capsys, book, "export", "--markdown", "-").out
    assert "Holds where: its group has more than one rank; `sequence_parallel`" in out


def test_pages_name_conditions_and_their_page_lists_the_notes(capsys, book, tmp_path):
    site = tmp_path / "site"
    done = readerkit(capsys, book, "site", "build", "--output", str(site))
    assert done.code == 0, done.err
    note = (site / "read/sample/lib/linear.py.html").read_text()
    assert 'href="../../../conditions.html#several-ranks"' in note
    page = (site / "conditions.html").read_text()
    _, ranks, setting = page.split('<section class="concept"')
    assert "su grupo tiene más de un rank" in ranks and "linear.py" in ranks
    assert "<code>sequence_parallel</code>" in setting
    assert 'class="proof claims"' in setting and 'class="proof claims"' not in ranks


def test_a_condition_that_is_not_there_is_a_fault_where_it_is_named(capsys, book):
    book.path("conditions.yaml").write_text(ENGLISH.replace("several-ranks", "ranks"))
    done = readerkit(capsys, book, "annotate", "--check")
    assert done.code == 1
    line = 1 + NOTES.splitlines().index(
        "  conditions: [several-ranks, sequence-parallel]"
    )
    assert f"sample/linear.yaml:{line}:16: unknown condition: got 'several-" in done.err
    assert "conditions.es.yaml:1:1: unknown condition: got 'several-ran" in done.err


def test_what_a_condition_says_is_held_like_any_sentence(capsys, book):
    wrong = ENGLISH.replace("if self.sequence_parallel: ...", "if self.other: ...")
    book.path("conditions.yaml").write_text(wrong)
    done = readerkit(capsys, book, "annotate", "--check")
    assert done.code == 1
    assert "annotations/conditions.yaml:5:" in done.err
    assert "forward asks for it" in done.err
