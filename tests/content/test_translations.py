"""The Spanish texts: of what exists, in its order, and with its numbers and code."""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path

import pytest
from msgspec.structs import replace

from readerkit.content.annotations import TEXT_FIELDS, Annotation
from readerkit.content.strict_yaml import parse_yaml
from tests.content.test_annotations import library
from tests.helpers import ROOT

NOTES = ROOT / "annotations"
PAGES = ROOT / "site" / "pages"
FIELDS = ("title", *TEXT_FIELDS)

CODE = re.compile(r"`[^`]+`")
NUMBER = re.compile(r"\d+(?:[.,]\d+)*(?: ?(?:[KMGT]i?B\b|%))?")
SHORT = r"(?:\d+|[a-z]{1,2})\b"
# 1/dp, t=2, v*h/t, t * cp * dp
TERM = re.compile(rf"\b{SHORT}(?: ?[*/=] ?{SHORT})+")
KEPT = {
    "code": CODE,
    "formula": re.compile(r"(?<!\d)\$[^$]+\$(?!\d)"),  # no prices
    "link": re.compile(r"\]\([^)]*\)"),
    "heading or list": re.compile(r"^(?:#+|[-*]|\d+\.)(?= )", re.M),
    "bold": re.compile(r"\*\*"),
}
KEPT_BESIDE_CODE = {"number": NUMBER, "term": TERM}


def kept(text: str) -> Counter[tuple[str, str]]:
    """Return all that a translation leaves as it is, and how often it stands there."""
    beside = CODE.sub(" ", text)
    found = [(what, m) for what, like in KEPT.items() for m in like.findall(text)]
    for what, like in KEPT_BESIDE_CODE.items():
        found += [(what, match.replace(" ", "")) for match in like.findall(beside)]
    return Counter((what, " ".join(match.split())) for what, match in found)


def changed(english: str, spanish: str) -> list[str]:
    """Return what only one of two texts has, and that they are equal if they are."""
    ours, theirs = kept(english), kept(spanish)
    rows = [f"only in English: {what} {text}" for what, text in ours - theirs]
    rows += [f"only in Spanish: {what} {text}" for what, text in theirs - ours]
    return rows + (["not translated"] if english == spanish else [])


def sidecars() -> list[Path]:
    """Return those of notes; mirrors and tours have theirs in their own folders."""
    every = sorted(NOTES.glob("*/*.es.yaml"))
    return [path for path in every if path.parent.name not in ("mirrors", "tours")]


def translated() -> list[tuple[Annotation, dict[str, str]]]:
    """Return the notes that have Spanish texts, with these."""
    book = library().book
    return [
        (book.annotations[name], dict(said.texts))
        for name, said in book.translations["es"].items()
    ]


def scripts() -> list[Path]:
    """Return the chapters, labs and solutions."""
    folders = (PAGES / "chapters", PAGES / "labs")
    return [
        path
        for folder in folders
        for path in sorted(folder.glob("*.md"))
        if not path.name.endswith(".es.md")
    ]


FENCE = re.compile(r"^```(.*)\n((?s:.*?))^```$", re.M)


def fences(text: str) -> list[tuple[str, list[str]]]:
    """Return what is fenced: what it is, and the keys and numbers in it, in order."""
    return [
        (head, re.findall(r"\b\w+(?=: )", body) + NUMBER.findall(body))
        for head, body in FENCE.findall(text)
    ]


# --- what the comparison sees ---

CHANGES = {
    "a number": ("40 million parameters", "41 millones de parámetros"),
    "a number with a point": ("a factor of 1.0", "un factor de 1.1"),
    "a unit": ("25 MiB by default", "25 MB por defecto"),
    "a share": ("saves 70% of it", "ahorra el 7% de eso"),
    "a code span": ("`main_grad` is a view", "`grad` es una vista"),
    "a code span that is gone": ("`main_grad` is a view", "es una vista"),
    "a number in code": ("`2(t-1)/t * A` bytes", "`(t-1)/t * A` bytes"),
    "a fraction": ("1/dp of the bucket", "1/t del bucket"),
    "a value": ("at t=1", "con t=2"),
    "a product": ("v*h/t elements", "v*h elementos"),
    "a link": ("[here](https://a.example/)", "[aquí](https://b.example/)"),
    "a formula": ("$x^2$", "$x^3$"),
    "a list": ("- one\n- two\n", "- uno\n"),
    "no translation": ("a bucket", "a bucket"),
}


@pytest.mark.parametrize(("english", "spanish"), CHANGES.values(), ids=CHANGES)
def test_what_a_translation_may_not_change_is_seen(english, spanish):
    assert changed(english, spanish)


SAME = {
    "order": ("`a` before `b`, 1 and 2", "2 y 1, `b` después de `a`"),
    "units apart": ("160 MB", "160MB"),
    "a term spaced": ("t * cp", "t*cp"),
    "bits": ("16-bit activations", "activaciones de 16 bits"),
}


@pytest.mark.parametrize(("english", "spanish"), SAME.values(), ids=SAME)
def test_words_may_stand_in_any_order(english, spanish):
    assert changed(english, spanish) == []


def test_a_number_that_changes_in_english_is_seen_in_every_note_that_has_one():
    counted = 0
    for note, texts in translated():
        for field in FIELDS:
            beside = CODE.sub(" ", getattr(note, field))
            if NUMBER.search(beside):
                counted += 1
                number = NUMBER.search(beside)[0]
                moved = getattr(note, field).replace(number, f"9{number}")
                english = replace(note, **{field: moved})
                assert changed(getattr(english, field), texts[field])
    assert counted > 20


# --- the sidecars ---


def test_sidecars_have_the_notes_of_their_english_files_in_their_order():
    for path in sidecars():
        english = path.with_name(path.name.replace(".es.", "."))
        ids = [entry["id"] for entry in parse_yaml(english.read_bytes(), "").value]
        ours = list(parse_yaml(path.read_bytes(), "").value)
        assert ours == [name for name in ids if name in ours], path


def test_a_note_is_translated_whole_or_not_at_all():
    assert [
        note.id
        for note, texts in translated()
        if set(texts) != set(note.texts) or len(texts["title"]) > 80
    ] == []


def test_translation_says_of_which_english_it_is():
    stale = [
        note.id
        for note, _ in translated()
        if library().book.translated(note, "es").of != note.stamp
    ]
    assert stale == [], "readerkit annotate --check tells what to do"


def test_spanish_text_keeps_numbers_code_and_links():
    assert [
        (note.id, field, rows)
        for note, texts in translated()
        for field, text in texts.items()
        if (rows := changed(note.texts[field], text))
    ] == []


# --- chapters and labs ---


def test_chapter_and_lab_say_the_same_in_spanish():
    for path in scripts():
        english = path.read_text("utf-8")
        spanish = path.with_suffix(".es.md").read_text("utf-8")
        assert fences(english) == fences(spanish), path
        said = changed(FENCE.sub("", english), FENCE.sub("", spanish))
        assert said == [], path
