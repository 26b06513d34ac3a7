"""The brackets beside the lines of a file: which lines each note covers."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from readerkit.render.html.notes import NoteView


def bracketed(lines: Sequence[bytes], notes: Iterable[NoteView]) -> list[bytes]:
    """Return the lines of a page, each with the brackets that pass it."""
    marked = list(lines)
    for note, lane in in_lanes(notes):
        for number in range(note.first, min(note.last, len(lines)) + 1):
            line, edge = marked[number - 1], _edge(note, lane, number)
            marked[number - 1] = line.replace(b">", b">" + edge, 1)
    return marked


def in_lanes(notes: Iterable[NoteView]) -> Iterator[tuple[NoteView, int]]:
    """Yield each note with its lane, in which no other note has the same lines.

    A note around others comes first, so its bracket is the outer one.
    """
    free_after: list[int] = []
    for note in sorted(notes, key=lambda note: (note.first, -note.last)):
        lane = next(
            (lane for lane, last in enumerate(free_after) if last < note.first),
            len(free_after),
        )
        free_after[lane:] = [note.last, *free_after[lane + 1 :]]
        yield note, lane


def _edge(note: NoteView, lane: int, number: int) -> bytes:
    kinds = ["edge", f"e{lane % 4}", f"kind-{note.kind}"]
    kinds += ["begins"] if number == note.first else []
    kinds += ["ends"] if number == note.last else []
    return f'<i class="{" ".join(kinds)}" data-of="{note.id}"></i>'.encode()
