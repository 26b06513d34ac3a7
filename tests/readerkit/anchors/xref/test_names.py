"""What a file defines, imports and uses, as far as syntax decides it."""

from __future__ import annotations

import sys

import pytest

from readerkit.anchors.xref.names import Import, Names, collect_names


def names_of(text):
    return collect_names(text.encode())


def used(text):
    return [(use.line, use.chain) for use in names_of(text).uses]


def test_definitions_are_qualified_and_have_every_line():
    names = names_of(
        "x, (y, *z) = f()\nclass A(B, c.D):\n    def m(self): ...\n"
        "try:\n    def g(): ...\nexcept E:\n    def g(): ...\n"
    )
    assert names.defined == {
        "A": [2],
        "A.m": [3],
        "g": [5, 7],
        "x": [1],
        "y": [1],
        "z": [1],
    }
    assert names.bases == {"A": ["B", "c.D"]}


def test_imports_say_what_they_bind():
    names = names_of(
        "import a.b\nimport a.b as c\nfrom .d import e, f as g\nfrom h import *\n"
        "def late():\n    from ..i import j\n"
    )
    assert names.imports == [
        Import("a", "a"),
        Import("c", "a.b"),
        Import("e", ".d", "e"),
        Import("g", ".d", "f"),
        Import("", "h", "*"),
        Import("j", "..i", "j", scope="@68"),
    ]


NOT_A_USE = {
    "a parameter": "def f(g): return g",
    "a parameter with a type": "def f(g: int): return g",
    "a parameter with a value": "def f(a=1, g=2): return g",
    "a parameter with both": "def f(a: int = 1, g: int = 2): return g",
    "arguments in bulk": "def f(*g, **h): return g",
    "a keyword-only one": "def f(*, g): return g",
    "a lambda's": "k = lambda g: g",
    "an assignment": "def f():\n    g = 1\n    return g",
    "an assignment below": "def f():\n    if 1: print(g)\n    g = 1",
    "an enclosing function's": "def f(g):\n    def h():\n        return g",
    "a loop's": "def f():\n    for i, g in x: return g",
    "a comprehension's": "def f(): return [g for g in x]",
    "a with statement's": "def f():\n    with x as g: return g",
    "an error's": "def f():\n    try: 1\n    except E as g: return g",
    "a walrus": "def f():\n    if (g := 1): return g",
    "a keyword argument": "f(g=1)",
    "an attribute": "f.g",
    "a string": "'g' + f'g {{g}} {1:g}'",
    "a type's own": "def f[g](x: g) -> g: return g",
    "a class's type": "class C[g](D[g]):\n    x: g",
    "a bound of a type": "def f[g: int, *h](): return g",
    "an alias's": "type X[g] = list[g]",
    "a pattern's rest": "def f():\n    match x:\n        case [*g]: return g",
    "a pattern's keys": "def f():\n    match x:\n        case {**g}: return g",
    "a pattern's name": "def f():\n    match x:\n        case C() as g: return g",
    "a pattern's label": "match x:\n    case C(g=1): ...",
    "a pattern's field": "def f():\n    match x:\n        case C(y=g): return g",
    "a pattern's choice": "def f():\n    match x:\n        case 1 | g: return g",
    "arguments with types": "def f(*g: int, **h: int): return g",
    "a lambda's many": "k = lambda *g, **h: g",
    "a module's comprehension": "k = [g for g in x if g]",
    "a walrus in a comprehension": (
        "def f():\n    [(g := y) for y in x]\n    return g"
    ),
    "a declaration": "def f():\n    global g",
    "an import of another": "from x import g as h",
    "a comment": "f()  # g",
    "an outer function's, changed": (
        "def f():\n    g = 1\n    def h():\n        nonlocal g\n        g = 2"
    ),
    "a class's own": "class A:\n    g = 1\n    h = g",
    "a part of a longer name": "f(gg, g2, g_, ñg)",
}


@pytest.mark.parametrize("text", NOT_A_USE.values(), ids=NOT_A_USE)
def test_no_use_of_the_module_level_name(text):
    text = "def g(): ...\n" + text
    assert [chain for _, chain in used(text) if chain == "g"] == []


USES = {
    "a call": "g()",
    "a default": "def f(a=g): ...",
    "a comparison": "if g == 1: ...",
    "a method past a class attribute": (
        "class A:\n    g = 1\n    def m(self): return g"
    ),
    "a declared global": "def f():\n    global g\n    g = 2\n    return g",
    "a type before a value": "x: g = 1",
    "a parameter's type before a value": "def f(x: g = 1): ...",
    "a parameter's own default": "def f(g=g): ...",
    "a lambda's own default": "k = lambda g=g: 1",
    "code in a string": "x = f'{g}'",
    "code in a string's format": "x = f'{1:>{g}}'",
    "code that shows itself in a string": "x = f'{g=}'",
    "code in a string in a string": "x = f'{f\"{g}\"}'",
    "the source of a comprehension": "k = [1 for g in g]",
    "the owner of what is assigned": "g.x = 1",
    "what is deleted": "del g",
    "what is changed": "g += 1",
    "a value in a pattern": "match x:\n    case g.y: ...",
    "a class in a pattern": "match x:\n    case g(): ...",
    "a decorator": "@g\ndef f(): ...",
    "an attribute assigned on another": "def f():\n    x.g = 1\n    return g",
}
if sys.version_info >= (3, 12):
    USES |= {
        "a base of a class with types": "class C[T](g): ...",
        "a bound": "def f[T: g](): ...",
        "what an alias stands for": "type X[T] = g[T]",
        "code in a string with its own quotes": "x = f'{f'{g}'}'",
    }


@pytest.mark.parametrize("text", USES.values(), ids=USES)
def test_a_use_of_the_module_level_name(text):
    found = [chain.partition(".")[0] for _, chain in used("def g(): ...\n" + text)]
    assert "g" in found


def test_a_function_s_own_definition_is_used_where_it_is_seen():
    names = names_of(
        "def g(): ...\ndef f():\n    def g(): ...\n    return g\n"
        "def h():\n    def g(): ...\n    g = 1\n    return g\ng\n"
    )
    assert [(use.line, use.owner) for use in names.uses] == [(4, "f"), (9, "")]


def test_every_place_that_gives_a_module_s_name_a_value_is_known():
    names = names_of(
        "try:\n    x = 1\nexcept E:\n    x = 2\n"
        "def f():\n    global x\n    x = 3\n    x += 1\n"
        "def g():\n    x = 4\nx, x = 5, 6\n[x for x in y]\n"
    )
    assert names.defined["x"] == [2, 4, 7, 11]


def test_a_base_that_only_a_function_knows_is_no_class_of_the_module():
    names = names_of("class A: ...\ndef f(A):\n    class B(A): ...\nclass C(A): ...\n")
    assert names.bases == {"A": [], "f.B": [], "C": ["A"]}


def test_self_belongs_to_its_class():
    names = names_of(
        "class A:\n    def m(self):\n        def inner():\n            self.n.o()\n"
        "    def n(self): ...\nself.x\n"
    )
    assert [(use.chain, use.owner) for use in names.uses] == [("self.n.o", "A")]


UNREAD = {
    "broken": b"def f(:\n  class (((",
    "not UTF-8": b"# -*- coding: latin-1 -*-\nx = '\xe9'\n",
    "a null byte": b"x = 1\0\n",
    "lines that git does not count": b"x = 1\ry = 2\n",
    "of another Python": b"print 1\n",
    "brackets too deep": b"x = " + b"(" * 5_000,
    "a tree too deep": b"x = " + b"-" * 50_000 + b"1",
}


@pytest.mark.parametrize("data", UNREAD.values(), ids=UNREAD)
def test_what_this_python_does_not_read_has_no_names(data):
    assert collect_names(data) == Names()


READ = {
    "tabs": "if 1:\n\tdef f(): ...\n\tx = f()\n",
    "form feeds": "if 1:\n  def f(): ...\n\f  x = f()\n",
    "carriage returns": "'''a\r\nb'''\r\ndef f(): ...\r\nx = f()\r\n",
    "letters of several bytes": "def f(): ...\n'é', '😀'; x = 'é', f()\n",
    "an odd escape": "def f(): ...\n'\\d'; x = f()\n",
    "a cookie of another encoding": "# coding: latin-1\ndef f(): 'é'\nx = f()",
    "a broken header": "async \\\n def \\\n f(): ...\nx = f()\n",
    "a line of a hundred thousand bytes": "def f(): ...\nx = " + "1, " * 33_000 + "f()",
    "code in strings over lines": (
        "def f(): ...\nx = ('é' f'{1:>{2}}'\n f'''é{1}\n {\n f()} {1!r}''')\n"
    ),
}


@pytest.mark.parametrize("text", READ.values(), ids=READ)
def test_every_name_stands_where_it_is_written(text):
    data, names = text.encode(), names_of(text)
    assert names.defined.keys() == {"f", "x"}
    for start, end, name in names.definition_places:
        assert data[start:end] == name.encode()
        assert names.defined[name] == [data[:start].count(b"\n") + 1]
    (use,) = names.uses
    assert data[use.start : use.end + 2] == b"f()"
    assert use.line == data[: use.start].count(b"\n") + 1


def test_a_name_without_a_node_of_its_own_has_a_place():
    text = (
        "try: 1\nexcept (A, B) as a: a\n"
        "match 1:\n"
        "    case C() as b: b\n    case [*c]: c\n    case {**d}: d\n    case e: e\n"
    )
    names = names_of(text)
    assert names.defined == {"a": [2], "b": [4], "c": [5], "d": [6], "e": [7]}
    assert [use.chain for use in names.uses] == [*"abcde"]
    assert all(text[start:end] == name for start, end, name in names.definition_places)


def test_what_is_given_a_value_is_no_use_of_it():
    names = names_of(
        "class A: b = 1\nA.b = 1\nA.b: int = 1\nA.b, x = y\n(A.b, x) = y\n"
        "for A.b in y: 1\nwith y as A.b: 1\nA.b += 1\ndel A.b\nA.b == 1\n"
    )
    assert [use.chain for use in names.uses] == ["A"] * 6 + ["A.b"] * 3


def test_a_name_in_letters_that_python_reads_as_others_has_no_link():
    names = names_of("def fi(): ...\nfi()\n\N{LATIN SMALL LIGATURE FI}()\n")
    assert [use.line for use in names.uses] == [2]


def test_what_only_the_grammar_tells_is_known():
    text = "'d'\ndef f():\n  'e'\nx = 's'\nmatch x:\n  case 1 | (2): 'g'\n"
    assert [
        (text[s:e], kind) for (s, e), kind in sorted(names_of(text).kinds.items())
    ] == [
        ("'d'", "docstring"),
        ("'e'", "docstring"),
        ("match", "keyword"),
        ("case", "keyword"),
        ("'g'", "docstring"),
    ]
