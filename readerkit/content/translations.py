"""The texts of an entry in another language, and of which English they say they are."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping
from typing import Annotated

from readerkit.content.kind import Kind
from readerkit.model.base import Id, Model, Text, pattern


def english_stamp(texts: Iterable[str]) -> str:
    """Return a short name of English texts, by which a translation says it is theirs.

    White space does not count. It begins with ``en-``, so that no reader of YAML takes
    eight digits for a number.
    """
    words = "\0".join(" ".join(text.split()) for text in texts)
    return f"en-{hashlib.sha256(words.encode()).hexdigest()[:8]}"


class Translation(Model, frozen=True):
    """One entry of a sidecar; without texts, where the sidecar has none of it."""

    of: Annotated[str, pattern("^en-[0-9a-f]{8}$")] = ""
    """The stamp of the English that was translated; empty where it says none."""

    @property
    def texts(self) -> Mapping[str, str]:
        """What it says, by the field that it is instead of."""
        given = {name: getattr(self, name) for name in self.__struct_fields__}
        return {name: text for name, text in given.items() if text and name != "of"}

    def is_outdated(self, stamp: str) -> bool:
        """Tell whether the English, of which this is the stamp, changed since."""
        return self.of not in ("", stamp)


class TranslatedNote(Translation, frozen=True):
    """An annotation in another language."""

    title: Text = ""
    decision: Text = ""
    alternative: Text = ""
    why: Text = ""
    cost: Text = ""
    text: Text = ""


class TranslatedConcept(Translation, frozen=True):
    """A concept in another language."""

    title: Text = ""
    summary: Text = ""


class TranslatedFailure(Translation, frozen=True):
    """A failure path in another language."""

    symptom: Text = ""
    cause: Text = ""


class TranslatedPair(Translation, frozen=True):
    """A pair of mechanisms in another language."""

    wire: Text = ""


class TranslatedPaths(Model, frozen=True):
    """The reading paths in another language, by the id of a failure or a pair."""

    failures: Mapping[Id, TranslatedFailure] = {}
    pairs: Mapping[Id, TranslatedPair] = {}


class TranslatedDiagram(Translation, frozen=True, kw_only=True):
    """What stands beside a diagram, in another language."""

    title: Text
    alternative: Text


NOTE_TRANSLATION: Kind[TranslatedNote] = Kind("translation", TranslatedNote, "mapping")
CONCEPT_TRANSLATION: Kind[TranslatedConcept] = Kind(
    "concept-translation", TranslatedConcept, "mapping"
)
PATH_TRANSLATION: Kind[TranslatedPaths] = Kind(
    "route-translation", TranslatedPaths, "one"
)
DIAGRAM_TRANSLATION: Kind[TranslatedDiagram] = Kind(
    "diagram-translation", TranslatedDiagram, "one"
)
