"""An anchor is exactly one place, or an error that says which it could be."""

from __future__ import annotations

from typing import Any

import pytest

from readerkit.anchors import Anchor, SourceFile, resolve
from readerkit.errors import AnchorError

SOURCE = """\
import torch


class Row:
    @torch.no_grad()
    def forward(self, x, bias=None):
        # the sum is completed last: all_reduce(y)
        y = self.impl(
            input=x,  # a shard
            weight=self.weight,
        )
        if self.parallel:
            y = scatter(y, group=self.group)
        elif self.expert:
            pass
        else:
            y = reduce(y, group=self.group)
        if not self.skip:
            y = y + bias if bias is not None else y
        return y

    def backward(self, grad):
        text = "reduce(y, group=self.group) ..."
        for index in range(3):
            handle = dist.all_reduce(grad, async_op=True)
        with self.stream as s, other():
            total = {"a": 1, **more}
        try:
            handle.wait()
        except RuntimeError as error:
            raise ValueError("no") from error
        finally:
            done(*args, **options)
        return [item for item in (grad, total)]


def reduce(x, group):
    return x
"""
FILE = SourceFile("lib/row.py", SOURCE.encode())

PLACES: list[tuple[str, dict[str, Any], tuple[int, int]]] = [
    ("a call over lines", {"code": "self.impl(...)"}, (8, 11)),
    (
        "comments inside do not count",
        {"code": "self.impl(input=x, weight=self.weight)"},
        (8, 11),
    ),
    ("assignment", {"code": "y = self.impl(...)"}, (8, 11)),
    ("gap as a value", {"code": "y = reduce(...)"}, (17, 17)),
    ("gap before a keyword", {"code": "scatter(..., group=self.group)"}, (13, 13)),
    ("gap as a keyword's value", {"code": "scatter(y, group=...)"}, (13, 13)),
    (
        "white space does not count",
        {"code": "scatter( y,group = self.group )"},
        (13, 13),
    ),
    ("header of if", {"code": "if self.parallel:"}, (12, 12)),
    ("whole if takes its clauses", {"code": "if self.parallel: ..."}, (12, 17)),
    ("header of elif", {"code": "elif self.expert:"}, (14, 14)),
    ("whole elif", {"code": "elif self.expert: ..."}, (14, 15)),
    ("header of else", {"code": "else:"}, (16, 16)),
    ("def header", {"code": "def forward(...):"}, (6, 6)),
    ("decorator", {"code": "torch.no_grad()"}, (5, 5)),
    ("return", {"code": "return y"}, (20, 20)),
    ("range", {"from": "if self.parallel:", "to": "y = reduce(...)"}, (12, 17)),
    (
        "range of one node",
        {"from": "y = self.impl(...)", "to": "self.impl(...)"},
        (8, 11),
    ),
    ("nth", {"code": "self.group", "nth": 2}, (17, 17)),
    (
        "to_nth",
        {"from": "if self.parallel:", "to": "self.group", "to_nth": 2},
        (12, 17),
    ),
    ("query", {"query": "(conditional_expression) @anchor"}, (19, 19)),
]
BACKWARD: list[tuple[str, dict[str, Any], tuple[int, int]]] = [
    ("string with dots", {"code": '"reduce(y, group=self.group) ..."'}, (23, 23)),
    ("for header", {"code": "for ... in range(...):"}, (24, 24)),
    ("whole for", {"code": "for index in ...: ..."}, (24, 25)),
    ("with header", {"code": "with ...:"}, (26, 26)),
    ("dictionary", {"code": "total = {...}"}, (27, 27)),
    ("except header", {"code": "except RuntimeError as error:"}, (30, 30)),
    ("finally", {"code": "finally:"}, (32, 32)),
    ("raise", {"code": "raise ValueError(...) from error"}, (31, 31)),
    ("splats", {"code": "done(*args, ...)"}, (33, 33)),
    ("comprehension in brackets", {"code": "return [...]"}, (34, 34)),
    ("method call", {"code": "handle.wait()"}, (29, 29)),
    ("the last name of a chain", {"code": "dist.all_reduce(...)"}, (25, 25)),
]


@pytest.mark.parametrize(
    ("symbol", "keys", "lines"),
    [("Row.forward", keys, lines) for _, keys, lines in PLACES]
    + [("Row.backward", keys, lines) for _, keys, lines in BACKWARD],
    ids=[name for name, *_ in PLACES + BACKWARD],
)
def test_anchor_names_these_lines(
    symbol: str, keys: dict[str, Any], lines: tuple[int, int]
) -> None:
    anchor = Anchor.parse({"file": "lib/row.py", "symbol": symbol, **keys})
    span = resolve(anchor, FILE)
    assert (span.path, span.first, span.last) == ("lib/row.py", *lines)


def test_without_a_symbol_the_whole_file_is_searched() -> None:
    anchor = Anchor.parse({"file": "lib/row.py", "code": "def reduce(...): ..."})
    assert str(resolve(anchor, FILE)) == "lib/row.py:37-38"


REFUSED: list[tuple[str, dict[str, Any], str]] = [
    ("two places", {"code": "self.group"}, "2 matches"),
    ("nth out of range", {"code": "self.group", "nth": 3}, "got 3, expected 1 to 2"),
    ("end before the start", {"from": "return y", "to": "if self.skip:"}, "no match"),
    ("two statements", {"code": "a = 1\nb = 2"}, "is not one expression"),
    ("not Python", {"code": "if if"}, "is not one expression"),
    ("only a gap", {"code": "..."}, "matches everything"),
    ("too long", {"code": "f(" + "a, " * 2000 + ")"}, "too long"),
    ("bad query", {"query": "(no_such_node) @anchor"}, "query is not valid"),
    ("query without a capture", {"query": "(if_statement)"}, "@anchor"),
]


@pytest.mark.parametrize(
    ("keys", "message"),
    [(keys, message) for _, keys, message in REFUSED],
    ids=[name for name, *_ in REFUSED],
)
def test_anchor_without_one_place_is_refused(
    keys: dict[str, Any], message: str
) -> None:
    anchor = Anchor.parse({"file": "lib/row.py", "symbol": "Row.forward", **keys})
    with pytest.raises(AnchorError) as caught:
        resolve(anchor, FILE)
    assert message in str(caught.value)


@pytest.mark.parametrize("code", ["reduce(y, ...)", "hand.wait()", "al(...)"])
def test_text_in_strings_comments_and_longer_names_is_no_match(code: str) -> None:
    with pytest.raises(AnchorError, match="no match"):
        resolve(Anchor("lib/row.py", symbol="Row.backward", code=code), FILE)


def test_candidates_are_named_with_their_lines() -> None:
    with pytest.raises(AnchorError) as caught:
        resolve(Anchor("lib/row.py", symbol="Row.forward", code="self.group"), FILE)
    assert caught.value.candidates == (
        "nth: 1 is line 13: y = scatter(y, group=self.group)",
        "nth: 2 is line 17: y = reduce(y, group=self.group)",
    )


def test_misspelt_pattern_shows_the_nearest_lines() -> None:
    with pytest.raises(AnchorError) as caught:
        resolve(Anchor("lib/row.py", symbol="Row.forward", code="scater(...)"), FILE)
    assert "near: line 13" in caught.value.candidates[0]


CONTRADICTIONS: list[tuple[str, dict[str, Any], str]] = [
    ("a file alone", {}, "got a file alone"),
    ("code and query", {"code": "x", "query": "(call) @anchor"}, "together"),
    ("from without to", {"from": "x"}, "expected 'to'"),
    ("to without from", {"to": "x"}, "expected 'from'"),
    ("to_nth without to", {"code": "x", "to_nth": 2}, "without 'to'"),
    ("up and out", {"file": "../a.py", "symbol": "f"}, "leaves its upstream"),
    (
        "up in the middle",
        {"file": "a/../../b.py", "symbol": "f"},
        "leaves its upstream",
    ),
    ("absolute", {"file": "/etc/passwd", "symbol": "f"}, "absolute"),
    ("a drive", {"file": "C:/a.py", "symbol": "f"}, "POSIX"),
    ("backslashes", {"file": "a\\b.py", "symbol": "f"}, "POSIX"),
    ("not shortest", {"file": "a/./b.py", "symbol": "f"}, "shortest"),
    ("control character", {"file": "a\n.py", "symbol": "f"}, "control character"),
]


@pytest.mark.parametrize(
    ("keys", "message"),
    [(keys, message) for _, keys, message in CONTRADICTIONS],
    ids=[name for name, *_ in CONTRADICTIONS],
)
def test_contradicting_keys_are_refused(keys: dict[str, Any], message: str) -> None:
    with pytest.raises(AnchorError) as caught:
        Anchor.parse({"file": "lib/row.py", **keys})
    assert message in str(caught.value)


def test_moved_and_reformatted_code_keeps_its_anchor() -> None:
    anchor = Anchor(
        "lib/row.py", symbol="Row.forward", code="scatter(y, group=self.group)"
    )
    moved = SOURCE.replace("import torch\n", "import torch\n\nX = 1\n\n").replace(
        "scatter(y, group=self.group)",
        "scatter(\n    y,  # all of it\n    group=self.group,\n)",
    )
    span = resolve(anchor, SourceFile("lib/row.py", moved.encode()))
    assert (span.first, span.last) == (16, 19)


def test_edited_code_loses_its_anchor() -> None:
    anchor = Anchor(
        "lib/row.py", symbol="Row.forward", code="scatter(y, group=self.group)"
    )
    edited = SOURCE.replace(
        "scatter(y, group=self.group)", "scatter(y, group=self.world)"
    )
    with pytest.raises(AnchorError, match="no match"):
        resolve(anchor, SourceFile("lib/row.py", edited.encode()))


def test_anchor_survives_its_yaml_form() -> None:
    keys = {
        "file": "a.py",
        "symbol": "f",
        "from": "a",
        "to": "b",
        "nth": 1,
        "to_nth": 2,
    }
    assert Anchor.parse(keys).to_yaml() == keys


# --- which definition, which match ---

REDEFINED = SourceFile(
    "a.py",
    b"""\
from typing import overload

if FAST:
    def step(x):
        return fast(x)
else:
    def step(x):
        first(x)
        return slow(x)


class A:
    @property
    def x(self):
        return self._x

    @x.setter
    def x(self, value):
        self._x = check(value)

    @overload
    def f(self, a: int) -> int: ...

    @overload
    def f(self, a: str) -> str: ...

    def f(self, a):
        return a

    try:
        def g(self):
            return 1
    except NameError:
        def g(self):
            return 2

    class A:
        def x(self):
            return 3


def outer():
    def x():
        return 4

    return x
""",
)
CHOSEN: list[tuple[str, dict[str, Any], tuple[int, int]]] = [
    ("first under if", {"symbol": "step", "nth": 1}, (4, 5)),
    ("second under else", {"symbol": "step", "nth": 2}, (7, 9)),
    ("code in one of them", {"symbol": "step", "code": "slow(x)"}, (9, 9)),
    ("equal code in both", {"symbol": "step", "code": "return ...", "nth": 2}, (9, 9)),
    ("range in one", {"symbol": "step", "from": "first(x)", "to": "slow(x)"}, (8, 9)),
    ("property", {"symbol": "A.x", "nth": 1}, (14, 15)),
    ("setter", {"symbol": "A.x", "nth": 2}, (18, 19)),
    ("setter by its code", {"symbol": "A.x", "code": "check(value)"}, (19, 19)),
    ("setter by its decorator", {"symbol": "A.x", "code": "@x.setter"}, (17, 17)),
    ("overload", {"symbol": "A.f", "nth": 2}, (25, 25)),
    ("implementation", {"symbol": "A.f", "nth": 3}, (27, 28)),
    ("overload by its type", {"symbol": "A.f", "code": "a: str"}, (25, 25)),
    ("under try", {"symbol": "A.g", "nth": 1}, (31, 32)),
    ("under except", {"symbol": "A.g", "nth": 2}, (34, 35)),
    ("nested class of the same name", {"symbol": "A.A"}, (37, 39)),
    ("its method", {"symbol": "A.A.x"}, (38, 39)),
    ("function in a function", {"symbol": "outer.x"}, (43, 44)),
    (
        "query in one of them",
        {"symbol": "A.g", "query": "(integer) @anchor", "nth": 2},
        (35, 35),
    ),
]


@pytest.mark.parametrize(
    ("keys", "lines"),
    [(keys, lines) for _, keys, lines in CHOSEN],
    ids=[name for name, *_ in CHOSEN],
)
def test_one_of_several_definitions_is_named(
    keys: dict[str, Any], lines: tuple[int, int]
) -> None:
    span = resolve(Anchor.parse({"file": "a.py", **keys}), REDEFINED)
    assert (span.first, span.last) == lines


AMBIGUOUS: list[tuple[str, dict[str, Any], list[str]]] = [
    (
        "property and setter",
        {"symbol": "A.x"},
        ["nth: 1 is line 14: def x(self):", "nth: 2 is line 18: def x(self, value):"],
    ),
    (
        "overloads",
        {"symbol": "A.f"},
        [
            "nth: 1 is line 22: def f(self, a: int) -> int: ...",
            "nth: 2 is line 25: def f(self, a: str) -> str: ...",
            "nth: 3 is line 27: def f(self, a):",
        ],
    ),
    (
        "code in both",
        {"symbol": "A.g", "code": "return ..."},
        ["nth: 1 is line 32: return 1", "nth: 2 is line 35: return 2"],
    ),
    (
        "query in both",
        {"symbol": "A.g", "query": "(return_statement) @anchor"},
        ["nth: 1 is line 32: return 1", "nth: 2 is line 35: return 2"],
    ),
    (
        "nth beyond",
        {"symbol": "A.g", "nth": 3},
        ["nth: 1 is line 31: def g(self):", "nth: 2 is line 34: def g(self):"],
    ),
]


@pytest.mark.parametrize(
    ("keys", "candidates"),
    [(keys, candidates) for _, keys, candidates in AMBIGUOUS],
    ids=[name for name, *_ in AMBIGUOUS],
)
def test_several_places_are_listed_as_nth_would_pick_them(
    keys: dict[str, Any], candidates: list[str]
) -> None:
    with pytest.raises(AnchorError) as caught:
        resolve(Anchor.parse({"file": "a.py", **keys}), REDEFINED)
    assert list(caught.value.candidates) == candidates


def test_many_places_are_counted_not_listed() -> None:
    file = SourceFile("a.py", b"".join(b"f(%d)\n" % n for n in range(20)))
    with pytest.raises(AnchorError) as caught:
        resolve(Anchor("a.py", code="f(...)"), file)
    assert caught.value.reason == "a.py: 20 matches for 'f(...)', expected one"
    assert len(caught.value.candidates) == 9
    assert caught.value.candidates[-1] == "and 12 more"


def test_long_line_of_a_candidate_is_cut() -> None:
    line = b"f(" + b"a, " * 100 + b")\n"
    with pytest.raises(AnchorError) as caught:
        resolve(Anchor("a.py", code="f(...)"), SourceFile("a.py", line * 2))
    assert all(len(row) < 120 for row in caught.value.candidates)


RANGE = SourceFile(
    "a.py",
    b"def f():\n    a()\n    if b():\n        c(1)\n    else:\n        c(2)\n"
    b"    d()\n    a(1)\n",
)
RANGES: list[tuple[str, dict[str, Any], tuple[int, int]]] = [
    ("a match each", {"from": "a()", "to": "d()"}, (2, 7)),
    ("the same line", {"from": "a()", "to": "a()"}, (2, 2)),
    ("a header to its body", {"from": "if b():", "to": "c(1)"}, (3, 4)),
    ("a whole statement covers its end", {"from": "if b(): ...", "to": "c(1)"}, (3, 6)),
    ("nth picks the start", {"from": "c(...)", "nth": 2, "to": "d()"}, (6, 7)),
    (
        "to_nth counts from there",
        {"from": "if b():", "to": "c(...)", "to_nth": 2},
        (3, 6),
    ),
    (
        "to_nth from the second",
        {"from": "c(...)", "nth": 2, "to": "c(...)", "to_nth": 1},
        (6, 6),
    ),
    ("an end before does not count", {"from": "d()", "to": "a(...)"}, (7, 8)),
]


@pytest.mark.parametrize(
    ("keys", "lines"),
    [(keys, lines) for _, keys, lines in RANGES],
    ids=[name for name, *_ in RANGES],
)
def test_range_goes_from_one_pattern_to_the_other(
    keys: dict[str, Any], lines: tuple[int, int]
) -> None:
    anchor = Anchor.parse({"file": "a.py", "symbol": "f", **keys})
    span = resolve(anchor, RANGE)
    assert (span.first, span.last) == lines


def test_end_of_a_range_says_where_it_looked() -> None:
    with pytest.raises(AnchorError) as caught:
        resolve(Anchor("a.py", start="d()", stop="if b():"), RANGE)
    assert "no match for 'if b():' at or after line 7, where" in caught.value.reason
    with pytest.raises(AnchorError) as caught:
        resolve(Anchor("a.py", start="if b():", stop="c(...)"), RANGE)
    assert caught.value.reason == (
        "a.py: 2 matches for 'c(...)' after line 3, expected one"
    )
    assert caught.value.candidates == (
        "to_nth: 1 is line 4: c(1)",
        "to_nth: 2 is line 6: c(2)",
    )
    with pytest.raises(AnchorError, match="to_nth is out of range: got 3, expected 1"):
        resolve(Anchor("a.py", start="if b():", stop="c(...)", to_nth=3), RANGE)


def test_range_stays_in_its_definition() -> None:
    file = SourceFile("a.py", b"def f():\n    a()\n\ndef g():\n    b()\n")
    with pytest.raises(AnchorError, match="no match for 'b\\(\\)' at or after line 2"):
        resolve(Anchor("a.py", symbol="f", start="a()", stop="b()"), file)
    assert str(resolve(Anchor("a.py", start="a()", stop="b()"), file)) == "a.py:2-5"


# --- raw queries ---

QUERIES = {
    "a node type": ("(if_statement) @anchor", (3, 6)),
    "a field": ("(if_statement condition: (call) @anchor)", (3, 3)),
    "a predicate": ('((call) @anchor (#eq? @anchor "a()"))', (2, 2)),
    "a match": ('((call) @anchor (#match? @anchor "^d"))', (7, 7)),
    "any of": ('((call) @anchor (#any-of? @anchor "x" "c(2)"))', (6, 6)),
    "other captures": ('((call (identifier) @n) @anchor (#eq? @n "d"))', (7, 7)),
    "one node by several ways": (
        "(if_statement consequence: (block (_) @x) alternative: (_ (_) @y)) @anchor",
        (3, 6),
    ),
}


@pytest.mark.parametrize(("query", "lines"), QUERIES.values(), ids=QUERIES)
def test_query_names_the_node_it_captures(query: str, lines: tuple[int, int]) -> None:
    span = resolve(Anchor("a.py", query=query), RANGE)
    assert (span.first, span.last) == lines


BAD_QUERIES = {
    "an open bracket": ("(call", "query is not valid"),
    "an unknown node": ("(cal) @anchor", "query is not valid: Invalid node type"),
    "an unknown field": ("(call name: (_)) @anchor", "query is not valid"),
    "an impossible structure": ("(call (module)) @anchor", "query is not valid"),
    "a bad expression": ('((call) @anchor (#match? @anchor "["))', "not valid"),
    "too few arguments": ("((call) @anchor (#eq? @anchor))", "not valid"),
    "an unknown predicate": (
        '((call) @anchor (#near? @anchor "a"))',
        "unknown predicate #near?",
    ),
    "no capture": ("(call)", "got no capture, expected @anchor"),
    "other captures": ("(call (_) @a) @b", "got @a, @b, expected @anchor"),
    "nothing": ("", "got no capture, expected @anchor"),
    "no match": ("(lambda) @anchor", "query matched nothing"),
    "several matches": ("(call) @anchor", "6 matches for the query, expected one"),
    "too long": ("(call) @anchor " * 200, "query is too long: got 3,000 bytes"),
    "a null byte": ("(call) \0 @anchor", "query is not valid"),
}


@pytest.mark.parametrize(("query", "message"), BAD_QUERIES.values(), ids=BAD_QUERIES)
def test_query_without_one_place_is_refused(query: str, message: str) -> None:
    with pytest.raises(AnchorError) as caught:
        resolve(Anchor("a.py", query=query), RANGE)
    assert message in str(caught.value)


# --- nearest names and lines ---

NEAR = SourceFile(
    "a.py",
    b"class RowParallel:\n    def forward(self): pass\n    def backward(self): pass\n"
    b"class ColumnParallel:\n    def forward(self): pass\n"
    b"def all_reduce_together(x):\n    return x\n",
)
MISSPELT = {
    "a letter": ("RowParalel.forward", "RowParallel.forward? (line 2)"),
    "another class": ("ColumnParallel.backward", "RowParallel.backward? (line 3)"),
    "without its class": ("backward", "RowParallel.backward? (line 3)"),
    "with a class": ("X.all_reduce_together", "all_reduce_together? (line 6)"),
    "upper and lower case": ("rowparallel", "RowParallel? (line 1)"),
    "part of the name": ("all_reduce_togeth", "all_reduce_together? (line 6)"),
}


@pytest.mark.parametrize(("name", "meant"), MISSPELT.values(), ids=MISSPELT)
def test_misspelt_symbol_gets_the_one_that_was_meant(name: str, meant: str) -> None:
    with pytest.raises(AnchorError) as caught:
        resolve(Anchor("a.py", symbol=name), NEAR)
    assert caught.value.reason == f"a.py: no symbol {name!r}"
    assert f"did you mean {meant}" in caught.value.candidates


def test_symbol_like_nothing_says_how_many_there_are() -> None:
    with pytest.raises(AnchorError) as caught:
        resolve(Anchor("a.py", symbol="qqqq"), NEAR)
    assert caught.value.candidates == ("it defines 6 symbols, none alike",)


NEAR_CODE = {
    "a letter": ("self.implement(...)", "near: line 8: y = self.impl("),
    "another argument": (
        "y = scatter(y, group=self.world)",
        "near: line 13: y = scatter(y, group=self.group)",
    ),
    "another condition": ("if self.paralel:", "near: line 12: if self.parallel:"),
}


@pytest.mark.parametrize(("code", "near"), NEAR_CODE.values(), ids=NEAR_CODE)
def test_misspelt_code_gets_the_nearest_line_of_its_symbol(
    code: str, near: str
) -> None:
    with pytest.raises(AnchorError) as caught:
        resolve(Anchor("lib/row.py", symbol="Row.forward", code=code), FILE)
    assert caught.value.reason.endswith(f"no match for {code!r} in Row.forward")
    assert near in caught.value.candidates
