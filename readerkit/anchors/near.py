"""What an anchor that names no place may have meant: the nearest names and lines."""

from __future__ import annotations

import difflib
from collections.abc import Sequence

from tree_sitter import Node

from readerkit.anchors.source import SourceFile

MAX_SHOWN = 8


def near_symbols(name: str, source: SourceFile) -> list[str]:
    """Name the symbols that ``name`` may be a misspelling of, same last part first."""
    last = name.rpartition(".")[2]
    near = [known for known in source.symbols if known.rpartition(".")[2] == last]
    near += difflib.get_close_matches(name, source.symbols, n=4, cutoff=0.5)
    by_last_part: dict[str, str] = {}
    for known in source.symbols:
        by_last_part.setdefault(known.rpartition(".")[2], known)
    close = difflib.get_close_matches(last, by_last_part, n=3, cutoff=0.75)
    near += [by_last_part[part] for part in close]
    lines = [
        f"did you mean {known}? (line {source.symbols[known][0].first})"
        for known in list(dict.fromkeys(near))[:MAX_SHOWN]
    ]
    return lines or [f"it defines {len(source.symbols)} symbols, none alike"]


def near_code(text: str, scopes: Sequence[Node], source: SourceFile) -> list[str]:
    """Show the lines of the scopes that look most like a pattern without a match."""
    wanted = " ".join(text.replace("...", " ").split())
    lines: dict[str, int] = {}
    for scope in scopes:
        for number in range(scope.start_point[0] + 1, scope.end_point[0] + 2):
            if number <= len(source.raw_lines):
                lines.setdefault(source.line(number).strip()[:200], number)
    near = difflib.get_close_matches(wanted, lines, n=3, cutoff=0.4)
    return [f"near: line {lines[line]}: {shorten(line)}" for line in near]


def shorten(line: str) -> str:
    """Return a line that fits a message."""
    line = line.strip()
    return line if len(line) <= 88 else line[:85] + "..."
