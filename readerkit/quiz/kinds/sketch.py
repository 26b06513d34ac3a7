"""Sketches as a typed grid: how each weight is cut, or which ranks share a group."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from readerkit.errors import ReaderkitError
from readerkit.quiz.draw import Draw
from readerkit.quiz.kinds.base import Body, Grade, Remark, plain
from readerkit.quiz.layout import rank_groups
from readerkit.quiz.scene import AnswerError, Scene, format_number


@dataclass(frozen=True, slots=True)
class Cell:
    """One key of the grid, by what it is: a word, a shape, a number or groups."""

    kind: str
    value: Any

    @classmethod
    def parse(cls, value: Mapping[str, Any]) -> Cell:
        """Return the cell of an entry.

        Raises:
            ReaderkitError: not exactly one kind of key.
        """
        if len(value) != 1:
            got = ", ".join(value) or "nothing"
            raise ReaderkitError(
                f"a cell: got {got}, expected one of word, shape, number, groups"
            )
        [(kind, content)] = value.items()
        if kind == "shape":
            content = tuple(str(formula) for formula in content)
        return cls(kind, str(content) if kind == "number" else content)

    def formulas(self) -> list[str]:
        """Return the formulas behind it."""
        if self.kind == "shape":
            return list(self.value)
        return [self.value] if self.kind == "number" else []


@dataclass(frozen=True, slots=True)
class Sketch(Body):
    """The grid as it was written."""

    columns: tuple[str, ...]
    rows: tuple[tuple[str, tuple[Cell, ...]], ...]
    words: tuple[str, ...]
    layout: Mapping[str, str]
    """Sizes of the parallel axes, the fastest first, for cells with groups."""

    @classmethod
    def parse(cls, entry: Mapping[str, Any]) -> Sketch:
        """Return the grid of an entry.

        Raises:
            ReaderkitError: rows of another width, or a word that is not offered.
        """
        columns = tuple(entry["columns"])
        words = tuple(entry.get("words", ()))
        layout = {axis: str(size) for axis, size in entry.get("layout", {}).items()}
        rows = []
        for row in entry["rows"]:
            cells = tuple(Cell.parse(cell) for cell in row["cells"])
            if len(cells) != len(columns):
                raise ReaderkitError(
                    f"row '{row['label']}': got {len(cells)} cells, "
                    f"expected {len(columns)}"
                )
            for cell in cells:
                known = {"word": words, "groups": tuple(layout)}.get(cell.kind)
                if known is not None and cell.value not in known:
                    raise ReaderkitError(
                        f"row '{row['label']}': got {cell.kind} '{cell.value}', "
                        f"expected one of {', '.join(known) or 'none'}"
                    )
            rows.append((row["label"], cells))
        return cls(columns, tuple(rows), words, layout)

    def formulas(self) -> list[str]:
        """Return the sizes in cells and of the layout."""
        cells = [cell for _, row in self.rows for cell in row]
        return [f for cell in cells for f in cell.formulas()] + [*self.layout.values()]

    def texts(self) -> list[str]:
        """Return the labels of rows and columns."""
        return [*self.columns, *(label for label, _ in self.rows)]

    def ask(self, scene: Scene, draw: Draw) -> AskedSketch:
        """Return the grid with every key computed."""
        sizes = {axis: scene.whole(size) for axis, size in self.layout.items()}
        rows = [
            (scene.text(label), tuple(_key(cell, scene, sizes) for cell in cells))
            for label, cells in self.rows
        ]
        kinds = tuple(cell.kind for cell in self.rows[0][1])
        return AskedSketch(self.columns, tuple(rows), self.words, kinds)


def _key(cell: Cell, scene: Scene, sizes: Mapping[str, int]) -> str:
    if cell.kind == "shape":
        return "x".join(str(scene.whole(formula)) for formula in cell.value)
    if cell.kind == "number":
        return format_number(scene.number(cell.value)).replace(",", "")
    if cell.kind == "groups":
        return _groups_text(rank_groups(sizes, cell.value))
    return str(cell.value)


def _groups_text(groups: tuple[tuple[int, ...], ...]) -> str:
    return "|".join(",".join(map(str, group)) for group in groups)


@dataclass(frozen=True, slots=True)
class AskedSketch:
    """A grid to fill in, a row on a line."""

    columns: tuple[str, ...]
    rows: tuple[tuple[str, tuple[str, ...]], ...]
    words: tuple[str, ...]
    kinds: tuple[str, ...]
    """Of each column's cells."""

    @property
    def help(self) -> str:
        """How to type an answer."""
        examples = {
            "word": "/".join(self.words),
            "shape": "1024x4096",
            "number": "12",
            "groups": "0,1|2,3",
        }
        return "a line for each row: " + " ".join(examples[kind] for kind in self.kinds)

    @property
    def choices(self) -> int | None:
        """Grids are too many to guess among."""
        return None

    def shown(self) -> dict[str, Any]:
        """Return the empty grid and the words to use."""
        return {
            "columns": list(self.columns),
            "rows": [label for label, _ in self.rows],
            "words": list(self.words),
        }

    def grade(self, answer: str) -> Grade:
        """Return the share of cells that are right."""
        lines = [line for line in re.split(r"[\n;]", answer) if line.strip()]
        if len(lines) != len(self.rows):
            raise AnswerError(
                f"got {len(lines)} rows, expected {len(self.rows)}: {self.help}"
            )
        wrong: list[Remark] = []
        for line, (label, key) in zip(lines, self.rows, strict=True):
            given = self._cells(line, label)
            wrong += [
                Remark(f"{label}, {column}: not {cell}.")
                for column, kind, cell, right in zip(
                    self.columns, self.kinds, given, key, strict=True
                )
                if _normal(cell, kind) != _normal(right, kind)
            ]
        total = len(self.rows) * len(self.columns)
        return Grade(1 - len(wrong) / total, tuple(wrong))

    def _cells(self, line: str, label: str) -> list[str]:
        words = line.split()
        # The label may be typed before its cells.
        if line.strip().startswith(label):
            words = line.strip()[len(label) :].lstrip(" :").split()
        if len(words) != len(self.columns):
            raise AnswerError(
                f"row '{label}': got {len(words)} cells, expected "
                f"{len(self.columns)} with a blank between them: {self.help}"
            )
        return words

    def typed_key(self) -> str:
        """Return the key as it would be typed."""
        return "\n".join(" ".join(key) for _, key in self.rows)

    def solution(self) -> str:
        """Return the filled grid."""
        return "\n".join(f"{label}: {' '.join(key)}" for label, key in self.rows)


def _normal(cell: str, kind: str) -> object:
    if kind == "groups":
        groups = [re.findall(r"\d+", group) for group in re.split(r"[|/]", cell)]
        return sorted(sorted(map(int, group)) for group in groups)
    if kind == "shape":
        return [int(size) for size in re.findall(r"\d+", cell)]
    if kind == "number":
        return cell.replace(",", "")
    return plain(cell)
