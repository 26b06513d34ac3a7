"""Lab 03: the learner's own citations, counted and held against the pinned source."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import PurePosixPath

from readerkit.content.annotations import Annotation
from readerkit.labs.lab import ChecklistItem
from readerkit.wording.numbers import counted

TOPIC = "lab-03"
MIN_CITATIONS = 5
MAX_WORDS = 300


@dataclass(frozen=True, slots=True)
class Reading:
    """One of the two readings: an upstream, and the folder that it is about."""

    title: str
    upstream: str
    folder: str


READINGS = (
    Reading(
        "Megatron's tensor-parallel layers",
        "megatron",
        "megatron/core/tensor_parallel/",
    ),
    Reading("FSDP's prefetch", "pytorch", "torch/distributed/fsdp/"),
)


def belongs(annotation: Annotation) -> bool:
    """Tell whether a note is the learner's own, of this lab's topic."""
    return annotation.mine and PurePosixPath(annotation.place.file).stem == TOPIC


def check_reading(
    reading: Reading, annotations: Sequence[Annotation], faults: Mapping[str, str]
) -> list[ChecklistItem]:
    """Return the checklist of one reading.

    ``annotations`` are the learner's of this lab; ``faults`` says of each whose anchor
    does not resolve why not, by id.
    """
    mine = [
        note
        for note in annotations
        if note.upstream == reading.upstream
        and note.anchor.file.startswith(reading.folder)
        and note.kind == "citation"
    ]
    reasons = {note.id: why for note in mine if (why := _wrong(note, mine, faults))}
    good = [note for note in mine if note.id not in reasons]
    if reasons:
        name, why = next(iter(reasons.items()))
        evidence = f"{len(good)} hold; {name}: {why}"
    else:
        evidence = f"{counted(len(good), 'citation')} in {reading.folder}"
    words = sum(map(count_words, mine))
    return [
        ChecklistItem.of(
            f"{reading.title}: {MIN_CITATIONS} citations, each resolved and sourced",
            len(good) >= MIN_CITATIONS and not reasons,
            evidence,
            attempted=bool(mine),
        ),
        ChecklistItem.of(
            f"{reading.title}: within {MAX_WORDS} words",
            0 < words <= MAX_WORDS,
            f"{words} words",
            attempted=words > 0,
        ),
    ]


def count_words(note: Annotation) -> int:
    """Return the words of a note's own texts, its title aside."""
    texts = (note.decision, note.alternative, note.why, note.cost, note.text)
    return sum(len(text.split()) for text in texts)


def _wrong(
    note: Annotation, mine: Sequence[Annotation], faults: Mapping[str, str]
) -> str:
    """Return why a citation does not count; empty: it does."""
    if note.id in faults:
        return faults[note.id]
    if not any(citation.section for citation in note.references):
        return "no reference with a section"
    before = mine[: mine.index(note)]
    if any(other.anchor == note.anchor for other in before):
        return "the same place as another citation"
    if any(other.decision == note.decision for other in before):
        return "the same words as another citation"
    return ""
