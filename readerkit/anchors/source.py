"""One parsed file: bytes, lines, tree and symbols, each made once and only if asked."""

from __future__ import annotations

import shlex
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from functools import cached_property
from itertools import accumulate

import tree_sitter

from readerkit.anchors.grammars import (
    comments_query,
    grammar,
    language_at,
    strings_query,
)
from readerkit.anchors.pattern import PatternMatch, compile_pattern
from readerkit.anchors.symbols import Symbol, collect_symbols
from readerkit.anchors.tags import tagged_symbols
from readerkit.anchors.tokens import Tokens, compile_tokens
from readerkit.anchors.tree import last_row
from readerkit.errors import AnchorError
from readerkit.model.git_names import TreePath

MAX_BYTES = 2_000_000
MAX_LINE_BYTES = 200_000
"""A tree costs about 200 times its source: one line of 5 MB takes nearly 1 GB. Columns
of a long line are counted anew at each step: one of 1 MB takes minutes to search."""

_BINARY_BYTES = 8_000
"""A zero byte among the first of them makes a file binary, as git sees it."""
_BOM = b"\xef\xbb\xbf"
_BRACKETS = ((b"(", b")"), (b"[", b"]"), (b"{", b"}"))
_ENDS = (";", ",", ":")
_WIDE = (b"\xff\xfe", b"\xfe\xff")
"""What text of two bytes a letter begins with: no grammar reads it."""


def is_binary(data: bytes) -> bool:
    """Tell whether bytes are no text that is read, as git tells it."""
    return b"\0" in data[:_BINARY_BYTES]


def without_mark(data: bytes) -> bytes:
    r"""Return text without the byte order mark before it, which moves no line.

    >>> without_mark(b"\xef\xbb\xbfimport torch")
    b'import torch'
    """
    return data.removeprefix(_BOM)


class SourceFile:
    """A file of an upstream.

    Lines end at ``\\n`` alone, as git and tree-sitter count them; a carriage return
    before it does not belong to the text. A byte order mark is dropped, which moves
    no line. Bytes that are not UTF-8 are kept for parsing and shown as U+FFFD.

    Raises:
        AnchorError: a file or a line too large to parse within sane memory, one that is
            no text, or of a language without a grammar.
    """

    def __init__(self, path: TreePath, data: bytes) -> None:
        self.path = path
        self.language = language_at(path)
        self.data = without_mark(data)
        if len(data) > MAX_BYTES:
            raise AnchorError(
                f"{path}: skipped: got {len(data):,} bytes, "
                f"expected at most {MAX_BYTES:,} for a source file"
            )
        if data.startswith(_WIDE):
            raise AnchorError(
                f"{path}: skipped: got UTF-16, expected UTF-8: "
                f"iconv -f UTF-16 -t UTF-8 {shlex.quote(path)}"
            )
        if is_binary(data):
            raise AnchorError(f"{path}: skipped: got a binary file, expected source")
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
        return tree_sitter.Parser(grammar(self.language)).parse(self.data).root_node

    @cached_property
    def tokens(self) -> Tokens:
        """Its tokens, which patterns of other languages than Python are made of."""
        found = tree_sitter.QueryCursor(comments_query(self.language))
        comments = found.captures(self.root).get("comment", ())
        strings = tree_sitter.QueryCursor(strings_query(self.language))
        texts = strings.captures(self.root).get("string", ())
        return Tokens(self.data, comments, texts)

    @cached_property
    def line_starts(self) -> list[int]:
        """The byte at which each line begins."""
        lengths = (len(line) + 1 for line in self.raw_lines)
        return [0, *accumulate(lengths)][: max(1, len(self.raw_lines))]

    def row(self, at: int) -> int:
        """Return the row that a byte is in, counted from 0."""
        return bisect_right(self.line_starts, at) - 1

    @cached_property
    def symbols(self) -> dict[str, list[Symbol]]:
        """Classes and functions by qualified name; redefinitions share one."""
        table: dict[str, list[Symbol]] = {}
        found = (
            collect_symbols(self.root, self.data)
            if self.language.is_python
            else tagged_symbols(self.root, self.language)
        )
        for symbol in found:
            table.setdefault(symbol.name, []).append(symbol)
        return table

    def find(
        self, text: str, scopes: Sequence[tree_sitter.Node], begin: int = 0
    ) -> list[PatternMatch]:
        """Return every match of a pattern in some scopes, in source order.

        It is compared by syntax in Python, by tokens elsewhere, and begins at byte
        ``begin`` or behind it.

        Raises:
            AnchorError: no pattern of the language, or one that stands everywhere.
        """
        if self.language.is_python:
            return compile_pattern(text).find(scopes, self.data, begin)
        found = {each.begin: each for each in self._by_tokens(text, scopes, begin)}
        return [found[start] for start in sorted(found)]

    def may_hold(self, text: str) -> bool:
        """Tell whether it has a text of a pattern at all, before it is parsed."""
        compiled = compile_pattern if self.language.is_python else compile_tokens
        return compiled(text).may_stand_in(self.data)

    def _by_tokens(
        self, text: str, scopes: Sequence[tree_sitter.Node], begin: int
    ) -> Iterator[PatternMatch]:
        pattern = compile_tokens(text)
        if not pattern.may_stand_in(self.data):
            return
        for scope in scopes:
            start, end = max(scope.start_byte, begin), scope.end_byte
            for match in pattern.find(self.tokens, self.root, self.data, start, end):
                # The smallest node that holds all of it may begin before it.
                node = self.root.descendant_for_byte_range(match.start, match.end)
                first, last = self.row(match.start) + 1, self.row(match.end - 1) + 1
                yield PatternMatch(node or scope, first, last, match.start)

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
        if not self.language.is_python:
            self._check_clear(first, last)
            return
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

    def _check_clear(self, first: int, last: int) -> None:
        """Refuse lines in which something does not parse.

        Brackets hold the rest of such a file together better than indentation does: a
        macro that the grammar does not know is no reason to refuse all of it, nor what
        stands around it on other lines.
        """
        todo = [self.root]
        while todo:
            node = todo.pop()
            rows = node.start_point[0] + 1, node.end_point[0] + 1
            if rows[0] > last or rows[1] < first:
                continue
            if _is_torn(node):
                raise AnchorError(
                    f"{self.path}:{rows[0]}: got code that does not parse, and lines "
                    f"{first}-{last} depend on it: expected valid "
                    f"{self.language.title}; anchor a place beside it"
                )
            todo += [child for child in node.children if child.has_error]


def _is_torn(node: tree_sitter.Node) -> bool:
    """Tell whether a node is an error that may move where blocks begin and end.

    One on a single line that opens as many brackets as it closes moves none: a macro
    without a semicolon, a keyword of a dialect.
    """
    text = node.text or b""
    if node.is_missing:
        return not node.type.isidentifier() and node.type not in _ENDS
    if not node.is_error or not text:
        return False
    is_even = all(text.count(a) == text.count(b) for a, b in _BRACKETS)
    return node.start_point[0] != node.end_point[0] or not is_even


def _first_error(node: tree_sitter.Node) -> tree_sitter.Node:
    """Return the first node that the parser made up or gave up on, or the node."""
    while not (node.is_error or node.is_missing):
        broken = next((child for child in node.children if child.has_error), None)
        if broken is None:
            break
        node = broken
    return node
