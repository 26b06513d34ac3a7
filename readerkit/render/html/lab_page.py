"""A lab: the problem, its cloud task where there is one, the solution folded away."""

from __future__ import annotations

from collections.abc import Sequence

from readerkit.content.chapters import LabScript
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


def lab_lines(labs: Sequence[LabScript]) -> list[tuple[str, Text]]:
    """Return the page and the title of each lab."""
    return [(addresses.lab_page(lab.name), chapter_title(lab.problem)) for lab in labs]


def lab_page(model: SiteModel, lab: LabScript, supplies: Supplies) -> Context:
    """Return the page of a lab.

    Raises:
        ContentError: something that a fence names and nothing is called.
    """
    address = addresses.lab_page(lab.name)
    problem, *solution = (
        chapter_text(model, each, supplies, address) for each in lab.texts
    )
    return {
        "title": problem.title,
        "names": [each.name for each in lab.texts],
        "problem": problem,
        "solution": solution[0] if solution else None,
        "phase": phase_of(lab.problem, problem, *solution),
        "task": lab.task,
        "task_command": written("lab", lab.name, "--task"),
        "rights": rights_of(model, upstreams_in(model, problem, *solution)),
    }
