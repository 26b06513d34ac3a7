"""Languages whose grammars do not come along: read where somebody installed them."""

from __future__ import annotations

import re

import pytest

from readerkit.anchors import Anchor, SourceFile, Span, resolve
from readerkit.anchors.grammars import grammar, marks_query, tags_query
from readerkit.anchors.highlight import highlight
from readerkit.errors import GrammarError
from readerkit.model.code_languages import ENDINGS, LANGUAGES
from readerkit.model.git_names import TreePath
from tests.helpers import ROOT

MORE = [each for each in LANGUAGES if not each.comes_along and not each.is_of_pack]
PACK = [each for each in LANGUAGES if each.is_of_pack]
CODE = {
    # ending: source, definitions with their lines, a pattern that names line 2 or 3
    ".sh": ("greet() {\n  echo hi  # say\n}\n", {"greet": (1, 3)}, "echo ..."),
    ".cs": (
        "class Server {\n  void Close(int n) {\n    if (n > 2) { return; }\n  }\n}\n",
        {"Server": (1, 5), "Server.Close": (2, 4)},
        "if (...) {...}",
    ),
    ".ex": (
        "defmodule Net do\n  def close(n) do\n    n + 1\n  end\nend\n",
        {"Net": (1, 5), "Net.close": (2, 4)},
        "n + 1",
    ),
    ".hs": ("module Net where\nclose n = n + 1\n", {"close": (2, 2)}, "n + 1"),
    ".jl": ("function close(n)\n    n + 1\nend\n", {}, "n + 1"),
    ".kt": (
        "class Server {\n  fun close(n: Int): Int {\n    return n + 1\n  }\n}\n",
        {"Server": (1, 5), "Server.close": (2, 4)},
        "return ...",
    ),
    ".lua": (
        "local function close(n)\n  return n + 1\nend\n",
        {"close": (1, 3)},
        "return ...",
    ),
    ".ml": ("let close n =\n  n + 1\n", {"close": (1, 2)}, "n + 1"),
    ".php": (
        "<?php\nclass Server {\n  function close($n) { return $n + 1; }\n}\n",
        {"Server": (2, 4), "Server.close": (3, 3)},
        "return ...",
    ),
    ".rb": (
        "class Server\n  def close(n)\n    n + 1  # more\n  end\nend\n",
        {"Server": (1, 5), "Server.close": (2, 4)},
        "n + 1",
    ),
    ".scala": (
        "object Net {\n  def close(n: Int): Int = {\n    n + 1\n  }\n}\n",
        {"Net": (1, 5), "Net.close": (2, 4)},
        "n + 1",
    ),
    ".yaml": ("server:\n  close: 2\n", {}, "close: 2"),
    ".zig": (
        "fn close(n: i32) i32 {\n    return n + 1;\n}\n",
        {"close": (1, 3)},
        "return ...",
    ),
}


def test_each_has_a_source_here():
    assert {*CODE} == {each.endings[0] for each in MORE}


@pytest.mark.parametrize("ending", CODE)
def test_what_is_installed_is_read_highlighted_and_anchored(ending):
    language = ENDINGS[ending]
    if not language.is_here:
        pytest.skip(f"no {language.package} here")
    text, symbols, pattern = CODE[ending]
    source = SourceFile(TreePath(f"a{ending}"), text.encode())
    found = {name: each[0] for name, each in source.symbols.items()}
    assert {name: (each.first, each.last) for name, each in found.items()} == symbols
    span = resolve(Anchor.parse({"file": source.path, "code": pattern}), source)
    assert span.first == span.last in (2, 3)
    marks = highlight(source, 1, len(text.splitlines()))
    assert marks or ending == ".kt"  # whose package has no query for it


def test_what_is_not_installed_is_said_with_what_to_do():
    missing = [each for each in (*MORE, *PACK) if not each.is_here]
    for language in missing:
        with pytest.raises(GrammarError) as caught:
            grammar(language)
        package = language.package.replace("_", "-")
        if language.is_of_pack:
            package = "'tree-sitter-language-pack<1'"
        assert str(caught.value).endswith(f"not installed: pip install {package}")


def test_no_ending_is_of_two_languages():
    endings = [ending for each in LANGUAGES for ending in each.endings]
    assert len(endings) == len({*endings})


@pytest.mark.parametrize("file", ["README.md", "CONTRIBUTING.md"])
def test_the_pages_count_those_of_the_pack(file):
    text = (ROOT / file).read_text("utf-8")
    assert len(PACK) == int(re.search(r"(\d+) (of them inside|grammars more)", text)[1])


OF_PACK = {
    # ending: source, definitions with their lines, kinds of marks on line 2
    ".swift": (
        "class Server {\n  func close(n: Int) -> Int { return n } // done\n}\n",
        {"Server": (1, 3), "Server.close": (2, 2)},
        {"keyword", "comment"},
    ),
    ".f90": (
        "module net\n  integer :: n = 2 ! two\nend module net\n",
        {},
        {"number", "comment"},
    ),
    ".nix": ('{\n  name = "net"; # of it\n}\n', {}, {"string", "comment"}),
    ".sol": (
        "contract Net {\n  function close() public { return; } // done\n}\n",
        {"Net": (1, 3), "Net.close": (2, 2)},
        {"keyword", "comment"},
    ),
    ".toml": ('[net]\nname = "a" # of it\n', {}, {"string", "comment"}),
}


@pytest.mark.skipif(not PACK[0].is_here, reason="no language pack here")
@pytest.mark.parametrize("ending", OF_PACK)
def test_a_language_of_the_pack_is_read_highlighted_and_anchored(ending):
    text, symbols, kinds = OF_PACK[ending]
    source = SourceFile(TreePath(f"a{ending}"), text.encode())
    found = {name: each[0] for name, each in source.symbols.items()}
    assert {name: (each.first, each.last) for name, each in found.items()} == symbols
    assert {mark.kind for mark in highlight(source, 2, 2)} >= kinds
    line = text.splitlines()[1].strip()
    pattern = line.partition("//")[0].partition(" !")[0].partition(" #")[0].strip()
    anchor = Anchor.parse({"file": source.path, "code": pattern})
    assert resolve(anchor, source) == Span(source.path, 2, 2)


@pytest.mark.skipif(not PACK[0].is_here, reason="no language pack here")
@pytest.mark.parametrize("language", PACK, ids=lambda each: each.title)
def test_each_grammar_of_the_pack_loads_and_colours(language):
    assert marks_query(language).pattern_count > 0
    assert tags_query(language).pattern_count >= 0
