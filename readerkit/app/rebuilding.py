"""What a reader rebuilds: a mini without one section, and how far it has come.

The reader types into a copy in a folder of their own. What is graded is the mini with
the text between the marks of that copy, and nothing else of it.
"""

from __future__ import annotations

import ast
import json
import textwrap
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from itertools import count
from pathlib import Path

from readerkit.anchors import SourceFile, resolve
from readerkit.app.folders import PACKAGE, data_folder
from readerkit.content.exercises import (
    EXERCISE_TRANSLATIONS,
    EXERCISES_FILE,
    Exercise,
    TranslatedExercise,
    told,
)
from readerkit.content.validation import read_document
from readerkit.errors import ContentError, ReaderkitError, WrongUseError
from readerkit.model.language import SPANISH
from readerkit.upstreams.store import write_atomically
from readerkit.wording.meant_name import choose
from readerkit.wording.next_command import typed

ROOT = PACKAGE.parent
"""Above the minis."""
FILE = ROOT / "mini_impls" / "faults" / "exercises.yaml"
BEGIN, END = "# >>> yours from here", "# <<< to here"


def read_exercises() -> tuple[Exercise, ...]:
    """Return the exercises there are, mini by mini.

    Raises:
        ContentError: everything in the file that does not fit.
    """
    document = read_document(FILE.read_bytes(), str(FILE), EXERCISES_FILE)
    if document.faults:
        raise ContentError(document.faults)
    return tuple(document.entries.values())


def read_spanish() -> dict[str, TranslatedExercise]:
    """Return the Spanish texts, by the key of their exercise.

    Raises:
        ContentError: everything in the sidecar that does not fit.
    """
    path = FILE.with_name(f"exercises.{SPANISH}.yaml")
    document = read_document(path.read_bytes(), str(path), EXERCISE_TRANSLATIONS)
    if document.faults:
        raise ContentError(document.faults)
    return {str(key): each for (key,), each in document.entries.items()}


def in_language(exercises: Sequence[Exercise], language: str) -> tuple[Exercise, ...]:
    """Return exercises with the texts of a language."""
    if language != SPANISH:
        return tuple(exercises)
    spanish = read_spanish()
    return tuple(told(each, spanish.get(each.key)) for each in exercises)


def find_exercise(known: Sequence[Exercise], mini: str, name: str) -> Exercise:
    """Return one exercise, by its name or by how it alone begins.

    Raises:
        ReaderkitError: no such exercise; the message names those there are.
    """
    of_mini = {each.name: each for each in known if each.mini == mini}
    if not of_mini:
        minis = ", ".join(dict.fromkeys(each.mini for each in known))
        raise WrongUseError(
            f"no section of {mini} is to be rebuilt: expected one of {minis}"
        )
    return of_mini[choose(f"section of {mini}", name, of_mini)]


@dataclass(frozen=True, slots=True)
class Section:
    """A mini's source, and the lines of it that are to be written anew."""

    exercise: Exercise
    lines: tuple[str, ...]
    first: int
    """From 1, the first line after the docstring."""
    last: int

    @classmethod
    def of(cls, exercise: Exercise) -> Section:
        """Return the section in the mini as it is on disk.

        Raises:
            AnchorError: the anchor no longer names one place.
            ReaderkitError: what it names is no function with a body.
        """
        file = exercise.at.file
        source = SourceFile(file, (ROOT / file).read_bytes())
        span = resolve(exercise.at, source)
        for node in ast.walk(ast.parse(source.data)):
            if not isinstance(node, ast.FunctionDef):
                continue
            starts = [node.lineno, *(each.lineno for each in node.decorator_list)]
            if span.first not in starts or node.end_lineno != span.last:
                continue
            body = node.body[1:] if ast.get_docstring(node) else node.body
            if body:
                lines = source.data.decode().splitlines()
                last = body[-1].end_lineno or span.last
                above = (node.body[0].end_lineno or 0) if body != node.body else 0
                first = above + 1 if above else body[0].lineno
                return cls(exercise, tuple(lines), first, last)
        raise ReaderkitError(
            f"{exercise.key}: {file}:{span.first} is no function with a body to write"
        )

    @property
    def solution(self) -> tuple[str, ...]:
        """Return the mini's own lines."""
        return self.lines[self.first - 1 : self.last]

    def blank(self) -> str:
        """Return the copy that a reader begins with."""
        line = next(line for line in self.solution if line.strip())
        indent = line[: len(line) - len(line.lstrip())]
        asks = textwrap.wrap(self.exercise.asks, 84 - len(indent))
        body = [
            *(f"{indent}# {part}" for part in asks),
            f'{indent}raise NotImplementedError("{self.exercise.key}")',
        ]
        return self._with(body)

    def composed(self, written: str, path: Path) -> str:
        """Return the mini with what the reader wrote between the marks.

        Raises:
            ReaderkitError: marks that are gone, or text that is no Python; with where.
        """
        lines = written.splitlines()
        marks = [i for i, line in enumerate(lines) if line.strip() in (BEGIN, END)]
        found = [lines[i].strip() for i in marks]
        if found != [BEGIN, END]:
            again = typed("rebuild", self.exercise.mini, self.exercise.name, "--again")
            raise ReaderkitError(
                f"{path}: got {found or 'no marks'}, expected one line '{BEGIN}' and "
                f"below it one '{END}', with your code between them; {again} begins "
                "with a new copy and keeps this one beside it"
            )
        text = self._with(lines[marks[0] + 1 : marks[1]])
        try:
            ast.parse(text)
        except SyntaxError as error:
            # The marks stand where they stood in the copy, if nothing above changed.
            moved = marks[0] + 2 - self.first - 1
            at = (error.lineno or 1) + moved
            raise ReaderkitError(f"{path}:{at}: no Python yet: {error.msg}") from None
        return text

    def _with(self, body: Sequence[str]) -> str:
        line = next(line for line in self.solution if line.strip())
        indent = line[: len(line) - len(line.lstrip())]
        marked = [f"{indent}{BEGIN}", *body, f"{indent}{END}"]
        kept = self.lines[: self.first - 1], self.lines[self.last :]
        return "\n".join([*kept[0], *marked, *kept[1], ""])


@dataclass(frozen=True, slots=True)
class Rebuilt:
    """How far a reader has come with one exercise."""

    tries: int = 0
    passed: int = 0
    """Checks that the last try passed, in their order."""
    checks: int = 0
    hints: int = 0
    saw_solution: bool = False
    solved: bool = False
    """Whether a try has passed them all; later ones take nothing away."""


def folder_of(exercise: Exercise) -> Path:
    """Return where a reader's copy is, and what is known of it."""
    return data_folder() / "rebuild" / f"{exercise.mini}-{exercise.name}"


def copy_of(exercise: Exercise) -> Path:
    """Return the file that a reader writes in."""
    return folder_of(exercise) / Path(exercise.at.file).name


def begin(section: Section, *, anew: bool = False) -> Path:
    """Return the reader's copy, made where there is none; `anew` keeps the old aside.

    Raises:
        StoreError: a disk that is full, or a folder that cannot be written.
    """
    path = copy_of(section.exercise)
    if anew and path.exists():
        write_atomically(_free_beside(path), path.read_bytes(), private=True)
    if anew or not path.exists():
        write_atomically(path, section.blank().encode(), private=True)
    return path


def _free_beside(path: Path) -> Path:
    """Return a name beside a copy that none of before has: the first free one."""
    kept = (path.with_suffix(f".before-{n}.py" if n else ".before.py") for n in count())
    return next(each for each in kept if not each.exists())


def read_state(exercise: Exercise) -> Rebuilt:
    """Return how far a reader has come; a state that cannot be read is none."""
    path = folder_of(exercise) / "state.json"
    try:
        return Rebuilt(**json.loads(path.read_text()))
    except (OSError, ValueError, TypeError):
        return Rebuilt()


def note_state(exercise: Exercise, **changed: int) -> Rebuilt:
    """Keep what has changed.

    Raises:
        StoreError: a disk that is full, or a folder that cannot be written.
    """
    state = replace(read_state(exercise), **changed)  # type: ignore[arg-type]
    text = json.dumps(asdict(state), indent=1) + "\n"
    path = folder_of(exercise) / "state.json"
    write_atomically(path, text.encode(), private=True)
    return state
