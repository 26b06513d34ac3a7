"""From an anchor to its span: exactly one place, or an error that says what it saw."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeVar

from tree_sitter import Node, QueryCursor, QueryError

from readerkit.anchors.grammars import query as compile_query
from readerkit.anchors.pattern import PatternMatch
from readerkit.anchors.source import SourceFile
from readerkit.anchors.suggestions import near_code, near_symbols, shorten
from readerkit.anchors.symbols import Symbol
from readerkit.anchors.tree import check_whole_depth, last_row
from readerkit.errors import AnchorError
from readerkit.model.anchor import Anchor, Span
from readerkit.model.code_languages import Language

MAX_CANDIDATES = 8
MAX_QUERY_BYTES = 2_000
MAX_QUERY_MATCHES = 10_000

_Place = TypeVar("_Place", Symbol, PatternMatch)


def resolve(anchor: Anchor, source: SourceFile) -> Span:
    """Return the one span that ``anchor`` names in ``source``.

    Raises:
        AnchorError: no match, with the nearest names or lines; several, with each
            candidate's line; or a place that holds, or stands in, code that does not
            parse.
    """
    is_broken = source.root.has_error
    if is_broken and source.root.is_error:
        raise AnchorError(
            f"{source.path}:1: got a file that does not parse at all, so that no line "
            f"of it can be anchored: expected valid {source.language.title}"
        )
    symbols = symbols_of(anchor.symbol, source) if anchor.symbol else []
    if anchor.code is None and anchor.start is None and anchor.query is None:
        place: Symbol | PatternMatch = _pick_symbol(symbols, anchor, source)
        span = Span(source.path, place.first, place.last)
    else:
        scopes = [symbol.scope for symbol in symbols] or [source.root]
        if anchor.query is not None:
            if not source.data.strip():
                raise AnchorError(f"{source.path}: got a blank file, expected code")
            matches = _query(anchor.query, scopes, source.language)
            place = _pick(matches, anchor.nth, "the query", source)
        else:
            text = anchor.code if anchor.start is None else anchor.start
            assert text is not None  # Anchor.parse
            place = _pattern(text, anchor, scopes, source)
        last = place.last
        if anchor.stop is not None:
            end = _end_of_range(anchor, anchor.stop, place, scopes, source)
            last = max(last, end.last)
        span = Span(source.path, place.first, last)
    if is_broken:
        source.check_parsed(span.first, span.last)
    return span


def equals_of(anchor: Anchor, source: SourceFile) -> list[Span]:
    """Return every place that an anchor fits, whichever of them it picks.

    Raises:
        AnchorError: no such definition, or no pattern.
    """
    symbols = symbols_of(anchor.symbol, source) if anchor.symbol else []
    scopes = [symbol.scope for symbol in symbols] or [source.root]
    starts: Sequence[Symbol | PatternMatch] = symbols
    if anchor.query is not None:
        starts = _query(anchor.query, scopes, source.language)
    elif text := anchor.code or anchor.start:
        starts = source.find(text, scopes)
    if anchor.stop is None:
        return [Span(source.path, each.first, each.last) for each in starts]
    found = {
        Span(source.path, start.first, max(start.last, end.last))
        for start in starts
        if isinstance(start, PatternMatch)
        for scope in scopes
        if scope.start_byte <= start.begin < scope.end_byte
        for end in source.find(anchor.stop, [scope], start.begin)
    }
    return sorted(found)


def symbols_of(name: str, source: SourceFile) -> list[Symbol]:
    """Return all definitions of a symbol; a redefinition has several.

    Raises:
        AnchorError: none, with the nearest names.
    """
    found = source.symbols.get(name)
    if found:
        return found
    raise AnchorError(f"{source.path}: no symbol {name!r}", near_symbols(name, source))


def _pick_symbol(symbols: list[Symbol], anchor: Anchor, source: SourceFile) -> Symbol:
    if anchor.nth is None and len(symbols) == 1:
        return symbols[0]
    return _pick(symbols, anchor.nth, f"symbol {anchor.symbol}", source)


def _pattern(
    text: str, anchor: Anchor, scopes: Sequence[Node], source: SourceFile
) -> PatternMatch:
    matches = source.find(text, scopes)
    if anchor.nth is None and len(matches) == 1:
        return matches[0]
    where = f" in {anchor.symbol}" if anchor.symbol else ""
    if not matches:
        raise AnchorError(
            f"{source.path}: no match for {shorten(text)!r}{where}",
            near_code(text, scopes, source),
        )
    return _pick(matches, anchor.nth, f"{shorten(text)!r}{where}", source)


def _end_of_range(
    anchor: Anchor,
    text: str,
    start: PatternMatch,
    scopes: Sequence[Node],
    source: SourceFile,
) -> PatternMatch:
    scope = next(s for s in scopes if s.start_byte <= start.begin < s.end_byte)
    matches = source.find(text, [scope], start.begin)
    if not matches:
        raise AnchorError(
            f"{source.path}: no match for {shorten(text)!r} at or after line "
            f"{start.first}, "
            "where the range begins",
            near_code(text, [scope], source),
        )
    what = f"{shorten(text)!r} after line {start.first}"
    return _pick(matches, anchor.to_nth, what, source, key="to_nth")


def _query(text: str, scopes: Sequence[Node], language: Language) -> list[PatternMatch]:
    size = len(text.encode())
    if size > MAX_QUERY_BYTES:
        raise AnchorError(
            f"query is too long: got {size:,} bytes, expected at most "
            f"{MAX_QUERY_BYTES:,}"
        )
    try:
        query = compile_query(language, text)
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
    return [PatternMatch(n, n.start_point[0] + 1, last_row(n) + 1) for n in nodes]


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
        f"{key}: {index} is line {place.first}: {shorten(source.line(place.first))}"
        for index, place in enumerate(places[:MAX_CANDIDATES], 1)
    ]
    if len(places) > MAX_CANDIDATES:
        rows.append(f"and {len(places) - MAX_CANDIDATES} more")
    raise AnchorError(f"{source.path}: {reason}", rows)
