"""Sketches as a typed grid: how each weight is cut, or which ranks share a group."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import prod
from typing import Annotated

from msgspec import to_builtins

from readerkit.content.claims import Claimed
from readerkit.errors import ReaderkitError
from readerkit.model.base import SOME, Formula, Model, Name, Text, at_least
from readerkit.model.expression import parse_expression
from readerkit.model.formula_text import render
from readerkit.model.language import Told, made_of
from readerkit.quiz.kinds.grid_cells import read_cell, split_row
from readerkit.quiz.kinds.question import Question, Refutation
from readerkit.quiz.messages import Remark
from readerkit.quiz.prompts import SketchPrompt
from readerkit.quiz.rank_groups import rank_groups, wrong_groups
from readerkit.quiz.scoring import share_above_constant
from readerkit.quiz.seeded_draw import SeededDraw
from readerkit.quiz.variant import AnswerError, Grade, Scene, Variant, format_number


class GridKey(Model, frozen=True):
    """One key of the grid, by what it is: a word, a shape, a number or groups."""

    word: Text | None = None
    shape: Annotated[tuple[Formula, ...], SOME] | None = None
    number: Formula | None = None
    groups: Name | None = None

    def check(self) -> None:
        """Refuse another number of keys than one."""
        given = list(to_builtins(self))
        if len(given) != 1:
            raise ReaderkitError(
                f"a cell: got {', '.join(given) or 'nothing'}, "
                "expected one of word, shape, number, groups"
            )

    @property
    def kind(self) -> str:
        """Which of them it is."""
        return str(next(iter(to_builtins(self))))

    def formulas(self) -> list[str]:
        """Return the formulas behind it."""
        number = () if self.number is None else (self.number,)
        return [str(formula) for formula in (*(self.shape or ()), *number)]


class SketchRow(Refutation, frozen=True):
    """A row of the grid; one of words says why no others stand there."""

    label: Text
    cells: tuple[GridKey, ...]

    @property
    def texts(self) -> Mapping[str, str]:
        """What it says in words, as it would be typed, and why."""
        words = [cell.word for cell in self.cells if cell.word is not None]
        row = {"row": f"{self.label}: {', '.join(words)}"} if words else {}
        return {**row, **super().texts} if self.why else row


class Sketch(Question, frozen=True, tag="sketch"):
    """The grid as it was written."""

    columns: Annotated[tuple[Text, ...], SOME]
    rows: Annotated[tuple[SketchRow, ...], at_least(2)]
    words: tuple[Text, ...] = ()
    layout: Mapping[str, Formula] = {}
    """Sizes of the parallel axes, the fastest first, for cells with groups."""

    def check(self) -> None:
        """Refuse rows of another width, and a word that is not offered."""
        for row in self.rows:
            if len(row.cells) != len(self.columns):
                raise ReaderkitError(
                    f"row '{row.label}': got {len(row.cells)} cells, "
                    f"expected {len(self.columns)}"
                )
            for cell in row.cells:
                cell.check()
                offered = {"word": self.words, "groups": tuple(self.layout)}
                value = cell.word or cell.groups
                if value is not None and value not in offered[cell.kind]:
                    raise ReaderkitError(
                        f"row '{row.label}': got {cell.kind} '{value}', "
                        f"expected one of {', '.join(offered[cell.kind]) or 'none'}"
                    )

    def formulas(self) -> list[str]:
        """Return the sizes in cells and of the layout."""
        cells = [cell for row in self.rows for cell in row.cells]
        sizes = map(str, self.layout.values())
        return [f for cell in cells for f in cell.formulas()] + [*sizes]

    def claimed(self) -> Iterator[Claimed]:
        """Yield the question and its rows."""
        yield from (self, *self.rows)

    def refutations(self) -> Mapping[str, Refutation]:
        """Return the rows of words: why no other word stands there."""
        rows = enumerate(self.rows, 1)
        return {f"row/{at}": row for at, row in rows if row.why or row.texts}

    def unborne(self) -> Iterator[str]:
        """Yield each row of whose words no claim says all."""
        for row in self.rows:
            if text := row.texts.get("row"):
                cut = (text[1:], text[:-1])
                if not self.is_borne_out(text, by=row, beyond=cut):
                    yield text

    def own_texts(self) -> list[str]:
        """Return the labels of rows and columns, and the reasons."""
        labels = [*self.columns, *(row.label for row in self.rows)]
        return [*labels, *(row.why for row in self.rows)]

    def ask(self, scene: Scene, draw: SeededDraw) -> AskedSketch:
        """Return the grid with every key computed."""
        sizes = {axis: scene.whole(size) for axis, size in self.layout.items()}
        rows = [
            (scene.text(row.label), [_key(cell, scene, sizes) for cell in row.cells])
            for row in self.rows
        ]
        kinds = [cell.kind for cell in self.rows[0].cells]
        examples = {
            "word": "/".join(self.words),
            "shape": "1024x4096",
            "number": "12",
            "groups": "r,r|r,r",
        }
        example = " ".join(examples[kind] for kind in kinds)
        how = Told("a line for each row: {example}", example=example)
        labels, cells = zip(*rows, strict=True)
        filled = [" ".join(row) for row in cells]
        titles = tuple(map(scene.text, self.columns))
        solution = made_of(
            labels, lambda said: "\n".join(map("{}: {}".format, said, filled))
        )
        return AskedSketch(
            prompt=SketchPrompt(
                *scene.head(how),
                columns=titles,
                rows=labels,
                words=self.words,
                cells=tuple(kinds),
                ranks=prod(sizes.values()) if sizes else 0,
            ),
            told=scene.solved(solution),
            typed_key="\n".join(filled),
            columns=list(zip(titles, kinds, strict=True)),
            rows=rows,
            words=self.words,
            layout=sizes,
            axes=[[cell.groups or "" for cell in row.cells] for row in self.rows],
            how=[list(self._how(row, scene, titles)) for row in self.rows],
            whys=[
                row.remark(scene, f"row/{at}", _before(scene.text(row.label)))
                if row.why
                else None
                for at, row in enumerate(self.rows, 1)
            ],
        )

    def _how(
        self, row: SketchRow, scene: Scene, titles: Sequence[str]
    ) -> Iterator[Remark | None]:
        """Yield how each cell of a row is computed; None where it is not."""
        for column, cell in zip(titles, row.cells, strict=True):
            if cell.shape is None and cell.number is None:
                yield None
                continue
            trees = [*map(parse_expression, cell.formulas())]
            written, filled = (
                ", ".join(render(tree, names) for tree in trees)
                for names in (None, scene.values)
            )
            form = "[{}]".format if cell.shape is not None else str
            steps = [form(written), form(filled), _key(cell, scene, {})]
            how = " = ".join(dict.fromkeys(steps))
            label = scene.text(row.label)
            told = Told("{row}, {column}: {how}.", row=label, column=column, how=how)
            yield Remark(told)


def _before(label: str) -> str:
    """Return a label as it stands before what is said of its row."""
    return made_of([label], lambda said: f"{next(said)}: ")


def _key(cell: GridKey, scene: Scene, sizes: Mapping[str, int]) -> str:
    if cell.shape is not None:
        return "x".join(str(scene.whole(formula)) for formula in cell.formulas())
    if cell.number is not None:
        return format_number(scene.number(cell.number)).replace(",", "")
    if cell.groups is not None:
        groups = rank_groups(sizes, cell.groups)
        return "|".join(",".join(map(str, group)) for group in groups)
    return cell.word or ""


@dataclass(frozen=True, slots=True, kw_only=True)
class AskedSketch(Variant):
    """A grid to fill in, a row on a line."""

    columns: list[tuple[str, str]]
    """The title of each, and what its cells are."""
    rows: list[tuple[str, list[str]]]
    """The label of each, and its cells."""
    words: tuple[str, ...]
    """Those that a cell may be."""
    layout: Mapping[str, int]
    """Sizes of the parallel axes, the fastest first."""
    axes: list[list[str]]
    """Along which the groups of each cell are; empty for another one."""
    how: list[list[Remark | None]]
    """How each cell is computed."""
    whys: list[Remark | None]
    """Why each row is as it is."""

    def completed(self, answer: str, before: str, *, is_exam: bool = False) -> str:
        """Return an answer with the rows that it does not name as they were before."""
        named = self._named(_lines(answer))
        if not named or len(named) == len(self.rows) or not before:
            return answer
        old = dict(zip(self._labels, self._in_order(before), strict=True))
        return "\n".join(f"{row}: {cells}" for row, cells in {**old, **named}.items())

    def shows_key(self, text: str) -> bool:
        """Tell whether a text has a row as it is to be typed."""
        return any(" ".join(cells) in text for _, cells in self.rows)

    def grade(self, answer: str) -> Grade:
        """Return the share of cells that are right, beyond one word for all.

        Raises:
            AnswerError: other rows or cells than were asked, or one that says nothing.
        """
        wrong = [self._told(*each) for each in self._wrong(answer)]
        total = len(self.rows) * len(self.columns)
        keys = [key for _, cells in self.rows for key in cells]
        constant = max(Counter(keys).values()) if self.words else 0
        if constant == total:
            constant = 0
        credit = share_above_constant(total - len(wrong), total, constant)
        return Grade(credit, tuple(wrong))

    def in_the_end(self, answer: str) -> tuple[Remark, ...]:
        """Return how each wrong cell is to be had, and why a row is as it is."""
        wrong = [(row, column) for row, column, _ in self._wrong(answer)]
        found = [self.how[row][column] for row, column in wrong]
        found += [self.whys[row] for row in dict.fromkeys(row for row, _ in wrong)]
        return tuple(filter(None, found))

    def _wrong(self, answer: str) -> Iterator[tuple[int, int, str]]:
        """Yield row, column and cell of what is wrong."""
        for at, line in enumerate(self._in_order(answer)):
            row, key = self.rows[at]
            cells = zip(self.columns, self._cells(line, row), key, strict=True)
            for index, ((column, kind), cell, right) in enumerate(cells):
                given = self._read(cell, kind, row, column)
                if given != read_cell(right, kind, self.words):
                    yield at, index, cell

    def _told(self, at: int, index: int, cell: str) -> Remark:
        row, (column, kind) = self.rows[at][0], self.columns[index]
        named = {"row": row, "column": column, "cell": cell}
        if kind != "groups":
            return Remark(Told("{row}, {column}: not {cell}.", **named))
        groups = read_cell(cell, kind, ())
        assert isinstance(groups, list)
        why = wrong_groups(groups, self.layout, self.axes[at][index])
        return Remark(Told("{row}, {column}: not {cell}: {why}.", **named, why=why))

    @property
    def _labels(self) -> list[str]:
        return [row for row, _ in self.rows]

    def _in_order(self, answer: str) -> list[str]:
        """Return the cells of each row: rows as they stand, or by their labels."""
        lines = _lines(answer)
        if len(lines) != len(self.rows):
            raise AnswerError(
                Told(
                    "got {got}, expected {count} rows: {form}",
                    got=len(lines),
                    count=len(self.rows),
                    form=self.prompt.how,
                )
            )
        named = self._named(lines)
        if len(named) == len(lines):
            return [named[label] for label in self._labels]
        parts = zip(lines, self._labels, strict=True)
        return [self._named([line]).get(label, line) for line, label in parts]

    def _named(self, lines: list[str]) -> dict[str, str]:
        """Return the cells of each row whose label was typed before them."""
        longest = sorted(self._labels, key=len, reverse=True)
        found = {}
        for line in lines:
            for label in longest:
                head, rest = line[: len(label)], line[len(label) :]
                if head.casefold() == label.casefold() and rest[:1] in ":> =\t":
                    found[label] = rest.lstrip(" :>=\t")
                    break
        return found

    def _cells(self, line: str, label: str) -> list[str]:
        cells = split_row(line, [kind for _, kind in self.columns])
        if len(cells) != len(self.columns):
            raise AnswerError(
                Told(
                    "row '{row}': got {got}, expected {count} cells with a blank "
                    "between them: {form}",
                    row=label,
                    got=len(cells),
                    count=len(self.columns),
                    form=self.prompt.how,
                )
            )
        return cells

    def _read(self, cell: str, kind: str, row: str, column: str) -> object:
        try:
            return read_cell(cell, kind, self.words)
        except AnswerError as error:
            told = Told(
                "{row}, {column}: {what}", row=row, column=column, what=error.args[0]
            )
            raise AnswerError(told) from None


def _lines(answer: str) -> list[str]:
    return [line.strip() for line in re.split(r"[\n;]", answer) if line.strip()]
