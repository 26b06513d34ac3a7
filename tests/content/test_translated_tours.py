"""The tours that ship: true to their notes, and in Spanish whole and of today."""

from __future__ import annotations

from readerkit.claims.unproved import sentences_of, unproved
from tests.content.test_annotations import library
from tests.content.test_translations import changed


def test_the_tours_that_ship_are_translated_whole_from_the_english_of_today():
    book = library().book
    assert len(book.tours) >= 2
    for name, tour in book.tours.items():
        said, other = book.tour_translations["es"][name], book.tour_in(name, "es")
        assert said.of == tour.stamp, f"{name}: write of: {tour.stamp}"
        assert len(said.says) == len(tour.stops), name
        for here, there in zip(tour.claimed(), other.claimed(), strict=True):
            for key, english in here.texts.items():
                spanish = there.texts[key]
                assert changed(english, spanish) == [], f"{name}: {english[:60]}"
                counts = [len([*sentences_of(each)]) for each in (english, spanish)]
                assert counts[0] == counts[1], f"{name}: {english[:60]}"


def test_every_sentence_of_a_tour_that_asserts_something_has_a_claim():
    tours = library().book.tours.values()
    parts = (part for tour in tours for part in tour.claimed())
    assert [each for part in parts for each in unproved(part)] == []


def test_a_tour_passes_each_note_once():
    for tour in library().book.tours.values():
        names = [stop.note for stop in tour.stops]
        assert len(names) == len({*names}), tour.id
