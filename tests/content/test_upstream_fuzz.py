"""Real source, torn: names and lines of the file, or an error that says so."""

from __future__ import annotations

import contextlib
import random
import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as some

from readerkit.anchors import Anchor, SourceFile, Span, fingerprint, resolve
from readerkit.anchors.highlight import highlight
from readerkit.anchors.pattern import Pattern, read_call
from readerkit.anchors.propose import propose
from readerkit.errors import AnchorError
from tests.content.test_annotations import library, sources

JUNK = [b"(", b")", b"\n", b"def ", b"class ", b":", b"'", b'"""', b"\\", b"\t", b"\0"]
JUNK += [b"\xff", b"@", b"async ", b"match x:\n", b"lambda", b"f'{", b"}", b"    "]


def some_file(choose: random.Random) -> SourceFile:
    upstream = choose.choice(["megatron", "pytorch"])
    paths = sorted(library().lock(library().upstream(upstream)).files)
    while True:
        file = sources(upstream).file(choose.choice(paths))
        if 200 < len(file.data) < 60_000:
            return file


def torn(file: SourceFile, choose: random.Random) -> SourceFile:
    """Return the file cut off, or with some pieces lost, doubled or added."""
    data = file.data
    if choose.random() < 0.3:
        return SourceFile(file.path, data[: choose.randrange(len(data))])
    for _ in range(choose.randint(1, 5)):
        at = choose.randrange(len(data))
        to = at + choose.choice([0, 1, 1, 20, 300])
        inner = choose.choice([b"", choose.choice(JUNK), data[at:to] * 2])
        data = data[:at] + inner + data[to:]
    return SourceFile(file.path, data)


@settings(max_examples=40)
@given(seed=some.integers(min_value=0))
@pytest.mark.further
def test_torn_source_ends_in_its_own_lines_or_an_error(seed):
    choose = random.Random(seed)
    whole = some_file(choose)
    try:
        file = torn(whole, choose)
    except AnchorError:  # one that is no source any more
        return
    count = len(file.raw_lines)
    for symbols in file.symbols.values():
        for symbol in symbols:
            assert 1 <= symbol.first <= symbol.last <= count
    first = choose.randint(1, max(1, count))
    last = min(count, first + 60)
    assert all(first <= mark.line <= last for mark in highlight(file, first, last))
    anchors = [Anchor(file.path, symbol=name) for name in whole.symbols]
    anchors += [
        Anchor(file.path, code=f"{name.decode()}(...)", nth=1)
        for name in re.findall(rb"[a-z_.]{4,}(?=\()", whole.data)
    ]
    for anchor in choose.sample(anchors, min(40, len(anchors))):
        with contextlib.suppress(AnchorError):
            span = resolve(anchor, file)
            assert 1 <= span.first <= span.last <= count
            assert len(fingerprint(span, file).lines) == span.last - span.first + 1
    for _ in range(3):
        first = choose.randint(1, max(1, count))
        span = Span(file.path, first, min(count, first + choose.choice([0, 1, 5])))
        with contextlib.suppress(AnchorError):
            assert span.first <= resolve(propose(span, file), file).first <= span.last


@settings(max_examples=40)
@given(seed=some.integers(min_value=0))
def test_symbol_before_a_tear_keeps_its_lines_or_says_why(seed):
    choose = random.Random(seed)
    whole = some_file(choose)
    at = choose.randrange(len(whole.data))
    file = SourceFile(whole.path, whole.data[:at] + b"\n)]}\n" + whole.data[at:])
    for name, [symbol, *others] in whole.symbols.items():
        if others or symbol.node.end_byte >= at:
            continue
        with contextlib.suppress(AnchorError):
            span = resolve(Anchor(file.path, symbol=name), file)
            assert (span.first, span.last) == (symbol.first, symbol.last)


@settings(max_examples=20)
@given(seed=some.integers(min_value=0))
def test_call_is_found_by_its_bytes_where_its_tree_finds_it(seed):
    choose = random.Random(seed)
    file = some_file(choose)
    # Space, line ends and comments where they can stand in a call.
    data = re.sub(
        rb"\b([a-z]\w*)(\.|\()",
        lambda match: match[1] + choose.choice([b"", b"", b"", b" "]) + match[2],
        file.data,
    )
    names = re.findall(rb"(?:[a-zA-Z_]\w*\.)*[a-zA-Z_]\w*(?=\()", file.data)
    for source in (file, SourceFile(file.path, data)):
        for name in choose.sample(names, min(30, len(names))):
            text = f"{name.decode()}(...)"
            if read_call(text) is None:
                continue
            by_bytes, by_tree = Pattern(text), Pattern(f"{text} ")
            with contextlib.suppress(AnchorError):
                expected = by_tree.find([source.root], source.data)
                assert by_bytes.find([source.root], source.data) == expected
