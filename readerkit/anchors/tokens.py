"""Patterns by tokens, for languages whose syntax is not compared node by node.

A pattern is a run of tokens in which ``...`` stands for any number of them, none
included, up to where the bracket around them ends: ``f(...)`` is a call with whatever
arguments, ``if x { ... }`` a whole block, ``if x {`` its header. Outside of brackets a
gap ends with its statement. White space, line breaks, comments and a comma before a
closing bracket do not count. At the end of a pattern a gap takes the rest of the piece
of syntax that begins where the pattern does.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property, lru_cache

from tree_sitter import Node

from readerkit.anchors.node_kinds import is_without_quotes
from readerkit.errors import AnchorError
from readerkit.model.code_languages import COMMENTS

GAP = b"..."
MAX_STEPS = 200_000
"""Comparisons of one search: what takes more has too many gaps."""
_TOKEN = re.compile(rb"[\w\x80-\xff]+|[^\s\w\x80-\xff]")
_OPEN = {b"(": b")", b"[": b"]", b"{": b"}"}
_CLOSE = {*_OPEN.values()}
_WORD = re.compile(rb"[\w\x80-\xff]")


@dataclass(frozen=True, slots=True)
class TokenMatch:
    """Tokens that a pattern matched, by their bytes."""

    start: int
    end: int


class Tokens:
    """The tokens of a file, comments left out, and which brackets belong together."""

    def __init__(
        self, data: bytes, comments: Iterable[Node], strings: Iterable[Node] = ()
    ) -> None:
        texts: list[bytes] = []
        starts: list[int] = []
        at = 0
        ends = [(node.start_byte, node.end_byte) for node in comments]
        for begin, end in (*sorted(ends), (len(data), len(data))):
            for match in _TOKEN.finditer(data, at, begin):
                text = match[0]
                if text in _CLOSE and texts and texts[-1] == b",":
                    texts.pop()
                    starts.pop()
                texts.append(text)
                starts.append(match.start())
            at = max(at, end)
        self.texts, self.starts = texts, starts
        self.said = {index for node in strings for index in self._said(node)}
        """Those that only a string says, without its first quote."""

    def _said(self, node: Node) -> Iterator[int]:
        if node.named_child_count:
            return  # its parts say it, and what is between them is code
        begin = node.start_byte + (not is_without_quotes(node.type))
        first = bisect_left(self.starts, begin)
        yield from range(first, bisect_left(self.starts, node.end_byte))

    def places(self, text: bytes) -> Iterator[int]:
        """Yield every index at which a token stands."""
        index = -1
        with suppress(ValueError):
            while True:
                index = self.texts.index(text, index + 1)
                yield index

    @cached_property
    def closing(self) -> dict[int, int]:
        """Each opening bracket to the one that closes it."""
        found, stack = {}, list[int]()
        for index, text in enumerate(self.texts):
            if index in self.said:
                continue
            if text in _OPEN:
                stack.append(index)
            elif text in _CLOSE and stack and _OPEN[self.texts[stack[-1]]] == text:
                found[stack.pop()] = index
        return found

    def end(self, index: int) -> int:
        """Return the byte behind a token."""
        return self.starts[index] + len(self.texts[index])


@lru_cache(maxsize=4096)
def compile_tokens(text: str) -> TokenPattern:
    """Return the compiled pattern, the same one for the same text.

    Raises:
        AnchorError: a text that says nothing.
    """
    return TokenPattern(text)


class TokenPattern:
    """A compiled pattern.

    Raises:
        AnchorError: a text without a word, which stands everywhere.
    """

    def __init__(self, text: str) -> None:
        self.text = text
        pieces = text.encode().split(GAP)
        parts: list[bytes] = []
        for number, piece in enumerate(pieces):
            if number and parts[-1:] != [GAP]:
                parts.append(GAP)
            for token in _TOKEN.findall(piece):
                if token in _CLOSE and parts[-1:] == [b","]:
                    parts.pop()
                parts.append(token)
        while parts[:1] == [GAP]:
            del parts[0]
        self.parts = parts
        words = [part for part in parts if part != GAP and _WORD.match(part)]
        if not words:
            raise AnchorError(f"pattern {text!r} matches everything: add a name to it")
        self.needle = max(words, key=len)

    def may_stand_in(self, source: bytes) -> bool:
        """Tell whether some bytes have its longest word at all."""
        return self.needle in source

    def find(
        self, tokens: Tokens, root: Node, data: bytes, start: int, end: int
    ) -> list[TokenMatch]:
        """Return every match that begins and ends between two bytes, in source order.

        Raises:
            AnchorError: gaps that could stand for too much.
        """
        found: list[TokenMatch] = []
        search = _Search(self, tokens)
        for index in tokens.places(self.parts[0]):
            if not start <= tokens.starts[index] < end or index in tokens.said:
                continue
            last = search.match(index)
            if last is None:
                continue
            begin, stop = tokens.starts[index], tokens.end(last)
            if self.parts[-1] == GAP:
                stop = _rest(root, data, begin, tokens, last)
            if stop <= end:
                found.append(TokenMatch(begin, stop))
        return found


class _Search:
    """One search: how far a pattern goes from a token on."""

    def __init__(self, pattern: TokenPattern, tokens: Tokens) -> None:
        self._pattern, self._tokens, self._steps = pattern, tokens, 0
        depth, self._depths = 0, list[int]()
        for part in pattern.parts:
            depth = max(0, depth - (part in _CLOSE))
            self._depths.append(depth)
            depth += part in _OPEN

    def match(self, index: int, part: int = 0) -> int | None:
        """Return the last token of a match that begins at one; None for none."""
        texts, parts = self._tokens.texts, self._pattern.parts
        while part < len(parts):
            self._steps += 1
            if self._steps > MAX_STEPS:
                raise AnchorError(
                    f"pattern {self._pattern.text!r} stands for too much: give its "
                    "gaps more to hold on to"
                )
            if parts[part] == GAP:
                return self._gap(index, part)
            if index >= len(texts) or texts[index] != parts[part]:
                return None
            index, part = index + 1, part + 1
        return index - 1

    def _gap(self, index: int, part: int) -> int | None:
        texts = self._tokens.texts
        if part == len(self._pattern.parts) - 1:
            return index - 1
        while True:
            self._steps += 1
            found = self.match(index, part + 1)
            if found is not None and self._is_code(index, part + 1):
                return found
            if index >= len(texts):
                return None
            text = texts[index]
            is_end = text == b";" and not self._depths[part]
            if (text in _CLOSE or is_end) and index not in self._tokens.said:
                return None
            index = self._tokens.closing.get(index, index) + 1

    def _is_code(self, index: int, part: int) -> bool:
        """Tell whether a gap ends at code: a bracket of a string ends none."""
        is_bracket = self._pattern.parts[part] in _CLOSE
        return not (is_bracket and index in self._tokens.said)


def _rest(root: Node, source: bytes, begin: int, tokens: Tokens, last: int) -> int:
    """Return where the smallest piece of syntax ends that begins at a byte and goes on.

    Where none begins there, the end of the line of the last token, brackets closed.
    """
    stop = tokens.end(last)
    node = root.descendant_for_byte_range(begin, stop)
    while node is not None and node.start_byte == begin and node.end_byte <= stop:
        node = node.parent
    if node is not None and node.start_byte == begin and node.parent is not None:
        return _without_comments(node)
    index = last + 1
    while index < len(tokens.texts):
        gap = source[tokens.end(index - 1) : tokens.starts[index]]
        is_closed = tokens.texts[index] in _CLOSE and index not in tokens.said
        if b"\n" in gap or is_closed:
            break
        index = tokens.closing.get(index, index) + 1
    return tokens.end(index - 1)


def _without_comments(node: Node) -> int:
    while node.child_count:
        children = [each for each in node.children if each.type not in COMMENTS]
        if not children or children[-1].end_byte == node.end_byte:
            break
        node = children[-1]
    return node.end_byte
