"""The site's own words in English and Spanish, and texts that exist in either."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

from markupsafe import Markup

from readerkit.render.html.escape import shown

SPANISH = {
    "Skip to the content": "Ir al contenido",
    "Start": "Inicio",
    "Read": "Leer",
    "Side by side": "Lado a lado",
    "Minis": "Minis",
    "Paths": "Rutas",
    "Chapters": "Capítulos",
    "Concepts": "Conceptos",
    "Quiz": "Preguntas",
    "Questions": "Preguntas",
    "References": "Referencias",
    "Search": "Buscar",
    "Theme": "Tema",
    "citation": "decisión",
    "note": "nota",
    "pitfall": "trampa",
    "Decided": "Decisión",
    "Instead of": "En lugar de",
    "Why": "Por qué",
    "Cost": "Coste",
    "Note": "Nota",
    "Source": "Fuente",
    "The mini": "La versión mínima",
    "Proof": "Prueba",
    "Evidence": "Evidencia",
    "ran here": "se ejecutó aquí",
    "ran here; these lines themselves send nothing": (
        "se ejecutó aquí; estas líneas no envían nada"
    ),
    "not executed in this configuration": "no se ejecutó en esta configuración",
    "no record covers these lines": "ningún registro cubre estas líneas",
    "lines": "líneas",
    "commit": "commit",
    "blob": "blob",
    "reviewed against exactly these lines": "revisada con exactamente estas líneas",
    "not reviewed yet": "aún sin revisar",
    "these lines changed since the review": "estas líneas cambiaron tras la revisión",
    "these lines are not in the lock": "estas líneas no están en el lock",
    "the same lines on the upstream host": "las mismas líneas en el sitio original",
    "Notes in this file": "Notas de este archivo",
    "Uses of what this file defines": "Usos de lo que define este archivo",
    "Not translated yet: the English text.": "Aún sin traducir: texto en inglés.",
    "Print, quote, link: every line has an address.": (
        "Imprima, cite, enlace: cada línea tiene su dirección."
    ),
    "What the mini leaves out": "Lo que la versión mínima omite",
    "same": "igual",
    "simplified": "simplificado",
    "differs": "distinto",
    "upstream-only": "solo en el original",
    "One step, event by event": "Un paso, evento a evento",
    "All files": "Todos los archivos",
    "Needs first": "Requiere antes",
    "Returns in": "Reaparece en",
    "Notes": "Notas",
}


@dataclass(frozen=True, slots=True)
class Text:
    """Something to read, as markup, in English and perhaps in Spanish."""

    en: Markup
    es: Markup | None = None


@lru_cache(1 << 12)
def label(english: str) -> Text:
    """Return one of the site's own words in both languages."""
    spanish = SPANISH.get(english)
    return Text(shown(english), shown(spanish) if spanish else None)


@lru_cache(1 << 12)
def both(text: Text, tag: str = "span") -> Markup:
    """Return a text in both languages, of which a page shows one at a time."""
    if text.es is None:
        return text.en
    one = '<{0} class="b" lang="en">{1}</{0}>'
    other = '<{0} class="b" lang="es">{2}</{0}>'
    return Markup(one + other).format(tag, text.en, text.es)
