"""The kind of each token, in code that parses and in any other."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from readerkit.anchors.xref.colours import find_colours

pytestmark = pytest.mark.sampled

MARKS = {
    "comment": "#",
    "string": "s",
    "number": "n",
    "keyword": "k",
    "constant": "c",
    "defined": "d",
}


def marked(text: str) -> str:
    """Return the text with each part that has a colour in brackets."""
    data = text.encode()
    for (start, end), kind in reversed(find_colours(data).items()):
        part = data[start:end]
        data = b"%b%b<%b>%b" % (data[:start], MARKS[kind].encode(), part, data[end:])
    return data.decode()


CASES = {
    "words": ("if x is not None: pass", "k<if> x k<is not> c<None>: k<pass>"),
    "longer words": ("iff, ifé, éif, None_, f.If", "iff, ifé, éif, None_, f.If"),
    "a function": ("async def f(): ...", "k<async> k<def> d<f>(): ..."),
    "a class": ("class  É(B): ...", "k<class>  d<É>(B): ..."),
    "whole numbers": ("1_0 0xFf 2j", "n<1_0> n<0xFf> n<2j>"),
    "numbers with a point": (".5e-3 1. 1.e5", "n<.5e-3> n<1.> n<1.e5>"),
    "no numbers": ("a1 a.b _1", "a1 a.b _1"),
    "a comment": ("x = '#' # '", "x = s<'#'> #<# '>"),
    "prefixes": ("rb'a' Rb'a' u'a' xr'a'", "s<rb'a'> s<Rb'a'> s<u'a'> xrs<'a'>"),
    "escapes": (r"'a\'b' r'\'' x", r"s<'a\'b'> s<r'\''> x"),
    "over lines": ("'''a\n'b''' x", "s<'''a\n'b'''> x"),
    "a line ends it": ("'a\nif", "s<'a>\nk<if>"),
    "the file ends it": ("'''a\nif", "s<'''a\nif>"),
    "code in it": ("f'a{x if y}b'", "s<f'a{>x k<if> ys<}b'>"),
    "code that shows itself": ("f'{x=}{x = !r}'", "s<f'{>xs<=}{>x s<= !r}'>"),
    "how it is shown": ("f'{x!r:>{1}}' 1", "s<f'{>xs<!r:>{>n<1>s<}}'> n<1>"),
    "operators in it": (
        "f'{x!=1}{x<=1}{a[b:1]}'",
        "s<f'{>x!=n<1>s<}{>x<=n<1>s<}{>a[b:n<1>]s<}'>",
    ),
    "a function in it": ("f'{(lambda: 1)()}'", "s<f'{>(k<lambda>: n<1>)()s<}'>"),
    "braces": ("f'{{if}} {1}'", "s<f'{{if}} {>n<1>s<}'>"),
    "a dictionary in it": ("f'{ {1: x}[y] }'", "s<f'{> {n<1>: x}[y] s<}'>"),
    "a string in it": ("f'{\"a\"}{g}'", "s<f'{>s<\"a\">s<}{>gs<}'>"),
    "its own quotes in it": (
        "f'{f'{1}' or 2}'",
        "s<f'{>s<f'{>n<1>s<}'> k<or> n<2>s<}'>",
    ),
    "a raw one": (r"rf'\{1}\d'", r"s<rf'\{>n<1>s<}\d'>"),
    "a letter by name": (r"f'\N{DASH}{1}'", r"s<f'\N{DASH}{>n<1>s<}'>"),
    "code over lines": ("f'''{\n1\n}''' 1", "s<f'''{>\nn<1>\ns<}'''> n<1>"),
    "no end to it": ("f'{x", "s<f'{>x"),
}


@pytest.mark.parametrize(("text", "expected"), CASES.values(), ids=CASES)
def test_each_part_has_its_kind(text, expected):
    assert marked(text) == expected


PARTS = [*"'\"{}\\\n x1.#=:!()", "'''", '"""', "f'", 'rf"""', "def ", "if", "é", "\0"]


@given(st.lists(st.sampled_from(PARTS)).map("".join))
def test_parts_come_in_order_and_none_is_inside_another(text):
    reached = 0
    for start, end in find_colours(text.encode()):
        assert reached <= start < end <= len(text.encode())
        reached = end


@pytest.mark.parametrize("part", ["f'{", "f'''{", "'", "\\", "f'{(", "'''\\'", "x "])
def test_what_has_no_end_is_read_once(part):
    find_colours(part.encode() * 200_000)
