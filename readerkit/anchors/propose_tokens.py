"""From lines to an anchor, for languages that are read by their tokens."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator
from itertools import product

from readerkit.anchors.source import SourceFile
from readerkit.anchors.tokens import Tokens
from readerkit.model.anchor import Anchor, Span

MAX_PATTERN = 160
MAX_EDGES = 8
"""Ways to write a first or a last line that are tried for a range."""
MAX_NTH = 40


def is_quiet(number: int, source: SourceFile) -> bool:
    """Tell whether a line has no token: it is blank, or a comment."""
    first, last = _between(number, number, source)
    return first >= last


def symbol_anchors(span: Span, source: SourceFile) -> Iterator[Anchor]:
    """Yield the anchors of a whole definition, where the lines are one."""
    for symbols in source.symbols.values():
        for index, symbol in enumerate(symbols, 1):
            if symbol.first == span.first and symbol.last == span.last:
                yield Anchor(span.path, symbol=symbol.name)
                yield Anchor(span.path, symbol=symbol.name, nth=index)


def token_candidates(span: Span, source: SourceFile) -> Iterator[Anchor]:
    """Yield anchors to try on lines that begin and end with tokens, the best first."""
    path, tokens = span.path, source.tokens
    yield from symbol_anchors(span, source)
    around = source.symbol_around(span.first, span.last)
    names = [around.name, None] if around else [None]
    first, last = _between(span.first, span.last, source)
    patterns = [text for text in _whole(first, last, tokens, source) if _fits(text)]
    for text, name in product(patterns, names):
        yield Anchor(path, symbol=name, code=text)
    starts = [*_prefixes(span.first, source)][:MAX_EDGES]
    stops = [*_prefixes(span.last, source)][:MAX_EDGES]
    if span.first != span.last:
        for name, start, stop in product(names, starts, stops):
            yield Anchor(path, symbol=name, start=start, stop=stop)
    for nth, text in product(range(1, MAX_NTH), patterns[-1:]):
        yield Anchor(path, symbol=names[0], code=text, nth=nth)
    if span.first != span.last and starts and stops:
        for nth, to_nth in product(range(1, 7), range(1, 7)):
            yield Anchor(
                path,
                symbol=names[0],
                start=starts[-1],
                stop=stops[-1],
                nth=nth,
                to_nth=to_nth,
            )


def _between(first: int, last: int, source: SourceFile) -> tuple[int, int]:
    """Return the tokens of lines, as the first and one behind the last."""
    starts = source.tokens.starts
    lines = source.line_starts
    begin = lines[first - 1]
    end = lines[last] if last < len(lines) else len(source.data)
    return bisect_left(starts, begin), bisect_left(starts, end)


def _whole(first: int, last: int, tokens: Tokens, source: SourceFile) -> Iterator[str]:
    """Yield patterns for tokens, those with gaps for what is in brackets first."""
    for most in (1, 40, 10_000):
        pieces, index = [], first
        while index < last:
            end = tokens.closing.get(index)
            pieces.append((tokens.starts[index], tokens.end(index)))
            if end is not None and end < last and end - index - 1 > most:
                pieces += [(-1, -1), (tokens.starts[end], tokens.end(end))]
                index = end
            index += 1
        yield _text(pieces, source)


def _prefixes(line: int, source: SourceFile) -> Iterator[str]:
    """Yield the first tokens of a line, from two on, and all of them last."""
    first, last = _between(line, line, source)
    tokens = source.tokens
    for end in (*range(first + 2, min(first + MAX_EDGES, last)), last):
        places = ((tokens.starts[n], tokens.end(n)) for n in range(first, end))
        text = _text([*places], source)
        if _fits(text):
            yield text


def _text(pieces: list[tuple[int, int]], source: SourceFile) -> str:
    """Return tokens as they are written, on one line."""
    text, reached = "", -1
    for start, end in pieces:
        if start < 0:
            text, reached = text + "...", -1
            continue
        is_apart = reached >= 0 and start > reached
        text += " " * is_apart
        text += source.data[start:end].decode("utf-8", "replace")
        reached = end
    return text


def _fits(text: str) -> bool:
    return len(text) <= MAX_PATTERN and any(letter.isalpha() for letter in text)
