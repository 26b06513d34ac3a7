"""A question as it was written, and one variant of it as it is asked."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from readerkit.content.kind import Document
from readerkit.document import Path
from readerkit.errors import ContentError, Fault, ReaderkitError
from readerkit.expression import Functions, Number, evaluate
from readerkit.quiz.draw import Draw
from readerkit.quiz.kinds import PARSERS, Asked, Body, Grade, PlaceRef
from readerkit.quiz.scene import Keys, Place, Scene, Work


@dataclass(frozen=True, slots=True)
class Where:
    """Where a question stands in the file that a person wrote."""

    document: Document[Any]
    path: Path

    @property
    def line(self) -> str:
        """The file and the line."""
        fault = self.fault("")
        return f"{fault.file}:{fault.line}"

    def fault(self, what: str, got: str = "", expected: str = "") -> Fault:
        """Return a fault at this place."""
        return self.document.fault(self.path, what, got, expected)


@dataclass(frozen=True, slots=True)
class Parameter:
    """A number that differs from variant to variant."""

    name: str
    choices: tuple[Number, ...]
    """What it is drawn from; empty where a formula gives it."""
    formula: str = ""
    significant: int = 0
    """Digits that a formula's value is rounded to, as it is displayed."""

    @classmethod
    def parse(cls, name: str, value: Mapping[str, Any]) -> Parameter:
        """Return the parameter of an entry.

        Raises:
            ReaderkitError: not exactly one of: choices, a range, a formula.
        """
        ways = [key for key in ("choose", "from", "is") if key in value]
        if len(ways) != 1 or ("from" in value) != ("to" in value):
            raise ReaderkitError(
                f"parameter '{name}': got {', '.join(value) or 'nothing'}, "
                "expected choose, or from and to, or is"
            )
        if "choose" in value:
            return cls(name, tuple(value["choose"]))
        if "is" in value:
            return cls(name, (), str(value["is"]), value.get("significant", 0))
        first, last, step = value["from"], value["to"], value.get("step", 1)
        count = int((last - first) / step + 1e-9) + 1 if step > 0 else 0
        if not 1 < count <= 10_000:
            raise ReaderkitError(
                f"parameter '{name}': {first} to {last} by {step} has {count} values, "
                "expected 2 to 10,000"
            )
        return cls(name, tuple(first + step * index for index in range(count)))

    def value(
        self, draw: Draw, known: Mapping[str, Number], functions: Functions
    ) -> Number:
        """Return its value in a variant."""
        if self.choices:
            return draw.choice(self.choices)
        number = evaluate(self.formula, known, functions)
        if self.significant:
            number = float(f"{number:.{self.significant}g}")
        return int(number) if number == int(number) else number


@dataclass(frozen=True, slots=True)
class Question:
    """Everything that a person wrote about one question."""

    id: str
    type: str
    topic: str
    """The file it stands in."""
    objective: str
    concepts: tuple[str, ...]
    difficulty: int
    prompt: str
    explanation: str
    parameters: tuple[Parameter, ...]
    body: Body
    notes: tuple[str, ...]
    code: tuple[PlaceRef, ...]
    references: tuple[tuple[str, str], ...]
    """Keys of ``references.yaml``, each with a section or an empty string."""
    where: Where

    @classmethod
    def parse(cls, document: Document[Any], path: Path, topic: str) -> Question:
        """Return an entry that fits its schema as a question.

        Raises:
            ContentError: what the schema cannot tell.
        """
        entry = document.entries[path]
        where = Where(document, path)
        try:
            parameters = tuple(
                Parameter.parse(name, value)
                for name, value in entry.get("parameters", {}).items()
            )
            body = PARSERS[entry["type"]](entry)
        except ReaderkitError as error:
            raise ContentError([where.fault(f"{entry['id']}: {error}")]) from None
        return cls(
            id=entry["id"],
            type=entry["type"],
            topic=topic,
            objective=entry["objective"],
            concepts=tuple(entry["concepts"]),
            difficulty=entry["difficulty"],
            prompt=entry["prompt"].strip(),
            explanation=entry["explanation"].strip(),
            parameters=parameters,
            body=body,
            notes=tuple(entry.get("notes", ())),
            code=tuple(PlaceRef.parse(each) for each in entry.get("code", ())),
            references=tuple(
                (each["key"], each.get("section", ""))
                for each in entry.get("references", ())
            ),
            where=where,
        )

    def places(self) -> dict[str, PlaceRef]:
        """Return every anchor of the question, by slot."""
        links = {f"code/{i}": each for i, each in enumerate(self.code, 1)}
        return {**self.body.places(), **links}

    def all_notes(self) -> list[str]:
        """Return every annotation that it names."""
        return list(dict.fromkeys([*self.notes, *self.body.notes()]))


@dataclass(frozen=True, slots=True)
class Variant:
    """A question made concrete by a seed: what is shown, and the key behind it."""

    question: Question
    seed: int
    prompt: str
    explanation: str
    asked: Asked
    links: tuple[Place, ...]
    works: Mapping[str, Work]
    """What its references stand for."""

    def grade(self, answer: str) -> Grade:
        """Return what an answer earns; a pure function of variant and answer.

        Raises:
            AnswerError: an answer that cannot be read as one.
        """
        return self.asked.grade(answer)


def make_variant(
    question: Question, *, version: int, seed: int, functions: Functions, keys: Keys
) -> Variant:
    """Return the variant that a bank's version, the question and a seed name.

    Raises:
        ReaderkitError: a key that does not compute or is not in the lock.
    """
    draw = Draw(version, question.id, seed)
    values: dict[str, Number] = {}
    for parameter in question.parameters:
        values[parameter.name] = parameter.value(draw, values, functions)
    scene = Scene(question.id, values, functions, keys)
    links = [scene.place(f"note:{note}") for note in question.notes]
    links += [scene.place(f"code/{i}") for i in range(1, len(question.code) + 1)]
    return Variant(
        question,
        seed,
        scene.text(question.prompt),
        scene.text(question.explanation),
        question.body.ask(scene, draw),
        tuple(links),
        {key: scene.work(key) for key, _ in question.references},
    )
