"""The site's own words in English and Spanish, and texts that exist in either."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

from markupsafe import Markup

from readerkit.render.html.escape import shown
from readerkit.render.spanish import SPANISH


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


def counted(number: int, one: str, several: str) -> Markup:
    """Return a number with the word for one or for several, in both languages."""
    word = both(label(one if number == 1 else several))
    return Markup("{:,} {}").format(number, word)


@lru_cache(1 << 12)
def both(text: Text, tag: str = "span") -> Markup:
    """Return a text in both languages, of which a page shows one at a time."""
    if text.es is None:
        return text.en
    one = '<{0} class="b" lang="en">{1}</{0}>'
    other = '<{0} class="b" lang="es">{2}</{0}>'
    return Markup(one + other).format(tag, text.en, text.es)
