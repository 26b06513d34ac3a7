"""The texts of an entry in another language, and of which English they say they are."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Annotated

from readerkit.content.kind import Kind
from readerkit.model.base import Id, Model, Name, Text, pattern
from readerkit.model.freshness import Change, MadeFrom, changes, digest

_SLOT = re.compile(r"\$?\{[^{}]+\}")


def english_stamp(entry: object, fields: Iterable[str]) -> str:
    """Return which English texts of an entry there are, each by its name and a digest.

    A translation says by it of which English it is. White space does not count.

    >>> from types import SimpleNamespace
    >>> concept = SimpleNamespace(title="Buckets", summary="Fewer sums.")
    >>> english_stamp(concept, ["title", "summary"])
    'title-9b5cc8b7 summary-a40d98db'
    """
    values = {name: getattr(entry, name) for name in fields}
    texts = {
        name: value.split()
        if isinstance(value, str)
        else (each if isinstance(each, str) else each.says for each in value)
        for name, value in values.items()
    }
    return stamp_of(texts)


def stamp_of(texts: Mapping[str, Iterable[str]]) -> str:
    """Return the stamp of texts that are made of parts; of none that is empty."""
    whole = {name: " ".join(parts) for name, parts in texts.items()}
    marks = (f"{name}-{digest(text)[:8]}" for name, text in whole.items() if text)
    return " ".join(marks)


def _parts(stamp: str) -> MadeFrom:
    return {name: mark for name, _, mark in (p.rpartition("-") for p in stamp.split())}


class Translation(Model, frozen=True):
    """One entry of a sidecar; without texts, where the sidecar has none of it."""

    of: Annotated[str, pattern("^[a-z_]+-[0-9a-f]{8}( [a-z_]+-[0-9a-f]{8})*$")] = ""
    """The stamp of the English that was translated; empty where it says none."""

    @property
    def texts(self) -> Mapping[str, str]:
        """What it says, by the field that it is instead of."""
        given = {name: getattr(self, name) for name in self.__struct_fields__}
        also = enumerate(given.pop("also", ()), start=1)
        given |= {f"also {number}": text for number, text in also}
        return {
            name: text
            for name, text in given.items()
            if isinstance(text, str) and text and name != "of"
        }

    def changes(self, stamp: str) -> list[Change]:
        """Return which of the English texts, of which this is the stamp, changed."""
        return changes(_parts(self.of), _parts(stamp)) if self.of else []

    def is_outdated(self, stamp: str) -> bool:
        """Tell whether any of them did."""
        return bool(self.changes(stamp))


class TranslatedNote(Translation, frozen=True):
    """An annotation in another language."""

    title: Text = ""
    decision: Text = ""
    alternative: Text = ""
    why: Text = ""
    cost: Text = ""
    text: Text = ""
    also: tuple[Text, ...] = ()
    """What its other lines say to it, in their order."""


class TranslatedConcept(Translation, frozen=True):
    """A concept in another language."""

    title: Text = ""
    summary: Text = ""


class TranslatedCondition(Translation, frozen=True):
    """A condition of notes in another language."""

    title: Text = ""


class TranslatedOmission(Model, frozen=True):
    """What a mini leaves out, in another language."""

    what: Text = ""
    why: Text = ""


class TranslatedSection(Translation, frozen=True):
    """A section of a mirror in another language."""

    title: Text = ""
    why: Text = ""
    leaves_out: tuple[TranslatedOmission, ...] = ()
    """In the order of the English ones. The same for the next."""
    differences: tuple[Text, ...] = ()
    """The reason of each."""


class TranslatedMirror(Translation, frozen=True):
    """A mirror in another language."""

    title: Text = ""
    idea: Text = ""
    sections: Mapping[Text, TranslatedSection] = {}
    """By the English title."""


class TranslatedFailure(Translation, frozen=True):
    """A failure path in another language."""

    symptom: Text = ""
    cause: Text = ""
    check: Text = ""


class TranslatedPair(Translation, frozen=True):
    """A pair of mechanisms in another language."""

    wire: Text = ""


class TranslatedPaths(Model, frozen=True):
    """The reading paths in another language, by the id of a failure or a pair."""

    failures: Mapping[Id, TranslatedFailure] = {}
    pairs: Mapping[Id, TranslatedPair] = {}


class TranslatedQuestion(Translation, frozen=True):
    """A question of a quiz in another language, its formulas in braces kept."""

    prompt: Text = ""
    explanation: Text = ""
    rest: tuple[Text, ...] = ()
    """Its other texts, in their order: options and reasons, remarks, points."""

    def faults(self, english: TranslatedQuestion) -> list[str]:
        """Return what no translation of this English can be."""
        if len(self.rest) != len(english.rest):
            return [f"'rest' has {len(self.rest)} texts: expected {len(english.rest)}"]
        pairs = [
            (self.prompt, english.prompt),
            (self.explanation, english.explanation),
            *zip(self.rest, english.rest, strict=True),
        ]
        return [
            f"other formulas in braces than in the English: {said[:60]}"
            for said, text in pairs
            if said and sorted(_SLOT.findall(said)) != sorted(_SLOT.findall(text))
        ]


class TranslatedTitle(Translation, frozen=True):
    """What only has a title, in another language."""

    title: Text = ""


class TranslatedBank(Model, frozen=True):
    """A bank's own file in another language."""

    bank: TranslatedTitle
    objectives: Mapping[Id, TranslatedTitle] = {}
    topics: Mapping[Name, Text] = {}
    """What pages call a file of questions, by its name."""


class TranslatedDiagram(Translation, frozen=True, kw_only=True):
    """What stands beside a diagram, in another language."""

    title: Text
    alternative: Text


class InterfaceWords(Model, frozen=True):
    """What site and terminal say around the content in another language.

    By the English words, as templates and code have them.
    """

    scripts: Mapping[Text, Text]
    """Said by the scripts of the theme: every page hands these over."""
    phrases: Mapping[Text, Text]
    estimates: Mapping[Text, Text] = {}
    """Said by the estimates alone, where a word may mean something else."""
    records: Mapping[Text, Text] = {}
    """Parts of the texts of records (``model/told_parts.py``)."""
    conventions: Mapping[Text, Text] = {}
    """Parts of what estimates say of their numbers."""

    @property
    def all(self) -> Mapping[str, str]:
        """Every word, wherever it is said, between the blanks of the English one."""
        both = {**self.scripts, **self.phrases}
        return {phrase: phrase.replace(phrase.strip(), both[phrase]) for phrase in both}


NOTE_TRANSLATION: Kind[TranslatedNote] = Kind("translation", TranslatedNote, "mapping")
CONCEPT_TRANSLATION: Kind[TranslatedConcept] = Kind(
    "concept-translation", TranslatedConcept, "mapping"
)
CONDITION_TRANSLATION: Kind[TranslatedCondition] = Kind(
    "condition-translation", TranslatedCondition, "mapping"
)
MIRROR_TRANSLATION: Kind[TranslatedMirror] = Kind(
    "mirror-translation", TranslatedMirror, "mapping"
)
PATH_TRANSLATION: Kind[TranslatedPaths] = Kind(
    "route-translation", TranslatedPaths, "one"
)
DIAGRAM_TRANSLATION: Kind[TranslatedDiagram] = Kind(
    "diagram-translation", TranslatedDiagram, "one"
)
QUESTION_TRANSLATION: Kind[TranslatedQuestion] = Kind(
    "question-translation", TranslatedQuestion, "mapping"
)
BANK_TRANSLATION: Kind[TranslatedBank] = Kind("bank-translation", TranslatedBank, "one")
INTERFACE: Kind[InterfaceWords] = Kind("interface-translation", InterfaceWords, "one")
