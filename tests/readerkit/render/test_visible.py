import sys
import unicodedata

import pytest

from readerkit.render.terminal_safe import in_ascii, visible, visible_line


@pytest.mark.parametrize(
    "text",
    ["", "plain text", "tab\tand\nline", "Größe · 漢字 “quoted” — naïve", "🙂 🏳"],
)
def test_text_that_can_be_seen_is_left_alone(text):
    assert visible(text) == text


@pytest.mark.parametrize(
    ("hidden", "shown"),
    [
        pytest.param("\x1b[31m", "<U+001B>[31m", id="escape"),
        pytest.param("\x9b31m", "<U+009B>31m", id="8-bit-escape"),
        pytest.param("\r", "<U+000D>", id="carriage-return"),
        pytest.param("\x08", "<U+0008>", id="backspace"),
        pytest.param("\x7f", "<U+007F>", id="delete"),
        pytest.param("\u200b", "<U+200B>", id="zero-width-space"),
        pytest.param("\u2060", "<U+2060>", id="word-joiner"),
        pytest.param("\ufeff", "<U+FEFF>", id="byte-order-mark"),
        pytest.param("\u00ad", "<U+00AD>", id="soft-hyphen"),
        pytest.param("\u202e", "<U+202E>", id="right-to-left-override"),
        pytest.param("\u2067", "<U+2067>", id="right-to-left-isolate"),
        pytest.param("\u061c", "<U+061C>", id="arabic-letter-mark"),
        pytest.param("\u2028", "<U+2028>", id="line-separator"),
        pytest.param("\U000e0041", "<U+E0041>", id="tag-letter"),
        pytest.param("\ufe00", "<U+FE00>", id="variation-selector"),
        pytest.param("\ufe0f", "<U+FE0F>", id="emoji-selector"),
        pytest.param("\U000e0100", "<U+E0100>", id="ideographic-selector"),
        pytest.param("\u180b", "<U+180B>", id="mongolian-selector"),
        pytest.param("\u17b4", "<U+17B4>", id="khmer-inherent-vowel"),
        pytest.param("\u3164", "<U+3164>", id="hangul-filler"),
        pytest.param("\udc9b", "<U+DC9B>", id="lone-surrogate"),
    ],
)
def test_what_a_terminal_would_obey_or_hide_is_spelt_out(hidden, shown):
    assert visible(f"a{hidden}b") == f"a{shown}b"


def test_no_control_or_format_character_gets_through():
    every = map(chr, range(sys.maxunicode + 1))
    hidden = [c for c in every if unicodedata.category(c) in ("Cc", "Cf", "Zl", "Zp")]
    shown = visible("".join(hidden))
    assert shown.count("<U+") == len(hidden) - 2  # line end and tab stay


def test_marks_that_draw_something_stay():
    marks = ["e\u0301", "\u0915\u094d", "\u05d0\u05b7", "\u1780\u17b7", "\u20dd"]
    assert [visible(mark) for mark in marks] == marks


def test_one_line_is_one_line():
    assert visible_line("a\n  b\t\x1bc\u202e") == "a b <U+001B>c<U+202E>"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("plain", "plain"),
        (
            "© 2024 “Größe” … 2 \N{MULTIPLICATION SIGN} 3 → 6",
            '(c) 2024 "Grosse" ... 2 x 3 -> 6',
        ),
        ("módulo/日本.py", "modulo/??.py"),
    ],
)
def test_ascii_comes_as_near_as_it_can(text, expected):
    assert in_ascii(text) == expected
