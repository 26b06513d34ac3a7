"""Titles, tasks and hints in Spanish: all exercises, of the English of today."""

import re

import pytest
from msgspec.structs import replace

from readerkit.app.rebuilding import in_language, read_exercises, read_spanish
from readerkit.cli import main
from readerkit.commands import rebuild
from readerkit.content.exercises import stamp
from tests.content.test_quiz_spanish import OTHER_WORDS
from tests.content.test_translations import changed
from tests.helpers import ROOT

EXERCISES = {each.key: each for each in read_exercises()}
SPANISH = read_spanish()
CODE_ALONE = "dist.reduce_scatter_single("
"""A hint that begins so says nothing but a call."""


def test_sidecar_has_the_exercises_in_their_order():
    assert list(SPANISH) == list(EXERCISES)


@pytest.mark.parametrize("key", EXERCISES)
def test_spanish_exercise_keeps_what_the_english_of_today_says(key):
    exercise, spanish = EXERCISES[key], SPANISH[key]
    assert spanish.of == stamp(exercise), f"once it says the same: {stamp(exercise)}"
    hints = zip(exercise.hints, spanish.hints, strict=True)
    both = ((exercise.title, spanish.title), (exercise.asks, spanish.asks), *hints)
    for english, other in both:
        is_code = english == other and english.startswith(CODE_ALONE)
        assert is_code or changed(english, other) == []


def test_one_word_stands_for_each_thing():
    text = (ROOT / "mini_impls/faults/exercises.es.yaml").read_text("utf-8")
    wrong = re.compile(rf"\b({'|'.join(OTHER_WORDS)})\b", re.IGNORECASE)
    assert wrong.findall(text) == []


def test_what_was_of_another_english_is_said_in_english():
    exercise = EXERCISES["ddp/overlap"]
    (now,) = in_language([exercise], "es")
    assert (now.title, now.hints) == (SPANISH[now.key].title, SPANISH[now.key].hints)
    (other_title,) = in_language([replace(exercise, title="another")], "es")
    assert (other_title.title, other_title.hints) == ("[en] another", now.hints)
    (other_task,) = in_language([replace(exercise, asks="another")], "es")
    assert (other_task.asks, other_task.title) == ("[en] another", now.title)
    assert now.asks == SPANISH[now.key].asks
    (other_hints,) = in_language([replace(exercise, hints=("one", "two"))], "es")
    assert other_hints.hints == ("[en] one", "[en] two")
    (unknown,) = in_language([replace(exercise, name="new")], "es")
    assert unknown.title == f"[en] {exercise.title}"
    assert in_language([exercise], "en") == (exercise,)


def said(capsys, *argv):
    """Return what the command says, in one line."""
    with pytest.raises(SystemExit) as ended:
        main(["rebuild", *argv, "--lang", "es"])
    assert ended.value.code == 0
    return " ".join(capsys.readouterr().out.split())


def test_the_task_is_in_spanish(capsys):
    out = said(capsys, "ddp", "mean")
    assert f"{SPANISH['ddp/mean'].title} {SPANISH['ddp/mean'].asks} su copia" in out


def test_the_list_and_the_hints_are_in_spanish(capsys):
    assert SPANISH["ddp/mean"].title in said(capsys, "ddp")
    first, last = SPANISH["ddp/mean"].hints
    assert said(capsys, "ddp", "mean", "--hint") == f"pista 1 de 2: {first}"
    out = said(capsys, "ddp", "mean", "--hint")
    assert f"pista 2 de 2: {last} Esa era la última" in out


def test_what_a_grading_found_is_in_spanish(capsys, monkeypatch):
    def results(*_: object) -> list[dict]:
        rows = (
            ("it runs to its end", True, ""),
            ("the ranks stay one model", True, ""),
            ("it does what upstream does", None, "compare ddp"),
        )
        names, rest = ("says", "passed", "command"), {"told": "", "hint": ""}
        return [{**rest, **dict(zip(names, row, strict=True))} for row in rows]

    monkeypatch.setattr(rebuild, "_run", results)
    with pytest.raises(SystemExit) as ended:
        main(["rebuild", "ddp", "mean", "--check", "--lang", "es"])
    rows = capsys.readouterr().out.splitlines()
    assert ended.value.code == 1
    assert rows == [
        "sí   se ejecuta hasta el final",
        "sí   los ranks siguen siendo un solo modelo",
        "?    hace lo que hace el original: compare ddp",
        "",
        "2 de 6 comprobaciones; una pista: readerkit rebuild ddp mean --hint",
    ]
    assert "2 de 6 comprobaciones, 1 intento" in said(capsys, "ddp")
