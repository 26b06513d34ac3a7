"""One line of a checklist, with its evidence."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

State = Literal["met", "not met", "waived"]


@dataclass(frozen=True, slots=True)
class ChecklistItem:
    """Something that a phase or a lab asks for."""

    what: str
    state: State
    evidence: str
    """A file, a run, a score or a sum; where it is not met, what to do about it."""
    attempted: bool = False
    """Whether anything was done for it, right or wrong."""

    @classmethod
    def of(
        cls, what: str, met: bool, evidence: str, *, attempted: bool = False
    ) -> ChecklistItem:
        """Return an item that is met or not; what is met was attempted."""
        return cls(what, "met" if met else "not met", evidence, met or attempted)
