"""The faults in Spanish: texts in a sidecar, what is not translated marked."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

from msgspec.structs import replace

from mini_impls.faults.fault import USUAL, Fault, PredictedSymptom
from readerkit.app.interface_translation import say_in
from readerkit.content.kind import Kind
from readerkit.content.translations import Translation, stamp_of
from readerkit.content.validation import read_document
from readerkit.errors import ContentError
from readerkit.model.base import Text
from readerkit.model.language import SPANISH


class TranslatedFault(Translation, frozen=True):
    """A fault in another language."""

    title: Text = ""
    why: Text = ""
    choices: tuple[Text, ...] = ()
    """The answers that have words of their own, in their order."""


FAULT_TRANSLATIONS: Kind[TranslatedFault] = Kind(
    "fault-translation", TranslatedFault, "mapping", key=Text
)


def stamp(fault: Fault) -> str:
    """Return the name of its texts: what a translation of it is `of`."""
    texts = {"title": fault.title.split(), "why": fault.why.split()}
    return stamp_of({**texts, "choices": _own_texts(fault)})


def _own_texts(fault: Fault) -> list[str]:
    return [choice.own_text for choice in fault.choices if choice.own_text]


def read_spanish() -> dict[str, TranslatedFault]:
    """Return the Spanish texts, by the key of their fault.

    Raises:
        ContentError: everything in `faults.es.yaml` that does not fit.
    """
    path = Path(__file__).with_name(f"faults.{SPANISH}.yaml")
    document = read_document(path.read_bytes(), str(path), FAULT_TRANSLATIONS)
    if document.faults:
        raise ContentError(document.faults)
    return {str(key): each for (key,), each in document.entries.items()}


def in_language(faults: Sequence[Fault], language: str) -> tuple[Fault, ...]:
    """Return the faults with the texts of a language, `[en]` before what has none.

    A text whose English has changed since counts as one that has none.
    """
    if language != SPANISH:
        return tuple(faults)
    spanish = read_spanish()
    return tuple(_told(each, spanish.get(each.key)) for each in faults)


def _told(fault: Fault, other: TranslatedFault | None) -> Fault:
    other = other or TranslatedFault()
    fresh = {*stamp(fault).split()} & {*other.of.split()}
    kept = {mark.rpartition("-")[0] for mark in fresh}

    def told(name: str, english: str, text: str) -> str:
        return text if text and name in kept else f"[en] {english}"

    own = iter(other.choices if len(other.choices) == len(_own_texts(fault)) else ())

    def answers() -> Iterator[PredictedSymptom]:
        say = say_in(SPANISH)
        for choice in fault.choices:
            if choice.own_text is None:
                text = say(USUAL[choice.symptom])
            else:
                text = told("choices", choice.own_text, next(own, ""))
            yield replace(choice, own_text=text)

    return replace(
        fault,
        title=told("title", fault.title, other.title),
        why=told("why", fault.why, other.why),
        choices=tuple(answers()),
    )
