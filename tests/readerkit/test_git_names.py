"""What may be a path inside a tree and an id; what may not, each with its reason."""

from __future__ import annotations

from typing import Any

import pytest

from readerkit.model.git_names import parse_blob, parse_commit, parse_lines, parse_path

PATHS = [
    "a.py",
    "megatron/core/parallel_state.py",
    "torch/csrc/a-b+c_d.py",
    ".github/workflows/ci.yaml",
    ".gitattributes",
    "lib/.gitignore",
    "lib/.gitmodules",
    "lib/git/x.py",
    "lib/.gite/x.py",
    "git~/x.py",
    "...",
    "a..b/c",
    "with space/a b.py",
    "lib/a:b.py",
    "-x.py",
    "~/x.py",
    "$HOME/x.py",
    "größe.py",
    "漢字/かな.py",
    "lib/\udcff.py",
    "x" * 240,
    "/".join(["x" * 99] * 10),
]
OUTSIDE = [
    "/etc/passwd",
    "/",
    "//host/share",
    "../secret",
    "lib/../../secret",
    "lib/..",
    "..",
    "\\\\host\\share",
    "lib\\..\\x",
    "C:/x",
    "c:x",
    "C:\\x",
    "file:///etc/passwd",
]
NOT_SHORTEST = ["", ".", "./a", "a/./b", "a//b", "a/", "a/.", "lib/."]
GITS_OWN = [
    ".git",
    ".git/config",
    "lib/.git/hooks/x",
    ".GIT/config",
    ".Git/x",
    "GIT~1/config",
    "git~2/x",
    ".git /x",
    ".git./x",
    ".git. ./x",
    "lib/.git::$INDEX_ALLOCATION/x",
    ".g\u200cit/x",
    ".\u200dgit/x",
    ".git\ufeff/x",
    ".\uff47\uff49\uff54/x",
    ".GI\u00adT/x",
]
UNSEEN = [
    "a\nb.py",
    "a\rb.py",
    "a\0b.py",
    "\x1b[2Ja.py",
    "a\x7fb.py",
    "a\x85b.py",
    "a\u200bb.py",
    "a\u202ebc.py",
    "a\u2066b.py",
    "a\u2028b.py",
    "a\u00a0b.py",
    "a\u3000b.py",
    "a\u3164b.py",
    "a\ufe0fb.py",
    "\ufeffa.py",
    "\U000e0041a.py",
    "\ud800a.py",
    "a\u0308.py",
]
LONG = ["x" * 241, "é" * 121, "/".join(["x" * 99] * 11), "漢" * 100]
NO_TEXT: list[Any] = [None, 3, True, 1.5, [], ["a.py"], {}, b"a.py"]


@pytest.mark.parametrize("path", PATHS)
def test_path_inside_a_tree_is_taken_as_it_is(path):
    assert parse_path(path) == path


@pytest.mark.parametrize(
    ("path", "why"),
    [
        *((path, "leaves its upstream|is absolute or not") for path in OUTSIDE),
        *((path, "is not in its shortest form") for path in NOT_SHORTEST),
        *((path, "git's own folder") for path in GITS_OWN),
        *((p, "cannot be seen|control character|form NFC") for p in UNSEEN),
        *((path, "is longer than") for path in LONG),
        *((path, "is no text") for path in NO_TEXT),
    ],
)
def test_any_other_path_is_refused_in_one_visible_line(path, why):
    with pytest.raises(ValueError, match=why) as refused:
        parse_path(path)
    said = str(refused.value)
    assert said.isprintable()
    assert len(said) < 300


@pytest.mark.parametrize("parse", [parse_blob, parse_commit])
def test_id_is_forty_digits(parse):
    assert parse("0123456789" * 4) == "0123456789" * 4
    assert parse("abcdef0123" * 4) == "abcdef0123" * 4


@pytest.mark.parametrize("parse", [parse_blob, parse_commit])
@pytest.mark.parametrize(
    "value",
    [
        *("", "ab", "ab" * 19 + "a", "ab" * 21, "ab" * 32, "AB" * 20, "ab" * 20 + "\n"),
        *(" " + "ab" * 20, "ag" * 20, "../" * 13 + "x", "/" + "a" * 39, "\0" * 40),
        *(
            "..",
            "../../../../etc/passwd",
            "\u0660" * 40,
            "HEAD",
            "refs/heads/main",
            "-x",
        ),
        *NO_TEXT,
        int("1" * 40),
    ],
)
def test_anything_else_is_no_id(parse, value):
    with pytest.raises(ValueError, match=r"id .*expected 40 digits"):
        parse(value)


@pytest.mark.parametrize("lines", [(1, 1), (3, 7)])
def test_lines_go_from_one_on(lines):
    assert parse_lines(*lines) == lines


@pytest.mark.parametrize(
    ("first", "last"),
    [(0, 1), (-1, 2), (3, 2), ("1", 2), (1, "2"), (1.0, 2), (True, 2), (None, None)],
)
def test_other_lines_are_refused(first, last):
    with pytest.raises(ValueError, match=r"lines .*expected whole numbers"):
        parse_lines(first, last)
