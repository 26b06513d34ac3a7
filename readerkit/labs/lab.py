"""The five labs: their names, what is handed in, and the checklist each is held to."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

ChecklistState = Literal["met", "not met", "waived"]


@dataclass(frozen=True, slots=True)
class ChecklistItem:
    """Something that a phase or a lab asks for."""

    what: str
    state: ChecklistState
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


@dataclass(frozen=True, slots=True)
class Lab:
    """One lab of phase 35."""

    id: str
    title: str
    handed_in: str
    """File in the learner's folder of experiments; empty: it is elsewhere."""
    module: str = ""
    """Measures it, and writes that file; empty where there is nothing to run."""
    has_task: bool = False
    """Whether there is a cloud task for the same command."""


LABS = {
    lab.id: lab
    for lab in (
        Lab("00", "a price before a plan", "35-lab-00.yaml"),
        Lab(
            "01",
            "data parallelism on two processes",
            "35-lab-01.json",
            "mini_impls.demos.lab_ddp",
        ),
        Lab(
            "02",
            "a token on one, two and four ranks",
            "35-lab-02.json",
            "mini_impls.demos.lab_generation",
            has_task=True,
        ),
        Lab("03", "read it yourself", ""),
        Lab(
            "04",
            "fully sharded, and how far it scales",
            "35-lab-04.json",
            "mini_impls.demos.lab_fsdp",
            has_task=True,
        ),
    )
}
