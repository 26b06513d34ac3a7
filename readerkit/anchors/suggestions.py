"""What an anchor that names no place may have meant: the nearest names and lines."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from difflib import SequenceMatcher
from heapq import nlargest
from keyword import iskeyword

from tree_sitter import Node

from readerkit.anchors.source import SourceFile
from readerkit.anchors.tree import last_row
from readerkit.errors import AnchorError
from readerkit.model.code_languages import COMMENTS
from readerkit.wording.meant_name import did_you_mean

MAX_SHOWN = 8
MAX_LINES = 3
ALIKE = 0.6
"""How alike two names or lines are from which one may be meant: 1 is equal."""
HARDLY_ALIKE = 0.4
"""The least of the one line that is shown where none is alike."""
WORDS_COMPARED = 20_000
"""Pairs: what takes longer than a moment helps nobody."""
_WORD = re.compile(r"\w+")


def near_symbols(name: str, source: SourceFile) -> list[str]:
    """Name the symbols that ``name`` may be a misspelling of, the likeliest first."""
    scores = {known: _name_likeness(name, known) for known in source.symbols}
    near = [
        known
        for known in nlargest(MAX_SHOWN, scores, key=scores.__getitem__)
        if scores[known] >= ALIKE
    ]
    # Guesses that are much worse than the best one only distract.
    near = [known for known in near if scores[known] > scores[near[0]] - 0.2]
    rows = [
        f"{did_you_mean(known)} (line {source.symbols[known][0].first})"
        for known in near
    ]
    owner = name.rpartition(".")[0]
    if owner in source.symbols and not any(
        known.rpartition(".")[0] == owner for known in near
    ):
        rows.append(f"{owner} defines {_members(owner, source)}")
    rows = rows or [_none_alike(source)]
    return [*rows, *_broken(source)]


def _none_alike(source: SourceFile) -> str:
    if not source.raw_lines:
        return "the file is empty"
    if not source.symbols:
        return "it defines nothing"
    count = len(source.symbols)
    return f"it defines {count} symbol{'s' * (count > 1)}, none alike"


def _members(owner: str, source: SourceFile) -> str:
    parts = [known.rpartition(".") for known in source.symbols]
    names = [last for known_owner, _, last in parts if known_owner == owner]
    shown = ", ".join(names[: 2 * MAX_SHOWN])
    more = len(names) - 2 * MAX_SHOWN
    return (shown + (f" and {more} more" if more > 0 else "")) or "nothing"


def _name_likeness(name: str, known: str) -> float:
    """Return how likely a symbol is meant: its last part first, then its owner."""
    owner, _, last = name.rpartition(".")
    known_owner, _, known_last = known.rpartition(".")
    last_likeness = _likeness(last, known_last)
    if last_likeness < ALIKE:
        return 0.0
    if not owner or not known_owner:  # one of them names no owner: that is one mistake
        return last_likeness - 0.1 * (owner != known_owner)
    return 0.65 * last_likeness + 0.35 * _likeness(owner, known_owner)


def _likeness(one: str, other: str) -> float:
    """Return how alike two names are; case and underscores hardly count."""
    if one == other:
        return 1.0
    matcher = SequenceMatcher(None, _folded(one), _folded(other), autojunk=False)
    if matcher.real_quick_ratio() < ALIKE / 2 or matcher.quick_ratio() < ALIKE / 2:
        return 0.0
    return 0.99 * matcher.ratio()


def _folded(name: str) -> str:
    return name.replace("_", "").lower()


def near_code(text: str, scopes: Sequence[Node], source: SourceFile) -> list[str]:
    """Say where a pattern without a match stands instead, and what looks like it."""
    rows = [*_elsewhere(text, source), *_nearest_lines(text, scopes, source)]
    if not rows and scopes[0].parent is not None:
        node = scopes[0]
        rows = [f"that is lines {node.start_point[0] + 1}-{last_row(node) + 1}"]
    return [*rows, *_broken(source)]


def _elsewhere(text: str, source: SourceFile) -> list[str]:
    """Name the definitions outside the scopes in which the pattern has a match."""
    try:
        matches = source.find(text, [source.root])
    except AnchorError:  # in too many places
        return []
    rows: dict[str, str] = {}
    for match in matches[: MAX_SHOWN * 4]:
        around = source.symbol_around(match.first, match.last)
        name = around.name if around else "the module, outside of definitions"
        rows.setdefault(name, f"it stands in {name}, line {match.first}")
    return list(rows.values())[:MAX_LINES]


def _nearest_lines(
    text: str, scopes: Sequence[Node], source: SourceFile
) -> Iterator[str]:
    """Yield the lines in the scopes whose words are most like those of a pattern."""
    wanted = _WORD.findall(text)
    words = [word for word in wanted if not iskeyword(word)] or wanted
    lines: dict[str, int] = {}
    for scope in scopes:
        last = min(scope.end_point[0] + 1, len(source.raw_lines))
        for number in range(scope.start_point[0] + 1, last + 1):
            lines.setdefault(source.line(number).strip()[:200], number)
    likeness = _WordLikeness()
    scores = {line: likeness.of_line(text, words, line) for line in lines}
    likely = nlargest(4 * MAX_LINES, scores, key=scores.__getitem__)
    best = [line for line in likely if _is_code(lines[line], source)][:MAX_LINES]
    alike = [line for line in best if scores[line] >= ALIKE]
    for line in alike or [line for line in best[:1] if scores[line] >= HARDLY_ALIKE]:
        yield f"near: line {lines[line]}: {shorten(line)}"


def _is_code(number: int, source: SourceFile) -> bool:
    """Tell whether a line begins with code: in a docstring stands none."""
    line = source.raw_lines[number - 1]
    point = (number - 1, len(line) - len(line.lstrip()))
    node = source.root.descendant_for_point_range(point, point)
    if node is None or node.type in COMMENTS:
        return node is None
    return node.type not in ("string", "string_content")


class _WordLikeness:
    """Likeness of words, each pair found out once."""

    def __init__(self) -> None:
        self._known: dict[tuple[str, str], float] = {}

    def of_line(self, text: str, words: list[str], line: str) -> float:
        """Return how alike a pattern and a line are; long words count more."""
        if not words or line.startswith("#"):
            return 0.0
        found = _WORD.findall(line)
        weights = [len(word) for word in words]
        likeness = [
            max((self._of(word, other) for other in found), default=0.0)
            for word in words
        ]
        total = sum(w * each for w, each in zip(weights, likeness, strict=True))
        # Of lines with the same words, the one that holds little else.
        surplus = max(0, len(found) - len(words)) / (len(found) + 1)
        return total / sum(weights) - 0.1 * surplus

    def _of(self, one: str, other: str) -> float:
        if one == other:
            return 1.0
        key = (one, other)
        if key not in self._known:
            if len(self._known) > WORDS_COMPARED:
                return 0.0
            self._known[key] = _likeness(one, other)
        return self._known[key]


def _broken(source: SourceFile) -> list[str]:
    line = source.first_broken_line
    return [f"line {line} does not parse, which can hide it"] if line else []


def shorten(line: str) -> str:
    """Return a line that fits a message."""
    line = line.strip()
    return line if len(line) <= 88 else line[:85] + "..."
