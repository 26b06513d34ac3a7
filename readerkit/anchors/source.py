"""One parsed file: bytes, lines, tree and symbols, each made once and only if asked."""

from __future__ import annotations

from functools import cached_property

import tree_sitter
import tree_sitter_python

from readerkit.anchors.symbols import Symbol, collect_symbols
from readerkit.anchors.tree import last_row
from readerkit.errors import AnchorError
from readerkit.model.git_names import TreePath

PYTHON = tree_sitter.Language(tree_sitter_python.language())

MAX_BYTES = 2_000_000
MAX_LINE_BYTES = 200_000
"""A tree costs about 200 times its source: one line of 5 MB takes nearly 1 GB. Columns
of a long line are counted anew at each step: one of 1 MB takes minutes to search."""

_BOM = b"\xef\xbb\xbf"


class SourceFile:
    """A file of an upstream.

    Lines end at ``\\n`` alone, as git and tree-sitter count them; a carriage return
    before it does not belong to the text. A byte order mark is dropped, which moves
    no line. Bytes that are not UTF-8 are kept for parsing and shown as U+FFFD.

    Raises:
        AnchorError: a file or a line too large to parse within sane memory.
    """

    def __init__(self, path: TreePath, data: bytes) -> None:
        self.path = path
        self.data = data.removeprefix(_BOM)
        if len(data) > MAX_BYTES:
            raise AnchorError(
                f"{path}: skipped: got {len(data):,} bytes, "
                f"expected at most {MAX_BYTES:,} for a source file"
            )
        if len(data) > MAX_LINE_BYTES:
            longest = max(map(len, self.raw_lines))
            if longest > MAX_LINE_BYTES:
                raise AnchorError(
                    f"{path}: skipped: got a line of {longest:,} bytes, "
                    f"expected at most {MAX_LINE_BYTES:,}"
                )

    @cached_property
    def raw_lines(self) -> list[bytes]:
        """Every line without its line end."""
        lines = self.data.split(b"\n")
        if lines[-1] == b"":
            lines.pop()
        return lines

    def line(self, number: int) -> str:
        """Return the text of one line, counted from 1."""
        return self.raw_lines[number - 1].removesuffix(b"\r").decode("utf-8", "replace")

    @cached_property
    def root(self) -> tree_sitter.Node:
        """The root of the syntax tree; broken source gives a tree with ERROR nodes."""
        return tree_sitter.Parser(PYTHON).parse(self.data).root_node

    @cached_property
    def symbols(self) -> dict[str, list[Symbol]]:
        """Classes and functions by qualified name; redefinitions share one."""
        table: dict[str, list[Symbol]] = {}
        for symbol in collect_symbols(self.root, self.data):
            table.setdefault(symbol.name, []).append(symbol)
        return table

    def symbol_around(self, first: int, last: int) -> Symbol | None:
        """Return the smallest definition that holds these lines, if one does."""
        around = [
            (end - start, symbol)
            for start, end, symbol in self._extents
            if start <= first and last <= end
        ]
        return min(around, key=lambda found: found[0], default=(0, None))[1]

    @cached_property
    def _extents(self) -> list[tuple[int, int, Symbol]]:
        """First and last line of every definition, for many questions."""
        every = (symbol for symbols in self.symbols.values() for symbol in symbols)
        return [(symbol.first, symbol.last, symbol) for symbol in every]

    @property
    def first_broken_line(self) -> int | None:
        """The first line that does not parse."""
        if not self.root.has_error:
            return None
        return _first_error(self.root).start_point[0] + 1

    def check_parsed(self, first: int, last: int) -> None:
        """Refuse lines whose place in the tree is a guess.

        Where code does not parse, the tree is what could be saved: of the top-level
        statement around it, neither ends nor nesting can be trusted.

        Raises:
            AnchorError: lines of such a statement; the message says what is broken.
        """
        end = -1
        for statement in self.root.children:
            (row, column), before = statement.start_point, end
            end = last_row(statement)
            # Behind a break, what was indented can end up at the top.
            is_torn = column > 0 and row > before and not statement.is_extra
            touches = row < last and first <= end + 1
            if touches and (statement.has_error or is_torn):
                line = _first_error(statement).start_point[0] + 1
                raise AnchorError(
                    f"{self.path}:{line}: got code that does not parse, and lines "
                    f"{first}-{last} depend on it: expected valid Python; mend it, "
                    f"or anchor a place outside lines {row + 1}-{end + 1}"
                )


def _first_error(node: tree_sitter.Node) -> tree_sitter.Node:
    """Return the first node that the parser made up or gave up on, or the node."""
    while not (node.is_error or node.is_missing):
        broken = next((child for child in node.children if child.has_error), None)
        if broken is None:
            break
        node = broken
    return node
