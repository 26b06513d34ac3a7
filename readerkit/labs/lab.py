"""The five labs: their names, what is handed in, and how each is measured."""

from __future__ import annotations

from dataclasses import dataclass


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
            "a token on two ranks",
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
