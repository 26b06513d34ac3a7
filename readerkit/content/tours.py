"""Tours: an ordered path of notes, with a sentence from each to the next."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, ClassVar

from msgspec.structs import replace

from readerkit.content.claims import Claimed
from readerkit.content.kind import Kind
from readerkit.content.translations import Translation, stamp_of
from readerkit.model.base import Id, Text, at_least


class TourNote(Claimed, frozen=True):
    """A note on a tour, and the sentence that leads to it."""

    TEXTS: ClassVar = ("says",)
    note: Id
    says: Text = ""


class TranslatedTour(Translation, frozen=True):
    """A tour in another language."""

    title: Text = ""
    about: Text = ""
    says: tuple[Text, ...] = ()
    """The sentence of each stop, in their order."""


class Tour(Claimed, frozen=True):
    """A way through notes that somebody laid, of any upstreams."""

    TEXTS: ClassVar = ("title", "about")
    id: Id
    title: Text
    about: Text
    stops: Annotated[tuple[TourNote, ...], at_least(2)]

    @property
    def stamp(self) -> str:
        """The name of its texts: what a translation of it is ``of``."""
        texts = {"title": self.title.split(), "about": self.about.split()}
        said = (word for stop in self.stops for word in stop.says.split())
        return stamp_of({**texts, "says": said})

    def claimed(self) -> Iterator[Claimed]:
        """Yield every part of it that may carry claims."""
        yield self
        yield from self.stops

    def with_texts(self, other: TranslatedTour) -> Tour:
        """Return it with the texts of a translation, where that has them."""
        said = [*other.says, *(stop.says for stop in self.stops[len(other.says) :])]
        stops = zip(self.stops, said, strict=False)
        return replace(
            self,
            title=other.title or self.title,
            about=other.about or self.about,
            stops=tuple(replace(stop, says=says) for stop, says in stops),
        )


TOUR: Kind[Tour] = Kind("tour", Tour, "one")
TOUR_TRANSLATION: Kind[TranslatedTour] = Kind(
    "tour-translation", TranslatedTour, "mapping"
)
