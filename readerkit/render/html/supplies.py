"""What the fences of a text are filled from, beside the notes of the book."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from readerkit.content.chapters import ChapterText
from readerkit.content.diagrams import Diagram
from readerkit.errors import ReaderkitError
from readerkit.estimate.instrument import Shipped
from readerkit.model.expression import Functions
from readerkit.model.language import Say, english
from readerkit.render.html.computed import Computed, computed_of
from readerkit.render.html.fences import Ask, InlineQuestion, Minis
from readerkit.render.html.setting_card import Compute, Computing


def no_quiz(name: str) -> InlineQuestion:
    """Refuse every question: there is no bank."""
    raise ReaderkitError(f"no question '{name}': there is no quiz")


def no_estimates() -> Computing:
    """Return what computes with nothing that it knows by name."""
    return Computing(Shipped({}, {}, {}))


@dataclass(frozen=True, slots=True)
class Supplies:
    """What texts show and compute; what computes stands for the book's content."""

    diagrams: Mapping[str, Diagram] = field(default_factory=dict)
    functions: Functions = field(default_factory=dict, compare=False)
    """That a number in prose may call."""
    say: Say = field(default=english, compare=False)
    """The Spanish of units."""
    ask: Ask = field(default=no_quiz, compare=False)
    minis: Minis = field(default_factory=dict)
    """Those that the commands run; empty in a book without them."""

    compute: Compute = field(default=no_estimates, compare=False)

    def numbers(self, script: ChapterText) -> Computed:
        """Return the numbers of a text.

        Raises:
            ContentError: a name that has no value.
        """
        return computed_of(script, self.functions, self.say)
