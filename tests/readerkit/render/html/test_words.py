"""A page holds each word in both languages, and shows one at a time."""

from __future__ import annotations

import json

from readerkit.render.html.words import Text, Words

WORDS = Words({"Why": "Por qué", "note": "nota", "notes": "notas"}, {"</a>": "Tema"})


def test_a_word_is_shown_in_one_language_at_a_time():
    html = WORDS.say("Why")
    assert "<span class=b lang=en>Why</span>" in html
    assert "<span class=b lang=es>Por qué</span>" in html
    marked = '<span lang="en">no such word &lt;b&gt;</span>'
    assert WORDS.say("no such word <b>") == marked


def test_one_is_not_said_as_several():
    assert ">note<" in WORDS.counted(1, "note", "notes")
    assert ">notas<" in WORDS.counted(2, "note", "notes")
    marked = '1,234 <span lang="en">no suches</span>'
    assert WORDS.counted(1234, "no such", "no suches") == marked


def test_a_sentence_is_told_once_where_both_languages_say_the_same():
    assert WORDS.text(lambda say: f"{say('Why')}?") == Text("Why?", "Por qué?")
    assert WORDS.text(lambda say: say("§ 3")) == Text("§ 3")


def test_what_scripts_say_stands_before_the_script_that_says_it():
    words, _, script = WORDS.before(lambda: b"run();").decode().partition(";\n")
    assert json.loads(words.removeprefix("window.readerkitWords = ")) == WORDS.scripts
    assert script == "run();"
