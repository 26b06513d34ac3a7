"""A symptom ends in what one checks, on its page and in the terminal."""

from __future__ import annotations

from tests.helpers import make_book, run, write_files

PATHS = """\
failures:
  - id: it-hangs
    symptom: It hangs
    cause: Somebody left.
    notes: [close]
    check: Ask *each* rank.
    run: readerkit run ddp
"""
SPANISH = """\
failures:
  it-hangs: {symptom: Se cuelga, cause: Alguien se fue., check: Pregunte a *cada* rank.}
"""


def test_check_and_command_stand_under_the_symptom(tmp_path, capsys):
    book = make_book(tmp_path)
    pages = {"paths.yaml": PATHS, "paths.es.yaml": SPANISH}
    write_files(book.root / "site" / "pages", pages)
    where = ("--book", str(book.root))
    done = run(capsys, "site", "build", *where, "--output", str(tmp_path / "site"))
    assert done.code == 0, done.err
    html = (tmp_path / "site" / "paths.html").read_text()
    for part in (
        "Ask <em>each</em> rank.",
        "Pregunte a <em>cada</em> rank.",
        "<code>readerkit run ddp</code>",
    ):
        assert part in html
    said = run(capsys, "path", "failure", *where).out
    assert "Ask" in said and "readerkit run ddp" in said
