"""A lab: the problem, its cloud task where there is one, the solution folded away."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from readerkit.content.chapters import ChapterText
from readerkit.model import addresses
from readerkit.render.html.chapter import (
    chapter_text,
    chapter_title,
    phase_of,
    upstreams_in,
)
from readerkit.render.html.file_page import rights_of
from readerkit.render.html.site_model import Context, SiteModel
from readerkit.render.html.supplies import Supplies
from readerkit.render.html.words import Text
from readerkit.wording.next_command import written


@dataclass(frozen=True, slots=True)
class LabScript:
    """The texts of a lab, as they were read."""

    problem: ChapterText
    solution: ChapterText | None = None
    task: str = ""
    """The cloud task, or nothing."""


def lab_lines(labs: Sequence[LabScript]) -> list[tuple[str, Text]]:
    """Return the page and the title of each lab."""
    names = (lab.problem for lab in labs)
    return [(addresses.lab_page(each.name), chapter_title(each)) for each in names]


def lab_page(model: SiteModel, lab: LabScript, supplies: Supplies) -> Context:
    """Return the page of a lab.

    Raises:
        ContentError: something that a fence names and nothing is called.
    """
    address = addresses.lab_page(lab.problem.name)
    scripts = [lab.problem, *([lab.solution] if lab.solution else [])]
    problem, *solution = (
        chapter_text(model, each, supplies, address) for each in scripts
    )
    return {
        "title": problem.title,
        "problem": problem,
        "solution": solution[0] if solution else None,
        "phase": phase_of(lab.problem, problem, *solution),
        "task": lab.task,
        "task_command": written("lab", lab.problem.name, "--task"),
        "rights": rights_of(model, upstreams_in(model, problem, *solution)),
    }
