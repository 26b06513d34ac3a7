"""Source made to hurt: it is read, or skipped with a reason, in bounded time."""

from __future__ import annotations

import subprocess
import sys

import pytest

from readerkit.anchors import Anchor, SourceFile, Span, fingerprint, resolve
from readerkit.anchors.propose import propose
from readerkit.errors import AnchorError
from tests.terminals import WAIT_S

pytestmark = pytest.mark.sampled

DEPTH = 50_000
DEEP = {
    "parentheses": b"x = " + b"(" * DEPTH + b"1" + b")" * DEPTH,
    "calls": b"x = " + b"f(" * DEPTH + b"1" + b")" * DEPTH,
    "attributes": b"x" + b".a" * DEPTH,
    "minus": b"x = " + b"-" * DEPTH + b"1",
    "open brackets": b"[" * DEPTH,
    "open braces": b"{" * DEPTH,
    "lambdas": b"lambda:" * 14_000,
    "calls over lines": b"f(\n" * DEPTH + b"1\n" + b")\n" * DEPTH,
    "blocks": b"".join(b" " * n + b"if x:\n" for n in range(1_400)),
    "definitions": b"".join(b" " * n + b"def f():\n" for n in range(1_400)),
    "decorators": b"@a\n" * 10_000 + b"def f(): pass",
    "clauses": b"if a: b\n" + b"elif c: d\n" * DEPTH,
    "comments": b"# x\n" * DEPTH,
}


@pytest.mark.parametrize("source", DEEP.values(), ids=DEEP)
def test_deep_nesting_is_walked_without_a_crash(source: bytes) -> None:
    # In a child process: what is feared is a crash of the interpreter.
    program = (
        "import sys\n"
        "from readerkit.anchors import *\n"
        "from readerkit.errors import AnchorError\n"
        "source = SourceFile('a.py', sys.stdin.buffer.read())\n"
        "source.symbols, fingerprint(Span('a.py', 1, 1), source)\n"
        "from readerkit.anchors.highlight import highlight\n"
        "from readerkit.anchors.propose import propose\n"
        "highlight(source, 1, min(40, len(source.raw_lines)))\n"
        "for way in ({'code': 'f(...)'}, {'code': 'x.a'}, {'symbol': 'f'},\n"
        "            {'query': '(call) @anchor'}):\n"
        "    try: print(resolve(Anchor('a.py', nth=1, **way), source))\n"
        "    except AnchorError as error: print(error)\n"
        "try: print(propose(Span('a.py', 1, 1), source))\n"
        "except AnchorError as error: print(error)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", program],
        input=source,
        capture_output=True,
        timeout=WAIT_S,
    )
    assert done.returncode == 0, done.stderr.decode()[-500:]
    assert done.stdout


def test_nesting_beyond_reason_says_so() -> None:
    source = SourceFile("a.py", DEEP["attributes"])
    with pytest.raises(AnchorError, match="nested deeper than"):
        resolve(Anchor("a.py", code="x.a"), source)
    with pytest.raises(AnchorError, match="no short pattern names"):
        propose(Span("a.py", 1, 1), source)
    calls = SourceFile("a.py", DEEP["calls"])
    assert propose(Span("a.py", 1, 1), calls) == Anchor("a.py", code="x = ...")


def test_file_too_large_is_skipped_with_its_size() -> None:
    with pytest.raises(AnchorError, match=r"skipped: got 5,000,0\d\d bytes"):
        SourceFile("a.py", b"x = " + b"1" * 5_000_000)


def test_one_line_of_a_megabyte_is_skipped_with_its_size() -> None:
    with pytest.raises(AnchorError, match="a line of 1,500,000 bytes"):
        SourceFile("a.py", b"x = 1\n" + b"#" * 1_500_000)


def test_long_lines_below_the_limit_are_read() -> None:
    source = SourceFile("a.py", b"x = [" + b"1, " * 33_000 + b"]\ndef f(): pass\n")
    assert str(resolve(Anchor("a.py", symbol="f"), source)) == "a.py:2"


def test_thousands_of_definitions_take_linear_steps() -> None:
    source = SourceFile("a.py", b"def f(): pass\n" * 20_000)
    assert len(source.symbols["f"]) == 20_000


def test_empty_file_has_nothing_to_name() -> None:
    source = SourceFile("a.py", b"")
    assert source.symbols == {} and source.raw_lines == []
    assert fingerprint(Span("a.py", 1, 1), source).code == ""
