"""From an anchor to its span: exactly one place, or an error that says what it saw."""

from __future__ import annotations

import difflib
from collections.abc import Sequence
from typing import Any, TypeVar

from tree_sitter import Node, Query, QueryCursor, QueryError

from readerkit.anchors.anchor import Anchor, Span
from readerkit.anchors.pattern import Match, compile_pattern
from readerkit.anchors.source import PYTHON, SourceFile
from readerkit.anchors.symbols import Symbol
from readerkit.anchors.tree import check_whole_depth, last_row
from readerkit.errors import AnchorError

MAX_CANDIDATES = 8
MAX_QUERY_BYTES = 2_000
MAX_QUERY_MATCHES = 10_000

_Place = TypeVar("_Place", Symbol, Match)


def resolve(anchor: Anchor, source: SourceFile) -> Span:
    """Return the one span that ``anchor`` names in ``source``.

    Raises:
        AnchorError: no match, with the nearest names or lines; or several, with each
            candidate's line.
    """
    symbols = _symbols(anchor, source)
    if anchor.code is None and anchor.start is None and anchor.query is None:
        symbol = _pick(symbols, anchor.nth, f"symbol {anchor.symbol}", source)
        return Span(source.path, symbol.first, symbol.last)
    scopes = [symbol.scope for symbol in symbols] or [source.root]
    if anchor.query is not None:
        matches = _query(anchor.query, scopes)
        match = _pick(matches, anchor.nth, "the query", source)
    elif anchor.code is not None:
        match = _pattern(anchor.code, anchor.nth, scopes, source, anchor.symbol)
    else:
        assert anchor.start is not None and anchor.stop is not None  # Anchor.parse
        match = _pattern(anchor.start, anchor.nth, scopes, source, anchor.symbol)
        end = _end_of_range(anchor, anchor.stop, match, scopes, source)
        return Span(source.path, match.first, max(match.last, end.last))
    return Span(source.path, match.first, match.last)


def _symbols(anchor: Anchor, source: SourceFile) -> list[Symbol]:
    """Return all definitions of the anchor's symbol; a redefinition has several."""
    if anchor.symbol is None:
        return []
    found = source.symbols.get(anchor.symbol)
    if found:
        return found
    raise AnchorError(
        f"{source.path}: no symbol {anchor.symbol!r}",
        _near_symbols(anchor.symbol, source),
    )


def _near_symbols(name: str, source: SourceFile) -> list[str]:
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
        for known in list(dict.fromkeys(near))[:MAX_CANDIDATES]
    ]
    return lines or [f"it defines {len(source.symbols)} symbols, none alike"]


def _pattern(
    text: str,
    nth: int | None,
    scopes: Sequence[Node],
    source: SourceFile,
    symbol: str | None,
) -> Match:
    pattern = compile_pattern(text)
    matches = pattern.find(scopes, source.data)
    where = f" in {symbol}" if symbol else ""
    if not matches:
        raise AnchorError(
            f"{source.path}: no match for {_shorten(text)!r}{where}",
            _near_lines(text, scopes, source),
        )
    return _pick(matches, nth, f"{_shorten(text)!r}{where}", source)


def _near_lines(text: str, scopes: Sequence[Node], source: SourceFile) -> list[str]:
    """Show the lines of the scopes that look most like a pattern without a match."""
    wanted = " ".join(text.replace("...", " ").split())
    lines: dict[str, int] = {}
    for scope in scopes:
        for number in range(scope.start_point[0] + 1, scope.end_point[0] + 2):
            if number <= len(source.raw_lines):
                lines.setdefault(source.line(number).strip()[:200], number)
    near = difflib.get_close_matches(wanted, lines, n=3, cutoff=0.4)
    return [f"near: line {lines[line]}: {_shorten(line)}" for line in near]


def _end_of_range(
    anchor: Anchor, text: str, start: Match, scopes: Sequence[Node], source: SourceFile
) -> Match:
    pattern = compile_pattern(text)
    scope = next(
        s for s in scopes if s.start_byte <= start.node.start_byte < s.end_byte
    )
    matches = pattern.find([scope], source.data, start.node.start_byte)
    if not matches:
        raise AnchorError(
            f"{source.path}: no match for {_shorten(text)!r} at or after line "
            f"{start.first}, "
            "where the range begins",
            _near_lines(text, [scope], source),
        )
    what = f"{_shorten(text)!r} after line {start.first}"
    return _pick(matches, anchor.to_nth, what, source, key="to_nth")


def _query(text: str, scopes: Sequence[Node]) -> list[Match]:
    size = len(text.encode())
    if size > MAX_QUERY_BYTES:
        raise AnchorError(
            f"query is too long: got {size:,} bytes, expected at most "
            f"{MAX_QUERY_BYTES:,}"
        )
    try:
        query = Query(PYTHON, text)
    except QueryError as error:
        raise AnchorError(f"query is not valid: {error}") from None
    names = [query.capture_name(index) for index in range(query.capture_count)]
    if "anchor" not in names:
        got = ", ".join(f"@{name}" for name in names) or "no capture"
        raise AnchorError(f"query names no node: got {got}, expected @anchor")
    unknown: list[str] = []

    def refuse(predicate: str, args: Any, pattern_index: int, captures: Any) -> bool:
        unknown.append(predicate)  # without this hook it would count as true
        return False

    nodes: list[Node] = []
    for scope in scopes:
        check_whole_depth(scope)
        cursor = QueryCursor(query, match_limit=MAX_QUERY_MATCHES)
        nodes += cursor.captures(scope, refuse).get("anchor", [])
        if cursor.did_exceed_match_limit:
            raise AnchorError(f"query has over {MAX_QUERY_MATCHES:,} matches")
    if unknown:
        raise AnchorError(f"query is not valid: unknown predicate #{unknown[0]}")
    if not nodes:
        raise AnchorError("query matched nothing: expected one node as @anchor")
    nodes.sort(key=lambda node: (node.start_byte, node.end_byte))
    return [Match(n, n.start_point[0] + 1, last_row(n) + 1) for n in nodes]


def _pick(
    places: Sequence[_Place],
    nth: int | None,
    what: str,
    source: SourceFile,
    key: str = "nth",
) -> _Place:
    """Return the only place, or the one that ``nth`` picks."""
    if nth is not None:
        if 1 <= nth <= len(places):
            return places[nth - 1]
        reason = f"{key} is out of range: got {nth}, expected 1 to {len(places)}"
    elif len(places) == 1:
        return places[0]
    else:
        reason = f"{len(places)} matches for {what}, expected one"
    rows = [
        f"{key}: {index} is line {place.first}: {_shorten(source.line(place.first))}"
        for index, place in enumerate(places[:MAX_CANDIDATES], 1)
    ]
    if len(places) > MAX_CANDIDATES:
        rows.append(f"and {len(places) - MAX_CANDIDATES} more")
    raise AnchorError(f"{source.path}: {reason}", rows)


def _shorten(line: str) -> str:
    line = line.strip()
    return line if len(line) <= 88 else line[:85] + "..."
