"""What one word names in the place of an upstream: one, a note, a group of notes."""

from __future__ import annotations

from dataclasses import dataclass

from readerkit.app.mini_names import ALIASES, SAYS
from readerkit.content.book import Book
from readerkit.errors import WrongUseError
from readerkit.wording.meant_name import choose, hint, matches, plain

WORDS = {
    "tp": "tensor_parallel",
    "sp": "sequence_parallel",
    "pp": "pipeline",
    "dp": "data_parallel",
    "cp": "context_parallel",
}
"""Short for a topic, and for the concept of nearly the same name."""


@dataclass(frozen=True, slots=True)
class Group:
    """What one word names in a book: topics, concepts and minis of the same name."""

    word: str
    topics: tuple[str, ...]
    concepts: tuple[str, ...]
    minis: tuple[str, ...]

    @classmethod
    def of(cls, word: str, book: Book) -> Group:
        """Return the topics, concepts and minis that a word names; perhaps none."""
        meant = {plain(word), plain(WORDS.get(plain(word), word))}
        meant_minis = {plain(ALIASES.get(plain(word), word))}
        topics = dict.fromkeys(note.topic for note in book.annotations.values())
        related = meant | {f"{each}-parallel" for each in meant}
        return cls(
            word,
            tuple(t for t in topics if any(plain(t).startswith(m) for m in meant)),
            tuple(c for c in book.concepts if plain(c) in related),
            tuple(m for m in _noted_minis(book) if plain(m) in meant_minis),
        )

    def __bool__(self) -> bool:
        return bool(self.topics or self.concepts or self.minis)

    def __str__(self) -> str:
        """Return the names as one line, each mini with its description."""
        kinds = {"topic": self.topics, "concept": self.concepts}
        named = [f"{kind} {', '.join(names)}" for kind, names in kinds.items() if names]
        named += [f"mini {name} = {SAYS.get(name, name)}" for name in self.minis]
        return f"{self.word}: {'; '.join(named)}"


def named(name: str, book: Book) -> tuple[str | None, str | None, Group | None]:
    """Return the upstream, the note, or the group of notes that a name stands for.

    The whole name of anything, or the beginning of a topic, goes before the beginning
    of an id; that goes before the beginning of a concept or a mini.

    Raises:
        WrongUseError: none of them, or several; the message names those there are.
    """
    known = [*book.upstreams, *book.annotations]
    found = matches(name, known)
    is_whole = len(found) == 1 and len(found[0]) == len(name)
    if name and not is_whole and (group := Group.of(name, book)):
        return None, None, group
    if not found:
        grouped = [*book.concepts, *_noted_minis(book)]
        if begun := matches(name, grouped, aliases=ALIASES):
            # A concept and a mini of the same name are one group.
            each = {plain(word): word for word in begun}
            meant = choose("concept or mini", name, each.values(), aliases=ALIASES)
            return None, None, Group.of(meant, book)
        raise WrongUseError(
            f"unknown upstream or note: got '{name}', expected one of "
            f"{', '.join(book.upstreams)}, the ID of a note, a topic, a concept or a "
            f"mini{hint(name, [*known, *grouped])}"
        )
    meant = choose("upstream or note", name, known)
    return (meant, None, None) if meant in book.upstreams else (None, meant, None)


def _noted_minis(book: Book) -> list[str]:
    """Return the minis that stand beside notes."""
    beside = (mini for name in book.annotations for mini in book.minis_beside(name))
    return list(dict.fromkeys(beside))
