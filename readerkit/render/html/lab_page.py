"""A lab: the problem, its cloud task where there is one, the solution folded away."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from markupsafe import Markup

from readerkit.content.diagrams import Diagram
from readerkit.render.html import addresses
from readerkit.render.html.chapter import (
    Piece,
    Script,
    chapter_title,
    pieces,
    upstreams_in,
)
from readerkit.render.html.escape import shown
from readerkit.render.html.file_page import Rights, rights_of
from readerkit.render.html.site_model import SiteModel
from readerkit.render.html.study import ChapterLine
from readerkit.render.html.words import Text
from readerkit.wording.next_command import written


@dataclass(frozen=True, slots=True)
class LabScript:
    """The texts of a lab, as they were read."""

    problem: Script
    solution: Script | None = None
    task: str = ""
    """The cloud task, or nothing."""


@dataclass(frozen=True, slots=True)
class Told:
    """A text under its title, in one language or in both."""

    title: Text
    pieces: tuple[Piece, ...]
    is_translated: bool


@dataclass(frozen=True, slots=True)
class LabPage:
    """One lab."""

    address: str
    title: Text
    problem: Told
    solution: Told | None
    task: Markup
    task_command: Markup
    rights: tuple[Rights, ...]
    previous: str
    next: str


@dataclass(frozen=True, slots=True)
class LabIndex:
    """The list of labs."""

    address: str
    title: Markup
    labs: tuple[ChapterLine, ...]


def lab_lines(labs: Sequence[LabScript]) -> tuple[ChapterLine, ...]:
    """Return the labs as lines of a list."""
    return tuple(
        ChapterLine(addresses.lab_page(lab.problem.name), chapter_title(lab.problem))
        for lab in labs
    )


def lab_page(
    model: SiteModel,
    lab: LabScript,
    diagrams: Mapping[str, Diagram],
    around: tuple[str, str],
) -> LabPage:
    """Return the page of a lab; ``around`` are the addresses before and after it.

    Raises:
        ContentError: something that a fence names and nothing is called.
    """
    address = addresses.lab_page(lab.problem.name)

    def told(script: Script) -> Told:
        told = tuple(pieces(model, script, diagrams, address))
        return Told(chapter_title(script), told, bool(script.spanish))

    problem = told(lab.problem)
    solution = told(lab.solution) if lab.solution else None
    shown_there = [*problem.pieces, *(solution.pieces if solution else ())]
    return LabPage(
        address,
        problem.title,
        problem,
        solution,
        shown(lab.task),
        shown(written("lab", lab.problem.name, "--task")),
        rights_of(model, upstreams_in(shown_there)),
        *around,
    )
