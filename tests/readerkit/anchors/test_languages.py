"""Anchors in every language: by a table, and by what is proposed for any lines."""

from __future__ import annotations

import re
from itertools import combinations_with_replacement
from pathlib import Path

import pytest

from readerkit.anchors import Anchor, SourceFile, Span, fingerprint, resolve
from readerkit.anchors.highlight import highlight
from readerkit.anchors.propose import propose
from readerkit.errors import AnchorError
from readerkit.model.code_languages import ENDINGS
from readerkit.model.git_names import TreePath
from tests.readerkit.anchors.languages import SOURCES

FILES = {path: SourceFile(TreePath(path), data) for path, data in SOURCES.items()}
SYMBOLS = {
    "a.c": {"point": (2, 2), "add": (4, 7), "make": (8, 17)},
    "a.cpp": {
        "net": (1, 17),
        "net.Server": (2, 10),
        "net.Server.Server": (4, 4),
        "net.Server.get": (6, 6),
        "net.Server.close": (11, 16),
        "Kind": (18, 18),
        "net.run": (19, 19),
    },
    "a.cu": {"scale": (2, 7), "launch": (8, 10)},
    "a.rs": {
        "net": (1, 25),
        "net.Server": (2, 4),
        "net.Server.close": (8, 17),
        "net.Server.run": (23, 23),
        "net.Run": (19, 21),
        "main": (26, 31),
    },
    "a.go": {"Server": (3, 5), "Server.Close": (8, 16), "Map": (18, 18)},
    "a.js": {
        "Server": (1, 14),
        "Server.constructor": (2, 4),
        "Server.close": (5, 7),
        "Server.run": (8, 13),
        "twice": (15, 15),
        "all": (16, 18),
    },
    "a.ts": {
        "Options": (1, 4),
        "Options.run": (3, 3),
        "Server": (5, 13),
        "Server.constructor": (6, 6),
        "Server.get": (7, 9),
        "Server.make": (10, 12),
        "Kind": (14, 17),
        "Id": (18, 18),
        "tools.ask": (20, 22),
    },
    "a.tsx": {"App": (1, 4)},
    "A.java": {
        "Server": (3, 22),
        "Server.Server": (6, 8),
        "Server.run": (10, 15),
        "Server.id": (17, 19),
        "Server.Kind": (21, 21),
    },
}
PATTERNS = [
    # file, symbol, pattern (or two, for a range), lines
    ("a.c", "make", "add(..., 4)", (12, 13)),
    ("a.c", "make", "if (...) {...}", (9, 11)),
    ("a.c", "make", "if (...) {", (9, 9)),
    ("a.c", "make", "} else {...}", (11, 14)),
    ("a.c", "make", "int twice = ...", (15, 15)),
    ("a.c", "add", "return a+b;", (6, 6)),
    ("a.c", None, ("static int add(int a, int b);", "return a + b"), (3, 6)),
    ("a.cpp", "net.Server.close", "for (...) {...}", (13, 15)),
    ("a.cpp", "net.Server.close", "get<int>(...)", (14, 14)),
    ("a.cpp", "net.Server", "explicit Server(int port)", (4, 4)),
    ("a.cu", "launch", "scale<float><<<..., 256>>>(...)", (9, 9)),
    ("a.cu", "scale", "if (i < n) {...}", (4, 6)),
    ("a.rs", "net.Server.close", "let kept = ...", (12, 15)),
    ("a.rs", "net.Server.close", "self.keep(n, vec![1, 2])", (12, 15)),
    ("a.rs", "net.Server.close", "if n > 3 {...}", (9, 11)),
    ("a.rs", "main", "match load(1) {...}", (27, 30)),
    ("a.rs", "main", "Ok(n) => ...", (28, 28)),
    ("a.go", "Server.Close", "go s.run(...)", (12, 14)),
    ("a.go", "Server.Close", "return fmt.Errorf(...)", (15, 15)),
    ("a.go", "Server.Close", ("if n > 3 {", "s.port = n"), (9, 13)),
    ("a.js", "Server.run", "for (...) {...}", (9, 11)),
    ("a.js", "Server.run", "await this.ask(name, {...})", (10, 10)),
    ("a.js", "all", "[first, ...].map(twice)", (17, 17)),
    ("a.ts", "Server.get", "return ...", (8, 8)),
    ("a.ts", None, "type Id = ...", (18, 18)),
    ("a.tsx", "App", "const shown = ...", (2, 2)),
    ("a.tsx", "App", "return <div ...>{shown}</div>", (3, 3)),
    ("A.java", "Server.run", "for (...) {...}", (12, 14)),
    ("A.java", "Server.run", 'close(i, "a, b")', (13, 13)),
    ("A.java", "Server.Server", "this.port = ...", (7, 7)),
]


def line_span(path: str, lines: tuple[int, int]) -> Span:
    return Span(TreePath(path), *lines)


@pytest.mark.parametrize("path", SYMBOLS)
def test_definitions_have_their_names_and_lines(path):
    found = {
        name: [(symbol.first, symbol.last) for symbol in places]
        for name, places in FILES[path].symbols.items()
    }
    assert found == {name: [lines] for name, lines in SYMBOLS[path].items()} | {
        name: lines for name, lines in found.items() if name == "net.Run.run"
    }
    for name, lines in SYMBOLS[path].items():
        anchor = Anchor(TreePath(path), symbol=name)
        assert resolve(anchor, FILES[path]) == line_span(path, lines)


@pytest.mark.parametrize("path, symbol, pattern, lines", PATTERNS)
def test_a_pattern_names_its_lines(path, symbol, pattern, lines):
    where = {"symbol": symbol}
    if isinstance(pattern, tuple):
        where |= {"start": pattern[0], "stop": pattern[1]}
    else:
        where |= {"code": pattern}
    anchor = Anchor(TreePath(path), **where)
    assert resolve(anchor, FILES[path]) == line_span(path, lines)


@pytest.mark.parametrize("path", SOURCES)
def test_what_is_proposed_names_exactly_the_lines_that_were_asked_for(path):
    source = FILES[path]
    count, refused = len(source.raw_lines), 0
    for first, last in combinations_with_replacement(range(1, count + 1), 2):
        if last - first > 5:
            continue
        try:
            anchor = propose(line_span(path, (first, last)), source)
        except AnchorError:
            refused += 1
            continue
        found = resolve(anchor, source)
        texts = {
            n: source.line(n).strip() for n in range(first, last + 1)
        }  # blank lines and comments at the edges do not count
        inside = [n for n, text in texts.items() if not quiet(text)]
        assert (found.first, found.last) == (inside[0], inside[-1])
    lone = sum(
        quiet(line) or not re.search(r"\w", line)
        for line in SOURCES[path].decode().splitlines()
    )
    assert refused <= 2 * lone


def quiet(text: str) -> bool:
    text = text.strip()
    return not text or text.startswith(("//", "/*"))


@pytest.mark.parametrize("path", SOURCES)
def test_comments_and_white_space_are_no_change_and_code_is_one(path):
    data = SOURCES[path]
    whole = line_span(path, (1, len(FILES[path].raw_lines)))
    code = fingerprint(whole, FILES[path]).code
    same = re.sub(rb"(/\*.*?\*/|(?<!:)//[^\n]*)", b"", data)
    same = same.replace(b"(", b"( ").replace(b"  ", b"    ")
    source = SourceFile(TreePath(path), same)
    assert fingerprint(whole, source).code == code
    number = re.search(rb"\b\d\b", data) or re.search(rb"app", data)
    assert number
    other = data[: number.start()] + b"7" + data[number.end() :]
    assert fingerprint(whole, SourceFile(TreePath(path), other)).code != code


@pytest.mark.parametrize("path", SOURCES)
def test_keywords_and_strings_are_marked(path):
    source = FILES[path]
    kinds = {mark.kind for mark in highlight(source, 1, len(source.raw_lines))}
    assert "keyword" in kinds
    assert "string" in kinds or b'"' not in SOURCES[path]


@pytest.mark.parametrize(
    "path, where, told",
    [
        ("a.rs", {"symbol": "net.Server.clos"}, "did you mean net.Server.close?"),
        ("a.go", {"code": "return nil, nil"}, "near: line 10: return nil"),
        ("a.c", {"code": "add(...)"}, "matches for 'add(...)'"),
        ("a.ts", {"code": "{...}"}, "matches everything: add a name to it"),
        ("a.js", {"query": "(nothing) @anchor"}, "query is not valid"),
    ],
)
def test_what_does_not_resolve_says_what_is_near(path, where, told):
    with pytest.raises(AnchorError) as refused:
        resolve(Anchor(TreePath(path), **where), FILES[path])
    assert told in str(refused.value)


def test_a_query_is_of_the_language():
    anchor = Anchor(TreePath("a.go"), query="(type_declaration) @anchor")
    assert resolve(anchor, FILES["a.go"]) == line_span("a.go", (3, 5))


def test_code_that_does_not_parse_is_refused_and_code_beside_it_is_not():
    data = SOURCES["a.go"].replace(b"func Map[K any](keys []K)", b"func Map[(keys")
    source = SourceFile(TreePath("a.go"), data)
    good = Anchor(TreePath("a.go"), symbol="Server.Close")
    assert resolve(good, source) == line_span("a.go", (8, 16))
    bad = Anchor(TreePath("a.go"), code="return len(keys)")
    with pytest.raises(AnchorError, match=r"a\.go:18: got code that does not parse"):
        resolve(bad, source)


DIALECTS = {
    "a macro without a semicolon": (
        "a.c",
        'static void advance(int skip) {\n  if (skip) {\n    LOG("skip", skip)\n'
        "  } else {\n    go();\n  }\n}\n",
    ),
    "a macro before a return type": (
        "a.cpp",
        "ALWAYS_INLINE Box &define(const char *name) {\n  return keep(name);\n}\n",
    ),
    "a dependent name that the grammar takes for a declaration": (
        "a.cu",
        "template <typename T>\n__global__ __launch_bounds__(T::kThreads)\n"
        "void kernel(Params params) {\n"
        "  if constexpr(T::kVec) {\n"
        "    typename T::StoreVec(smem).Store(reinterpret_cast<vec_t*>(out), "
        "reinterpret_cast<vec_t (&)[1]>(vals), 4);\n"
        "  }\n}\n",
    ),
}


@pytest.mark.parametrize(("path", "text"), DIALECTS.values(), ids=DIALECTS)
def test_an_error_on_one_line_hides_nothing_around_it(path, text):
    source = SourceFile(TreePath(path), f"int first;\n{text}int last;\n".encode())
    assert source.root.has_error
    span = Span(TreePath(path), 2, 1 + text.count("\n"))
    assert resolve(propose(span, source), source) == span


def test_a_bracket_that_is_missing_is_no_error_on_one_line():
    data = b"int f() {\n  if (x) {\n    g();\n}\n\nint h() {\n  return 1;\n}\n"
    source = SourceFile(TreePath("a.c"), data)
    with pytest.raises(AnchorError, match="got code that does not parse"):
        resolve(Anchor(TreePath("a.c"), symbol="f"), source)


@pytest.mark.parametrize(
    "path, data, told",
    [
        (
            "a.sheet",
            b"x",
            "a.sheet: no grammar reads such a file: expected one of .c, .cc, .cjs",
        ),
        ("a.go", b"package x\0\1", "a.go: skipped: got a binary file"),
        ("a.rs", b"//" + b"x" * 300_000, "a.rs: skipped: got a line of 300,002 bytes"),
        ("a.rs", b"x\n" * 1_100_000, "a.rs: skipped: got 2,200,000 bytes"),
    ],
)
def test_what_is_no_source_is_one_line(path, data, told):
    with pytest.raises(AnchorError) as refused:
        SourceFile(TreePath(path), data)
    assert str(refused.value).startswith(told)
    assert "\n" not in str(refused.value)


def test_a_pattern_of_gaps_ends():
    data = b"int f() { " + b"a(1, b(2), " * 2_000 + b"1" + b")" * 2_000 + b"; }\n"
    source = SourceFile(TreePath("a.c"), data)
    anchor = Anchor(TreePath("a.c"), code="a(... b(... a(... b(... a(... zz")
    with pytest.raises(AnchorError):
        resolve(anchor, source)


# --- real files of packages that are here ---


def real_files() -> list[Path]:
    """Sources of other languages that packages of the environment bring along."""
    import playwright
    import torch

    found: list[Path] = []
    for package in (torch, playwright):
        root = Path(str(package.__file__)).parent
        for ending in (".h", ".cuh", ".cpp", ".js", ".ts"):
            every = sorted(root.rglob(f"*{ending}"))
            fitting = [p for p in every if 2_000 < p.stat().st_size < 60_000]
            found += fitting[:: max(1, len(fitting) // 8)][:8]
    return found


def test_definitions_of_real_files_are_found_again_by_what_is_proposed():
    files = real_files()
    assert len({ENDINGS[p.suffix] for p in files}) >= 3
    named = told = same = 0
    for path in files:
        source = SourceFile(TreePath(path.name), path.read_bytes())
        symbols = [s for places in source.symbols.values() for s in places]
        for symbol in symbols[:: max(1, len(symbols) // 6)]:
            named += 1
            wanted = line_span(path.name, (symbol.first, symbol.last))
            try:
                anchor = propose(wanted, source)
            except AnchorError:
                continue
            told += 1
            same += resolve(anchor, source) == wanted
    assert named > 100
    assert same == told
    assert told > 0.8 * named, (told, named)
