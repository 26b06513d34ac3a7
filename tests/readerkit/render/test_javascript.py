"""Python to JavaScript: what is translated, and what is refused with its line."""

from __future__ import annotations

import pytest

from readerkit.app.page_estimates_script import ENTRIES, METHODS, _source
from readerkit.errors import ReaderkitError
from readerkit.render.javascript.translate import data, translate

ENTRY = {"start": ("readerkit.sample", "start")}


def script(text):
    return translate(ENTRY, {"readerkit.sample": text}.__getitem__)


@pytest.mark.parametrize(
    ("python", "javascript"),
    [
        ("return a + 1", "return $.add(a,1n);"),
        ("return a / 2.5", "return $.div(a,2.5);"),
        ("return 1 if a else None", "return ($.b(a)?1n:null);"),
        ("return f'{a:.2f} B'", "return `${$.format(a,`.2f`)} B`;"),
        ("x, y = a\n    return y", "let x,y;[x,y]=a;return y;"),
        ("return [i for i in a if i]", "for(const i of a)if($.b(i))$r.push(i)"),
        ("for new in a:\n        yield new", "for(new_$ of a){yield new_$;}"),
        ("return start(a=1)", "return start$(1n);"),
        ("return 'é' in a", 'return $.has(a, "é");'),
    ],
)
def test_a_construct_is_that_of_the_other_language(python, javascript):
    assert javascript in script(f"def start(a):\n    {python}\n")


@pytest.mark.parametrize(
    ("python", "what"),
    [
        ("with a:\n        pass", "With"),
        ("return a @ a", "MatMult"),
        ("return a[::2]", "a slice with a step"),
        ("return open(a)", "the name open"),
        ("import os\n    return os.sep", "os"),
        ("return 0 < max(a) < 2", "a call between two comparisons"),
    ],
)
def test_what_is_not_translated_is_refused_with_its_line(python, what):
    with pytest.raises(ReaderkitError) as refused:
        script(f"def start(a):\n    {python}\n")
    assert str(refused.value).startswith("readerkit/sample.py:")
    assert f": not translated to JavaScript: {what} " in str(refused.value)


def test_only_what_is_reached_is_in_the_script():
    text = script(
        "class Size:\n"
        "    n: int\n"
        "    def used(self):\n        return self.n\n"
        "    def unused(self):\n        return open('x')\n"
        "def other():\n    return open('x')\n"
        "def start(a):\n    return Size(a).used()\n"
    )
    assert "used()" in text
    assert "unused" not in text and "other" not in text


def test_the_estimates_are_translated_alike_each_time_and_without_a_formula_of_others():
    once = translate(ENTRIES, _source, METHODS)
    assert once == translate(ENTRIES, _source, METHODS)
    assert "estimate_inference" not in once
    assert len(once) < 220_000


def test_data_keeps_whole_numbers_apart_from_others():
    text = data("known", {"a": 1, "b": 1.0, "c": [True, None, "é"]})
    assert '["a",1n],["b",1.0],["c",[true,null,' in text
