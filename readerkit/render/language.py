"""The terminal's own words in the language of the notes that it shows."""

from __future__ import annotations

from collections.abc import Callable

from readerkit.render.spanish import SPANISH

Say = Callable[[str], str]
"""Returns a phrase in a language; the English one where there is no other."""


def ENGLISH(phrase: str) -> str:
    """Return the phrase itself."""
    return phrase


_SPANISH = {
    # a note
    "Concepts": "Conceptos",
    "Record": "Registro",
    "link": "enlace",
    "pinned": "fijado",
    "blob": "blob",
    "folder": "carpeta",
    "state": "estado",
    "rights": "derechos",
    "the mini": "la versión mínima",
    "{blob}, verified on this read; from {origin}": (
        "{blob}, verificado en esta lectura; de {origin}"
    ),
    "the note was reviewed against exactly these lines": (
        "la nota se revisó con exactamente estas líneas"
    ),
    "not reviewed yet": "aún sin revisar",
    "these lines changed since the note was reviewed": (
        "estas líneas cambiaron desde que se revisó la nota"
    ),
    "the lock does not hold these lines": "el lock no contiene estas líneas",
    "read where it stands: a folder has no lock to be held against": (
        "leída donde está: una carpeta no tiene lock con que compararla"
    ),
    "no {language} text yet: this is the English one": (
        "aún sin texto en {language}: este es el inglés"
    ),
    "the English changed after this {language} text": (
        "el inglés cambió después de este texto en {language}"
    ),
    # a list of notes
    "its code changed since its review: read it, then {command}": (
        "su código cambió tras la revisión: léala, y después {command}"
    ),
    "differs from the lock": "difiere del lock",
    "{title} (a folder, read where it stands)": (
        "{title} (una carpeta, leída donde está)"
    ),
    "no notes on {pin}, {files}: mirrors show {places} in them": (
        "sin notas sobre {pin}, {files}: los espejos muestran {places} en ellos"
    ),
    "no notes on {pin} ({files}) yet: {command}": (
        "aún sin notas sobre {pin} ({files}): {command}"
    ),
    "{notes} ({citations}) in {with_notes} of {files} of {pin}": (
        "{notes} ({citations}) en {with_notes} de {files} de {pin}"
    ),
    "place": "lugar",
    "places": "lugares",
    "citations": "decisiones",
    "verified": "verificado",
    "kind": "tipo",
    "symbol": "símbolo",
    "title": "título",
    # a quiz
    "The questions are in English: not translated yet.": (
        "Las preguntas están en inglés: aún sin traducir."
    ),
    "question": "pregunta",
    "- skips, q leaves; every answer is kept at once.": (
        "- salta, q termina; cada respuesta se guarda al momento."
    ),
    "(- skips, q leaves)": "(- salta, q termina)",
    "The time is over.": "Se acabó el tiempo.",
    "Once more, for {share} of the points; - shows the answer.": (
        "Otra vez, por {share} de los puntos; - muestra la respuesta."
    ),
    "half": "la mitad",
    "a quarter": "un cuarto",
    "Which of these points did you make? Numbers, or nothing.": (
        "¿Cuáles de estos puntos ha dado? Números, o nada."
    ),
    "points: ": "puntos: ",
    "Each row": "Cada fila",
    "Right.": "Correcto.",
    "Wrong": "Incorrecto",
    "Not yet": "Todavía no",
    "{share} of it is right": "el {share} es correcto",
    "1 point.": "1 punto.",
    "{points} points.": "{points} puntos.",
    "Answer": "Respuesta",
    "Yours": "La suya",
    "right": "bien",
    "wrong": "mal",
    "Left.": "Terminado.",
    "Nothing was answered, so there is nothing to go on with.": (
        "No se respondió nada, así que no hay nada que seguir."
    ),
    "{done} of {of} answered, and kept. To go on: {command}": (
        "{done} de {of} respondidas, y guardadas. Para seguir: {command}"
    ),
    "Score {share} of {questions} (95% interval {low} to {high}): {verdict}": (
        "Resultado: {share} de {questions} (intervalo del 95 %, de {low} a {high}): "
        "{verdict}"
    ),
    "passed": "aprobado",
    "{share} passes": "se aprueba con el {share}",
    (
        "{done} of {of} answered: so far {share} of {questions} "
        "(95% interval {low} to {high}). Part of a quiz has no verdict."
    ): (
        "{done} de {of} respondidas: por ahora {share} de {questions} "
        "(intervalo del 95 %, de {low} a {high}). Una parte no tiene veredicto."
    ),
    "Choice questions without luck, (R - W/(k-1))/N: {share} of {questions}": (
        "Preguntas de elección sin la suerte, (R - W/(k-1))/N: {share} de {questions}"
    ),
    "{points} of {questions}   {low} to {high}": (
        "{points} de {questions}   {low} a {high}"
    ),
    "Read next:": "Leer después:",
    (
        "Mistakes come back from tomorrow: {review}. "
        "The same questions again: --seed {seed}"
    ): (
        "Los errores vuelven a partir de mañana: {review}. "
        "Las mismas preguntas otra vez: --seed {seed}"
    ),
}
LANGUAGES = ("es",)
"""Those that the terminal itself speaks beside English."""


def tongue(language: str | None) -> Say:
    """Return what says the terminal's phrases in a language."""
    if language != "es":
        return ENGLISH

    words = SPANISH | _SPANISH
    return lambda phrase: words.get(phrase, phrase)
