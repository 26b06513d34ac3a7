"""Sentences that a check could take for true, or for false, and must not."""

from __future__ import annotations

import pytest

from tests.readerkit.claims.test_check_dispatch import held


def state(code: str, check: dict, file: str = "lib/a.py") -> str:
    return held(check, files={file: code}).state


def default(of: str, value: object) -> dict:
    return {"default": {"file": "lib/a.py", "of": of, "is": value}}


def uses(of: str, how: str, count: int) -> dict:
    return {"uses": {"of": of, "how": how, "in": ["lib/a.py"], "count": count}}


def absent(file: str = "lib/a.py", **what: str) -> dict:
    return {"absent": {"in": [file], **what}}


@pytest.mark.parametrize(
    ("code", "of"),
    [
        ("x = 1\nx += 1\n", "x"),
        ("x = 1\nx, y = 2, 3\n", "x"),
        ("x = 1\ny = x = 3\n", "x"),
        ("x = 1\nfor x in range(3):\n    pass\n", "x"),
        ("x = 1\nwith a as x:\n    pass\n", "x"),
        ("x = 1\nwith a:\n    x = 2\n", "x"),
        ("x = 1\ntry:\n    x = 2\nexcept E:\n    pass\n", "x"),
        ("x = 1\ntry:\n    pass\nfinally:\n    x = 2\n", "x"),
        ("x = 1\ndef x(): pass\n", "x"),
        ("x = 1\nfrom m import x\n", "x"),
        ("x = 1\nimport y as x\n", "x"),
        ("x = 1\ndel x\n", "x"),
        ("x = 1\n(x := 2)\n", "x"),
        ("class C:\n    x = 1\n    x += 1\n", "C.x"),
        ("class C:\n    x: int = 1\n    def x(self): pass\n", "C.x"),
        ("class C:\n    x = 1\nC.x = 2\n", "C.x"),
        ("def f():\n    x = 1\n    x += 1\n", "f.x"),
        ("if a:\n    def f(x=1): pass\nelse:\n    def f(*, y): pass\n", "f.x"),
        ("class C:\n    def f(self, x=1): pass\nclass C: pass\n", "C.f.x"),
        ("p.add_argument('--x', default=1)\np.set_defaults(x=2)\n", "--x"),
        ("p.add_argument('--x', dest='y', default=1)\np.set_defaults(y=2)\n", "--x"),
        ("x = field(default=1)\n", "x"),
        ("def f(x=field(default=1)): pass\n", "f.x"),
    ],
)
def test_what_is_given_another_value_is_no_default(code, of):
    assert state(code, default(of, 1)) == "lost"


@pytest.mark.parametrize(
    ("code", "of", "value"),
    [
        ("x = 1\nif a:\n    x = 2\n", "x", 1),
        ("x = 1\ntry:\n    import y\nexcept E:\n    x = 2\n", "x", 1),
        ("x = 1\ndef f():\n    x = 2\n", "x", 1),
        ("x = 1\ndef f():\n    x += 2\n", "x", 1),
        ("x = 1\nprint(x, a.x)\na.x = 3\nf(x=2)\nx.y = 3\nx[0] = 3\n", "x", 1),
        ("x = 1\n[x for x in y]\n", "x", 1),
        ("x = y = 1\n", "x", 1),
        ("x = y = 1\n", "y", 1),
        ("x = {2, 1, 1}\n", "x", [1, 2]),
        ("x = 'a  b'\n", "x", "a  b"),
        ("x = '''a\n  b'''\n", "x", "a\n  b"),
        ("x = (1 +\n  2)\n", "x", 3),
        ("class C:\n    x: int = field(default=1)\n", "C.x", 1),
        ("def f(): pass\n@f.setter\ndef f(x=1): pass\n", "f.x", 1),
        ("def f(x=1):\n    x += 1\n", "f.x", 1),
        ("p.add_argument('--x', action=BooleanOptionalAction)\n", "--x", None),
    ],
)
def test_a_default_is_the_value_that_is_written(code, of, value):
    assert state(code, default(of, value)) == "holds"


@pytest.mark.parametrize(
    ("code", "of", "value", "verdict"),
    [
        ("x = 'a  b'\n", "x", "a b", "false"),
        ("x = {True: 1}\n", "x", {1: 1}, "false"),
        ("x = {1, 2}\n", "x", [1, 3], "false"),
        ("p.add_argument('--x', **more)\n", "--x", None, "lost"),
        ("p.add_argument('--x', action=Mine)\n", "--x", None, "lost"),
    ],
)
def test_what_is_another_value_is_not_the_default(code, of, value, verdict):
    assert state(code, default(of, value)) == verdict


@pytest.mark.parametrize(
    ("code", "of", "how", "count"),
    [
        ("@f\ndef g(): pass\n", "f", "call", 1),
        ("@a.f\nclass C: pass\n", "f", "call", 1),
        ("@f()\ndef g(): pass\n", "f", "call", 1),
        ("from m import f as g\ng()\n", "f", "call", 1),
        ("import m.f as g\ng.x()\n", "f", "read", 1),
        ("from m import f as g\nfrom n import g as f\n", "f", "call", 0),
        (
            "try:\n  from m import f as g\nexcept E:\n  from n import f as g\ng()\n",
            "f",
            "call",
            1,
        ),
        ("from m import f as f\nf()\n", "f", "call", 1),
        ("(f)()\n", "f", "call", 1),
        ("x = [*f()]\n", "f", "call", 1),
        ("x = [*f]\n", "f", "read", 1),
        ("*x, y = z\n", "x", "set", 1),
        ("f(*x)\n", "x", "set", 0),
        ("def f(*x): pass\n", "x", "set", 0),
        ("with a as (x, y): pass\n", "y", "set", 1),
        ("match a:\n  case x: pass\n", "x", "set", 1),
        ("match a:\n  case [x, *y]: pass\n", "y", "set", 1),
        ("match a:\n  case A(x=z): pass\n", "z", "set", 1),
        ("match a:\n  case A(x=z): pass\n", "A", "read", 1),
        ("match a:\n  case A.x: pass\n", "A", "read", 1),
        ("match a:\n  case A() as x: pass\n", "x", "set", 1),
        ("match a:\n  case {'k': v, **r}: pass\n", "r", "set", 1),
        ("import a.x\nfrom x import y\n", "x", "any", 0),
    ],
)
def test_each_use_counts_as_what_it_is(code, of, how, count):
    assert state(code, uses(of, how, count)) == "holds"


@pytest.mark.parametrize(
    ("file", "code"),
    [
        ("a.py", "print foo\n"),
        ("a.c", "#define X foo(1)\n"),
        ("a.c", "#define X \\\n  foo(1)\n"),
        ("a.cpp", "#define X foo(1)\n"),
        ("a.cu", "foo<<<1, 2>>>(x);\n"),
        ("a.rs", "macro_rules! m { ($foo:expr) => { 1 } }\n"),
        ("a.go", "package a\nfunc f() { foo: for {} }\n"),
        ("a.js", "const {foo} = x;\n"),
        ("a.ts", "class A { #foo = 1 }\n"),
        ("a.java", "class A<foo> {}\n"),
    ],
)
def test_a_name_stands_there_whatever_a_grammar_calls_it(file, code):
    assert state(code, absent(f"lib/{file}", name="foo"), f"lib/{file}") == "false"


@pytest.mark.parametrize(
    ("package", "file", "code"),
    [
        ("bash", "a.sh", "foo 1\n"),
        ("bash", "a.sh", "echo ${foo:-1}\n"),
        ("ruby", "a.rb", "Foo.new\n".lower()),
        ("ruby", "a.rb", "@foo = 1\n"),
        ("php", "a.php", "<?php foo();\n"),
        ("haskell", "a.hs", "y = foo 1\n"),
        ("ocaml", "a.ml", "let y = foo 1\n"),
        ("elixir", "a.ex", "[foo: 1]\n"),
    ],
)
def test_a_name_of_a_language_that_is_installed_stands_there(package, file, code):
    pytest.importorskip(f"tree_sitter_{package}")
    assert state(code, absent(f"lib/{file}", name="foo"), f"lib/{file}") == "false"


@pytest.mark.parametrize(
    ("file", "code"),
    [
        ("a.py", "x = 'foo'  # foo\n"),
        ("a.c", 'char *x = "foo"; /* foo */\n'),
        ("a.js", "x = `foo ${1}` + 'foo'; // foo\n"),
        ("a.rs", 'let x = "foo"; // foo\n'),
        ("a.go", "package a\nvar x = `foo`\n"),
        ("a.java", 'class A { String x = "foo"; }\n'),
    ],
)
def test_what_a_string_or_a_comment_says_is_no_name(file, code):
    assert state(code, absent(f"lib/{file}", name="foo"), f"lib/{file}") == "holds"


def test_a_word_behind_an_escape_stands_there():
    assert state("x = 'a\\nfoo'\n", absent(text="foo")) == "false"
    assert state("x = 'a\\nfood'\n", absent(text="foo")) == "holds"
    assert state("x = 'snfoo'\n", absent(text="foo")) == "holds"


def test_of_code_that_does_not_parse_nothing_is_absent():
    broken = "print 'a'\nfoo(:\n"
    assert state(broken, absent(code="foo(...)")) == "lost"
    assert state(broken, absent(code="bar(...)")) == "holds"


@pytest.mark.parametrize(
    ("code", "pattern"),
    [
        ("x: foo[int] = 1\n", "foo[int]"),
        ("def f(a: foo[int]): pass\n", "foo[...]"),
        ("match x:\n  case foo(1): pass\n", "foo(...)"),
        ("x = [*foo(1)]\n", "foo(...)"),
    ],
)
def test_what_a_pattern_cannot_tell_is_not_absent(code, pattern):
    assert state(code, absent(code=pattern)) == "lost"
    assert state(code, absent(code=pattern.replace("foo", "bar"))) == "holds"
    assert state(f"# {pattern}\nx = 1\n", absent(code=pattern)) == "holds"


TORN = """\
int f(int a) {
    if (a)
        return 1;
    BEGIN_THREADS
    a = g(a);
    END_THREADS
    if ((a == 0) || (a == 1)) {
        h("no");
        goto error;
    }
    while ((a = k(a))) {
        if (a == 0) {
            goto error;
        }
    }
    last(a);
    return a;
error:
    return 0;
}
"""


def test_of_a_definition_that_is_cut_by_what_does_not_parse_nothing_is_absent():
    check = absent("lib/a.c", name="last", symbol="f")
    assert state(TORN, check, "lib/a.c") != "holds"
    whole = TORN.replace("    BEGIN_THREADS\n", "").replace("    END_THREADS\n", "")
    assert state(whole, check, "lib/a.c") == "false"
    assert state(whole, absent("lib/a.c", name="x", symbol="f"), "lib/a.c") == "holds"


def guard(condition: str) -> dict:
    return {"guard": {"file": "lib/a.py", "code": "f()", "under": condition}}


@pytest.mark.parametrize(
    ("code", "verdict"),
    [
        ("x = (f()  # why\n     if c else 1)\n", "holds"),
        ("x = (1 if c  # why\n     else f())\n", "false"),
        ("[x for x in y if c if f()]\n", "holds"),
        ("[x for x in y if f() if c]\n", "false"),
        ("[x for x in y if c for z in f()]\n", "holds"),
        ("[x for x in f() if c]\n", "false"),
        ("match a:\n  case 1 if c:\n    f()\n", "holds"),
        ("match a:\n  case 1 if f():\n    c\n", "false"),
    ],
)
def test_a_condition_counts_where_it_is_tested_first(code, verdict):
    assert state(code, guard("c")) == verdict
