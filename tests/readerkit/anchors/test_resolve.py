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
