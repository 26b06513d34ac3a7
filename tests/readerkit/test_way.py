"""How far a note goes: the files that it enters, from its YAML to its HTML."""

from __future__ import annotations

from readerkit.content.parse_book import BookFile, read_book
from readerkit.content.resolved_notes import Sources, resolve_notes
from readerkit.render.html.environment import Templates
from readerkit.render.html.notes import note_view
from readerkit.render.html.words import Words
from tests.helpers import ROOT, entered, git, make_book

NOTE = (
    '{% import "parts.html" as parts with context %}{{ parts.note(page, "", "", "") }}'
)


def test_way_from_its_text_to_its_html_is_short(tmp_path):
    sample = make_book(tmp_path)
    files = [
        BookFile(path.relative_to(sample.root).as_posix(), path.read_bytes())
        for path in sorted((sample.root / "annotations").rglob("*.*"))
    ]
    texts = {path.name: path.read_text() for path in ROOT.glob("site/templates/*")}
    templates = Templates({**texts, "note": NOTE}, Words({}), are_ours=True)

    def shown() -> str:
        book, faults = read_book(files)
        assert not faults
        upstream, lock = book.upstreams["sample"], book.locks["sample"]
        sources = Sources(
            upstream,
            lock.files,
            lambda path: git(
                sample.repository, "show", f"{sample.commit}:{path}"
            ).encode(),
        )
        [note] = resolve_notes(book, sources, [book.annotations["close"]])
        view = note_view(note, book, templates.words)
        return templates.render("note", "a.html", view, site={"untranslated": ""})

    assert "<aside" in shown()  # imports, schemas and templates come first
    way = entered(shown)
    # Its upstream, its lock and what it names (concepts, works) are of the way too.
    assert len(way) <= 30, sorted(way)
