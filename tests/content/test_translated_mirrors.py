"""The Spanish mirrors: of what exists, in its order, and with its numbers and code."""

from __future__ import annotations

from collections.abc import Iterator

from readerkit.claims.unproved import sentences_of
from readerkit.content.mirrors import Mirror
from tests.content.test_annotations import library
from tests.content.test_translations import changed


def translated() -> list[tuple[Mirror, Mirror]]:
    """Return the mirrors that have Spanish texts, each with what it is in Spanish."""
    book = library().book
    return [
        (book.mirrors[name], book.mirror_in(name, "es"))
        for name in book.mirror_translations["es"]
    ]


def texts() -> Iterator[tuple[str, str, str]]:
    """Yield each text of those: where it stands, in English and in Spanish."""
    for mirror, other in translated():
        for here, there in zip(mirror.claimed(), other.claimed(), strict=True):
            for name, english in here.texts.items():
                where = f"{mirror.id}: {name}: {english[:60]}"
                yield where, english, there.texts[name]


def test_the_mirrors_that_ship_are_translated():
    assert len(translated()) >= 13


def test_a_translated_mirror_has_all_sections_in_their_order():
    said = library().book.mirror_translations["es"]
    for mirror, _ in translated():
        titles = [section.title for section in mirror.sections]
        assert [*said[mirror.id].sections] == titles, mirror.id


def test_a_mirror_is_translated_whole_with_its_numbers_code_and_links():
    assert [
        (where, rows)
        for where, english, spanish in texts()
        if (rows := changed(english, spanish))
    ] == []


def test_a_text_has_as_many_sentences_in_spanish():
    """So that the mark of a proved sentence stands behind the one that says it."""
    assert [
        where
        for where, english, spanish in texts()
        if len([*sentences_of(english)]) != len([*sentences_of(spanish)])
    ] == []


def test_a_mirror_is_translated_from_the_english_of_today():
    said = library().book.mirror_translations["es"]
    stale = [m.id for m, _ in translated() if said[m.id].of != m.stamp]
    stale += [
        f"{mirror.id}, {section.title}"
        for mirror, _ in translated()
        for section in mirror.sections
        if said[mirror.id].sections[section.title].of != section.stamp
    ]
    assert stale == [], "readerkit annotate --check tells what to do"
