"""What the terminal says around a translated note is in its language too."""

from __future__ import annotations

from readerkit.app.interface_translation import say_in
from tests.helpers import make_book, run, run_on_terminal, run_process


def test_english_is_said_as_it_is():
    assert say_in("en")("Why") == say_in(None)("Why") == "Why"
    assert say_in("es")("Why") == "Por qué"


ENGLISH_LABELS = ("Decided", "Instead of", "Why  ", "Cost  ", "Source", "Concepts")


def test_a_note_in_spanish_has_spanish_around_it(real_cache, capsys):
    done = run(capsys, "annotate", "tp-dgrad-overlap", "--lang", "es")
    assert (done.code, done.err) == (0, "")
    for label in (
        *("decisión", "Decisión", "En lugar de", "Por qué", "Costo", "Fuente"),
        *("Conceptos", "Registro", "se ejecutó en", "enlace", "fijado", "derechos"),
        *("verificado en esta lectura", "la nota se revisó con exactamente estas"),
    ):
        assert label in done.out
    for label in (
        *ENGLISH_LABELS,
        "Record",
        "pinned",
        "verified",
        "reviewed",
        "ran in",
    ):
        assert label not in done.out
    assert "el mini (" in done.out
    assert "[en] " not in done.out, "titles of the minis' sections are translated"


def test_the_list_is_in_spanish_and_marks_what_is_not(real_cache, capsys):
    shown = run_on_terminal(160, "annotate", "megatron", "--lang", "es", lines=999)
    head = shown.split("\n")[0]
    assert all(word in head for word in ("tipo", "símbolo", "líneas", "título"))
    assert "notas (" in shown and "verificado" in shown
    done = run(capsys, "annotate", "megatron", "--lang", "es", "--json")
    assert '"title": "[en] ' not in done.out, "all of them are translated"


def test_a_title_without_a_translation_is_marked(tmp_path, capsys):
    spanish = "whole-step: {title: Un paso}\n"
    book = make_book(tmp_path, more={"sample/linear.es.yaml": spanish})
    at = ("--book", str(book.root), "--lang", "es")
    shown = run(capsys, "annotate", *at).out
    assert "Un paso" in shown and "[en] The closing collective" in shown
    one = run(capsys, "annotate", "close", *at)
    assert "aún sin texto en es: este es el inglés" in one.err


def test_the_quiz_takes_it(real_cache):
    done = run_process(
        *("quiz", "35", "--lang", "es", "--only", "tp-close-line", "--seed", "1"),
        stdin="1275\n-\n",
    )
    assert done.code == 0
    for phrase in (
        "1 pregunta",
        "todo se guarda al momento",
        "Todavía no",
        "Otra vez, por la mitad de los puntos",
        "Respuesta ",
        "Resultado: 0% de 1 pregunta",
        "se aprueba con el 70%",
        "Leer después:",
        "colectivo que cierra",
        "Nada bien de 1 pregunta: Leer con soltura el código",
        "Los errores vuelven a partir de mañana",
    ):
        assert phrase in " ".join(done.out.split()) + "  ", phrase
    for english in ("Score", "Answer", "Not yet", "Read next", "passes"):
        assert english not in done.out
